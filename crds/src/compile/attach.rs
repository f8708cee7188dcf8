//! Pure: which targets a gateway takes, under which alias, and where each is.

use http::Uri;
use kube::ResourceExt;

use super::accept::{accept_target, invalid, namespace_of};
use super::consent::consent;
use super::secrets::{TargetSecrets, of_target};
use super::{Attachment, Platform, Refusal, process, service_hosts};
use crate::condition::reason;
use crate::config::{self, OnSessionLoss, Protocol, TargetConfig, TimeoutOverride, TimeoutsConfig};
use crate::gateway::ToolNaming;
use crate::secrets::SecretSource;
use crate::server::{Scheme, Server};
use crate::target::{Listing, TargetGatewayReference, TargetProtocol, ToolFilter};
use crate::timeouts::Timeouts;
use crate::{MCPGateway, MCPTarget, rule};

/// How many targets one gateway takes: each costs its daemons a catalogue, and its configuration is one ConfigMap.
const MOST_TARGETS: usize = 256;

/// The most bytes of one target's configuration.
const MOST_OF_ONE: usize = 64 * 1024;

/// The most bytes of the configurations of all targets of one gateway: a ConfigMap holds 1 MiB, and one that is over it
/// could not be written, whatever changed. The rest is for the gateway's own part and for the targets' addresses.
const MOST_IN_ALL: usize = 768 * 1024;

/// The gateway's targets and what became of all that refer to it, oldest first.
#[derive(Debug, Default)]
pub(super) struct Attached {
    pub(super) configs: Vec<TargetConfig>,
    pub(super) attachments: Vec<Attachment>,
    pub(super) secrets: Vec<SecretSource>,
}

/// Takes the targets that refer to the gateway.
pub(super) fn attach(gateway: &MCPGateway, targets: &[MCPTarget], platform: &Platform) -> Attached {
    let mut referring: Vec<_> =
        targets.iter().filter_map(|target| Some((target, reference(target, gateway)?))).collect();
    referring.sort_by_cached_key(|(target, _)| {
        let created = target.creation_timestamp().map(|time| time.0);
        (created, target.namespace(), target.name_any())
    });
    let (mut taken, mut secrets, mut room) = (Vec::new(), Vec::new(), MOST_IN_ALL);
    let attachments = referring
        .into_iter()
        .map(|(target, reference)| {
            let outcome = attach_one(gateway, target, reference, &taken, platform);
            let outcome = outcome.and_then(|(config, sources)| {
                room = room_beside(gateway, &config, room)?;
                let alias = config.alias.clone();
                taken.push(config);
                secrets.extend(sources);
                Ok(alias)
            });
            let namespace = target.namespace().unwrap_or_default();
            Attachment { namespace, name: target.name_any(), uid: uid(target), outcome }
        })
        .collect();
    Attached { configs: taken, attachments, secrets }
}

/// The target's reference to this gateway, if it has one.
fn reference<'a>(target: &'a MCPTarget, gateway: &MCPGateway) -> Option<&'a TargetGatewayReference> {
    let own = target.namespace().unwrap_or_default();
    let (namespace, name) = (gateway.namespace().unwrap_or_default(), gateway.name_any());
    target
        .spec
        .gateway_refs
        .iter()
        .find(|gateway| gateway.name == name && namespace_of(gateway, &own) == namespace)
}

fn attach_one(
    gateway: &MCPGateway,
    target: &MCPTarget,
    reference: &TargetGatewayReference,
    taken: &[TargetConfig],
    platform: &Platform,
) -> Result<(TargetConfig, Vec<SecretSource>), Refusal> {
    consent(gateway, target)?;
    accept_target(target, platform)?;
    let alias = reference.prefix.clone().unwrap_or_else(|| target.name_any());
    unambiguous(gateway, &alias)?;
    if let Some(older) = taken.iter().find(|older| older.alias == alias) {
        return Err(conflicted(&alias, older));
    }
    let namespace = target.namespace().unwrap_or_default();
    let url = url(&target.spec.server, &namespace)?;
    not_itself(gateway, &url)?;
    if taken.len() >= MOST_TARGETS {
        return Err(too_many(gateway));
    }
    let uid = uid(target);
    let TargetSecrets { credentials, tls, sources } = of_target(target, &uid);
    let headers = target.spec.headers.clone().unwrap_or_default();
    let lower = |names: &[String]| names.iter().map(|name| name.to_ascii_lowercase()).collect();
    let config = TargetConfig {
        url,
        listing: listing(target.spec.listing),
        tools: tools(target.spec.tools.as_ref()),
        command: target.spec.server.container.as_ref().map(process::command),
        protocol: match target.spec.protocol {
            TargetProtocol::Auto => Protocol::Auto,
            TargetProtocol::StreamableHTTP => Protocol::StreamableHttp,
            TargetProtocol::SSE => Protocol::Sse,
        },
        alias,
        name: target.name_any(),
        uid,
        namespace,
        tls,
        credentials,
        request_headers: lower(&headers.allowed_request),
        response_headers: lower(&headers.allowed_response),
        query_parameters: headers.allowed_query_parameters,
        timeouts: compile_timeouts(&target.spec.timeouts),
        on_session_loss: match target.spec.on_session_loss {
            crate::target::OnSessionLoss::Fail => OnSessionLoss::Fail,
            crate::target::OnSessionLoss::Reinitialize => OnSessionLoss::Reinitialize,
        },
        ..TargetConfig::default()
    };
    Ok((config, sources))
}

fn compile_timeouts(timeouts: &Timeouts) -> TimeoutsConfig {
    TimeoutsConfig {
        connect_seconds: timeouts.connect_seconds.unsigned_abs(),
        request_seconds: timeouts.request_seconds.unsigned_abs(),
        client_answer_seconds: timeouts.client_answer_seconds.unsigned_abs(),
        maximum_seconds: timeouts.maximum_seconds.unsigned_abs(),
        overrides: timeouts
            .overrides
            .iter()
            .map(|other| TimeoutOverride {
                tools: other.tools.clone(),
                request_seconds: other.request_seconds.map(i32::unsigned_abs),
                maximum_seconds: other.maximum_seconds.map(i32::unsigned_abs),
            })
            .collect(),
    }
}

fn listing(written: Listing) -> config::Listing {
    match written {
        Listing::Catalog => config::Listing::Catalog,
        Listing::PerSession => config::Listing::PerSession,
    }
}

fn tools(written: Option<&ToolFilter>) -> config::ToolFilter {
    let written = written.map(|ToolFilter { allow, deny }| (allow.clone(), deny.clone()));
    let (allow, deny) = written.unwrap_or_default();
    config::ToolFilter { allow, deny }
}

/// An exposed name splits at its first separator, so an alias may not hold one.
fn unambiguous(gateway: &MCPGateway, alias: &str) -> Result<(), Refusal> {
    let tools = &gateway.spec.tools;
    match tools.naming {
        ToolNaming::Prefixed if alias.contains(&tools.separator) => Err(invalid(format!(
            "the alias {alias} holds the gateway's tools.separator {}, so its tools' names could not be told apart; \
             write a spec.gatewayRefs[].prefix without it",
            tools.separator
        ))),
        ToolNaming::Prefixed | ToolNaming::Plain => Ok(()),
    }
}

fn conflicted(alias: &str, older: &TargetConfig) -> Refusal {
    Refusal {
        reason: reason::CONFLICTED,
        message: format!(
            "the older target {} has the alias {alias} at this gateway; write another spec.gatewayRefs[].prefix",
            full_name(&older.namespace, &older.name)
        ),
    }
}

/// A gateway behind itself would learn its own tools under ever longer names, and call itself in circles.
fn not_itself(gateway: &MCPGateway, url: &str) -> Result<(), Refusal> {
    let host = url.parse::<Uri>().ok().and_then(|uri| {
        // With a dot at the end a name is the same, for resolvers.
        uri.host().map(|host| host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase())
    });
    let Some(host) = host.filter(|host| service_hosts(gateway).contains(host)) else { return Ok(()) };
    Err(invalid(format!(
        "spec.server leads to {host}, the Service of the gateway {} itself; write the address of an MCP server",
        full_name(&gateway.namespace().unwrap_or_default(), &gateway.name_any())
    )))
}

fn too_many(gateway: &MCPGateway) -> Refusal {
    Refusal {
        reason: reason::TOO_MANY_TARGETS,
        message: format!(
            "the gateway {} has {MOST_TARGETS} older targets, and takes no more; delete some, or name another gateway \
             in spec.gatewayRefs",
            full_name(&gateway.namespace().unwrap_or_default(), &gateway.name_any())
        ),
    }
}

/// What is left of `room` beside a target of this configuration.
fn room_beside(gateway: &MCPGateway, config: &TargetConfig, room: usize) -> Result<usize, Refusal> {
    let too_large = |message| Refusal { reason: reason::TOO_LARGE, message };
    // A configuration has no keys but strings, so that it always has a text.
    let size = serde_json::to_vec(config).map_or(usize::MAX, |json| json.len());
    if size > MOST_OF_ONE {
        return Err(too_large(format!(
            "the target takes over {} KiB of its gateway's configuration; write shorter lists in spec.tools, \
             spec.timeouts.overrides and spec.credentials",
            MOST_OF_ONE / 1024
        )));
    }
    room.checked_sub(size).ok_or_else(|| {
        too_large(format!(
            "the older targets of the gateway {} leave no room for this one, {} KiB being the most in all; write shorter \
             lists, or name another gateway in spec.gatewayRefs",
            full_name(&gateway.namespace().unwrap_or_default(), &gateway.name_any()),
            MOST_IN_ALL / 1024
        ))
    })
}

/// Where the server is; nowhere, where it is a process. `accept_target` has seen that the member of the type's name is there.
fn url(server: &Server, namespace: &str) -> Result<String, Refusal> {
    let Server { kind: _, url, service, container } = server;
    if container.is_some() {
        return Ok(String::new());
    }
    if let Some(url) = url {
        return Ok(url.address.clone());
    }
    let service = service.as_ref().ok_or_else(|| invalid(rule::SERVER_SERVICE))?;
    let scheme = match service.scheme {
        Scheme::HTTP => "http",
        Scheme::HTTPS => "https",
    };
    let name = &service.name;
    let host = if namespace.is_empty() { name.clone() } else { format!("{name}.{namespace}.svc") };
    Ok(format!("{scheme}://{host}:{}{}", service.port, service.path))
}

/// The object's uid; without a cluster, something as unique.
pub(super) fn uid(target: &MCPTarget) -> String {
    let without = || full_name(&target.namespace().unwrap_or_default(), &target.name_any());
    target.uid().unwrap_or_else(without)
}

/// `namespace/name`, or the name alone without a cluster.
pub(super) fn full_name(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}
