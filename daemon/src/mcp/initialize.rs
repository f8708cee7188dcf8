//! `initialize`: begins a session. The record is stored first, and only then is the id told.

use std::{collections::BTreeMap, time::Duration};

use http::{HeaderValue, Response};
use mooring_crds::config::{SessionMode, Streaming};
use serde_json::{json, value::RawValue};

use super::Context;
use crate::{
    access::sees,
    body::Answer,
    capabilities::ClientCapabilities,
    catalog::{
        capabilities::{Announced, Keeps, announce},
        pages::Filter,
    },
    fault::Fault,
    jsonrpc::{Params, envelope::text, reply},
    relay::json_response,
    session::table::Opening,
    target::SESSION_ID,
    version::Version,
};

/// The largest `clientInfo` that a record keeps.
const CLIENT_INFO_BYTES: usize = 4 << 10;
/// The largest capabilities that a record keeps.
const CAPABILITIES_BYTES: usize = 16 << 10;

pub(super) async fn initialize(
    context: &Context<'_>,
    id: &[u8],
    params: &Params,
) -> Result<Response<Answer>, Fault> {
    if context.head.headers.contains_key(SESSION_ID)
        && context.snapshot.config.session.mode == SessionMode::Stateful
    {
        return Err(Fault::SessionOnInitialize);
    }
    let (version, client_info, capabilities) = read(params)?;
    let config = &context.snapshot.config;
    let capabilities = match (config.session.mode, config.streaming) {
        (SessionMode::Stateful, Streaming::Enabled) => capabilities,
        // Nothing could be asked of the client, so no target is told that it could.
        (SessionMode::Stateful, Streaming::Disabled) => capabilities.without_requests(),
        // Later requests say nothing of the client, and their answers are to agree with this one.
        (SessionMode::Stateless, _) => ClientCapabilities::default(),
    };
    let view = context.gateway.view(version, &capabilities);
    // Before the session begins: a client that leaves meanwhile leaves nothing behind.
    let lists = view.introduced().await;
    let access = context.access()?;
    let keeps = Keeps::of(config.session.mode, config.streaming);
    let Announced { capabilities: announced, instructions } =
        announce(&lists, keeps, |listing| access.sees_target(listing.alias()));
    let visible = (!access.is_unlimited()).then(|| sees(access));
    let filter: Filter<'_> = visible.as_ref().map(|visible| visible as _);
    let opening = Opening {
        principal: context.caller()?.principal.clone(),
        version,
        client_info,
        capabilities,
        timeout: Duration::from_secs(config.session.timeout_seconds.into()),
        seen: lists.marks(filter),
        idle: config.session.idle_timeout_seconds.map(|seconds| Duration::from_secs(seconds.into())),
        most: config.session.max_per_principal,
    };
    let session_id = match config.session.mode {
        SessionMode::Stateful => Some(context.gateway.sessions.create(opening).await?),
        SessionMode::Stateless => None,
    };
    let mut result = json!({
        "protocolVersion": version.as_str(),
        "capabilities": announced,
        "serverInfo": {"name": config.name, "version": env!("CARGO_PKG_VERSION")},
    });
    if let (Some(result), Some(instructions)) = (result.as_object_mut(), instructions) {
        result.insert("instructions".to_owned(), instructions.into());
    }
    let mut response = json_response(Answer::whole(reply::result(id, result.to_string().as_bytes())));
    // Hexadecimal digits are a header value.
    if let Some(session_id) = session_id
        && let Ok(session_id) = HeaderValue::from_str(&session_id.to_string())
    {
        response.headers_mut().insert(SESSION_ID, session_id);
    }
    Ok(response)
}

/// What `initialize` must have (2025-11-25, lifecycle, initialization).
fn read(params: &Params) -> Result<(Version, Box<str>, ClientCapabilities), Fault> {
    let object = |raw: &[u8]| raw.first() == Some(&b'{');
    let requested =
        params.protocol_version.as_ref().ok_or(Fault::BadInitialize("protocolVersion is missing"))?;
    let requested = text(requested).map_err(|_| Fault::BadInitialize("protocolVersion must be a string"))?;
    let version = Version::negotiate(&requested);
    let capabilities = params.capabilities.as_deref().and_then(ClientCapabilities::parse);
    let capabilities = capabilities.ok_or(Fault::BadInitialize("capabilities must be an object"))?;
    if capabilities.as_str().len() > CAPABILITIES_BYTES {
        return Err(Fault::BadInitialize("capabilities are larger than 16 KiB"));
    }
    let client_info = params.client_info.as_deref().filter(|raw| object(raw));
    let client_info = client_info.ok_or(Fault::BadInitialize("clientInfo must be an object"))?;
    Ok((version, kept(client_info)?, capabilities))
}

/// What a record keeps of `clientInfo`, and targets are told. All of it where it is small; of a large one all but its
/// `icons`, which may be whole pictures (2025-11-25, data URIs) and would fill a store that holds every session.
fn kept(client_info: &[u8]) -> Result<Box<str>, Fault> {
    let text =
        std::str::from_utf8(client_info).map_err(|_| Fault::BadInitialize("clientInfo is not UTF-8"))?;
    if text.len() <= CLIENT_INFO_BYTES {
        return Ok(text.into());
    }
    let object = |_| Fault::BadInitialize("clientInfo must be an object");
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(text).map_err(object)?;
    fields.remove("icons");
    let text = serde_json::to_string(&fields).map_err(object)?;
    if text.len() > CLIENT_INFO_BYTES {
        return Err(Fault::BadInitialize("clientInfo is larger than 4 KiB without its icons"));
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn params(version: &'static str, info: &'static str, capabilities: &'static str) -> Params {
        let raw = |text: &'static str| (!text.is_empty()).then(|| Bytes::from_static(text.as_bytes()));
        Params {
            protocol_version: raw(version),
            client_info: raw(info),
            capabilities: raw(capabilities),
            ..Params::default()
        }
    }

    #[test]
    fn an_initialize_without_what_it_must_have_is_refused_by_name() {
        assert!(read(&params(r#""2025-06-18""#, r#"{"name":"c"}"#, "{}")).is_ok());
        for (version, info, capabilities, names) in [
            ("", "{}", "{}", "protocolVersion"),
            ("7", "{}", "{}", "protocolVersion"),
            (r#""x""#, "", "{}", "clientInfo"),
            (r#""x""#, "[]", "{}", "clientInfo"),
            (r#""x""#, "{}", "null", "capabilities"),
        ] {
            let Err(Fault::BadInitialize(what)) = read(&params(version, info, capabilities)) else {
                panic!("{names}")
            };
            assert!(what.contains(names), "{what}");
        }
    }

    #[test]
    fn a_client_with_large_icons_is_served_and_only_they_are_not_kept() {
        let picture = format!(r#"[{{"src":"data:image/png;base64,{}"}}]"#, "A".repeat(100 << 10));
        let large = format!(r#"{{"version":"1.0","name":"c","icons":{picture},"x":{{"n":1.50}}}}"#);
        assert_eq!(&*kept(large.as_bytes()).unwrap(), r#"{"name":"c","version":"1.0","x":{"n":1.50}}"#);
        let small = r#"{"name": "c", "icons": [{"src": "https://c.example/c.png"}]}"#;
        assert_eq!(&*kept(small.as_bytes()).unwrap(), small, "what is small is kept as it came");
        let named = format!(r#"{{"name":"{}","icons":[]}}"#, "c".repeat(CLIENT_INFO_BYTES));
        let Err(Fault::BadInitialize(what)) = kept(named.as_bytes()) else { panic!("it is too large") };
        assert!(what.contains("without its icons"), "{what}");
    }
}
