//! MCPGateway: each step in a file of its own under `gateway/`.

pub mod credentials;
pub mod judge;
pub mod observe;
pub mod plan;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use mooring_crds::{MCPGateway, MCPGatewayStatus};

use crate::{
    context::Settings,
    kind::{Kind, NoPlan, Outcome, Plan},
    stores::Stores,
};

pub use observe::View;

impl Kind for MCPGateway {
    const KIND: &'static str = "MCPGateway";
    type World = View;
    type Status = MCPGatewayStatus;

    fn observe(&self, stores: &Stores, settings: &Settings) -> View {
        observe::observe(self, stores, settings)
    }

    fn plan(&self, view: &View, settings: &Settings) -> Result<Plan, NoPlan> {
        plan::plan(self, view, settings)
    }

    fn judge(
        &self,
        view: &View,
        outcome: &Outcome,
        old: Option<&MCPGatewayStatus>,
        now: &Time,
    ) -> MCPGatewayStatus {
        judge::judge(self, view, outcome, old, now)
    }

    fn status(&self) -> Option<&MCPGatewayStatus> {
        self.status.as_ref()
    }

    fn conditions(status: &MCPGatewayStatus) -> &[Condition] {
        &status.conditions
    }
}
