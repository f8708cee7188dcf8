//! The manifests that most tests need, as YAML. Tests of one field write their own.

/// An anonymous gateway of a name.
pub fn gateway(name: &str) -> String {
    format!(
        "---\napiVersion: mooring.dev/v1alpha1\nkind: MCPGateway\nmetadata: {{name: {name}}}\n\
         spec: {{auth: {{anonymous: {{}}}}}}\n"
    )
}

/// A target of a name at a URL, attached to a gateway.
pub fn target(name: &str, gateway: &str, url: &str) -> String {
    format!(
        "---\napiVersion: mooring.dev/v1alpha1\nkind: MCPTarget\nmetadata: {{name: {name}}}\n\
         spec: {{gatewayRefs: [{{name: {gateway}}}], server: {{type: URL, url: {{address: \"{url}\"}}}}}}\n"
    )
}

/// A target of a name that is a local command on stdio, attached to a gateway. `more` is what else `container` has, such
/// as `, isolation: Shared`.
pub fn command<W: AsRef<str>>(name: &str, gateway: &str, command: &[W], more: &str) -> String {
    let command: serde_json::Value = command.iter().map(AsRef::as_ref).collect();
    format!(
        "---\napiVersion: mooring.dev/v1alpha1\nkind: MCPTarget\nmetadata: {{name: {name}}}\n\
         spec: {{gatewayRefs: [{{name: {gateway}}}], server: {{type: Container, container: \
         {{image: unused, command: {command}{more}}}}}}}\n"
    )
}

/// The anonymous gateway `tools` with targets of these names and URLs.
pub fn gateway_with<const N: usize>(targets: [(&str, String); N]) -> String {
    let targets = targets.map(|(name, url)| target(name, "tools", &url));
    [gateway("tools")].into_iter().chain(targets).collect()
}
