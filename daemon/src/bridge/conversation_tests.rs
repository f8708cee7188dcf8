//! In which order a shared server hears what its sessions say.

use std::thread;

use futures_util::{FutureExt, poll};
use mooring_runtime::Tasks;

use super::{
    super::peer::{Input, UNDER_WAY, Written},
    *,
};
use crate::{
    jsonrpc::{Kind, reply},
    testing::shared,
};

/// A conversation with a server that says nothing, and what it is told.
fn conversation() -> (Arc<Conversation>, mpsc::Receiver<Written>, mpsc::Sender<Message>) {
    let shared = shared();
    let refusals = shared.metrics.target("tools", "a").refusals;
    let around = Around { name: "a".into(), tasks: Tasks::default(), table: Arc::default(), refusals };
    let ((input, lines), (says, incoming)) = (Input::new(), mpsc::channel(1));
    let peer = Peer { outlet: Outlet::Lines(input), incoming, why: Arc::default() };
    (Conversation::begin(&around, peer, true, CancellationToken::new()), lines, says)
}

fn request(method: &str, number: u32) -> Message {
    let params = format!(r#"{{"uri":"x://{number}"}}"#);
    Message::parse(reply::request("1", method, &params)).unwrap()
}

fn about(verb: &str, number: u32) -> Message {
    request(&format!("resources/{verb}"), number)
}

/// Asks, and leaves again.
async fn ask(conversation: &Arc<Conversation>, party: Party, message: &Message) {
    let headers = HeaderMap::new();
    drop(asking(conversation, party, &headers, message).await.unwrap());
}

fn asking<'a>(
    conversation: &'a Arc<Conversation>,
    party: Party,
    headers: &'a HeaderMap,
    message: &'a Message,
) -> impl Future<Output = Result<(Reader, Flight), Refusal>> + 'a {
    let Kind::Request { id, .. } = &message.kind else { panic!("a request") };
    conversation.ask(Caller { party, headers }, message, id, false)
}

/// The lines that the server was sent since it was last looked.
fn heard(lines: &mut mpsc::Receiver<Written>) -> Vec<String> {
    let written = std::iter::from_fn(|| lines.try_recv().ok());
    let texts = written.map(|written| String::from_utf8(written.text.to_vec()).unwrap());
    texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[tokio::test]
async fn what_a_session_subscribes_to_while_another_parts_with_it_the_server_hears_last() {
    let (conversation, mut lines, _says) = conversation();
    for round in 0..20 {
        let [first, second] = [0, 1].map(|_| conversation.join().unwrap().0);
        // Many, so that it takes a while to say.
        for number in 0..256 {
            ask(&conversation, first, &about("subscribe", number)).await;
            drop(lines.recv().await);
        }
        let subscribe = about("subscribe", 0);
        // What follows waits for nothing, and is let do so.
        tokio::task::yield_now().await;
        thread::scope(|scope| {
            scope.spawn(|| conversation.part(first));
            // Tried and not waited for: who sleeps comes too late.
            while conversation.board.try_lock().is_none_or(|board| board.streams().count() > 1) {
                thread::yield_now();
            }
            ask(&conversation, second, &subscribe).now_or_never().unwrap();
        });
        let heard = heard(&mut lines);
        assert_eq!(heard.len(), 257, "{round}");
        assert!(heard[256].contains("resources/subscribe"), "{round}: {heard:?}");
        conversation.part(second);
        drop(lines.recv().await);
    }
}

#[tokio::test]
async fn what_is_to_be_taken_back_is_looked_at_when_it_leaves_and_not_when_it_begins_to_wait() {
    let (conversation, mut lines, _says) = conversation();
    let [subscribe, unsubscribe] = ["subscribe", "unsubscribe"].map(|verb| about(verb, 0));
    let [first, second] = [0, 1].map(|_| conversation.join().unwrap().0);
    ask(&conversation, first, &subscribe).await;
    while lines.len() < UNDER_WAY {
        ask(&conversation, first, &request("ping", 0)).await;
    }
    let headers = HeaderMap::new();
    let mut taking_back = pin!(asking(&conversation, first, &headers, &unsubscribe));
    let mut subscribing = pin!(asking(&conversation, second, &headers, &subscribe));
    assert!(poll!(&mut taking_back).is_pending() && poll!(&mut subscribing).is_pending());
    assert_eq!(heard(&mut lines).len(), UNDER_WAY);
    let (reader, _flight) = taking_back.await.unwrap();
    assert_eq!(
        reader.next().now_or_never().unwrap().unwrap().message,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#
    );
    let _subscribed = subscribing.await.unwrap();
    let heard = heard(&mut lines);
    assert!(heard.len() == 1 && heard[0].contains("resources/subscribe"), "{heard:?}");
}
