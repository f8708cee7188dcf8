//! Pure: what a gateway lets targets of other namespaces have: a place in it, and never an identity that is not theirs.

use kube::ResourceExt;

use super::Refusal;
use super::attach::full_name;
use crate::condition::reason;
use crate::credentials::CredentialsType;
use crate::gateway::NamespacesFrom;
use crate::{MCPGateway, MCPTarget};

/// Whether the gateway takes the target, as far as namespaces and credentials go.
pub(super) fn consent(gateway: &MCPGateway, target: &MCPTarget) -> Result<(), Refusal> {
    let is_own = target.namespace() == gateway.namespace();
    let allowed = match gateway.spec.allowed_targets.namespaces.from {
        NamespacesFrom::All => true,
        NamespacesFrom::Same => is_own,
        // Not served: `accept_gateway` has refused the gateway before this is asked.
        NamespacesFrom::Selector => false,
    };
    if !allowed {
        return Err(not_allowed(format!(
            "the gateway {} takes targets of its own namespace only; move the target there, or write \
             allowedTargets.namespaces.from: All in the gateway",
            name(gateway)
        )));
    }
    if is_own { Ok(()) } else { nothing_lent(gateway, target) }
}

/// Whoever writes a target says where its requests for tokens go, and for which audience tokens are: in another
/// namespace they would get the callers' own tokens, or ones that speak for the gateway.
fn nothing_lent(gateway: &MCPGateway, target: &MCPTarget) -> Result<(), Refusal> {
    let (kind, what) = match target.spec.credentials.as_ref().map(|credentials| credentials.kind) {
        None | Some(CredentialsType::Headers | CredentialsType::ClientCredentials) => return Ok(()),
        Some(CredentialsType::TokenExchange) => ("TokenExchange", "its callers' tokens"),
        Some(CredentialsType::ServiceAccountToken) => {
            ("ServiceAccountToken", "tokens of its own ServiceAccount")
        }
    };
    Err(not_allowed(format!(
        "spec.credentials.type: {kind} asks the gateway {} for {what}, which targets of its own namespace alone may \
         have; move the target there, or write type: Headers or type: ClientCredentials",
        name(gateway)
    )))
}

fn not_allowed(message: String) -> Refusal {
    Refusal { reason: reason::NOT_ALLOWED, message }
}

fn name(gateway: &MCPGateway) -> String {
    full_name(&gateway.namespace().unwrap_or_default(), &gateway.name_any())
}
