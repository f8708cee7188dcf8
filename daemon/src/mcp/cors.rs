//! Pure: what browsers are told (WHATWG Fetch, CORS protocol). Only ever of an origin that was checked.

use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, VARY,
    },
};

use crate::body::Answer;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");

/// Answers a preflight; without an origin it is a plain OPTIONS.
pub(super) fn preflight(origin: Option<&str>) -> Response<Answer> {
    let mut response = Response::new(Answer::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ALLOW, METHODS);
    if origin.is_some() {
        let allowed =
            "accept, authorization, content-type, last-event-id, mcp-protocol-version, mcp-session-id";
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(allowed));
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    }
    response
}

/// Lets a page of `origin` read the answer, and the session id in it.
pub(super) fn expose(origin: &str, headers: &mut HeaderMap) {
    if let Ok(origin) = HeaderValue::from_str(origin) {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(
            ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("mcp-session-id, www-authenticate"),
        );
        headers.append(VARY, HeaderValue::from_static("origin"));
    }
}
