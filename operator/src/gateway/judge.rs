//! A gateway's status, from its view and from what came of the apply. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Resource, ResourceExt};
use mooring_crds::{
    MCPGateway, MCPGatewayStatus,
    compile::Refusal,
    condition::{self, reason},
    config::TargetState,
    gateway::TargetCounts,
};

use super::{
    observe::{Configured, View},
    plan::selector,
};
use crate::{
    child::ChildKind,
    condition::{Verdict, merge},
    kind::Outcome,
    rollout::Rollout,
};

/// The status of a gateway.
pub fn judge(
    gateway: &MCPGateway,
    view: &View,
    outcome: &Outcome,
    old: Option<&MCPGatewayStatus>,
    now: &Time,
) -> MCPGatewayStatus {
    let rollout = match outcome {
        // Where the plan left the Deployment out, what is known of it holds.
        Outcome::Applied(applied) => applied
            .get(ChildKind::Deployment, &view.names.workload)
            .map_or(view.rollout, |deployment| Rollout::of(Some(deployment))),
        Outcome::Refused(_) | Outcome::Failed(_) => view.rollout,
    };
    let bound = gateway.spec.auth.anonymous.is_none();
    let verdicts = verdicts(view, outcome, rollout, bound);
    let known = old.map_or(&[][..], |old| &old.conditions);
    let (targets, address) = match &view.configured {
        Ok(configured) => (Some(count(configured, view)), Some(address(gateway, view))),
        // The daemons and the Service go on with what they have; a new address would lead nowhere.
        Err(_) => (old.and_then(|old| old.targets), old.and_then(|old| old.address.clone())),
    };
    let labels: Vec<_> =
        selector(&view.instance).into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    MCPGatewayStatus {
        conditions: merge(known, verdicts, gateway.meta().generation, now),
        address,
        targets,
        replicas: Some(i32::try_from(rollout.replicas).unwrap_or(i32::MAX)),
        selector: Some(labels.join(",")),
    }
}

fn verdicts(view: &View, outcome: &Outcome, rollout: Rollout, bound: bool) -> Vec<Verdict> {
    let (accepted, programmed) = match &view.configured {
        Ok(configured) => {
            (Verdict::yes(condition::ACCEPTED, reason::ACCEPTED), programmed(configured, view, rollout))
        }
        Err(refusal) => {
            let kept = "the pods keep the last configuration that was accepted";
            (
                Verdict::no(condition::ACCEPTED, refusal.reason, refusal.message.clone()),
                Verdict::no(condition::PROGRAMMED, refusal.reason, kept),
            )
        }
    };
    let resolved = resolved(view);
    let ready = match outcome {
        Outcome::Refused(Refusal { reason, message }) | Outcome::Failed(Refusal { reason, message }) => {
            Verdict::no(condition::READY, reason, message.clone())
        }
        Outcome::Applied(_) if !resolved.holds() => {
            Verdict::no(condition::READY, resolved.reason, resolved.message.clone())
        }
        Outcome::Applied(_) => ready(view, rollout, &programmed),
    };
    vec![
        accepted,
        resolved,
        programmed,
        ready,
        Verdict::no(
            condition::SESSIONS_DURABLE,
            reason::MEMORY_STORE,
            "sessions live in the memory of their pod and end with it",
        ),
        if bound {
            Verdict::yes(condition::PRINCIPALS_BOUND, reason::AUTHENTICATED)
        } else {
            Verdict::no(
                condition::PRINCIPALS_BOUND,
                reason::ANONYMOUS,
                "anybody who reaches the address is served, and a session belongs to whoever holds its id",
            )
        },
    ]
}

/// Of the gateway's own references; what a target's lead to stands in the target's status.
fn resolved(view: &View) -> Verdict {
    let own = view.credentials.unresolved.iter().find(|missing| missing.source.target.is_none());
    own.map_or_else(
        || Verdict::yes(condition::RESOLVED_REFS, reason::RESOLVED),
        |missing| Verdict::no(condition::RESOLVED_REFS, missing.reason(), missing.to_string()),
    )
}

fn programmed(configured: &Configured, view: &View, rollout: Rollout) -> Verdict {
    let pending = |message: &str| Verdict::no(condition::PROGRAMMED, reason::PENDING, message);
    if rollout.current && rollout.wanted == 0 {
        Verdict::unknown(
            condition::PROGRAMMED,
            reason::SCALED_TO_ZERO,
            "replicas is 0: no pod works by anything",
        )
    } else if view.daemons.live.is_empty() {
        pending("no pod runs yet that could take up the configuration")
    } else if !view.daemons.all_work_by(&configured.digest) {
        pending("not every pod has taken up the newest configuration yet")
    } else if !rollout.current || rollout.updated < rollout.wanted {
        pending("pods are being replaced by ones of the newest template")
    } else {
        Verdict::yes(condition::PROGRAMMED, reason::PROGRAMMED)
    }
}

fn ready(view: &View, rollout: Rollout, programmed: &Verdict) -> Verdict {
    let workload = &view.names.workload;
    let no = |reason, message: String| Verdict::no(condition::READY, reason, message);
    if rollout.current && rollout.wanted == 0 {
        no(reason::SCALED_TO_ZERO, "replicas is 0; write 1 or more to serve".to_owned())
    } else if !rollout.serves() {
        let why = if rollout.refused {
            format!(
                "pods cannot be made: `kubectl describe deployment {workload}` and its ReplicaSet tell why"
            )
        } else if rollout.stuck {
            format!("pods do not come up: `kubectl describe deployment {workload}` and its pods tell why")
        } else if view.service_account.is_none() {
            format!("waiting for its ServiceAccount {workload} to be seen")
        } else {
            "too few pods are available yet".to_owned()
        };
        no(reason::PODS_NOT_READY, why)
    } else if !programmed.holds() {
        let why = if rollout.stuck {
            format!(
                "pods of the newest template do not come up, older ones serve: `kubectl describe deployment \
                 {workload}` and its pods tell why"
            )
        } else {
            programmed.message.clone()
        };
        no(programmed.reason, why)
    } else {
        Verdict::yes(condition::READY, reason::READY)
    }
}

fn count(configured: &Configured, view: &View) -> TargetCounts {
    let attached = configured.compiled.attachments.iter().filter(|attachment| attachment.outcome.is_ok());
    let answers = |uid: &str| view.daemons.target(uid).is_some_and(|said| said.state == TargetState::Ready);
    let (mut all, mut ready) = (0, 0);
    for attachment in attached {
        all += 1;
        ready += i32::from(answers(&attachment.uid));
    }
    TargetCounts { attached: all, ready }
}

fn address(gateway: &MCPGateway, view: &View) -> String {
    let expose = &gateway.spec.expose;
    let (scheme, own) = if gateway.spec.tls.is_some() { ("https", 443) } else { ("http", 80) };
    let port = if expose.port == own { String::new() } else { format!(":{}", expose.port) };
    let namespace = gateway.namespace().unwrap_or_default();
    format!("{scheme}://{}.{namespace}.svc{port}{}", view.names.workload, expose.path)
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
