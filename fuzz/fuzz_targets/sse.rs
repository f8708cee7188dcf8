//! Cuts any event stream into events: however it arrives, the events are the same, none is lost or changed, what an
//! unfinished one may hold is bounded, and what is relayed or written reads as the same event again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mooring_fuzz::jsonrpc::sse::{Event, Splitter, write_message};

/// More than any stream that is tried here.
const AMPLE: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    // The first bytes say how the rest arrives: the sizes of its pieces, over and over.
    let Some((sizes, stream)) = data.split_at_checked(4) else { return };
    let (whole, held) = split(stream, std::iter::once(stream.len()));
    assert!(whole.iter().map(|event| event.bytes.len()).sum::<usize>() + held <= stream.len());
    let single = split(stream, std::iter::repeat(1));
    assert_eq!(single, (whole.clone(), held), "a byte at a time");
    let pieces = sizes.iter().map(|size| usize::from(size % 16)).cycle();
    if sizes.iter().any(|size| size % 16 > 0) {
        assert_eq!(split(stream, pieces), (whole.clone(), held), "in pieces of {sizes:?}");
    }
    for event in &whole {
        reads_again(event);
    }
    // A byte order mark is held, too, until it is known for one.
    is_bounded(stream, usize::from(sizes[0]) + 3, &whole);
});

/// The events of a stream that arrives in pieces, and how many bytes of an unfinished one are left.
fn split(mut stream: &[u8], sizes: impl Iterator<Item = usize>) -> (Vec<Event>, usize) {
    let mut splitter = Splitter::new(AMPLE);
    let mut events = Vec::new();
    for size in sizes {
        let (piece, rest) = stream.split_at(size.min(stream.len()));
        splitter.push(piece).expect("it is smaller than the limit");
        while let Some(event) = splitter.next_event() {
            events.push(event);
        }
        stream = rest;
        if stream.is_empty() {
            break;
        }
    }
    (events, splitter.held())
}

/// An event as we pass it on, and its data as we would write it, are events with the same data.
fn reads_again(event: &Event) {
    if event.data.is_empty() {
        return;
    }
    // What has blank lines or nothing else is no JSON, and is not relayed.
    let lines = || event.data.split(|byte| *byte == b'\n');
    if lines().any(<[u8]>::is_empty) {
        return;
    }
    let (mut relayed, mut written) = (Vec::new(), Vec::new());
    event.write(&mut relayed);
    write_message(&mut written, &event.data);
    for bytes in [relayed, written] {
        // One more line end: whether a CR at the end stands alone shows in what follows.
        let stream = [bytes.as_slice(), b"\n"].concat();
        let (events, held) = split(&stream, std::iter::once(stream.len()));
        assert!(held <= 1);
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].data, event.data);
    }
}

/// With a limit, events within it pass, and one that grows beyond it is refused before more of it is held.
fn is_bounded(stream: &[u8], limit: usize, whole: &[Event]) {
    let mut splitter = Splitter::new(limit);
    let mut passed = 0;
    for byte in stream {
        if splitter.push(&[*byte]).is_err() {
            break;
        }
        while let Some(event) = splitter.next_event() {
            assert_eq!(Some(&event), whole.get(passed));
            passed += 1;
        }
        assert!(splitter.held() <= limit);
    }
    let fitting = whole.iter().take_while(|event| event.bytes.len() <= limit).count();
    assert!(passed >= fitting, "an event within the limit was refused");
}
