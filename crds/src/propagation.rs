//! What of a request and its answer may pass between client and target besides MCP itself. Types and rules only.
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
        .message("headers that carry identity, routing or transport are handed on by nobody; remove Authorization, Cookie, Host, Forwarded, X-Forwarded-*, Mcp-*, Last-Event-ID and hop-by-hop headers, and write credentials under spec.credentials"))]
    pub allowed_request: Vec<String>,
    /// Response headers handed on from server to client, at most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), inner(length(min = 1, max = 128)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    #[x_kube(validation = Rule::new("!self.exists(h, h.lowerAscii() == 'mcp-session-id')")
        .message(rule::SESSION_ID_HEADER))]
    #[x_kube(validation = Rule::new("!self.exists(h, h.lowerAscii() in ['set-cookie', 'www-authenticate', 'location', 'connection', 'keep-alive', 'proxy-authenticate', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'content-length', 'content-type', 'content-encoding'] || h.lowerAscii().startsWith('access-control-') || (h.lowerAscii().startsWith('mcp-') && h.lowerAscii() != 'mcp-session-id'))")
        .message("headers that carry identity, routing or transport are handed on by nobody; remove Set-Cookie, WWW-Authenticate, Location, Access-Control-*, Mcp-* and hop-by-hop headers"))]
    pub allowed_response: Vec<String>,
    /// Query parameters handed on from client to server, at most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), inner(length(min = 1, max = 128)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub allowed_query_parameters: Vec<String>,
}
