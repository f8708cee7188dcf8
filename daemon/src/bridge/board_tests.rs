//! What a server says reaches the one whom it is for, alone or among others.

use super::*;

fn message(text: &str) -> Message {
    Message::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

fn request(id: &str, token: Option<&str>) -> Message {
    let meta = token.map_or_else(|| "{}".to_owned(), |token| format!(r#"{{"progressToken":{token}}}"#));
    message(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"_meta":{meta}}}}}"#))
}

fn about(id: &str, verb: &str, uri: &str) -> Message {
    message(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/{verb}","params":{{"uri":"{uri}"}}}}"#
    ))
}

fn updated(board: &mut Board, uri: &str) -> Delivery {
    let method = "notifications/resources/updated";
    deliver(board, &format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"uri":"{uri}"}}}}"#))
}

fn begin(board: &mut Board, party: Party, message: &Message) -> Result<Begun, NotBegun> {
    let Kind::Request { id, .. } = &message.kind else { panic!("a request") };
    board.begin(party, message, &id.clone(), true)
}

fn deliver(board: &mut Board, text: &str) -> Delivery {
    board.deliver(&message(text), Instant::now())
}

fn value(json: &[u8]) -> Value {
    serde_json::from_slice(json).unwrap()
}

async fn next(queue: &Arc<Queue>) -> Value {
    let held = tokio::time::timeout(std::time::Duration::from_secs(5), queue.read().next()).await;
    value(&held.unwrap().unwrap().message)
}

#[tokio::test]
async fn a_session_of_its_own_keeps_its_ids_and_asides_go_to_the_request_that_began_last() {
    let mut board = Board::new(false);
    let (party, own) = board.join().unwrap();
    let first = begin(&mut board, party, &request("0", Some("\"t\""))).unwrap();
    assert_eq!(first.message, Some(request("0", Some("\"t\"")).bytes));
    assert_eq!(begin(&mut board, party, &request("0.0", None)).unwrap_err(), NotBegun::Duplicate);
    let second = begin(&mut board, party, &request("\"0\"", None)).unwrap();
    for text in [
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":0,"method":"roots/list"}"#,
        r#"{"jsonrpc":"2.0","id":"0","result":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t"}}"#,
        r#"{"jsonrpc":"2.0","id":0,"result":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
    ] {
        assert_eq!(deliver(&mut board, text), Delivery::Done, "{text}");
    }
    assert_eq!(next(&second.queue).await["method"], "notifications/message");
    assert_eq!(next(&own).await["method"], "roots/list");
    assert_eq!(next(&second.queue).await["id"], "0");
    assert_eq!(next(&first.queue).await["method"], "notifications/progress");
    assert_eq!(next(&first.queue).await["id"], 0);
    assert_eq!(next(&own).await["method"], "notifications/tools/list_changed");
    let late = deliver(&mut board, r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
    assert!(matches!(late, Delivery::Lost(_)), "{late:?}");
    assert_eq!(board.in_flight(), 0);
}

#[tokio::test]
async fn sessions_of_one_server_with_equal_ids_and_tokens_get_each_its_own() {
    let mut board = Board::new(true);
    let ((one, _), (other, _)) = (board.join().unwrap(), board.join().unwrap());
    let begun = [one, other].map(|party| begin(&mut board, party, &request("1", Some("1"))).unwrap());
    let ids = begun.each_ref().map(|begun| value(begun.message.as_ref().unwrap()));
    assert_ne!(ids[0]["id"], ids[1]["id"]);
    // The second is answered first.
    for at in [1, 0] {
        let token = &ids[at]["params"]["_meta"]["progressToken"];
        let progress = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{at}}}}}"#
        );
        assert_eq!(deliver(&mut board, &progress), Delivery::Done);
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"of":{at}}}}}"#, ids[at]["id"]);
        assert_eq!(deliver(&mut board, &answer), Delivery::Done);
    }
    for (at, begun) in begun.iter().enumerate() {
        let progress = next(&begun.queue).await;
        assert_eq!(
            (&progress["params"]["progressToken"], &progress["params"]["progress"]),
            (&1.into(), &at.into())
        );
        let answer = next(&begun.queue).await;
        assert_eq!((&answer["id"], &answer["result"]["of"]), (&1.into(), &at.into()));
    }
}

#[test]
fn an_id_behind_its_parameters_is_rewritten_as_well() {
    let mut board = Board::new(true);
    let (party, _) = board.join().unwrap();
    let text =
        r#"{"jsonrpc":"2.0","method":"m","params":{"_meta":{"progressToken":"a"},"id":"kept"},"id":"a"}"#;
    let sent = value(&begin(&mut board, party, &message(text)).unwrap().message.unwrap());
    assert_eq!(sent["id"], sent["params"]["_meta"]["progressToken"]);
    assert!(sent["id"].is_number());
    assert_eq!(sent["params"]["id"], "kept");
}

#[test]
fn a_session_of_a_shared_server_cancels_and_answers_only_what_is_its_own() {
    let mut board = Board::new(true);
    let ((one, _), (other, _)) = (board.join().unwrap(), board.join().unwrap());
    let begun = begin(&mut board, one, &request("1", None)).unwrap();
    let cancel = message(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    assert_eq!(board.notified(other, &cancel), None);
    let id = value(begun.message.as_ref().unwrap())["id"].clone();
    assert_eq!(value(&board.notified(one, &cancel).unwrap())["params"]["requestId"], id);
    let asked = r#"{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{}}"#;
    assert_eq!(deliver(&mut board, asked), Delivery::Done);
    assert!(!board.answered(other, b"0"));
    assert!(board.answered(one, b"0"));
    assert!(!board.answered(one, b"0"), "an answer counts once");
    // A caller that left may still cancel: its request runs on.
    board.leave(begun.number);
    assert_eq!(value(&board.notified(one, &cancel).unwrap())["params"]["requestId"], id);
    assert_eq!(deliver(&mut board, asked), Delivery::Answer(board.unanswered(&Bytes::from_static(b"0"))));
}

#[tokio::test]
async fn changes_of_a_shared_server_are_told_to_all() {
    let mut board = Board::new(true);
    let queues = [board.join().unwrap().1, board.join().unwrap().1];
    let text = r#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#;
    assert_eq!(deliver(&mut board, text), Delivery::Done);
    for queue in &queues {
        assert_eq!(next(queue).await["method"], "notifications/resources/list_changed");
    }
}

#[tokio::test]
async fn what_is_said_of_no_request_is_on_the_sessions_own_stream_though_a_call_runs() {
    let methods = ["resources/updated", "tasks/status", "tools/list_changed", "prompts/list_changed"];
    for shared in [false, true] {
        let mut board = Board::new(shared);
        let (party, own) = board.join().unwrap();
        begin(&mut board, party, &about("\"s\"", "subscribe", "a")).unwrap();
        let begun = begin(&mut board, party, &request("1", None)).unwrap();
        for method in methods {
            let text =
                format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{{"uri":"a"}}}}"#);
            assert_eq!(deliver(&mut board, &text), Delivery::Done, "{method}");
            assert_eq!(next(&own).await["method"], format!("notifications/{method}"));
        }
        let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
        assert_eq!(deliver(&mut board, log), Delivery::Done);
        assert_eq!(next(&begun.queue).await["method"], "notifications/message", "and nothing before it");
    }
}

#[tokio::test]
async fn a_change_at_a_shared_server_is_told_to_those_who_subscribed_and_a_subscription_ends_for_one_alone() {
    let mut board = Board::new(true);
    let ((one, first), (other, second)) = (board.join().unwrap(), board.join().unwrap());
    begin(&mut board, one, &about("1", "subscribe", "x://a")).unwrap();
    assert_eq!(updated(&mut board, "x://a/1"), Delivery::Done);
    begin(&mut board, other, &about("1", "subscribe", "x://a")).unwrap();
    assert_eq!(updated(&mut board, "x://a/2"), Delivery::Done);
    // The other still wants it, so that the server is not asked, and the caller is answered.
    let taken_back = begin(&mut board, one, &about("2", "unsubscribe", "x://a")).unwrap();
    assert_eq!(taken_back.message, None);
    assert_eq!(next(&taken_back.queue).await, serde_json::json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    assert_eq!(updated(&mut board, "x://a/3"), Delivery::Done);
    assert!(begin(&mut board, other, &about("2", "unsubscribe", "x://a")).unwrap().message.is_some());
    assert!(matches!(updated(&mut board, "x://a/4"), Delivery::Lost(_)));
    begin(&mut board, other, &about("3", "subscribe", "x://a")).unwrap();
    let of = |said: Value| said["params"]["uri"].clone();
    assert_eq!([of(next(&first).await), of(next(&first).await)], ["x://a/1", "x://a/2"]);
    assert_eq!([of(next(&second).await), of(next(&second).await)], ["x://a/2", "x://a/3"]);
    begin(&mut board, one, &about("3", "subscribe", "x://a")).unwrap();
    board.part(other);
    let last = begin(&mut board, one, &about("4", "unsubscribe", "x://a")).unwrap();
    assert!(last.message.is_some(), "one that has left wants nothing");
    first.close();
    assert_eq!(first.read().next().await, None, "and nothing more");
}

#[test]
fn a_subscription_that_a_shared_server_refuses_is_none_and_takes_no_earlier_one_with_it() {
    let mut board = Board::new(true);
    let (party, _) = board.join().unwrap();
    let refused = |board: &mut Board, id: &str| {
        let begun = begin(board, party, &about(id, "subscribe", "x://a")).unwrap();
        let id = value(begun.message.as_ref().unwrap())["id"].clone();
        deliver(board, &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"no"}}}}"#));
        updated(board, "x://a")
    };
    assert!(matches!(refused(&mut board, "1"), Delivery::Lost(_)));
    begin(&mut board, party, &about("2", "subscribe", "x://a")).unwrap();
    assert_eq!(refused(&mut board, "3"), Delivery::Done);
}

#[test]
fn what_only_a_session_that_parts_had_subscribed_to_is_taken_back_at_a_shared_server() {
    let mut board = Board::new(true);
    let ((one, _), (other, _)) = (board.join().unwrap(), board.join().unwrap());
    for (party, id, uri) in [(one, "1", "x://a"), (one, "2", "x://b"), (other, "1", "x://b")] {
        begin(&mut board, party, &about(id, "subscribe", uri)).unwrap();
    }
    // One that the server was never sent is none.
    let unsent = begin(&mut board, one, &about("3", "subscribe", "x://c")).unwrap();
    board.unsent(unsent.number);
    let taken_back = |messages: &[Bytes]| -> Vec<String> {
        let messages = messages.iter().map(|message| value(message));
        messages.map(|message| format!("{} {}", message["method"], message["params"]["uri"])).collect()
    };
    assert_eq!(taken_back(&board.part(one)), [r#""resources/unsubscribe" "x://a""#]);
    assert_eq!(taken_back(&board.part(other)), [r#""resources/unsubscribe" "x://b""#]);
    assert_eq!(board.in_flight(), 0);
}

#[test]
fn one_subscription_more_than_a_shared_server_may_have_is_refused() {
    let mut board = Board::new(true);
    let (party, _) = board.join().unwrap();
    for number in 0..subscriptions::MOST {
        let begun = begin(&mut board, party, &about("1", "subscribe", &number.to_string())).unwrap();
        board.leave(begun.number);
    }
    let more = begin(&mut board, party, &about("1", "subscribe", "more"));
    assert_eq!(more.unwrap_err(), NotBegun::Subscribed(subscriptions::Full));
    let mut own = Board::new(false);
    let (party, _) = own.join().unwrap();
    assert!(begin(&mut own, party, &about("1", "subscribe", "more")).is_ok());
}

#[tokio::test]
async fn what_a_shared_server_asks_while_it_works_for_two_sessions_reaches_neither() {
    let mut board = Board::new(true);
    let ((one, own), (other, others)) = (board.join().unwrap(), board.join().unwrap());
    let begun = [one, other].map(|party| begin(&mut board, party, &request("1", None)).unwrap());
    let asked = r#"{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{}}"#;
    let Delivery::Answer(refusal) = deliver(&mut board, asked) else { panic!("it was given to somebody") };
    assert_eq!((&value(&refusal)["id"], &value(&refusal)["error"]["code"]), (&0.into(), &(-32603).into()));
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
    assert!(matches!(deliver(&mut board, log), Delivery::Lost(_)));
    assert!(!board.answered(one, b"0") && !board.answered(other, b"0"));
    // Once it works for one of them alone, that one is asked.
    board.leave(begun[1].number);
    assert_eq!(deliver(&mut board, asked), Delivery::Done);
    assert_eq!(next(&own).await["method"], "elicitation/create");
    board.part(one);
    board.part(other);
    for nothing in [&own, &others] {
        assert_eq!(nothing.read().next().await, None);
    }
}

#[test]
fn a_server_is_answered_what_it_asked_a_session_that_has_parted() {
    let mut board = Board::new(true);
    let (one, _) = board.join().unwrap();
    for round in 0..=REMEMBERED {
        let (other, _) = board.join().unwrap();
        let begun = begin(&mut board, other, &request(&round.to_string(), None)).unwrap();
        let asked = format!(r#"{{"jsonrpc":"2.0","id":{round},"method":"roots/list"}}"#);
        assert_eq!(deliver(&mut board, &asked), Delivery::Done, "{round}");
        assert_eq!(board.part(one), Vec::<Bytes>::new(), "it was not asked");
        board.leave(begun.number);
        let answers: Vec<Value> = board.part(other).iter().map(|answer| value(answer)).collect();
        let [answer] = answers.as_slice() else { panic!("{answers:?}") };
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&round.into(), &(-32603).into()));
        assert!(board.part(other).is_empty(), "it is answered once");
        assert!(board.asked.is_empty());
    }
}

#[tokio::test]
async fn what_a_server_asks_is_asked_of_the_session_and_outlives_the_call_that_ran() {
    let mut board = Board::new(false);
    let (party, own) = board.join().unwrap();
    let begun = begin(&mut board, party, &request("1", None)).unwrap();
    for text in [
        r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    ] {
        assert_eq!(deliver(&mut board, text), Delivery::Done, "{text}");
    }
    board.leave(begun.number);
    assert_eq!(next(&begun.queue).await["id"], 1, "and nothing before it");
    assert_eq!(next(&own).await["method"], "roots/list");
    assert_eq!(next(&own).await["method"], "notifications/cancelled", "behind what it takes back");
    assert!(board.answered(party, b"\"q\""));
}

#[tokio::test]
async fn everybody_hears_of_the_end() {
    let mut board = Board::new(true);
    let ((one, _), (other, own)) = (board.join().unwrap(), board.join().unwrap());
    let first = begin(&mut board, one, &request("\"a\"", None)).unwrap();
    let second = begin(&mut board, other, &request("2", None)).unwrap();
    board.part(one);
    assert_eq!(next(&first.queue).await["id"], "a");
    assert_eq!(board.in_flight(), 1);
    board.end("it broke");
    let error = next(&second.queue).await;
    assert_eq!((&error["id"], &error["error"]["message"]), (&2.into(), &"it broke".into()));
    assert_eq!(own.read().next().await, None);
    assert!(board.join().is_none());
    assert_eq!(
        begin(&mut board, other, &request("3", None)).unwrap_err(),
        NotBegun::Over("it broke".to_owned())
    );
}

#[test]
fn a_ping_of_the_server_is_answered_by_the_other_end_of_its_connection() {
    let mut board = Board::new(false);
    board.join().unwrap();
    let Delivery::Answer(pong) = deliver(&mut board, r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#) else {
        panic!()
    };
    assert_eq!(value(&pong), serde_json::json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
}
