//! MCPTarget: no children; its status tells what became of it at each of its gateways.

pub mod judge;
pub mod observe;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use mooring_crds::{MCPTarget, MCPTargetStatus, compile::accept_target};

use crate::{
    context::Settings,
    key::Key,
    kind::{Kind, NoPlan, Outcome, Plan},
    stores::Stores,
};

pub use observe::View;

impl Kind for MCPTarget {
    const KIND: &'static str = "MCPTarget";
    type World = View;
    type Status = MCPTargetStatus;

    fn observe(&self, stores: &Stores, settings: &Settings) -> View {
        observe::observe(self, stores, settings)
    }

    fn plan(&self, _: &View, settings: &Settings) -> Result<Plan, NoPlan> {
        accept_target(self, &settings.platform)?;
        Ok(Plan::default())
    }

    fn judge(
        &self,
        view: &View,
        outcome: &Outcome,
        old: Option<&MCPTargetStatus>,
        now: &Time,
    ) -> MCPTargetStatus {
        judge::judge(self, view, outcome, old, now)
    }

    fn status(&self) -> Option<&MCPTargetStatus> {
        self.status.as_ref()
    }

    fn conditions(status: &MCPTargetStatus) -> &[Condition] {
        &status.conditions
    }
}

/// The gateways that a target refers to.
pub fn references(target: &MCPTarget) -> impl Iterator<Item = Key> {
    let own = target.metadata.namespace.as_deref().unwrap_or_default();
    target.spec.gateway_refs.iter().map(move |reference| {
        let namespace = if reference.namespace.is_empty() { own } else { &reference.namespace };
        Key::new(namespace, &reference.name)
    })
}
