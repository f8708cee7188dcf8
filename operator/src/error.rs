//! Why a reconcile stopped: what the log, the metric's label and the status say of it. Pure.

use mooring_crds::{compile::Refusal, condition::reason};

use crate::child::ChildKind;

/// A step of a reconcile that failed; it is tried again later.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An object that is in the way of a child belongs to somebody else.
    #[error("{}", .0.message)]
    ChildConflict(Refusal),
    /// A child could not be read.
    #[error("{kind} {name} could not be read")]
    Read {
        /// The child's kind.
        kind: ChildKind,
        /// The child's name.
        name: String,
        /// What the API server said.
        #[source]
        source: Box<kube::Error>,
    },
    /// A child could not be written.
    #[error("{kind} {name} could not be applied")]
    Apply {
        /// The child's kind.
        kind: ChildKind,
        /// The child's name.
        name: String,
        /// What the API server said.
        #[source]
        source: Box<kube::Error>,
    },
    /// Keys of pods that are gone could not be removed from a report.
    #[error("the report {name} could not be pruned")]
    Prune {
        /// The ConfigMap's name.
        name: String,
        /// What the API server said.
        #[source]
        source: Box<kube::Error>,
    },
    /// The status could not be written.
    #[error("the status could not be written")]
    Status(#[source] Box<kube::Error>),
    /// One of our own values is not JSON: a fault of this program.
    #[error("an object could not be put into JSON")]
    Json(#[from] serde_json::Error),
}

impl Error {
    /// A bounded label for metrics.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::ChildConflict(_) => "child_conflict",
            Self::Read { .. } => "read",
            Self::Apply { .. } => "apply",
            Self::Prune { .. } => "prune",
            Self::Status(_) => "status",
            Self::Json(_) => "json",
        }
    }

    /// What the status says of a failure before it: a reason, and a sentence whose words do not change from one
    /// attempt to the next.
    pub fn refusal(&self) -> Refusal {
        match self {
            Self::ChildConflict(refusal) => refusal.clone(),
            Self::Read { kind, name, source } => failed(&format!("{kind} {name} could not be read"), source),
            Self::Apply { kind, name, source } => {
                failed(&format!("{kind} {name} could not be applied"), source)
            }
            Self::Prune { name, source } => failed(&format!("ConfigMap {name} could not be pruned"), source),
            Self::Status(source) => failed("the status could not be written", source),
            Self::Json(_) => Refusal {
                reason: reason::APPLY_FAILED,
                message: "an object could not be put into JSON".to_owned(),
            },
        }
    }
}

fn failed(what: &str, source: &kube::Error) -> Refusal {
    Refusal { reason: reason::APPLY_FAILED, message: format!("{what}: {}", cause(source)) }
}

/// The API server's reason and, where the user can act on it, its words; an I/O error only by its class, since
/// its text holds addresses and differs from attempt to attempt.
fn cause(source: &kube::Error) -> String {
    let kube::Error::Api(status) = source else { return "the API server could not be asked".to_owned() };
    match (status.code, status.reason.as_str()) {
        (400 | 403 | 422, _) => status.message.clone(),
        (code, "") => format!("the API server answered {code}"),
        (_, reason) => format!("the API server answered {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn apply(status: Status) -> Error {
        let source = Box::new(kube::Error::Api(status.boxed()));
        Error::Apply { kind: ChildKind::Service, name: "tools-mcp".to_owned(), source }
    }

    #[test]
    fn a_forbidden_write_names_child_and_verb() {
        let error = apply(Status::failure("cannot patch resource \"services\"", "Forbidden").with_code(403));
        let refusal = error.refusal();
        assert_eq!(refusal.reason, "ApplyFailed");
        assert_eq!(
            refusal.message,
            "Service tools-mcp could not be applied: cannot patch resource \"services\""
        );
    }

    #[test]
    fn the_text_of_a_passing_fault_stays_out_of_the_status() {
        let error = apply(
            Status::failure("etcdserver: request 7587 timed out at 10.0.0.7", "Timeout").with_code(504),
        );
        assert!(error.refusal().message.ends_with("the API server answered Timeout"));
    }
}
