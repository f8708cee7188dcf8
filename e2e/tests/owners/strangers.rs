//! What is somebody else's is answered like what is nobody's: in bytes, in headers and in time.

use std::time::Duration;

use bytes::Bytes;
use e2e::client::Session;
use http::{HeaderMap, Method, StatusCode};
use tokio::time::Instant;

use super::*;

/// How often each is asked for, by each verb.
const SAMPLES: usize = 200;
/// How far the medians may be apart. On a busy machine they differ by a tenth or two of a request without a cause.
const APART: f64 = 1.5;

const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;

/// Everything of an answer that its receiver can see, but for its date.
async fn seen(
    client: &Client,
    session: &Session,
    verb: Method,
) -> Result<(StatusCode, HeaderMap, Bytes), Error> {
    let body = if verb == Method::POST { PING } else { "" };
    let request = session.request(verb).body(Bytes::from(body))?;
    let mut answer = client.send(request).await?;
    answer.headers.remove("date");
    Ok((answer.status, answer.headers, answer.body))
}

#[tokio::test]
async fn somebody_elses_session_is_answered_byte_for_byte_like_one_that_never_was_on_every_verb() -> Outcome {
    let mut provider = IdentityProvider::start().await?;
    let moored = Moored::serve(gateway(&provider, "", "")).await?;
    let alice = bearing(&moored, &provider.token(of("alice")).await?)?;
    let mallory = bearing(&moored, &provider.token(of("mallory")).await?)?;
    let (theirs, ended) = (alice.initialize().await?, alice.initialize().await?);
    assert_eq!(ended.delete().await?.status, StatusCode::NO_CONTENT);
    let never = mallory.session(&"0".repeat(32));
    for verb in [Method::POST, Method::GET, Method::DELETE] {
        let want = seen(&mallory, &never, verb.clone()).await?;
        assert_eq!(want.0, StatusCode::NOT_FOUND, "{verb}");
        for other in [theirs.through(&mallory), ended.through(&mallory), ended.through(&alice)] {
            assert_eq!(seen(&mallory, &other, verb.clone()).await?, want, "{verb}");
        }
    }
    assert_eq!(theirs.ask("ping", json!({})).await?.status, StatusCode::OK, "the owner's goes on");
    Ok(())
}

#[tokio::test]
async fn somebody_elses_session_takes_as_long_to_refuse_as_one_that_never_was_on_every_verb() -> Outcome {
    let mut provider = IdentityProvider::start().await?;
    let moored = Moored::serve(gateway(&provider, "", "")).await?;
    let alice = bearing(&moored, &provider.token(of("alice")).await?)?;
    let mallory = bearing(&moored, &provider.token(of("mallory")).await?)?;
    let theirs = alice.initialize().await?.through(&mallory);
    let never = mallory.session(&"0".repeat(32));
    for verb in [Method::POST, Method::GET, Method::DELETE] {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..SAMPLES {
            // Each in turn, so that whatever else the machine does happens to both.
            for (session, times) in [&theirs, &never].into_iter().zip(&mut times) {
                let began = Instant::now();
                assert_eq!(seen(&mallory, session, verb.clone()).await?.0, StatusCode::NOT_FOUND, "{verb}");
                times.push(began.elapsed());
            }
        }
        let [theirs, never] = times.map(median);
        let ratio = theirs.as_secs_f64() / never.as_secs_f64();
        assert!((1.0 / APART..APART).contains(&ratio), "{verb}: {theirs:?} and {never:?}");
    }
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
