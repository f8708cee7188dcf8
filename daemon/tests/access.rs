//! Access rules that change while clients listen: each hears of it whose lists it changes.
//! Not a black box, since `moored serve` reads its manifests once.
#![expect(clippy::unwrap_used, reason = "a test")]

#[path = "support/listening.rs"]
mod listening;
#[path = "support/gateway.rs"]
mod support;

use std::{sync::Arc, time::Duration};

use e2e::{
    asking::{call, event, everything, id_of, news, request, rest, result},
    client::{Client, ClientError, Event, Events, Session},
    scripted::{Behaviour, Script, ScriptedServer, Tool},
};
use moored::{config::secrets::Secrets, gateway::Gateway};
use mooring_crds::config::{AccessRule, GatewayConfig, TargetConfig};
use serde_json::{Value, json};

/// Well below the time after which a silent stream says a comment: what comes within it came for the change.
const SOON: Duration = Duration::from_secs(5);
const LOG: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"still here"}}"#;
/// How long a stream is watched for what must not come.
const A_WHILE: Duration = Duration::from_millis(500);

/// Two targets, and rules each of which names targets, and a subject where it is not for everybody.
fn config(servers: [&ScriptedServer; 2], rules: &[(&[&str], &[&str])]) -> GatewayConfig {
    let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let rule = |(subjects, targets): &(&[&str], &[&str])| AccessRule {
        subjects: own(subjects),
        targets: own(targets),
        ..AccessRule::default()
    };
    let target = |(alias, server): (&str, &ScriptedServer)| TargetConfig {
        alias: alias.to_owned(),
        name: alias.to_owned(),
        uid: format!("uid-{alias}"),
        url: server.url(),
        ..TargetConfig::default()
    };
    GatewayConfig {
        targets: ["a", "b"].into_iter().zip(servers).map(target).collect(),
        access: rules.iter().map(rule).collect(),
        ..support::config()
    }
}

/// A gateway, and the URL of its endpoint.
async fn serving(config: GatewayConfig) -> (Arc<Gateway>, String) {
    let shared = support::shared();
    let tasks = shared.tasks.clone();
    let gateway = Gateway::start(config, Secrets::default(), shared);
    let url = listening::listen(&gateway, &tasks).await;
    (gateway, url)
}

async fn listening(config: GatewayConfig) -> (Arc<Gateway>, Session) {
    let (gateway, url) = serving(config).await;
    let session = Client::new(&url).unwrap().initialize().await.unwrap();
    (gateway, session)
}

/// Begins a call of the tool `fed`; its stream, and the target's session.
async fn begin(session: &Session, server: &ScriptedServer, id: &Value) -> (Events, String) {
    let calls = server.count("tools/call");
    let events = session.open(call(id, "fed", None)).await.unwrap();
    server.until("it", |server| server.count("tools/call") > calls).await.unwrap();
    let called = server.seen("tools/call").pop().unwrap().session.unwrap();
    server.until("its stream's begin", |server| server.feed_call(&called, id, ":\n\n") == 1).await.unwrap();
    (events, called)
}

/// The methods of the next message and of those in the same write.
async fn told(stream: &mut Events) -> String {
    let message = async {
        loop {
            let event = stream.next().await.unwrap().unwrap();
            if let Some(message) = Event::message(&event) {
                return message.get("method").and_then(Value::as_str).unwrap().to_owned();
            }
        }
    };
    tokio::time::timeout(SOON, message).await.unwrap()
}

async fn hears_nothing(stream: &mut Events) {
    let heard = stream.next_within(A_WHILE).await;
    assert!(matches!(heard, Err(ClientError::Deadline(_))), "{heard:?}");
}

#[tokio::test]
async fn who_sees_other_lists_by_a_change_of_access_is_told_at_once_and_who_sees_the_same_is_not() {
    let servers = [
        ScriptedServer::start(Script::echoing(["x"])).await,
        ScriptedServer::start(Script::echoing(["y"])).await,
    ];
    let servers = [&servers[0], &servers[1]];
    let (gateway, session) = listening(config(servers, &[(&[], &["a"])])).await;
    assert_eq!(session.tools().await.unwrap(), ["x"]);
    let mut stream = session.get().await.unwrap();
    stream.next().await.unwrap();
    gateway.configure(config(servers, &[(&[], &["a"]), (&["somebody else"], &[])]));
    hears_nothing(&mut stream).await;
    gateway.configure(config(servers, &[(&[], &["a", "b"])]));
    assert_eq!(told(&mut stream).await, "notifications/tools/list_changed");
    assert_eq!(session.tools().await.unwrap(), ["x", "y"]);
    gateway.configure(config(servers, &[(&[], &["b"])]));
    assert_eq!(told(&mut stream).await, "notifications/tools/list_changed");
    assert_eq!(session.tools().await.unwrap(), ["y"]);
}

#[tokio::test]
async fn a_target_that_a_rule_hides_is_parted_from_and_begins_anew_once_it_is_seen_again() {
    let servers = [
        ScriptedServer::start(Script::echoing(["x"])).await,
        ScriptedServer::start(Script::echoing(["y"])).await,
    ];
    let servers = [&servers[0], &servers[1]];
    for with_stream in [true, false] {
        let (gateway, session) = listening(config(servers, &[(&[], &["a", "b"])])).await;
        let stream = if with_stream { Some(session.get().await.unwrap()) } else { None };
        session.call("x", json!({})).await.unwrap();
        session.call("y", json!({})).await.unwrap();
        let [at_a, at_b] = servers.map(|server| server.seen("tools/call").pop().unwrap().session.unwrap());
        if with_stream {
            servers[1].until("its stream", |server| server.push_to(&at_b, LOG) == 1).await.unwrap();
        }
        gateway.configure(config(servers, &[(&[], &["a"])]));
        if !with_stream {
            // Nobody is there who could be told before the next request.
            session.ask("ping", json!({})).await.unwrap();
        }
        servers[1].until("its end", |server| !server.open_sessions().contains(&at_b)).await.unwrap();
        assert!(servers[0].open_sessions().contains(&at_a));
        assert_eq!(session.call("y", json!({})).await.unwrap().error_code(), Some(-32602));
        gateway.configure(config(servers, &[(&[], &["a", "b"])]));
        let again = session.call("y", json!({})).await.unwrap();
        assert_eq!((again.status, again.error_code()), (http::StatusCode::OK, None), "{}", again.text());
        drop(stream);
    }
}

/// The answers that a target got, by the ids of its requests.
fn answers(server: &ScriptedServer) -> Vec<(Value, Value)> {
    let part = |answer: &Value, at| answer.pointer(at).cloned().unwrap_or_default();
    server.answers().iter().map(|answer| (part(answer, "/id"), part(answer, "/error/code"))).collect()
}

#[tokio::test]
async fn what_a_target_asked_that_a_rule_hides_is_taken_back_and_its_call_that_runs_asks_no_more() {
    let fed = Script { tools: vec![Tool::new("fed", Behaviour::Fed)], ..Script::default() };
    let servers = [ScriptedServer::start(Script::echoing(["x"])).await, ScriptedServer::start(fed).await];
    let servers = [&servers[0], &servers[1]];
    for with_stream in [true, false] {
        let (gateway, url) = serving(config(servers, &[(&[], &["a", "b"])])).await;
        let session = Client::new(&url).unwrap().initialize_as(everything()).await.unwrap();
        let mut stream = if with_stream { Some(session.get().await.unwrap()) } else { None };
        let (mut events, at_b) = begin(&session, servers[1], &json!("c")).await;
        let ask = |id: u32| event(&request(&json!(id), "elicitation/create", &json!({"message": "?"})));
        let before = servers[1].answers().len();
        servers[1].feed_to(&at_b, ask(1));
        let ours = id_of(&events.next_message().await.unwrap().unwrap()).unwrap();
        gateway.configure(config(servers, &[(&[], &["a"])]));
        if !with_stream {
            // Nobody is there who could be told before the next request.
            session.ask("ping", json!({})).await.unwrap();
        }
        let withdrawn = tokio::time::timeout(SOON, news(stream.as_mut().unwrap_or(&mut events))).await;
        let withdrawn = withdrawn.unwrap().unwrap();
        assert_eq!(withdrawn["method"], "notifications/cancelled", "{withdrawn}");
        assert_eq!(withdrawn["params"]["requestId"], ours);
        let answered = |count: usize| move |server: &ScriptedServer| server.answers().len() == before + count;
        servers[1].until("the first refusal", answered(1)).await.unwrap();
        servers[1].feed_to(&at_b, ask(2));
        servers[1].until("the second refusal", answered(2)).await.unwrap();
        let told = answers(servers[1]).split_off(before);
        assert_eq!(told, [(json!(1), json!(-32603)), (json!(2), json!(-32603))]);
        // What was allowed when it began has its answer, and nothing was asked before that.
        servers[1].feed_to(&at_b, event(&result(&json!("c"), "done")));
        assert_eq!(rest(events).await.unwrap(), [result(&json!("c"), "done")]);
    }
}

// Case 032, also where there were no rules when the stream began.
#[tokio::test]
async fn a_rule_that_comes_under_an_open_stream_hides_changes_of_what_it_hides() {
    let servers = [
        ScriptedServer::start(Script::echoing(["x"])).await,
        ScriptedServer::start(Script::echoing(["y"])).await,
    ];
    let servers = [&servers[0], &servers[1]];
    let (gateway, session) = listening(config(servers, &[])).await;
    assert_eq!(session.tools().await.unwrap(), ["x", "y"]);
    let mut stream = session.get().await.unwrap();
    stream.next().await.unwrap();
    gateway.configure(config(servers, &[(&[], &["a"])]));
    assert_eq!(told(&mut stream).await, "notifications/tools/list_changed");
    assert_eq!(session.tools().await.unwrap(), ["x"]);
    servers[1].until_streams(1).await.unwrap();
    servers[1].set_tools(Script::echoing(["z"]).tools);
    hears_nothing(&mut stream).await;
    servers[0].until_streams(1).await.unwrap();
    servers[0].set_tools(Script::echoing(["w"]).tools);
    assert_eq!(told(&mut stream).await, "notifications/tools/list_changed");
}
