//! How long a target may take. Types, defaults and rules only: no clock is here.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::rule;

/// How long a server may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.requestSeconds <= self.maximumSeconds")
    .message(rule::TIMEOUTS_ORDER))]
pub struct Timeouts {
    /// Seconds to connect and to answer initialize. Default 5.
    #[serde(default = "connect_seconds")]
    #[schemars(range(min = 1))]
    pub connect_seconds: i32,
    /// Seconds a request may be silent; progress restarts them. Default 300.
    #[serde(default = "request_seconds")]
    #[schemars(range(min = 1))]
    pub request_seconds: i32,
    /// Seconds a client may take to answer a question of the server's; the request's own clock stands meanwhile.
    /// Default 600.
    #[serde(default = "client_answer_seconds")]
    #[schemars(range(min = 1))]
    pub client_answer_seconds: i32,
    /// Seconds a request may take in all. Default 3600.
    #[serde(default = "maximum_seconds")]
    #[schemars(range(min = 1))]
    pub maximum_seconds: i32,
    /// Other times for some tools; the first that matches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub overrides: Vec<TimeoutOverride>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect_seconds: connect_seconds(),
            request_seconds: request_seconds(),
            client_answer_seconds: client_answer_seconds(),
            maximum_seconds: maximum_seconds(),
            overrides: Vec::new(),
        }
    }
}

fn connect_seconds() -> i32 {
    5
}

fn request_seconds() -> i32 {
    300
}

fn client_answer_seconds() -> i32 {
    600
}

fn maximum_seconds() -> i32 {
    3600
}

/// Other times for some tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimeoutOverride {
    /// A name for this entry, unique in the list.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Patterns on the server's own tool names; * stands for any characters.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 256)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub tools: Vec<String>,
    /// As timeouts.requestSeconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub request_seconds: Option<i32>,
    /// As timeouts.maximumSeconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub maximum_seconds: Option<i32>,
}
