//! Manifests from files: what `moored serve` runs from. Reads once; stricter than an API server, since nobody prunes.

mod values;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use mooring_crds::{
    ACPAgent, MCPGateway, MCPTarget, Platform, Refusal, accept_agent, compile,
    condition::reason,
    config::{CredentialsConfig, GatewayConfig},
    manifest::{self, Unreadable},
    secrets::{Resolved, SecretSource, Unresolved, resolve},
};
use serde_json::Value;

use self::values::Values;
use super::secrets::Secrets;

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
    /// A reference to a value that is not in the files.
    #[error("{object}: {unresolved} among these files")]
    Unresolved {
        /// The kind and name of what refers to it.
        object: String,
        /// What is missing.
        unresolved: Box<Unresolved>,
    },
    /// Nothing to serve.
    #[error("no MCPGateway in these files")]
    NoGateway,
}

/// One gateway to serve.
#[derive(Debug)]
pub struct Served {
    /// What it serves.
    pub config: GatewayConfig,
    /// The values that its configuration names by key.
    pub secrets: Secrets,
}

/// The objects of our kinds in some files, and the values that they refer to.
#[derive(Debug, Default)]
pub struct Manifests {
    values: Values,
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
pub fn load(paths: &[PathBuf], platform: &Platform) -> Result<Vec<Served>, BadFiles> {
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
            let values = Values::kind(field("apiVersion"), field("kind"));
            if values.is_none() && !field("apiVersion").starts_with("mooring.dev/") {
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
            if let Some(kind) = values {
                self.values.add(kind, (namespace, name), &document).map_err(bad)?;
                continue;
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
    pub fn compile(&self, platform: &Platform) -> Result<Vec<Served>, BadFiles> {
        let refused = |kind: &str, name: Option<&String>, source: Refusal| BadFiles::Refused {
            object: format!("{kind} {}", name.map_or("without a name", String::as_str)),
            source,
        };
        for agent in &self.agents {
            accept_agent(agent)
                .map_err(|refusal| refused("ACPAgent", agent.metadata.name.as_ref(), refusal))?;
        }
        let mut all: Vec<Served> = Vec::new();
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
            if all.iter().any(|other| other.config.name == compiled.config.name) {
                // In another namespace: their paths would be one all the same.
                return Err(BadFiles::Twice(format!("MCPGateway {}", compiled.config.name)));
            }
            without_accounts(&compiled.config)?;
            let secrets = self.resolve(&compiled.config, &compiled.secrets)?;
            all.push(Served { config: compiled.config, secrets });
        }
        let names = self.targets.iter().filter_map(|target| target.metadata.name.as_ref());
        if let Some(alone) = names.into_iter().find(|name| !attached.contains(name)) {
            return Err(BadFiles::Unattached(alone.clone()));
        }
        if let [_, _, ..] = all.as_slice()
            && let Some(Served { config: alone, .. }) = all.iter().find(|served| served.config.tls)
        {
            return Err(BadFiles::SharedTls(alone.name.clone()));
        }
        if all.is_empty() { Err(BadFiles::NoGateway) } else { Ok(all) }
    }

    /// The values that a configuration names; one that is missing ends the start.
    fn resolve(&self, config: &GatewayConfig, sources: &[SecretSource]) -> Result<Secrets, BadFiles> {
        let Resolved { values, unresolved, unread: _ } =
            resolve(sources, |source, entry| self.values.find(source, entry));
        let Some(unresolved) = unresolved.into_iter().next() else { return Ok(Secrets::new(values)) };
        let target =
            config.targets.iter().find(|target| Some(&target.uid) == unresolved.source.target.as_ref());
        let object = target.map_or_else(
            || format!("MCPGateway {}", config.name),
            |target| format!("MCPTarget {}", target.name),
        );
        Err(BadFiles::Unresolved { object, unresolved: Box::new(unresolved) })
    }
}

/// Refuses what only a cluster can give.
fn without_accounts(config: &GatewayConfig) -> Result<(), BadFiles> {
    let asked = |target: &&mooring_crds::config::TargetConfig| {
        matches!(target.credentials, Some(CredentialsConfig::ServiceAccountToken { .. }))
    };
    config.targets.iter().find(asked).map_or(Ok(()), |target| {
        let message = "spec.credentials.type: ServiceAccountToken asks a cluster for a token, and moored serve has \
                       none; write Headers or ClientCredentials";
        Err(BadFiles::Refused {
            object: format!("MCPTarget {}", target.name),
            source: Refusal { reason: reason::INVALID, message: message.to_owned() },
        })
    })
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

    fn load(text: &str) -> Result<Vec<Served>, String> {
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
        assert_eq!(configs[0].config.targets[0].alias, "weather");
        assert_eq!(configs[0].config.session.timeout_seconds, 3600);
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
        let secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: cert}\nstringData: {tls.crt: c, tls.key: k}\n";
        let served = load(&format!("{tls}{secret}")).unwrap();
        assert!(served[0].config.tls);
        assert_eq!(served[0].secrets.get(mooring_crds::secrets::TLS_KEY), Some(b"k".as_ref()));
        let other = GATEWAY.replace("tools", "other");
        let error = load(&format!("{tls}---\n{other}{secret}")).unwrap_err();
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

    fn with_key() -> String {
        let credentials =
            "  credentials: {type: Headers, headers: [{name: X-Key, secretRef: {name: keys, key: k}}]}\n";
        format!("{GATEWAY}{}{credentials}", target("http://127.0.0.1:1/mcp"))
    }

    #[test]
    fn a_reference_is_looked_up_among_the_files_and_text_counts_over_bytes() {
        let secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: keys}\nstringData: {k: one}\ndata: {k: dHdv}\n";
        let served = load(&format!("{}{secret}", with_key())).unwrap();
        assert_eq!(served[0].secrets.get("weather.header.x-key"), Some(b"one".as_ref()));
        assert!(!format!("{:?}", served[0]).contains("111"), "no value shows");
    }

    #[test]
    fn a_reference_to_nothing_is_named_by_object_and_key() {
        let error = load(&with_key()).unwrap_err();
        assert!(error.contains("MCPTarget weather: there is no Secret keys"), "{error}");
        let secret =
            "---\napiVersion: v1\nkind: Secret\nmetadata: {name: keys}\nstringData: {other: hunter2}\n";
        let error = load(&format!("{}{secret}", with_key())).unwrap_err();
        assert!(error.contains("Secret keys has no key k") && !error.contains("hunter2"), "{error}");
        let broken = secret.replace("stringData: {other: hunter2}", "data: {k: hunter2}");
        let error = load(&format!("{}{broken}", with_key())).unwrap_err();
        assert!(error.contains("Secret keys") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn a_token_that_only_a_cluster_can_give_is_refused() {
        let token = "  credentials: {type: ServiceAccountToken, serviceAccountToken: {audience: a}}\n";
        let error = load(&format!("{GATEWAY}{}{token}", target("http://127.0.0.1:1/mcp"))).unwrap_err();
        assert!(error.contains("MCPTarget weather") && error.contains("write Headers"), "{error}");
    }
}
