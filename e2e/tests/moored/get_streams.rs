//! The GET stream of a client: what targets say outside of calls comes on it, once, on the newest one, and a client that
//! comes back gets what it missed.

use e2e::{
    client::{Event, Events, Session},
    manifest::gateway_with,
    moored::Moored,
    scripted::{Behaviour, Script, ScriptedServer, Tool},
};
use serde_json::{Value, json};

type Error = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<(), Error>;

/// Messages of one stream that are kept.
const KEPT: u64 = 256;

fn updated(n: u64) -> Value {
    let params = json!({"uri": format!("x://{n}")});
    json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params})
}

/// A client's session whose GET stream is open, and which its target's own stream reaches: the target, its session.
struct Listening {
    target: ScriptedServer,
    moored: Moored,
    session: Session,
    events: Events,
    primer: String,
    at_target: String,
}

async fn listening(version: &str) -> Result<Listening, Error> {
    // Nothing of the catalogue's on the way: it opens streams of its own for what announces changes.
    let tools = vec![Tool::new("echo", Behaviour::Echo)];
    let script = Script { tools, capabilities: json!({"tools": {}, "resources": {}}), ..Script::default() };
    let target = ScriptedServer::start(script).await;
    let moored = Moored::serve(gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize_at(version).await?;
    session.call("a___echo", json!({})).await?;
    let mut events = session.get().await?;
    let primer = events.next().await?.and_then(|event| event.id).unwrap_or_default();
    target.until_streams(1).await?;
    let called = target.seen("tools/call").into_iter().next();
    let at_target = called.and_then(|seen| seen.session).ok_or("no session")?;
    Ok(Listening { target, moored, session, events, primer, at_target })
}

impl Listening {
    fn say(&self, n: u64) {
        assert_eq!(self.target.push_to(&self.at_target, &updated(n).to_string()), 1);
    }
}

/// Whether an event speaks of lists, of which this client has seen none. That is not what is looked at here.
fn is_of_lists(event: &Event) -> bool {
    event.data.as_deref().is_some_and(|data| data.contains("/list_changed"))
}

/// The next event that is no comment, and speaks of no list.
async fn next(events: &mut Events) -> Result<Event, Error> {
    loop {
        let event = events.next().await?.ok_or("the stream has ended")?;
        if event != Event::default() && !is_of_lists(&event) {
            return Ok(event);
        }
    }
}

#[tokio::test]
async fn what_a_target_says_outside_of_calls_comes_on_the_get_stream_with_ids_where_there_are_any() -> Outcome
{
    for (version, identified) in [("2024-11-05", false), ("2025-03-26", true), ("2025-11-25", true)] {
        let mut listening = listening(version).await?;
        listening.say(1);
        let event = next(&mut listening.events).await?;
        assert_eq!(event.message(), Some(updated(1)), "{version}");
        assert_eq!(event.id.is_some(), identified, "{version}");
    }
    Ok(())
}

#[tokio::test]
async fn a_client_that_comes_back_to_its_get_stream_gets_what_it_missed_once() -> Outcome {
    let mut listening = listening("2025-11-25").await?;
    listening.say(1);
    let first = next(&mut listening.events).await?;
    assert_eq!(first.message(), Some(updated(1)));
    let Listening { target, session, events, primer, at_target, moored: _moored } = listening;
    drop(events);
    for n in 2..4 {
        target.push_to(&at_target, &updated(n).to_string());
    }
    let mut again = session.get_behind(&first.id.unwrap_or_default()).await?;
    next(&mut again).await?;
    for n in 2..4 {
        assert_eq!(next(&mut again).await?.message(), Some(updated(n)));
    }
    target.push_to(&at_target, &updated(4).to_string());
    assert_eq!(next(&mut again).await?.message(), Some(updated(4)));
    // From the beginning, by the priming event's id; and without an id, from now on.
    let mut whole = session.get_behind(&primer).await?;
    next(&mut whole).await?;
    for n in 1..5 {
        assert_eq!(next(&mut whole).await?.message(), Some(updated(n)));
    }
    let mut fresh = session.get().await?;
    next(&mut fresh).await?;
    target.push_to(&at_target, &updated(5).to_string());
    assert_eq!(next(&mut fresh).await?.message(), Some(updated(5)));
    Ok(())
}

#[tokio::test]
async fn a_newer_get_stream_takes_the_place_of_the_older_one_which_ends() -> Outcome {
    let mut listening = listening("2025-11-25").await?;
    let mut newer = listening.session.get().await?;
    next(&mut newer).await?;
    while let Some(event) = listening.events.next().await? {
        assert!(event == Event::default() || is_of_lists(&event), "{event:?}");
    }
    listening.say(1);
    assert_eq!(next(&mut newer).await?.message(), Some(updated(1)));
    Ok(())
}

#[tokio::test]
async fn what_was_said_while_no_get_stream_was_open_comes_on_the_next_one_and_on_that_alone() -> Outcome {
    let Listening { target, moored, session, mut events, primer: _, at_target } =
        listening("2025-11-25").await?;
    let say = |n: u64| target.push_to(&at_target, &updated(n).to_string());
    say(1);
    assert_eq!(next(&mut events).await?.message(), Some(updated(1)));
    drop(events);
    moored.until_metrics(|metrics| metrics.sum("mooring_streams", &[]) < 0.5).await?;
    say(2);
    let mut fresh = session.get().await?;
    next(&mut fresh).await?;
    assert_eq!(next(&mut fresh).await?.message(), Some(updated(2)));
    let mut fresher = session.get().await?;
    next(&mut fresher).await?;
    say(3);
    assert_eq!(next(&mut fresher).await?.message(), Some(updated(3)));
    Ok(())
}

#[tokio::test]
async fn another_session_hears_nothing_of_it() -> Outcome {
    let mut listening = listening("2025-11-25").await?;
    let other = listening.moored.client()?.initialize().await?;
    other.call("a___echo", json!({})).await?;
    let mut heard = other.get().await?;
    next(&mut heard).await?;
    listening.target.until_streams(2).await?;
    listening.say(1);
    assert_eq!(next(&mut listening.events).await?.message(), Some(updated(1)));
    let theirs = listening.target.seen("tools/call")[1].session.clone().ok_or("no session")?;
    listening.target.push_to(&theirs, &updated(2).to_string());
    assert_eq!(
        next(&mut heard).await?.message(),
        Some(updated(2)),
        "the first thing that it hears is its own"
    );
    Ok(())
}

#[tokio::test]
async fn of_more_than_is_kept_for_a_client_that_is_away_the_newest_are_there() -> Outcome {
    let Listening { target, session, events, primer, at_target, moored: _moored } =
        listening("2025-11-25").await?;
    drop(events);
    let last = KEPT + 40;
    for n in 1..=last {
        let pushed = target
            .until("room on its stream", |target| target.push_to(&at_target, &updated(n).to_string()) == 1);
        pushed.await?;
    }
    // Where the stream stands is seen by its last message, on the way for a moment yet.
    let mut again = session.get_behind(&primer).await?;
    next(&mut again).await?;
    let mut seen = Vec::new();
    while seen.last() != Some(&updated(last)) {
        seen.extend(next(&mut again).await?.message());
    }
    let numbers = |from: u64| (from..=last).map(updated).collect::<Vec<_>>();
    let from = last + 1 - u64::try_from(seen.len())?;
    assert_eq!(seen, numbers(from), "what is read is in order and without a gap");
    assert!(seen.len() as u64 >= KEPT, "{} are kept", seen.len());
    Ok(())
}
