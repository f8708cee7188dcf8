//! Refused requests leave nothing behind: no session, no connection or request to a target, no file, no memory.

use std::time::Duration;

use e2e::{
    client::{Answer, Client, ClientError},
    manifest,
    moored::Moored,
    process,
    scripted::{Script, ScriptedServer},
};
use http::{Method, Request, StatusCode};
use tokio::task::JoinSet;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<(), Error>;

/// How many refused requests there are in all, and how many come before the first look, so that what the process
/// keeps once and for all (threads' caches, metric series) is kept by then.
const REFUSED: usize = 5000;
const WARMING: usize = 1000;
const WORKERS: usize = 4;

/// What `REFUSED` sessions that are kept would take at least, in KiB. An empty one is about a kilobyte.
const MEMORY_KIB: u64 = 4096;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a___echo"}}"#;

/// A request that is refused, and how.
type Kind = (StatusCode, Method, &'static [(&'static str, &'static str)], &'static str);

/// Every way to be refused before there is a session.
fn kinds() -> Vec<Kind> {
    use StatusCode as S;
    let (post, get, delete) = (Method::POST, Method::GET, Method::DELETE);
    let unknown: &[_] = &[("mcp-session-id", "0123456789abcdef0123456789abcdef")];
    vec![
        (S::BAD_REQUEST, post.clone(), &[], "{\"jsonrpc\":"),
        (S::BAD_REQUEST, post.clone(), &[], "{}"),
        (S::BAD_REQUEST, post.clone(), &[], "[]"),
        (S::BAD_REQUEST, post.clone(), &[], CALL),
        (S::BAD_REQUEST, post.clone(), &[], r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#),
        (
            S::BAD_REQUEST,
            post.clone(),
            &[],
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#,
        ),
        (S::BAD_REQUEST, post.clone(), &[], r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
        (S::BAD_REQUEST, post.clone(), unknown, INITIALIZE),
        (S::NOT_ACCEPTABLE, post.clone(), &[("accept", "text/html")], INITIALIZE),
        (S::UNSUPPORTED_MEDIA_TYPE, post.clone(), &[("content-type", "text/plain")], INITIALIZE),
        (S::FORBIDDEN, post.clone(), &[("origin", "https://evil.example")], INITIALIZE),
        (S::FORBIDDEN, post.clone(), &[("host", "evil.example")], INITIALIZE),
        (S::NOT_FOUND, post.clone(), unknown, CALL),
        (S::NOT_FOUND, post, &[("mcp-session-id", "not one of ours")], CALL),
        (S::BAD_REQUEST, get.clone(), &[], ""),
        (S::NOT_FOUND, get, unknown, ""),
        (S::BAD_REQUEST, delete.clone(), &[], ""),
        (S::NOT_FOUND, delete, unknown, ""),
        (S::METHOD_NOT_ALLOWED, Method::PUT, &[], INITIALIZE),
    ]
}

fn build(client: &Client, (_, verb, headers, body): &Kind) -> Result<Request<bytes::Bytes>, http::Error> {
    let mut request = client.request(verb.clone()).body(bytes::Bytes::from_static(body.as_bytes()))?;
    for (name, value) in *headers {
        request.headers_mut().insert(*name, http::HeaderValue::from_static(value));
    }
    Ok(request)
}

/// A body over the gateway's limit. It may be cut off while it is still being sent, which is a refusal, too.
async fn too_large(client: &Client) -> Result<(), ClientError> {
    match client.post(format!("{INITIALIZE}{}", " ".repeat(4096))).await {
        Ok(Answer { status: StatusCode::PAYLOAD_TOO_LARGE, .. }) | Err(ClientError::Send(_)) => Ok(()),
        Ok(other) => Err(other.unexpected()),
        Err(error) => Err(error),
    }
}

/// A request without a token, or with one that is none, where one is needed.
async fn unauthorised(locked: &Client, n: usize) -> Outcome {
    let mut request = locked.request(Method::POST).body(bytes::Bytes::from_static(INITIALIZE.as_bytes()))?;
    if n.is_multiple_of(2) {
        request.headers_mut().insert("authorization", http::HeaderValue::from_static("Bearer nonsense"));
    }
    let answer = locked.send(request).await?;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{}", answer.text());
    assert_eq!(answer.header("mcp-session-id"), None);
    Ok(())
}

/// Sends so many requests, each refused for another reason than the one before, over kept and new connections.
async fn refused(moored: &Moored, requests: usize) -> Outcome {
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        let (url, locked) = (moored.url_of("tools"), moored.url_of("locked"));
        workers.spawn(async move {
            let (kept, fresh) = (Client::new(&url)?, Client::with_fresh_connections(&url)?);
            let locked = Client::new(&locked)?;
            let kinds = kinds();
            for n in 0..requests / WORKERS {
                let client = if n % 8 == worker { &fresh } else { &kept };
                let turn = n % (kinds.len() + 2);
                let Some(kind) = kinds.get(turn) else {
                    if turn == kinds.len() {
                        too_large(client).await?;
                    } else {
                        unauthorised(&locked, n).await?;
                    }
                    continue;
                };
                let answer = client.send(build(client, kind)?).await?;
                assert_eq!(answer.status, kind.0, "{kind:?}: {}", answer.text());
                assert_eq!(answer.header("mcp-session-id"), None, "{kind:?}");
            }
            Ok::<_, Error>(())
        });
    }
    while let Some(worked) = workers.join_next().await {
        worked??;
    }
    Ok(())
}

// Case 009.
#[tokio::test]
async fn five_thousand_refused_requests_leave_nothing_behind() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let gateway = manifest::gateway("tools").replace("spec: {", "spec: {limits: {requestBytes: 2048}, ");
    // Nobody is there: what is no token needs no key to be refused.
    let auth = "auth: {oidc: {issuer: 'http://127.0.0.1:9', audiences: [a]}}";
    let locked = manifest::gateway("locked").replace("auth: {anonymous: {}}", auth);
    let moored = Moored::serve(gateway + &locked + &manifest::target("a", "tools", &target.url())).await?;
    target.until_streams(1).await?;
    target.until_seen("tools/list", 1).await?;
    let idle = moored.open_files().ok_or("this system cannot say")?;
    refused(&moored, WARMING).await?;
    let no_more_files = async || {
        process::poll(Duration::from_secs(10), async || moored.open_files().filter(|files| *files <= idle))
            .await
    };
    assert!(no_more_files().await.is_some(), "{:?} files are open, and were {idle}", moored.open_files());
    let (memory, asked) = (moored.resident_kib().ok_or("this system cannot say")?, target.requests().len());
    let connections = target.counts().connections;

    refused(&moored, REFUSED).await?;

    assert!(no_more_files().await.is_some(), "{:?} files are open, and were {idle}", moored.open_files());
    let grown = moored.resident_kib().ok_or("this system cannot say")?.saturating_sub(memory);
    assert!(grown < MEMORY_KIB, "the process grew by {grown} KiB");
    assert_eq!((target.requests().len(), target.counts().connections), (asked, connections));
    let metrics = moored.metrics().await?;
    assert_eq!(metrics.sum("mooring_sessions", &[]).to_bits(), 0f64.to_bits());
    assert_eq!(metrics.sum("mooring_sessions_started_total", &[]).to_bits(), 0f64.to_bits());
    let refusals = metrics.sum("mooring_requests_total", &[("outcome", "client")]);
    assert!(refusals > 4000.0, "only {refusals} refusals were counted");
    let unknown = metrics.sum("mooring_faults_total", &[("gateway", "locked")]);
    assert!(unknown > 200.0, "only {unknown} strangers were refused");
    assert!(
        Client::new(&moored.url_of("tools"))?
            .initialize()
            .await?
            .call("a___echo", serde_json::json!({}))
            .await?
            .error_code()
            .is_none()
    );
    Ok(())
}
