//! Manifests from files: what `moored serve` runs from. Reads once; stricter than an API server, since nobody prunes.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use mooring_crds::{
    ACPAgent, MCPGateway, MCPTarget, Platform, Refusal, accept_agent, compile,
    config::GatewayConfig,
    manifest::{self, Unreadable},
};
use serde_json::Value;

/// Why files cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum BadFiles {
    /// A file that cannot be read.
    #[error("{}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file that is no YAML.
    #[error("{}: {message}", .path.display())]
    Yaml {
        /// The file.
        path: PathBuf,
        /// Where and why, in the parser's words.
        message: String,
    },
    /// A document that is no object of a kind of ours.
    #[error("{}: {object}: {source}", .path.display())]
    Object {
        /// The file.
        path: PathBuf,
        /// Its kind and name.
        object: String,
        /// Why not.
        source: Unreadable,
    },
    /// An object that this version refuses.
    #[error("{object}: {source}")]
    Refused {
        /// Its kind and name.
        object: String,
        /// What to write instead.
        source: Refusal,
    },
    /// A target that no gateway in the files takes.
    #[error("MCPTarget {0}: none of its gatewayRefs names a gateway in these files")]
    Unattached(String),
    /// Two objects of one kind and name: an API server would have taken the second for the first.
    #[error("{0} is there twice; give each a name of its own")]
    Twice(String),
    /// TLS where several gateways share a listener.
    #[error(
        "MCPGateway {0}: spec.tls is written, and the gateways of these files share one listener; serve it alone, or \
         remove tls"
    )]
    SharedTls(String),
    /// Nothing to serve.
    #[error("no MCPGateway in these files")]
    NoGateway,
}

/// The objects of our kinds in some files.
#[derive(Debug, Default)]
pub struct Manifests {
    gateways: Vec<MCPGateway>,
    targets: Vec<MCPTarget>,
    agents: Vec<ACPAgent>,
    /// Kind, namespace and name of each, which together are an object's identity.
    seen: BTreeSet<[String; 3]>,
}

/// Reads files and compiles what they declare.
///
/// # Errors
/// [`BadFiles`], at the first thing that is wrong.
pub fn load(paths: &[PathBuf], platform: &Platform) -> Result<Vec<GatewayConfig>, BadFiles> {
    let mut manifests = Manifests::default();
    for path in paths {
        let text =
            std::fs::read_to_string(path).map_err(|source| BadFiles::Read { path: path.clone(), source })?;
        manifests.add(path, &text)?;
    }
    manifests.compile(platform)
}

impl Manifests {
    /// Adds the documents of one file. Objects of other kinds are somebody else's, and passed over.
    ///
    /// # Errors
    /// [`BadFiles`].
    pub fn add(&mut self, path: &Path, text: &str) -> Result<(), BadFiles> {
        let yaml =
            |error: &dyn std::fmt::Display| BadFiles::Yaml { path: path.into(), message: error.to_string() };
        for document in serde_saphyr::from_multiple::<Value>(text).map_err(|error| yaml(&error))? {
            if document.is_null() {
                continue;
            }
            let field = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default();
            if !field("apiVersion").starts_with("mooring.dev/") {
                tracing::warn!(file = %path.display(), kind = field("kind"), "passed over: not a kind of ours");
                continue;
            }
            let name = document.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            let object = format!("{} {name}", field("kind"));
            let bad = |source| BadFiles::Object { path: path.into(), object: object.clone(), source };
            if !is_name(name) {
                return Err(bad(Unreadable::Malformed(NAME.to_owned())));
            }
            let namespace =
                document.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
            if !self.seen.insert([field("kind"), namespace, name].map(str::to_owned)) {
                return Err(BadFiles::Twice(object));
            }
            match (field("apiVersion"), field("kind")) {
                ("mooring.dev/v1alpha1", "MCPGateway") => {
                    self.gateways.push(manifest::read(&document).map_err(bad)?);
                }
                ("mooring.dev/v1alpha1", "MCPTarget") => {
                    self.targets.push(manifest::read(&document).map_err(bad)?);
                }
                ("mooring.dev/v1alpha1", "ACPAgent") => {
                    self.agents.push(manifest::read(&document).map_err(bad)?);
                }
                _ => {
                    return Err(bad(Unreadable::Malformed(
                        "no such kind in mooring.dev/v1alpha1".to_owned(),
                    )));
                }
            }
        }
        Ok(())
    }

    /// Compiles every gateway with its targets.
    ///
    /// # Errors
    /// [`BadFiles`]: without a status to write to, every refusal ends the start.
    pub fn compile(&self, platform: &Platform) -> Result<Vec<GatewayConfig>, BadFiles> {
        let refused = |kind: &str, name: Option<&String>, source: Refusal| BadFiles::Refused {
            object: format!("{kind} {}", name.map_or("without a name", String::as_str)),
            source,
        };
        for agent in &self.agents {
            accept_agent(agent)
                .map_err(|refusal| refused("ACPAgent", agent.metadata.name.as_ref(), refusal))?;
        }
        let mut configs: Vec<GatewayConfig> = Vec::new();
        let mut attached: Vec<String> = Vec::new();
        for gateway in &self.gateways {
            let compiled = compile(gateway, &self.targets, platform)
                .map_err(|refusal| refused("MCPGateway", gateway.metadata.name.as_ref(), refusal))?;
            for attachment in compiled.attachments {
                attachment
                    .outcome
                    .map_err(|refusal| refused("MCPTarget", Some(&attachment.name), refusal))?;
                attached.push(attachment.name);
            }
            if configs.iter().any(|config| config.name == compiled.config.name) {
                // In another namespace: their paths would be one all the same.
                return Err(BadFiles::Twice(format!("MCPGateway {}", compiled.config.name)));
            }
            configs.push(compiled.config);
        }
        let names = self.targets.iter().filter_map(|target| target.metadata.name.as_ref());
        if let Some(alone) = names.into_iter().find(|name| !attached.contains(name)) {
            return Err(BadFiles::Unattached(alone.clone()));
        }
        if let [_, _, ..] = configs.as_slice()
            && let Some(alone) = configs.iter().find(|config| config.tls)
        {
            return Err(BadFiles::SharedTls(alone.name.clone()));
        }
        if configs.is_empty() { Err(BadFiles::NoGateway) } else { Ok(configs) }
    }
}

const NAME: &str = "metadata.name must be lower case letters, digits, '-' and '.', and begin and end with a letter or \
                    digit; quote it where YAML reads it as something else";

/// Whether an API server would take it: a DNS subdomain (RFC 1123).
fn is_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = [name.bytes().next(), name.bytes().last()];
    name.len() <= 253
        && ends.iter().all(|end| end.is_some_and(inner))
        && name.bytes().all(|byte| inner(byte) || matches!(byte, b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATEWAY: &str = "apiVersion: mooring.dev/v1alpha1\nkind: MCPGateway\nmetadata: {name: tools}\nspec:\n  auth: {anonymous: {}}\n";

    fn load(text: &str) -> Result<Vec<GatewayConfig>, String> {
        let mut manifests = Manifests::default();
        let platform = Platform { allow_loopback: true, allow_processes: true, ..Platform::default() };
        manifests
            .add(Path::new("a.yaml"), text)
            .and_then(|()| manifests.compile(&platform))
            .map_err(|error| error.to_string())
    }

    fn target(url: &str) -> String {
        format!(
            "---\napiVersion: mooring.dev/v1alpha1\nkind: MCPTarget\nmetadata: {{name: weather}}\nspec:\n  gatewayRefs: [{{name: tools}}]\n  server: {{type: URL, url: {{address: '{url}'}}}}\n"
        )
    }

    #[test]
    fn a_file_means_what_it_means_in_a_cluster() {
        let configs = load(&format!("{GATEWAY}{}", target("http://127.0.0.1:8931/mcp"))).unwrap();
        assert_eq!(configs[0].targets[0].alias, "weather");
        assert_eq!(configs[0].session.timeout_seconds, 3600);
    }

    #[test]
    fn a_misspelt_field_is_refused_by_its_path() {
        let error = load(&GATEWAY.replace("spec:\n", "spec:\n  session: {timeout: 900}\n")).unwrap_err();
        assert!(error.contains("spec.session.timeout"), "{error}");
    }

    #[test]
    fn a_target_without_its_gateway_and_files_without_any_are_refused() {
        assert!(load(&target("http://127.0.0.1:1/mcp")).unwrap_err().contains("weather"));
        assert!(load("apiVersion: v1\nkind: Service\n").unwrap_err().contains("no MCPGateway"));
        assert!(load(&format!("{GATEWAY}---\n{GATEWAY}")).unwrap_err().contains("twice"));
    }

    #[test]
    fn a_gateway_with_tls_has_the_listener_to_itself() {
        let tls = GATEWAY.replace("spec:\n", "spec:\n  tls: {certificateRef: {name: cert}}\n");
        assert!(load(&tls).unwrap()[0].tls);
        let error = load(&format!("{tls}---\n{}", GATEWAY.replace("tools", "other"))).unwrap_err();
        assert!(error.contains("MCPGateway tools: spec.tls"), "{error}");
    }

    #[test]
    fn an_object_has_a_name_of_its_own_that_an_api_server_would_take() {
        for name in ["null", "~", "''", "7", "Tools", "a_b", "-a", "a/b"] {
            let error = load(&GATEWAY.replace("tools", name)).unwrap_err();
            assert!(error.contains("metadata.name"), "{name}: {error}");
        }
        let one = target("http://127.0.0.1:1/mcp");
        let other = one.replace("{name: tools}", "{name: tools, prefix: other}");
        assert!(
            load(&format!("{GATEWAY}{one}{other}")).unwrap_err().contains("MCPTarget weather is there twice")
        );
        assert!(load(&GATEWAY.replace("tools", "tools-2.eu")).is_ok());
    }

    #[test]
    fn what_this_version_does_not_serve_ends_the_start_with_its_name() {
        let agent = "---\napiVersion: mooring.dev/v1alpha1\nkind: ACPAgent\nmetadata: {name: coder}\nspec:\n  container: {image: i, command: [x]}\n  auth: {anonymous: {}}\n";
        let error = load(&format!("{GATEWAY}{agent}")).unwrap_err();
        assert!(error.contains("ACPAgent coder"), "{error}");
    }
}
