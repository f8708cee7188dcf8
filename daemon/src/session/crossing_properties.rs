//! What holds of calls, requests of targets and what waits on streams, in any order of what clients and targets do with
//! equal ids and tokens: nothing reaches another session, call or target, and every request ends once.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, LazyLock},
};

use bytes::Bytes;
use proptest::prelude::*;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{
    Session,
    asks::{Answered, Ask, AskId},
    calls::{Beginning, Call, Handed, Handling, To},
    targets::TargetSession,
    task_ids,
};
use crate::{
    fault::Fault,
    testing::{self, session},
};

const REPLICA: u32 = 7;
/// Ids and tokens: few, so that they meet.
const NAMES: [&str; 3] = ["1", "\"1\"", "0"];
/// Sessions of two clients, each with one at either target.
static TARGETS: LazyLock<[[Arc<TargetSession>; 2]; 2]> =
    LazyLock::new(|| [["a", "b"], ["a", "b"]].map(|aliases| aliases.map(testing::target_session)));

/// What happens. The first number is a session's, the second a target's, others choose among names or what there is.
#[derive(Debug, Clone, Copy)]
enum Step {
    Begin {
        at: (usize, usize),
        id: usize,
        token: Option<usize>,
        stream: bool,
    },
    /// A call gets its answer, or loses its client.
    End {
        call: usize,
        answered: bool,
    },
    InJson {
        call: usize,
    },
    Cancel {
        session: usize,
        id: usize,
    },
    /// What was handed to a call is written.
    Write {
        call: usize,
    },
    Progress {
        at: (usize, usize),
        token: usize,
    },
    Tell {
        at: (usize, usize),
        call: Option<usize>,
    },
    Ask {
        at: (usize, usize),
        id: usize,
    },
    /// The client answers, or reports progress on, the request of this number.
    Reply {
        session: usize,
        number: u64,
    },
    Report {
        session: usize,
        number: u64,
    },
    Withdraw {
        at: (usize, usize),
        id: usize,
    },
    /// Nobody waits for it any more.
    Close {
        session: usize,
        number: u64,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let at = || (0..2_usize, 0..2_usize);
    let name = || 0..NAMES.len();
    let step = prop_oneof![
        4 => (at(), name(), prop::option::of(name()), any::<bool>())
            .prop_map(|(at, id, token, stream)| Step::Begin { at, id, token, stream }),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(call, answered)| Step::End { call, answered }),
        1 => any::<usize>().prop_map(|call| Step::InJson { call }),
        1 => (0..2_usize, name()).prop_map(|(session, id)| Step::Cancel { session, id }),
        2 => any::<usize>().prop_map(|call| Step::Write { call }),
        3 => (at(), name()).prop_map(|(at, token)| Step::Progress { at, token }),
        3 => (at(), prop::option::of(name())).prop_map(|(at, call)| Step::Tell { at, call }),
        4 => (at(), name()).prop_map(|(at, id)| Step::Ask { at, id }),
        3 => (0..2_usize, 0..12_u64).prop_map(|(session, number)| Step::Reply { session, number }),
        1 => (0..2_usize, 0..12_u64).prop_map(|(session, number)| Step::Report { session, number }),
        1 => (at(), name()).prop_map(|(at, id)| Step::Withdraw { at, id }),
        1 => (0..2_usize, 0..12_u64).prop_map(|(session, number)| Step::Close { session, number }),
    ];
    prop::collection::vec(step, 1..80)
}

/// A call as the model knows it.
struct Running {
    call: Call,
    at: (usize, usize),
    id: usize,
    token: Option<usize>,
    stream: bool,
    cancelled: bool,
    /// What waits on it, by what it says.
    waiting: Vec<Bytes>,
}

/// A request as the model knows it.
struct Open {
    at: (usize, usize),
    id: usize,
    closed: CancellationToken,
}

struct World {
    sessions: [Arc<Session>; 2],
    running: Vec<Running>,
    /// Calls that lost their client, by session.
    abandoned: [Vec<(usize, usize)>; 2],
    asks: [HashMap<u64, Open>; 2],
    issued: [u64; 2],
    said: u64,
    receipts: HashMap<Bytes, oneshot::Receiver<Handling>>,
    written: HashSet<Bytes>,
}

/// Writes what waits for a call, and says so.
fn written(call: &Call) -> Vec<Bytes> {
    let write = |waiting: crate::session::calls::Waiting| {
        let json = waiting.json.clone();
        waiting.tell(Handling::Written);
        json
    };
    call.take_waiting().into_iter().map(write).collect()
}

fn raw(name: usize) -> &'static [u8] {
    NAMES[name].as_bytes()
}

fn ours(number: u64) -> String {
    AskId { replica: REPLICA, number }.json()
}

impl World {
    fn new() -> Self {
        Self {
            sessions: [session(), session()],
            running: Vec::new(),
            abandoned: Default::default(),
            asks: Default::default(),
            issued: [0, 0],
            said: 0,
            receipts: HashMap::new(),
            written: HashSet::new(),
        }
    }

    fn chosen(&mut self, call: usize) -> Option<usize> {
        (!self.running.is_empty()).then(|| call % self.running.len())
    }

    fn target((session, target): (usize, usize)) -> &'static Arc<TargetSession> {
        &TARGETS[session][target]
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Begin { at, id, token, stream } => self.begin(at, id, token, stream),
            Step::End { call, answered } => self.end(call, answered),
            Step::InJson { call } => {
                let Some(call) = self.chosen(call) else { return };
                let running = &mut self.running[call];
                running.call.no_stream();
                running.stream = false;
                running.waiting.clear();
            }
            Step::Cancel { session, id } => self.cancel(session, id),
            Step::Write { call } => {
                let Some(call) = self.chosen(call) else { return };
                let wanted = std::mem::take(&mut self.running[call].waiting);
                assert_eq!(written(&self.running[call].call), wanted);
                self.written.extend(wanted);
            }
            Step::Progress { at, token } => {
                self.hand(at, To::Progress(raw(token)), |call| call.token == Some(token));
            }
            Step::Tell { at, call: Some(id) } => self.hand(at, To::Call(raw(id)), |call| call.id == id),
            Step::Tell { at, call: None } => self.hand(at, To::Any, |_| true),
            Step::Ask { at, id } => self.ask(at, id),
            Step::Reply { session, number } => self.reply(session, number),
            Step::Report { session, number } => {
                let got = self.sessions[session].channel().asks.get(REPLICA, ours(number).as_bytes());
                let wanted = self.asks[session].get(&number);
                assert_eq!(got.is_some(), wanted.is_some());
                if let Some((got, wanted)) = got.zip(wanted) {
                    assert!(Arc::ptr_eq(&got.of, Self::target(wanted.at)) && got.id == raw(wanted.id));
                }
            }
            Step::Withdraw { at, id } => {
                let number = self.sessions[at.0].channel().asks.withdraw(Self::target(at), raw(id));
                let fits = |open: &Open| open.at == at && open.id == id;
                match number {
                    Some(number) => {
                        let open = self.asks[at.0].remove(&number).unwrap();
                        assert!(fits(&open) && open.closed.is_cancelled(), "another's request was withdrawn");
                    }
                    None => assert!(!self.asks[at.0].values().any(fits)),
                }
            }
            Step::Close { session, number } => {
                let closed = self.sessions[session].channel().asks.close(AskId { replica: REPLICA, number });
                let wanted = self.asks[session].remove(&number);
                assert_eq!(closed.is_some(), wanted.is_some());
                assert!(wanted.is_none_or(|open| open.closed.is_cancelled()));
            }
        }
    }

    fn begin(&mut self, at: (usize, usize), id: usize, token: Option<usize>, stream: bool) {
        let taken = self.running.iter().any(|call| call.at.0 == at.0 && call.id == id);
        let beginning = Beginning {
            id: raw(id),
            target: &Self::target(at).target,
            clock: &Arc::default(),
            streams: stream,
            token: token.map(|token| NAMES[token].into()),
        };
        match Call::begin(&self.sessions[at.0], beginning) {
            Ok(call) => {
                assert!(!taken, "two calls with one id");
                self.abandoned[at.0].retain(|(of, _)| *of != id);
                let waiting = Vec::new();
                self.running.push(Running { call, at, id, token, stream, cancelled: false, waiting });
            }
            Err(fault) => assert!(taken && matches!(fault, Fault::DuplicateId), "{fault:?}"),
        }
    }

    fn end(&mut self, call: usize, answered: bool) {
        let Some(call) = self.chosen(call) else { return };
        let Running { mut call, at, id, cancelled, .. } = self.running.swap_remove(call);
        if answered {
            call.answered();
        } else if !cancelled {
            self.abandoned[at.0].push((id, at.1));
        }
    }

    fn cancel(&mut self, session: usize, id: usize) {
        let told = self.sessions[session].calls.cancel(raw(id));
        let running = self.running.iter_mut().find(|call| call.at.0 == session && call.id == id);
        let wanted = match running {
            Some(call) if call.cancelled => None,
            Some(call) => {
                call.cancelled = true;
                let ended = call.call.ended.try_recv();
                assert!(matches!(ended, Ok(Fault::Cancelled)), "{ended:?}");
                Some(call.at.1)
            }
            None => {
                let at = self.abandoned[session].iter().position(|(of, _)| *of == id);
                at.map(|at| self.abandoned[session].remove(at).1)
            }
        };
        let told = told.map(|target| target.alias().to_owned());
        assert_eq!(told.as_deref(), wanted.map(|target| ["a", "b"][target]));
        for call in &mut self.running {
            assert!(call.cancelled || call.call.ended.try_recv().is_err(), "another call was ended");
        }
    }

    fn hand(&mut self, at: (usize, usize), to: To<'_>, fits: impl Fn(&Running) -> bool) {
        self.said += 1;
        let message = Bytes::from(self.said.to_string());
        let handed = self.sessions[at.0].calls.deliver(&Self::target(at).target, to, &message);
        let fits = |call: &&mut Running| {
            call.at == at && call.stream && !call.cancelled && call.waiting.len() < 64 && fits(call)
        };
        let Some(Handed { clock: _, handled }) = handed else {
            assert!(self.running.iter_mut().find(fits).is_none(), "it found no call");
            return;
        };
        self.receipts.insert(message.clone(), handled);
        // Which of those that fit is the gateway's to choose; that it is one of them is looked at when it is written.
        let mut left: Vec<&mut Running> = self.running.iter_mut().filter(fits).collect();
        assert!(!left.is_empty(), "it went to a call that it is not for");
        if left.len() == 1 {
            left.remove(0).waiting.push(message);
            return;
        }
        // Several: they are all written now, so that it is known which had it.
        let mut found = 0;
        for call in left {
            let mut wanted = std::mem::take(&mut call.waiting);
            let wrote = written(&call.call);
            if wrote.contains(&message) {
                found += 1;
                wanted.push(message.clone());
            }
            assert_eq!(wrote, wanted);
            self.written.extend(wrote);
        }
        assert_eq!(found, 1, "on exactly one stream");
    }

    fn ask(&mut self, at: (usize, usize), id: usize) {
        let closed = CancellationToken::new();
        let ask = Ask {
            of: Arc::clone(Self::target(at)),
            id: Bytes::from_static(raw(id)),
            token: None,
            closed: closed.clone(),
        };
        let Some(given) = self.sessions[at.0].channel().asks.open(REPLICA, ask) else {
            assert_eq!(self.asks[at.0].len(), 64);
            return;
        };
        self.issued[at.0] += 1;
        assert_eq!(given.number, self.issued[at.0], "an id was given twice");
        self.asks[at.0].insert(given.number, Open { at, id, closed });
    }

    fn reply(&mut self, session: usize, number: u64) {
        let answered = self.sessions[session].channel().asks.answer(REPLICA, ours(number).as_bytes());
        match (answered, self.asks[session].remove(&number)) {
            (Answered::Open(Ask { of, id, .. }), Some(open)) => {
                assert!(Arc::ptr_eq(&of, Self::target(open.at)), "the answer went to another target");
                assert!(id == raw(open.id) && open.closed.is_cancelled());
            }
            (Answered::Late, None) => assert!((1..=self.issued[session]).contains(&number)),
            (Answered::Never, None) => assert!(number == 0 || number > self.issued[session]),
            (answered, open) => panic!("{number}: {answered:?}, and it was open: {}", open.is_some()),
        }
    }

    /// All that is still there ends.
    fn over(mut self) {
        while !self.running.is_empty() {
            self.end(0, true);
        }
        for session in [0, 1] {
            assert!(self.sessions[session].calls.is_empty());
            for number in 0..=self.issued[session] {
                self.take(Step::Close { session, number });
                assert!(
                    self.sessions[session].channel().asks.close(AskId { replica: REPLICA, number }).is_none()
                );
            }
            assert!(self.asks[session].is_empty());
        }
        for (message, mut receipt) in self.receipts {
            let told = receipt.try_recv();
            assert_eq!(told.is_ok(), self.written.contains(&message), "{message:?}: {told:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_order_nothing_crosses_and_every_request_ends_once(steps in steps()) {
        let mut world = World::new();
        for step in steps {
            world.take(step);
        }
        world.over();
    }

    #[test]
    fn a_task_of_whatever_id_leads_back_to_its_own_target_alone(own in ".{0,12}", a: bool) {
        let (alias, other) = if a { ("a", "a.b") } else { ("a.b", "a") };
        let said = serde_json::json!({"jsonrpc": "2.0", "id": 1, "result": {"taskId": own, "x": [own]}});
        let said = Bytes::from(said.to_string());
        let shown = task_ids::expose(&said, alias);
        let id = task_ids::exposed(&own, alias);
        let value = |json: &Bytes| serde_json::from_slice::<serde_json::Value>(json).unwrap();
        prop_assert_eq!(&value(&shown)["result"]["taskId"], &serde_json::json!(id));
        prop_assert_eq!(&value(&shown)["result"]["x"], &serde_json::json!([own]));
        prop_assert_eq!(task_ids::split(&id), Some((alias, own.as_str())));
        prop_assert_eq!(value(&task_ids::own(&shown, alias)), value(&said));
        prop_assert_eq!(task_ids::own(&shown, other), shown, "another target's is left alone");
    }
}
