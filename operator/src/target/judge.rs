//! A target's status: at each gateway, and together. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::Resource;
use mooring_crds::{
    MCPTarget, MCPTargetStatus,
    condition::{self, reason},
    config::{TargetReport, TargetState},
    target::TargetGatewayStatus,
};

use super::observe::{AtGateway, Missing, Place, Taken, View};
use crate::{
    condition::{Verdict, find, merge},
    kind::Outcome,
};

/// The four verdicts that an object and each of its gateways get.
#[derive(Debug, Clone)]
struct Verdicts {
    accepted: Verdict,
    resolved: Verdict,
    programmed: Verdict,
    ready: Verdict,
}

impl From<Verdicts> for Vec<Verdict> {
    fn from(Verdicts { accepted, resolved, programmed, ready }: Verdicts) -> Self {
        vec![accepted, resolved, programmed, ready]
    }
}

/// The status of a target.
pub fn judge(
    target: &MCPTarget,
    view: &View,
    outcome: &Outcome,
    old: Option<&MCPTargetStatus>,
    now: &Time,
) -> MCPTargetStatus {
    let generation = target.meta().generation;
    let mut gateways = Vec::with_capacity(view.gateways.len());
    let mut each = Vec::with_capacity(view.gateways.len());
    for at in &view.gateways {
        let known = known(old, at);
        let verdicts = at_gateway(at, known, generation);
        let said = said(at);
        each.push((at, verdicts.clone()));
        gateways.push(TargetGatewayStatus {
            name: at.gateway.name.clone(),
            namespace: at.gateway.namespace.clone(),
            conditions: merge(known, verdicts.into(), generation, now),
            protocol_version: said.and_then(|said| said.protocol_version.clone()),
            tools: said.filter(|said| said.state == TargetState::Ready).map(|said| said.tools),
        });
    }
    let verdicts = together(view, outcome, &each);
    let known = old.map_or(&[][..], |old| &old.conditions);
    MCPTargetStatus { conditions: merge(known, verdicts.into(), generation, now), gateways }
}

/// The conditions that a target had at a gateway.
fn known<'a>(old: Option<&'a MCPTargetStatus>, at: &AtGateway) -> &'a [Condition] {
    let same = |status: &&TargetGatewayStatus| {
        status.name == at.gateway.name && status.namespace == at.gateway.namespace
    };
    old.and_then(|old| old.gateways.iter().find(same)).map_or(&[], |status| &status.conditions)
}

fn said(at: &AtGateway) -> Option<&TargetReport> {
    match &at.place {
        Place::Attached(taken) => taken.said.as_ref(),
        Place::NoGateway | Place::NotWatched | Place::GatewayRefused(_) | Place::Refused(_) => None,
    }
}

fn at_gateway(at: &AtGateway, known: &[Condition], generation: Option<i64>) -> Verdicts {
    let gateway = &at.gateway;
    let nowhere = |reason: &'static str, message: String| Verdicts {
        accepted: Verdict::no(condition::ACCEPTED, reason, message.clone()),
        resolved: Verdict::no(condition::RESOLVED_REFS, reason, message.clone()),
        programmed: Verdict::no(condition::PROGRAMMED, reason, message.clone()),
        ready: Verdict::no(condition::READY, reason, message),
    };
    match &at.place {
        Place::NoGateway => nowhere(
            reason::GATEWAY_NOT_FOUND,
            format!("there is no MCPGateway {gateway}; create it, or correct gatewayRefs"),
        ),
        Place::NotWatched => nowhere(
            reason::GATEWAY_NOT_FOUND,
            format!("MCPGateway {gateway} is in a namespace that this installation does not watch"),
        ),
        Place::GatewayRefused(refusal) => nowhere(
            reason::GATEWAY_NOT_ACCEPTED,
            format!("MCPGateway {gateway} is itself not accepted: {}", refusal.message),
        ),
        Place::Refused(refusal) => Verdicts {
            resolved: Verdict::yes(condition::RESOLVED_REFS, reason::RESOLVED),
            ..nowhere(refusal.reason, refusal.message.clone())
        },
        Place::Attached(taken) => {
            let programmed = programmed(taken, known, generation);
            Verdicts {
                accepted: Verdict::yes(condition::ACCEPTED, reason::ACCEPTED),
                resolved: Verdict::yes(condition::RESOLVED_REFS, reason::RESOLVED),
                ready: ready(&programmed, taken.said.as_ref()),
                programmed,
            }
        }
    }
}

/// A change elsewhere in a gateway's configuration does not unsettle a target that was taken up and has not
/// changed: else each new target would make all the others flap.
fn programmed(taken: &Taken, known: &[Condition], generation: Option<i64>) -> Verdict {
    let was = find(known, condition::PROGRAMMED)
        .is_some_and(|was| was.status == "True" && was.observed_generation == generation);
    if taken.pods && taken.said.is_some() && (taken.current || was) {
        return Verdict::yes(condition::PROGRAMMED, reason::PROGRAMMED);
    }
    let why = if taken.pods {
        "not every pod of the gateway has taken up the target yet"
    } else {
        "the gateway has no pod that runs"
    };
    Verdict::no(condition::PROGRAMMED, reason::PENDING, why)
}

fn ready(programmed: &Verdict, said: Option<&TargetReport>) -> Verdict {
    let Some(said) = said.filter(|_| programmed.holds()) else {
        return Verdict::no(condition::READY, programmed.reason, programmed.message.clone());
    };
    let trouble = |reason, otherwise: &str| {
        let message = if said.message.is_empty() { otherwise } else { &said.message };
        Verdict::no(condition::READY, reason, message)
    };
    match said.state {
        TargetState::Ready => {
            let verdict = Verdict::yes(condition::READY, reason::READY);
            Verdict { message: remarks(said), ..verdict }
        }
        TargetState::Pending => Verdict::unknown(
            condition::READY,
            reason::PENDING,
            "the gateway has not heard from the server yet",
        ),
        TargetState::Unreachable => trouble(reason::UNREACHABLE, "the server cannot be reached"),
        TargetState::UnsupportedVersion => {
            trouble(reason::UNSUPPORTED_VERSION, "the server speaks no version of MCP that the gateway does")
        }
        TargetState::Failed => trouble(reason::FAILED, "the server does not answer as an MCP server does"),
    }
}

/// What a user of a target that works should know all the same.
fn remarks(said: &TargetReport) -> String {
    let mut remarks = Vec::new();
    if !said.long_names.is_empty() {
        remarks.push(format!(
            "names over 64 characters, which some clients refuse: {}",
            said.long_names.join(", ")
        ));
    }
    if !said.collisions.is_empty() {
        remarks.push(format!(
            "hidden because an older target has one of that name: {}",
            said.collisions.join(", ")
        ));
    }
    if !said.message.is_empty() {
        remarks.push(said.message.clone());
    }
    remarks.join("; ")
}

fn together(view: &View, outcome: &Outcome, each: &[(&AtGateway, Verdicts)]) -> Verdicts {
    let accepted = match outcome {
        Outcome::Refused(refusal) | Outcome::Failed(refusal) => {
            Verdict::no(condition::ACCEPTED, refusal.reason, refusal.message.clone())
        }
        Outcome::Applied(_) => accepted(each),
    };
    let resolved = resolved(view, each);
    let programmed =
        first_trouble(each, condition::PROGRAMMED, reason::PROGRAMMED, |verdicts| &verdicts.programmed);
    let ready = if accepted.status == crate::condition::Status::False {
        Verdict::no(condition::READY, accepted.reason, accepted.message.clone())
    } else if !resolved.holds() {
        Verdict::no(condition::READY, resolved.reason, resolved.message.clone())
    } else {
        first_trouble(each, condition::READY, reason::READY, |verdicts| &verdicts.ready)
    };
    Verdicts { accepted, resolved, programmed, ready }
}

/// Accepted where at least one gateway takes it; what the others say is in the message.
fn accepted(each: &[(&AtGateway, Verdicts)]) -> Verdict {
    let refusing: Vec<_> = each.iter().filter(|(at, _)| matches!(at.place, Place::Refused(_))).collect();
    let Some((_, first)) = refusing.first() else {
        return Verdict::yes(condition::ACCEPTED, reason::ACCEPTED);
    };
    if refusing.len() == each.len() {
        return first.accepted.clone();
    }
    let names: Vec<_> = refusing
        .iter()
        .map(|(at, verdicts)| format!("{}: {}", at.gateway, verdicts.accepted.message))
        .collect();
    let verdict = Verdict::yes(condition::ACCEPTED, reason::PARTIALLY_ACCEPTED);
    Verdict { message: format!("not at every gateway: {}", names.join("; ")), ..verdict }
}

fn resolved(view: &View, each: &[(&AtGateway, Verdicts)]) -> Verdict {
    let no = |message| Verdict::no(condition::RESOLVED_REFS, reason::SERVICE_NOT_FOUND, message);
    match &view.service {
        Some(Missing::Service(name)) => no(format!(
            "there is no Service {name} in this namespace; create it, or correct server.service.name"
        )),
        Some(Missing::Port(name, port)) => {
            no(format!("Service {name} has no port {port}; correct server.service.port"))
        }
        None => match &view.unresolved {
            Some(missing) => Verdict::no(condition::RESOLVED_REFS, missing.reason(), missing.to_string()),
            None => {
                first_trouble(each, condition::RESOLVED_REFS, reason::RESOLVED, |verdicts| &verdicts.resolved)
            }
        },
    }
}

/// The first verdict that does not hold; where all do, one that holds, with the first remark.
fn first_trouble(
    each: &[(&AtGateway, Verdicts)],
    kind: &'static str,
    holds: &'static str,
    of: impl Fn(&Verdicts) -> &Verdict,
) -> Verdict {
    let all = || each.iter().map(|(_, verdicts)| of(verdicts));
    if let Some(trouble) = all().find(|verdict| !verdict.holds()) {
        return trouble.clone();
    }
    let remark = all().map(|verdict| verdict.message.clone()).find(|message| !message.is_empty());
    Verdict { message: remark.unwrap_or_default(), ..Verdict::yes(kind, holds) }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
