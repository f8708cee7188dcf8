//! What becomes of an event stream whose client leaves while the store is asked about it.

use std::sync::atomic::Ordering;

use e2e::{
    client::Client,
    scripted::{Behaviour, Script, ScriptedServer, Tool},
};
use serde_json::{Value, json};

use super::replica::{Replica, SLOW, WELL, config_with, faulty, until};

/// An error by which a target says that it does not know the session of a call.
fn forgotten(id: &Value) -> String {
    let error =
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32001, "message": "Session not found"}});
    format!("data: {error}\n\n")
}

#[tokio::test]
async fn a_stream_has_its_answer_though_its_client_left_while_the_loss_was_being_stored() {
    let (store, state) = faulty();
    let script = Script { tools: vec![Tool::new("fed", Behaviour::Fed)], ..Script::default() };
    let target = ScriptedServer::start(script).await;
    let replica = Replica::start_with(&store, config_with(target.url())).await;
    let client = Client::new(&replica.url).unwrap();
    let session = client.initialize().await.unwrap();
    let call = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call",
        "params": {"name": "a___fed", "arguments": {}}});
    let mut events = session.open(call.to_string()).await.unwrap();
    let primer = events.next().await.unwrap().unwrap();
    target.until_feeds(1).await.unwrap();
    state.store(SLOW, Ordering::SeqCst);
    target.feed(forgotten(&json!("c")));
    until("the loss to be stored", || store.hanging() == 1).await;
    drop(events);
    until("the connection's end to be seen", || store.given_up() == 1).await;
    state.store(WELL, Ordering::SeqCst);
    let rest = session.get_behind(&primer.id.unwrap()).await.unwrap().rest().await.unwrap();
    let answers: Vec<Value> = rest.iter().filter_map(e2e::client::Event::message).collect();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0]["id"], "c");
    assert!(answers[0]["error"]["message"].as_str().unwrap().contains("session"), "{answers:?}");
}
