//! Pure: which headers and query parameters of a client's request go on to a target, and which of the target's come
//! back (`spec.headers`).
//!
//! Identity, routing and transport never do, whatever a configuration says (DESIGN §8).

use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use mooring_crds::{
    config::TargetConfig,
    propagation::{never_to_client, never_to_target},
};

use super::OnBehalf;

impl OnBehalf {
    /// On whose behalf a client's request goes to the target of `config`: with the caller's verified `token`, and those
    /// of the request's `headers` and of its raw `query` that the target takes.
    pub fn from_request(
        headers: &HeaderMap,
        query: Option<&str>,
        config: &TargetConfig,
        token: Option<Arc<str>>,
    ) -> Self {
        let taken = picked(headers, &config.request_headers, never_to_target);
        Self { token, headers: taken, query: picked_query(query, &config.query_parameters) }
    }
}

/// Whether a target of this configuration takes anything of a client's request but its message.
pub fn takes(config: &TargetConfig) -> bool {
    !config.request_headers.is_empty() || !config.query_parameters.is_empty()
}

/// What of a target's answer's headers is handed back to the client.
pub fn handed_back(headers: &HeaderMap, config: &TargetConfig) -> HeaderMap {
    picked(headers, &config.response_headers, never_to_client)
}

fn picked(headers: &HeaderMap, allowed: &[String], never: impl Fn(&str) -> bool) -> HeaderMap {
    let mut picked = HeaderMap::new();
    for name in allowed.iter().filter(|name| !never(&name.to_ascii_lowercase())) {
        let Ok(name) = name.parse::<HeaderName>() else { continue };
        for value in headers.get_all(&name) {
            picked.append(name.clone(), value.clone());
        }
    }
    picked
}

/// Pairs stay spelt as they came; their names are compared decoded.
fn picked_query(query: Option<&str>, allowed: &[String]) -> Option<Box<str>> {
    let wanted = |pair: &&str| {
        let name = form_urlencoded::parse(pair.as_bytes()).next().map(|(name, _)| name);
        name.is_some_and(|name| allowed.iter().any(|allowed| *allowed == name))
    };
    let kept: Vec<&str> = query?.split('&').filter(wanted).collect();
    (!kept.is_empty()).then(|| kept.join("&").into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::target_config;

    fn config() -> TargetConfig {
        // As an operator of another version might have let through: what carries identity stays here all the same.
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        TargetConfig {
            request_headers: names(&["x-tenant", "authorization", "Cookie", "mcp-session-id"]),
            response_headers: names(&["x-left", "set-cookie"]),
            query_parameters: names(&["region", "a b"]),
            ..target_config("a")
        }
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn what_is_named_goes_on_whole_and_nothing_that_says_who_calls() {
        let sent = headers(&[
            ("x-tenant", "a"),
            ("x-tenant", "b"),
            ("authorization", "Bearer t"),
            ("cookie", "c"),
            ("mcp-session-id", "s"),
            ("x-other", "o"),
        ]);
        let of = OnBehalf::from_request(&sent, None, &config(), Some("t".into()));
        assert_eq!(of.headers, headers(&[("x-tenant", "a"), ("x-tenant", "b")]));
        assert_eq!(of.token.as_deref(), Some("t"));
    }

    #[test]
    fn query_parameters_go_on_as_they_were_spelt() {
        let query = |query| OnBehalf::from_request(&HeaderMap::new(), query, &config(), None).query;
        assert_eq!(
            query(Some("x=1&region=eu%20west&region=b&a+b=2")).as_deref(),
            Some("region=eu%20west&region=b&a+b=2")
        );
        assert_eq!(query(Some("x=1")), None);
        assert_eq!(query(None), None);
    }

    #[test]
    fn what_is_named_of_an_answer_comes_back() {
        let answered = headers(&[("x-left", "7"), ("set-cookie", "c"), ("x-other", "o")]);
        assert_eq!(handed_back(&answered, &config()), headers(&[("x-left", "7")]));
    }
}
