//! Tests of the table: what clients' own code goes by.

use super::*;

#[test]
fn a_legacy_client_gets_404_only_where_a_session_is_gone_and_never_with_an_unknown_method() {
    let gone = [
        Fault::UnknownSession,
        Fault::SessionEnded(EndReason::Expired),
        Fault::TargetSessionLost { target: "a".to_owned(), ran: false },
    ];
    for fault in gone {
        assert_eq!((fault.status().as_u16(), fault.code()), (404, -32001));
    }
    assert_eq!((Fault::MethodNotFound.status().as_u16(), Fault::MethodNotFound.code()), (200, -32601));
}

#[test]
fn a_store_that_cannot_be_asked_is_503_with_a_time_to_come_back() {
    for fault in [Fault::StoreAway, Fault::StoreFull] {
        assert_eq!((fault.status().as_u16(), fault.blame()), (503, Blame::Store));
        assert!(fault.retry_after().is_some());
    }
}

#[test]
fn a_token_that_cannot_be_verified_for_lack_of_keys_is_not_the_callers_fault() {
    let away = Fault::KeysAway;
    assert_eq!((away.status().as_u16(), away.blame()), (503, Blame::Provider));
    assert!(away.retry_after().is_some() && away.bearer_error().is_none());
}

#[test]
fn no_code_is_one_that_only_the_modern_era_has() {
    for fault in [Fault::MissingSession, Fault::UnsupportedVersion, Fault::Syntax, Fault::UnknownSession] {
        assert!(!(-32099..=-32020).contains(&fault.code()), "{fault:?}");
    }
}

#[test]
fn what_is_too_much_for_now_says_when_to_come_back() {
    for fault in [Fault::TooManyInSession(1), Fault::TooManyStreams(1), Fault::TooManySessions(1)] {
        assert_eq!((fault.status().as_u16(), fault.code(), fault.blame()), (429, -32005, Blame::Client));
        assert!(fault.retry_after().is_some());
    }
    let whole = Fault::TooManyRequests(1);
    assert_eq!((whole.status().as_u16(), whole.blame(), whole.retry_after()), (503, Blame::Us, Some(1)));
}

/// The texts and codes that clients of AgentCore's gateway know sessions by, as its developer guide has them.
#[test]
fn sessions_are_refused_in_the_words_that_clients_of_aws_know() {
    let said = |fault: Fault| (fault.status().as_u16(), fault.code(), fault.message());
    let missing = "Missing required Mcp-Session-Id header".to_owned();
    assert_eq!(said(Fault::MissingSession), (400, -32600, missing));
    let unknown = "Session not found or expired".to_owned();
    assert_eq!(said(Fault::UnknownSession), (404, -32001, unknown));
    let (status, code, _) = said(Fault::UnknownAnswer);
    assert_eq!((status, code), (400, -32600), "an answer that nobody waits for");
}
