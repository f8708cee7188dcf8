//! Two clients and two targets with equal ids and tokens, in any order of calls, requests to the client, answers,
//! progress, cancellations and ends: what each hears is its own, once. The order comes of a seed, which is printed; a
//! run is repeated with `MOORING_SEED`.
#![expect(
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test panics, and says how to repeat it"
)]

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, Hasher, RandomState},
};

use e2e::{
    asking::{Scene, begin, event, id_of, news, notification, progress, request, result},
    client::{Events, Session},
    scripted::{ScriptedServer, Seen},
    settings,
};
use http::{Method, StatusCode};
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const STEPS: usize = 400;

/// Numbers that look like chance, and are the same for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        // xorshift64; its state is never zero.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or_default() % bound
    }
}

/// A call that runs.
struct Call {
    client: usize,
    target: usize,
    id: Value,
    events: Events,
    /// The target's session.
    at: String,
    /// What it asked that is open.
    asked: Vec<Asked>,
}

/// A request to the client.
struct Asked {
    /// As the client knows it.
    ours: Value,
    /// As its target does.
    theirs: Value,
    /// What it says.
    says: u64,
}

/// One of two ids that differ in their kind alone.
fn name(chance: &mut Chance) -> Value {
    [json!(1), json!("1")][chance.below(2)].clone()
}

fn answers(server: &ScriptedServer, at: &str) -> Vec<Value> {
    let is = |seen: &Seen| seen.verb == Method::POST && seen.method().is_none();
    let mine = |seen: &Seen| seen.session.as_deref() == Some(at) && is(seen);
    server.requests().into_iter().filter(mine).map(|seen| seen.message).collect()
}

struct World {
    scene: Scene,
    sessions: [Session; 2],
    gets: [Events; 2],
    running: Vec<Call>,
    /// How much was said so far: each message says its own number.
    said: u64,
    /// How many requests were sent in each target's session: as servers do it, all number theirs from 0.
    asked: HashMap<(usize, String), u64>,
    /// How many of them have ended.
    ended: usize,
}

impl World {
    fn server(&self, target: usize) -> &ScriptedServer {
        [&self.scene.a, &self.scene.b][target]
    }

    fn token(call: &Call) -> Value {
        // Equal to the id, as clients do it: so tokens meet where ids do.
        call.id.clone()
    }

    async fn call(&mut self, chance: &mut Chance) -> Outcome {
        let (client, target, id) = (chance.below(2), chance.below(2), name(chance));
        let taken = self.running.iter().any(|call| call.client == client && call.id == id);
        let server = self.server(target);
        if taken {
            let body = e2e::asking::call(&id, "a___fed", None);
            let refused = self.sessions[client].post(body).await?;
            assert_eq!((refused.status, refused.error_code()), (StatusCode::BAD_REQUEST, Some(-32600)));
            return Ok(());
        }
        let alias = ["a", "b"][target];
        let (events, at) = begin(&self.sessions[client], (server, alias), &id, Some(&id)).await?;
        self.running.push(Call { client, target, id, events, at, asked: Vec::new() });
        Ok(())
    }

    /// Says a message on a call's stream, or on its target's GET stream, and reads it where it must come.
    async fn say(&mut self, chance: &mut Chance, n: usize) -> Outcome {
        self.said += 1;
        let said = self.said;
        let outside = chance.below(3) == 0;
        let kind = chance.below(3);
        let call = &mut self.running[n];
        let server = [&self.scene.a, &self.scene.b][call.target];
        let theirs = json!(self.asked.get(&(call.target, call.at.clone())).copied().unwrap_or(0));
        let message = match kind {
            0 => progress(&Self::token(call), said),
            1 => notification("notifications/message", &json!({"level": "info", "data": said})),
            _ => request(&theirs, "elicitation/create", &json!({"message": said})),
        };
        if outside {
            e2e::asking::say(server, &call.at, &message).await?;
        } else {
            assert_eq!(server.feed_call(&call.at, &call.id, event(&message)), 1);
        }
        let heard = if outside && kind != 0 {
            news(&mut self.gets[call.client]).await?
        } else {
            call.events.next_message().await?.unwrap_or_default()
        };
        if kind < 2 {
            assert_eq!(heard, message);
            return Ok(());
        }
        assert_eq!(heard["params"], message["params"]);
        *self.asked.entry((call.target, call.at.clone())).or_default() += 1;
        let asked = Asked { ours: id_of(&heard).ok_or("no request of ours")?, theirs, says: said };
        if outside {
            // It belongs to no call: it is answered at once.
            self.answer(n, asked).await
        } else {
            call.asked.push(asked);
            Ok(())
        }
    }

    async fn answer(&mut self, n: usize, Asked { ours, theirs, says }: Asked) -> Outcome {
        let call = &self.running[n];
        let taken = self.sessions[call.client].post(result(&ours, &says.to_string()).to_string()).await?;
        assert_eq!(taken.status, StatusCode::ACCEPTED);
        let wanted = result(&theirs, &says.to_string());
        let server = self.server(call.target);
        server.until("an answer", |server| answers(server, &call.at).contains(&wanted)).await?;
        self.ended += 1;
        Ok(())
    }

    /// Ends a call by its answer, or cancels it. What it left open ends with it.
    async fn end(&mut self, n: usize, cancelled: bool) -> Outcome {
        let Call { client, target, id, mut events, at, asked } = self.running.swap_remove(n);
        let server = [&self.scene.a, &self.scene.b][target];
        if cancelled {
            self.sessions[client].notify("notifications/cancelled", json!({"requestId": id})).await?;
        } else {
            assert_eq!(server.feed_call(&at, &id, event(&result(&id, &at))), 1);
        }
        let answer = events.next_message().await?.unwrap_or_default();
        let wanted = if cancelled { json!(-32800) } else { json!(at) };
        let said = answer.pointer("/error/code").or_else(|| answer.pointer("/result/content/0/text"));
        assert_eq!((&answer["id"], said), (&id, Some(&wanted)));
        assert_eq!(events.next_message().await?, None);
        for Asked { theirs, .. } in &asked {
            let ended = |answer: &Value| answer["id"] == *theirs && answer["error"]["code"] == json!(-32603);
            server.until("its end", |server| answers(server, &at).iter().any(ended)).await?;
        }
        // The client is told of each; on its GET stream, in any order.
        let mut told = HashSet::new();
        for _ in &asked {
            let notice = news(&mut self.gets[client]).await?;
            told.insert(notice["params"]["requestId"].to_string());
        }
        assert_eq!(told, asked.iter().map(|asked| asked.ours.to_string()).collect());
        server.until("the end of its stream", |server| server.feed_call(&at, &id, ": gone\n\n") == 0).await?;
        self.ended += asked.len();
        Ok(())
    }
}

#[tokio::test]
async fn whatever_the_order_each_hears_its_own_and_every_request_ends_once() -> Outcome {
    // What maps are keyed with is chance enough.
    let seed = settings::seed().unwrap_or_else(|| RandomState::new().build_hasher().finish()).max(1);
    println!("MOORING_SEED={seed}");
    let mut chance = Chance(seed);
    let scene = Scene::start("").await?;
    let sessions = [scene.session().await?, scene.session().await?];
    let gets = [sessions[0].get().await?, sessions[1].get().await?];
    let mut world =
        World { scene, sessions, gets, running: Vec::new(), said: 0, asked: HashMap::new(), ended: 0 };
    for _ in 0..STEPS {
        let running = world.running.len();
        let n = chance.below(running.max(1));
        match chance.below(10) {
            0..=1 => world.call(&mut chance).await?,
            2..=6 if running > 0 => world.say(&mut chance, n).await?,
            7..=8 if running > 0 && !world.running[n].asked.is_empty() => {
                let of = &mut world.running[n].asked;
                let asked = of.swap_remove(chance.below(of.len()));
                world.answer(n, asked).await?;
            }
            9 if running > 0 => world.end(n, chance.below(2) == 0).await?,
            _ => {}
        }
    }
    while !world.running.is_empty() {
        world.end(0, false).await?;
    }
    // Each request was answered once, and nobody was answered what it had not asked.
    for ((target, at), asked) in &world.asked {
        let all = answers(world.server(*target), at);
        let mut ids: Vec<_> = all.iter().filter_map(|answer| answer["id"].as_u64()).collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..*asked).collect::<Vec<_>>());
    }
    let asked: u64 = world.asked.values().sum();
    assert_eq!(u64::try_from(world.ended)?, asked);
    assert!(world.ended > STEPS / 20, "hardly anything was asked: {asked}");
    Ok(())
}
