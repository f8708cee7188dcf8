//! Tests of every refusal of a token whose signature is good.

use mooring_crds::config::ClaimValues;
use serde_json::{Value, json};

use super::*;

const ISSUER: &str = "https://id.example";
const NOW: Timestamp = Timestamp(1_000_000_000);

fn at(seconds: i64) -> i64 {
    NOW.0 / 1000 + seconds
}

/// A token that is taken, with these claims in place of its own; null removes one.
fn claims(over: Value) -> Claims {
    let mut all = json!({"iss": ISSUER, "sub": "alice", "aud": ["other", "mcp"], "exp": at(60), "azp": "cli",
        "scope": "tools read", "groups": ["dev"],
        "kubernetes.io": {"namespace": "ai", "serviceaccount": {"name": "bot", "uid": "u-1"}}});
    let (Value::Object(fields), Value::Object(over)) = (&mut all, over) else { panic!("no object") };
    for (name, value) in over {
        fields.insert(name, value);
    }
    fields.retain(|_, value| !value.is_null());
    Claims::from(fields.clone())
}

fn oidc_policy() -> Policy {
    Policy::Oidc(OidcConfig {
        issuer: ISSUER.to_owned(),
        audiences: vec!["mcp".to_owned()],
        allowed_clients: vec!["cli".to_owned()],
        required_scopes: vec!["tools".to_owned(), "read".to_owned()],
        required_claims: vec![ClaimValues { claim: "groups".to_owned(), values: vec!["dev".to_owned()] }],
        ca: None,
    })
}

fn account_policy(allowed: &[(&str, &str)]) -> Policy {
    let allowed =
        allowed.iter().map(|(namespace, name)| ((*namespace).to_owned(), (*name).to_owned())).collect();
    Policy::ServiceAccount(ServiceAccountConfig { audiences: vec!["mcp".to_owned()], allowed })
}

fn judge(over: Value) -> Result<Judged, Fault> {
    oidc_policy().judge(&claims(over), ISSUER, NOW)
}

#[test]
fn a_token_that_says_all_it_must_stands_for_issuer_and_subject_until_it_expires() {
    let principal = Principal::Oidc { issuer: ISSUER.into(), subject: "alice".into() };
    let until = Timestamp(at(60) * 1000).plus(LEEWAY);
    assert_eq!(judge(json!({})), Ok(Judged { principal, until }));
    assert!(
        judge(
            json!({"aud": "mcp", "azp": null, "client_id": "cli", "scope": null, "scp": ["read", "tools"]})
        )
        .is_ok()
    );
}

#[test]
fn what_is_not_for_us_or_not_for_now_is_an_invalid_token() {
    for (over, why) in [
        (json!({"iss": "https://evil.example"}), "issuer"),
        (json!({"iss": null}), "issuer"),
        (json!({"iss": "https://id.example/"}), "issuer"),
        (json!({"aud": "other"}), "audience"),
        (json!({"aud": ["mcp2", "MCP"]}), "audience"),
        (json!({"aud": null}), "audience"),
        (json!({"aud": {"mcp": true}}), "audience"),
        (json!({"exp": at(-31)}), "expired"),
        (json!({"exp": null}), "never expires"),
        (json!({"exp": "soon"}), "time"),
        (json!({"nbf": at(31)}), "not valid yet"),
        (json!({"nbf": "soon"}), "time"),
        (json!({"sub": null}), "subject"),
        (json!({"sub": ""}), "subject"),
    ] {
        let Err(Fault::InvalidToken(said)) = judge(over.clone()) else { panic!("{over}") };
        assert!(said.contains(why), "{over}: {said}");
    }
    for over in [json!({"exp": at(-29)}), json!({"nbf": at(29)}), json!({"nbf": at(-1)})] {
        assert!(judge(over.clone()).is_ok(), "clocks may differ a little: {over}");
    }
}

#[test]
fn a_known_caller_without_scope_client_or_claim_is_forbidden() {
    for over in [json!({"scope": "tools"}), json!({"scope": null}), json!({"scope": "toolsread"})] {
        assert_eq!(judge(over.clone()), Err(Fault::InsufficientScope), "{over}");
    }
    for over in [
        json!({"azp": "other"}),
        json!({"azp": null}),
        json!({"azp": "other", "client_id": "cli"}),
        json!({"groups": ["ops"]}),
        json!({"groups": null}),
    ] {
        assert!(matches!(judge(over.clone()), Err(Fault::CallerNotAllowed(_))), "{over}");
    }
}

#[test]
fn a_service_account_is_known_by_namespace_name_and_uid() {
    let judged =
        |policy: &Policy, over| policy.judge(&claims(over), ISSUER, NOW).map(|judged| judged.principal);
    let bot = Principal::ServiceAccount { namespace: "ai".into(), name: "bot".into(), uid: "u-1".into() };
    assert_eq!(judged(&account_policy(&[("ai", "")]), json!({})), Ok(bot.clone()));
    assert_eq!(judged(&account_policy(&[("x", ""), ("ai", "bot")]), json!({})), Ok(bot));
    for policy in [account_policy(&[("ai", "other"), ("bot", "")]), account_policy(&[])] {
        assert!(matches!(judged(&policy, json!({})), Err(Fault::CallerNotAllowed(_))));
    }
    for over in [
        json!({"kubernetes.io": null}),
        json!({"kubernetes.io": {"namespace": "ai"}}),
        json!({"kubernetes.io": {"namespace": "ai", "serviceaccount": {"name": "bot"}}}),
    ] {
        let refused = judged(&account_policy(&[("ai", "")]), over.clone());
        assert!(matches!(refused, Err(Fault::InvalidToken(_))), "{over}");
    }
}
