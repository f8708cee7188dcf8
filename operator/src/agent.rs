//! ACPAgent: refused by this version, and told so.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::Resource;
use mooring_crds::{
    ACPAgent, ACPAgentStatus,
    compile::accept_agent,
    condition::{self, reason},
};

use crate::{
    condition::{Verdict, merge},
    context::Settings,
    kind::{Kind, NoPlan, Outcome, Plan},
    stores::Stores,
};

impl Kind for ACPAgent {
    const KIND: &'static str = "ACPAgent";
    type World = ();
    type Status = ACPAgentStatus;

    fn observe(&self, _: &Stores, _: &Settings) {}

    fn plan(&self, (): &(), _: &Settings) -> Result<Plan, NoPlan> {
        accept_agent(self)?;
        Ok(Plan::default())
    }

    fn judge(&self, (): &(), outcome: &Outcome, old: Option<&ACPAgentStatus>, now: &Time) -> ACPAgentStatus {
        let verdicts = match outcome {
            Outcome::Refused(refusal) | Outcome::Failed(refusal) => vec![
                Verdict::no(condition::ACCEPTED, refusal.reason, refusal.message.clone()),
                Verdict::no(condition::READY, refusal.reason, refusal.message.clone()),
            ],
            Outcome::Applied(_) => vec![
                Verdict::yes(condition::ACCEPTED, reason::ACCEPTED),
                Verdict::unknown(condition::READY, reason::PENDING, "nothing runs for agents yet"),
            ],
        };
        let known = old.map_or(&[][..], |old| &old.conditions);
        ACPAgentStatus {
            conditions: merge(known, verdicts, self.meta().generation, now),
            ..ACPAgentStatus::default()
        }
    }

    fn status(&self) -> Option<&ACPAgentStatus> {
        self.status.as_ref()
    }

    fn conditions(status: &ACPAgentStatus) -> &[Condition] {
        &status.conditions
    }
}
