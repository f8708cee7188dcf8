//! Pure: what of a request and its answer may pass between client and target besides MCP itself. The schema refuses by
//! these rules, operator and `moored serve` do, and the daemon once more.
#![expect(clippy::struct_field_names, reason = "the fields are the manifest's")]

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::rule;

/// Headers and query parameters handed on between client and server. Those that carry identity or routing never are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PropagatedHeaders {
    /// Request headers handed on from client to server, at most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), inner(length(min = 1, max = 128)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    #[x_kube(validation = Rule::new("!self.exists(h, h.lowerAscii() == 'mcp-session-id')")
        .message(rule::SESSION_ID_HEADER))]
    #[x_kube(validation = Rule::new("!self.exists(h, h.lowerAscii() in ['authorization', 'cookie', 'host', 'forwarded', 'last-event-id', 'connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'content-length', 'content-type', 'accept'] || h.lowerAscii().startsWith('x-forwarded-') || (h.lowerAscii().startsWith('mcp-') && h.lowerAscii() != 'mcp-session-id'))")
        .message(rule::REQUEST_HEADERS))]
    pub allowed_request: Vec<String>,
    /// Response headers handed on from server to client, at most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), inner(length(min = 1, max = 128)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    #[x_kube(validation = Rule::new("!self.exists(h, h.lowerAscii() == 'mcp-session-id')")
        .message(rule::SESSION_ID_HEADER))]
    #[x_kube(validation = Rule::new("!self.exists(h, h.lowerAscii() in ['set-cookie', 'www-authenticate', 'location', 'connection', 'keep-alive', 'proxy-authenticate', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'content-length', 'content-type', 'content-encoding'] || h.lowerAscii().startsWith('access-control-') || (h.lowerAscii().startsWith('mcp-') && h.lowerAscii() != 'mcp-session-id'))")
        .message(rule::RESPONSE_HEADERS))]
    pub allowed_response: Vec<String>,
    /// Query parameters handed on from client to server, at most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), inner(length(min = 1, max = 128)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub allowed_query_parameters: Vec<String>,
}

/// `Mcp-Session-Id`, lower case.
pub const SESSION_ID: &str = "mcp-session-id";

/// Headers of one connection, and of the message's own form (RFC 9110 §7.6.1).
const TRANSPORT: [&str; 13] = [
    "connection",
    "content-length",
    "content-encoding",
    "content-type",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
];

/// Whether a header of this name, lower case, is the gateway's own to write: routing and transport.
pub fn is_routing(name: &str) -> bool {
    TRANSPORT.contains(&name)
        || matches!(name, "host" | "forwarded" | "last-event-id" | "accept")
        || name.starts_with("mcp-")
        || name.starts_with("x-forwarded-")
}

/// Whether a client's header of this name, lower case, is handed on to no target (DESIGN §8).
pub fn never_to_target(name: &str) -> bool {
    is_routing(name) || matches!(name, "authorization" | "cookie")
}

/// Whether a target's header of this name, lower case, is handed back to no client.
pub fn never_to_client(name: &str) -> bool {
    TRANSPORT.contains(&name)
        || matches!(
            name,
            "set-cookie" | "www-authenticate" | "location" | "cache-control" | "x-accel-buffering"
        )
        || name.starts_with("access-control-")
        || name.starts_with("mcp-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_routing_and_transport_are_handed_on_by_nobody() {
        for name in ["authorization", "cookie", "host", "mcp-name", "x-forwarded-for", "last-event-id", "te"]
        {
            assert!(never_to_target(name), "{name}");
        }
        for name in ["set-cookie", "mcp-session-id", "access-control-allow-origin", "content-type"] {
            assert!(never_to_client(name), "{name}");
        }
        assert!(!never_to_target("x-tenant") && !never_to_client("x-ratelimit-remaining"));
        assert!(!is_routing("authorization"), "credentials are written there");
    }
}
