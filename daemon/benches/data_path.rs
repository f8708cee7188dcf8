//! What every call pays before it is forwarded: envelope, route, session. Compare ratios within one run.
#![expect(clippy::unwrap_used, reason = "what cannot be set up cannot be measured")]

use std::{hint::black_box, sync::Arc, time::Duration};

use bytes::Bytes;
use divan::Bencher;
use moored::{
    jsonrpc::{Message, sse::Splitter},
    metrics::Metrics,
    route::Router,
    session::{
        record::Principal,
        table::{Opening, Sessions},
    },
    store::{Store, memory::Memory},
    version::LATEST,
};
use mooring_crds::config::Naming;
use mooring_runtime::{Clock, Tasks};

fn main() {
    divan::main();
}

fn call(argument_bytes: usize) -> Bytes {
    let text = "x".repeat(argument_bytes);
    Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"weather___get","arguments":{{"text":"{text}","n":[1,2,3]}}}}}}"#
    ))
}

#[divan::bench(args = [64, 4 << 10, 128 << 10])]
fn envelope(bencher: Bencher<'_, '_>, argument_bytes: usize) {
    let body = call(argument_bytes);
    bencher
        .counter(divan::counter::BytesCount::new(body.len()))
        .bench(|| Message::parse(black_box(body.clone())));
}

/// The yardstick for the one above: a whole parse of the same bytes.
#[divan::bench(args = [64, 4 << 10, 128 << 10])]
fn whole_value(bencher: Bencher<'_, '_>, argument_bytes: usize) {
    let body = call(argument_bytes);
    bencher
        .counter(divan::counter::BytesCount::new(body.len()))
        .bench(|| serde_json::from_slice::<serde_json::Value>(black_box(&body)));
}

#[divan::bench(args = [1, 100])]
fn route(bencher: Bencher<'_, '_>, targets: usize) {
    let aliases: Vec<String> = (0..targets).map(|n| format!("target-{n}")).collect();
    let router = Router::new(Naming::Prefixed { separator: "___".to_owned() }, aliases);
    bencher.bench(|| router.route(black_box("target-0___get-weather")) == moored::route::Route::None);
}

#[divan::bench(args = [1_000, 100_000])]
fn find_session(bencher: Bencher<'_, '_>, held: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let metrics = Arc::new(Metrics::new().unwrap().gateway("bench"));
    let (sessions, id) = runtime.block_on(async {
        let sessions = Sessions::start(
            Store::new(Memory::new(usize::MAX)),
            moored::session::table::Around {
                clock: Clock::system(),
                tasks: &Tasks::default(),
                budget: moored::receive::Budget::new(1 << 20),
            },
            metrics,
            moored::session::table::Identity::new().unwrap(),
        );
        let mut id = None;
        for _ in 0..held {
            let opening = Opening {
                principal: Principal::Anonymous,
                version: LATEST,
                client_info: "{}".into(),
                capabilities: moored::capabilities::ClientCapabilities::default(),
                idle: None,
                most: None,
                timeout: Duration::from_secs(3600),
                seen: moored::catalog::merge::Marks::default(),
            };
            id = Some(sessions.create(opening).await.unwrap().to_string());
        }
        (sessions, id.unwrap())
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    bencher
        .bench_local(|| runtime.block_on(sessions.find(Some(black_box(&id)), &Principal::Anonymous)).is_ok());
}

#[divan::bench]
fn split_20_events(bencher: Bencher<'_, '_>) {
    let stream =
        b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n"
            .repeat(20);
    bencher.bench(|| {
        let mut splitter = Splitter::new(1 << 20);
        let taken = splitter.push(black_box(&stream));
        let mut events = 0;
        while splitter.next_event().is_some() {
            events += 1;
        }
        (taken, events)
    });
}
