//! TLS of the listener from outside: a gateway without a certificate that it can use serves nobody, and says so.

use std::time::Duration;

use e2e::{
    manifest,
    moored::{Moored, Start},
    process,
};
use http::StatusCode;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const CONNECTIONS: usize = 5000;

// Case 009.
#[tokio::test]
async fn without_a_usable_certificate_a_gateway_is_unready_and_five_thousand_connections_leave_nothing()
-> Outcome {
    let tls = "spec: {tls: {certificateRef: {name: cert}}, ";
    let unusable = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: cert}\nstringData: {tls.crt: none, tls.key: none}\n";
    let manifests = manifest::gateway("tools").replace("spec: {", tls) + unusable;
    let moored = Moored::start_unready(Start { manifests, arguments: Vec::new() }).await?;
    let waits = async || {
        let ready = moored.health("/readyz").await.ok()?;
        let only = ready.text().trim() == "waiting for certificate";
        (ready.status == StatusCode::SERVICE_UNAVAILABLE && only).then_some(())
    };
    assert!(
        process::poll(Duration::from_secs(10), waits).await.is_some(),
        "it does not say what it waits for"
    );
    let idle = moored.open_files().ok_or("this system cannot say")?;
    for _ in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(moored.address()).await?;
        // Either may fail: the connection is closed without a look at what comes.
        let sent = stream.write_all(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer).await;
        assert!(answer.is_empty(), "{sent:?} {read:?} {answer:?}");
    }
    let no_more = async || moored.open_files().filter(|files| *files <= idle);
    assert!(process::poll(Duration::from_secs(10), no_more).await.is_some(), "{:?}", moored.open_files());
    let failed = moored.metrics().await?.sum("mooring_tls_handshakes_failed_total", &[]);
    assert!((failed - 5000.0).abs() < 0.5, "{failed}");
    assert!(moored.log().iter().any(|line| line.to_string().contains("connections are refused")));
    Ok(())
}
