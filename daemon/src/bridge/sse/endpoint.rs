//! Pure: the `endpoint` event of HTTP+SSE (2024-11-05, transports): which events there are, and where messages go.

use http::Uri;

/// What an event is (WHATWG HTML §9.2: `message` unless it says otherwise).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventType {
    /// Names the address for POSTs.
    Endpoint,
    /// Carries a message.
    Message,
    /// Nothing that we know.
    Other,
}

/// The type of an event, as it came.
pub(super) fn event_type(event: &[u8]) -> EventType {
    let fields = event.split(|byte| matches!(byte, b'\n' | b'\r'));
    let named = fields.filter_map(|line| line.strip_prefix(b"event:")).next_back();
    match named.map(<[u8]>::trim_ascii) {
        Some(b"endpoint") => EventType::Endpoint,
        None | Some(b"" | b"message") => EventType::Message,
        Some(_) => EventType::Other,
    }
}

/// Where the stream is opened: the configured address, with the query of the request that asks for it.
pub(super) fn asked(url: &Uri, request: &Uri) -> Uri {
    let Some(query) = request.query() else { return url.clone() };
    let (scheme, authority) = (url.scheme_str().unwrap_or("http"), url.authority());
    let authority = authority.map(http::uri::Authority::as_str).unwrap_or_default();
    format!("{scheme}://{authority}{}?{query}", url.path()).parse().unwrap_or_else(|_| url.clone())
}

/// The address that an endpoint stands for, relative to the stream's; none outside the stream's origin: a server does
/// not send our messages, and what authenticates them, elsewhere.
pub(super) fn resolve(stream: &Uri, endpoint: &str) -> Option<Uri> {
    let endpoint = endpoint.trim();
    let (scheme, authority) = (stream.scheme_str()?, stream.authority()?);
    let absolute = if endpoint.contains("://") && !endpoint.starts_with(['/', '?']) {
        endpoint.to_owned()
    } else if endpoint.starts_with("//") {
        format!("{scheme}:{endpoint}")
    } else if endpoint.starts_with('/') {
        format!("{scheme}://{authority}{endpoint}")
    } else if endpoint.starts_with('?') {
        format!("{scheme}://{authority}{}{endpoint}", stream.path())
    } else {
        let folder = stream.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{scheme}://{authority}{folder}/{endpoint}")
    };
    let uri: Uri = absolute.parse().ok()?;
    same_origin(stream, &uri).then_some(uri)
}

fn same_origin(one: &Uri, other: &Uri) -> bool {
    let port = |uri: &Uri| {
        uri.port_u16().or_else(|| match uri.scheme_str()? {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        })
    };
    let host = |uri: &Uri| uri.host().map(str::to_ascii_lowercase);
    let user = |uri: &Uri| uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
    one.scheme_str() == other.scheme_str()
        && host(one).is_some()
        && host(one) == host(other)
        && port(one) == port(other)
        && !user(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_relative_or_absolute_and_of_the_streams_own_origin() {
        let stream: Uri = "http://Example.org:80/api/sse?x=1".parse().unwrap();
        let resolved = |endpoint: &str| resolve(&stream, endpoint).map(|uri| uri.to_string());
        for (endpoint, uri) in [
            ("/messages?sessionId=1", "http://Example.org:80/messages?sessionId=1"),
            ("messages/1", "http://Example.org:80/api/messages/1"),
            ("?session=1", "http://Example.org:80/api/sse?session=1"),
            ("http://example.org/m", "http://example.org/m"),
            ("//example.org/m", "http://example.org/m"),
            ("/m?next=http://evil.example/", "http://Example.org:80/m?next=http://evil.example/"),
        ] {
            assert_eq!(resolved(endpoint).as_deref(), Some(uri), "{endpoint}");
        }
        for endpoint in [
            "http://evil.example/m",
            "https://example.org/m",
            "http://example.org:81/m",
            "http://user@example.org/m",
            "//evil.example/m",
            "http://",
        ] {
            assert_eq!(resolved(endpoint), None, "{endpoint}");
        }
    }

    #[test]
    fn an_event_without_a_type_carries_a_message() {
        assert_eq!(event_type(b"data: {}\n\n"), EventType::Message);
        assert_eq!(event_type(b"event: message\r\ndata: {}\r\n\r\n"), EventType::Message);
        assert_eq!(event_type(b"event:endpoint\ndata: /m\n\n"), EventType::Endpoint);
        assert_eq!(event_type(b"event: ping\ndata: x\n\n"), EventType::Other);
    }

    #[test]
    fn the_stream_is_opened_with_the_requests_query() {
        let url: Uri = "https://example.org/sse".parse().unwrap();
        assert_eq!(asked(&url, &"/sse?a=1".parse().unwrap()).to_string(), "https://example.org/sse?a=1");
        assert_eq!(asked(&url, &"/sse".parse().unwrap()), url);
    }
}
