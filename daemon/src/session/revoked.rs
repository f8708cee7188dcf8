//! Pure: which sessions a configuration ends (`spec.auth.denied`, `spec.session.endBefore`).

use std::time::Duration;

use mooring_crds::config::{Denied, GatewayConfig};
use mooring_runtime::Timestamp;

use super::record::{Principal, Record};

/// What a configuration says of sessions that exist already.
#[derive(Debug, Clone, Default)]
pub struct Revoked {
    denied: Vec<Denied>,
    /// The issuer of ServiceAccounts' tokens, where it is known.
    cluster_issuer: Option<String>,
    end_before: Option<Timestamp>,
}

impl Revoked {
    /// What `gateway` says.
    pub fn of(gateway: &GatewayConfig, cluster_issuer: Option<String>) -> Self {
        let end_before = gateway.session.end_before.map(Timestamp);
        Self { denied: gateway.auth.denied.clone(), cluster_issuer, end_before }
    }

    /// Whether no session ends by it.
    pub fn is_nothing(&self) -> bool {
        self.denied.is_empty() && self.end_before.is_none()
    }

    /// How long it is from `now` until more sessions end by it; none where no such time is to come.
    pub fn comes_in(&self, now: Timestamp) -> Option<Duration> {
        self.end_before.filter(|before| now < *before).map(|before| now.until(before))
    }

    /// Whether a session of this record must end now. A time that is yet to come ends nothing before it has.
    pub fn covers(&self, record: &Record, now: Timestamp) -> bool {
        self.end_before.is_some_and(|before| before <= now && record.created < before)
            || denies(&self.denied, &record.principal, self.cluster_issuer.as_deref())
    }
}

/// Whether a principal is denied. Of an entry without issuer the subject alone counts; one with an issuer is of a
/// ServiceAccount only where it names the cluster's.
pub fn denies(denied: &[Denied], principal: &Principal, cluster_issuer: Option<&str>) -> bool {
    let is = |own_issuer: Option<&str>, own_subject: &str| {
        denied.iter().any(|Denied { issuer, subject }| {
            subject == own_subject && (issuer.is_empty() || own_issuer == Some(issuer.as_str()))
        })
    };
    match principal {
        Principal::Anonymous => false,
        Principal::Oidc { issuer, subject } => is(Some(issuer), subject),
        Principal::ServiceAccount { namespace, name, uid: _ } => {
            !denied.is_empty() && is(cluster_issuer, &format!("system:serviceaccount:{namespace}:{name}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{gateway_config, record};

    fn denied(issuer: &str, subject: &str) -> Vec<Denied> {
        vec![Denied { issuer: issuer.to_owned(), subject: subject.to_owned() }]
    }

    #[test]
    fn a_caller_is_denied_by_subject_and_by_issuer_where_one_is_written() {
        let alice = Principal::Oidc { issuer: "https://id.example".into(), subject: "alice".into() };
        assert!(denies(&denied("", "alice"), &alice, None));
        assert!(denies(&denied("https://id.example", "alice"), &alice, None));
        assert!(!denies(&denied("https://other.example", "alice"), &alice, Some("https://other.example")));
        assert!(!denies(&denied("", "alic"), &alice, None));
        let subject = "system:serviceaccount:ai:bot";
        let bot = Principal::ServiceAccount { namespace: "ai".into(), name: "bot".into(), uid: "u".into() };
        assert!(denies(&denied("", subject), &bot, None));
        assert!(denies(&denied("https://cluster", subject), &bot, Some("https://cluster")));
        assert!(!denies(&denied("https://cluster", subject), &bot, None));
        assert!(!denies(&denied("", "bot"), &bot, None));
        assert!(!denies(&denied("", ""), &Principal::Anonymous, None));
    }

    #[test]
    fn sessions_that_began_before_a_time_and_those_of_denied_callers_end() {
        let with = |end_before, denied: Vec<Denied>| {
            let mut gateway = gateway_config();
            (gateway.session.end_before, gateway.auth.denied) = (end_before, denied);
            Revoked::of(&gateway, None)
        };
        let began = |at| Record { created: Timestamp(at), ..record() };
        let now = Timestamp(1000);
        assert!(with(Some(1000), Vec::new()).covers(&began(999), now));
        assert!(!with(Some(1000), Vec::new()).covers(&began(1000), now));
        assert!(!with(Some(1001), Vec::new()).covers(&began(999), now), "that time is yet to come");
        assert!(!with(None, Vec::new()).covers(&began(0), now));
        let comes = |end_before| with(end_before, Vec::new()).comes_in(now);
        assert_eq!(
            [comes(Some(1001)), comes(Some(1000)), comes(None)],
            [Some(Duration::from_millis(1)), None, None]
        );
        let principal = Principal::Oidc { issuer: "i".into(), subject: "mallory".into() };
        assert!(with(None, denied("", "mallory")).covers(&Record { principal, ..began(0) }, now));
    }
}
