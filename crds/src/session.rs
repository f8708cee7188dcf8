//! How long a gateway's sessions live. Types and defaults only: no clock is here.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long a gateway's sessions live. A change applies to sessions begun after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewaySession {
    /// Stateful or Stateless. Stateless issues no session id and stores nothing. Default Stateful.
    pub mode: SessionMode,
    /// Seconds from initialize to the end of a session, used or not. Default 3600; the installation sets the
    /// limits, 900 to 28800 unless it was told otherwise.
    #[schemars(range(min = 1))]
    pub timeout_seconds: i32,
    /// Seconds without use after which a session ends; none where it is not written. A request in flight is a use for
    /// as long as it lasts, an open GET stream is none. At most timeoutSeconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub idle_timeout_seconds: Option<i32>,
    /// Sessions one caller may have on one pod; one more is answered 429. To anonymous all callers are one, so that
    /// it is the number of sessions in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_per_principal: Option<i32>,
    /// Sessions begun before this time end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_before: Option<Time>,
}

impl Default for GatewaySession {
    fn default() -> Self {
        Self {
            mode: SessionMode::default(),
            timeout_seconds: 3600,
            idle_timeout_seconds: None,
            max_per_principal: None,
            end_before: None,
        }
    }
}

/// Whether sessions are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SessionMode {
    /// A session has an id and a record.
    #[default]
    Stateful,
    /// No id is issued, nothing is stored.
    Stateless,
}
