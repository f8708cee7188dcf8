//! Tells users of transitions: one event each, never a repetition. A lost event is counted and stops nothing.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{
    Client,
    runtime::events::{Event, EventType, Recorder, Reporter},
};
use tokio::time::timeout;

use crate::{child::MANAGER, key::Key, kind::Kind, metrics::Metrics};

/// How long one event may take; it is only news.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest note that the API server takes, in bytes.
const NOTE_BYTES: usize = 1_024;

/// Publishes events.
#[derive(Clone)]
pub struct Events {
    recorder: Recorder,
    metrics: Metrics,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

impl Events {
    /// Events in the name of this replica.
    pub fn new(client: Client, identity: &str, metrics: Metrics) -> Self {
        let reporter = Reporter { controller: MANAGER.to_owned(), instance: Some(identity.to_owned()) };
        Self { recorder: Recorder::new(client, reporter), metrics }
    }

    /// Publishes transitions of an object's conditions.
    pub async fn transitions<K: Kind>(&self, object: &K, transitions: &[&Condition]) {
        for condition in transitions {
            self.metrics.wrote("Event");
            let (event, object_ref) = (event(condition), object.object_ref(&()));
            let published = self.recorder.publish(&event, &object_ref);
            let lost = match timeout(PATIENCE, published).await {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error.to_string(),
                Err(elapsed) => elapsed.to_string(),
            };
            self.metrics.event_lost(K::KIND);
            tracing::warn!(kind = K::KIND, object = %Key::of(object), error = lost, "an event could not be published");
        }
    }
}

/// The event of a transition: its reason, and what a user reads in `kubectl describe`.
fn event(condition: &Condition) -> Event {
    let Condition { type_, status, reason, message, .. } = condition;
    let mut note = format!("{type_} is {status}");
    if !message.is_empty() {
        note = format!("{note}: {message}");
    }
    note.truncate(note.floor_char_boundary(NOTE_BYTES));
    Event {
        type_: if status == "False" { EventType::Warning } else { EventType::Normal },
        reason: reason.clone(),
        note: Some(note),
        action: type_.clone(),
        secondary: None,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use jiff::Timestamp;

    use super::*;

    fn condition(status: &str, message: &str) -> Condition {
        Condition {
            type_: "Ready".to_owned(),
            status: status.to_owned(),
            reason: "NoPods".to_owned(),
            message: message.to_owned(),
            observed_generation: None,
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
        }
    }

    #[test]
    fn trouble_is_a_warning_and_the_note_says_which_condition() {
        let event = event(&condition("False", "no pod runs"));
        assert_eq!(event.type_, EventType::Warning);
        assert_eq!(event.note.as_deref(), Some("Ready is False: no pod runs"));
        assert_eq!(event.reason, "NoPods");
    }

    #[test]
    fn a_note_is_cut_between_characters_before_the_limit() {
        let note = event(&condition("True", &"\u{e9}".repeat(800))).note.unwrap();
        assert!(note.len() <= NOTE_BYTES && note.len() > NOTE_BYTES - 4, "{}", note.len());
    }
}
