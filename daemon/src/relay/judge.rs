//! Pure: what a message on the stream of a call means for the relay.

use bytes::Bytes;

use super::progress;
use crate::{
    catalog::kind,
    jsonrpc::{Kind, Message, envelope::same_id},
};

/// What a message means.
#[derive(Debug)]
pub enum Verdict {
    /// Relay it.
    Relay,
    /// Relay it; it shows progress.
    Progress,
    /// Relay it; it is the answer.
    Answer,
    /// The target asks: this client, or us in its place.
    Ask(Box<Message>),
    /// The target takes back what it asked, under this id.
    Withdraw(Option<Bytes>),
    /// A list of the target's may have changed. The catalogue announces that, so that clients hear of it once.
    Changed(String),
    /// Do not relay it.
    Drop,
}

/// Judges the data of an event on the stream of the call with this id and progress token.
pub fn judge(data: &Bytes, id: &[u8], token: Option<&str>) -> Verdict {
    if data.is_empty() {
        return Verdict::Drop;
    }
    let Ok(message) = Message::parse(data.clone()) else { return Verdict::Drop };
    match &message.kind {
        Kind::Response { id: of } if same_id(of, id) => Verdict::Answer,
        // An answer to nothing that was asked on this stream: clients break off at it.
        Kind::Response { .. } => Verdict::Drop,
        Kind::Request { .. } => Verdict::Ask(Box::new(message)),
        Kind::Notification { method, params } => match method.as_str() {
            "notifications/progress" => {
                // Clients break off at progress that they did not ask for (case 028).
                let of_this = progress::reports_on(params.progress_token.as_deref(), token);
                if of_this { Verdict::Progress } else { Verdict::Drop }
            }
            "notifications/cancelled" => Verdict::Withdraw(params.request_id.clone()),
            changed if kind::of_notification(changed).next().is_some() => {
                Verdict::Changed(changed.to_owned())
            }
            _ => Verdict::Relay,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(data: &'static str) -> Verdict {
        judge(&Bytes::from_static(data.as_bytes()), b"1", Some("7"))
    }

    #[test]
    fn the_stream_ends_on_the_answer_and_on_no_request_of_the_same_id() {
        assert!(matches!(of(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Verdict::Answer));
        let ask = r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}"#;
        assert!(matches!(of(ask), Verdict::Ask(_)), "case 023");
        assert!(matches!(of(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#), Verdict::Drop));
    }

    #[test]
    fn only_progress_that_was_asked_for_passes() {
        let progress = |token| match token {
            "7" => of(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7}}"#),
            _ => of(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"7"}}"#),
        };
        assert!(matches!(progress("7"), Verdict::Progress));
        assert!(matches!(progress("\"7\""), Verdict::Drop));
    }

    #[test]
    fn what_is_no_message_is_dropped_and_an_unknown_notification_passes() {
        for data in ["", "{}", "noise", "[]"] {
            assert!(matches!(of(data), Verdict::Drop), "{data}");
        }
        assert!(matches!(of(r#"{"jsonrpc":"2.0","method":"notifications/new"}"#), Verdict::Relay));
        let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        assert!(matches!(of(changed), Verdict::Changed(_)));
    }
}
