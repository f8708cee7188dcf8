//! What `moored serve` makes of manifests that it cannot serve as written: it ends at once and says what to change.

use std::process::ExitStatus;

use e2e::{folder::Folder, manifest, process, settings};
use tokio::process::Command;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Has `moored serve` refuse these manifests, and returns how it ended and what it said.
async fn refused(
    manifests: &str,
    arguments: &[&str],
) -> Result<(ExitStatus, String), Box<dyn std::error::Error>> {
    let folder = Folder::temporary("manifests")?;
    let file = folder.path().join("manifests.yaml");
    std::fs::write(&file, manifests)?;
    let mut moored = Command::new(settings::moored_binary().ok_or("no moored binary")?);
    moored.arg("serve").arg(&file).args(["--listen", "127.0.0.1:0", "--health-address", "127.0.0.1:0"]);
    match process::output(moored.args(arguments), process::SHORT).await {
        Err(process::ProcessError::Failed { status, output, .. }) => Ok((status, output)),
        Err(other) => Err(other.into()),
        Ok(said) => Err(format!("it served, and said {said}").into()),
    }
}

/// Expects exit code 2 and a message with all of these words in it.
async fn is_refused(manifests: &str, words: &[&str]) -> Outcome {
    let (status, said) = refused(manifests, &[]).await?;
    assert_eq!(status.code(), Some(2), "{said}");
    for word in words {
        assert!(said.contains(word), "{word} is not in: {said}");
    }
    Ok(())
}

fn gateway(spec: &str) -> String {
    manifest::gateway("tools").replace("spec: {", &format!("spec: {{{spec}, "))
}

fn target(spec: &str) -> String {
    let target = manifest::target("a", "tools", "http://127.0.0.1:1/mcp");
    manifest::gateway("tools") + &target.replace("spec: {", &format!("spec: {{{spec}, "))
}

#[tokio::test]
async fn a_misspelt_field_is_named_by_its_path() -> Outcome {
    is_refused(&gateway("session: {timeout: 900}"), &["MCPGateway tools", "spec.session.timeout"]).await?;
    is_refused(&gateway("sesion: {timeoutSeconds: 900}"), &["MCPGateway tools", "spec.sesion"]).await?;
    is_refused(&target("timeouts: {requestSecs: 9}"), &["MCPTarget a", "spec.timeouts.requestSecs"]).await
}

#[tokio::test]
async fn a_field_that_this_version_does_not_serve_is_named_with_what_to_do() -> Outcome {
    is_refused(&gateway("autoscaling: {maxReplicas: 2}"), &["MCPGateway tools", "spec.autoscaling"]).await?;
    let delegated = manifest::gateway("tools").replace(
        "anonymous: {}",
        "oidc: {issuer: 'https://id.example', audiences: [a]}, delegation: {agents: [{name: c}]}",
    );
    is_refused(&delegated, &["MCPGateway tools", "spec.auth.delegation"]).await?;
    let agent = "---\napiVersion: mooring.dev/v1alpha1\nkind: ACPAgent\nmetadata: {name: coder}\n\
                 spec: {container: {image: i, command: [x]}, auth: {anonymous: {}}}\n";
    is_refused(&(manifest::gateway("tools") + agent), &["ACPAgent coder"]).await
}

#[tokio::test]
async fn a_session_timeout_out_of_the_limits_is_told_the_limits() -> Outcome {
    for seconds in ["0", "-5", "899", "28801"] {
        let manifests = gateway(&format!("session: {{timeoutSeconds: {seconds}}}"));
        is_refused(&manifests, &["MCPGateway tools", "spec.session.timeoutSeconds", "900", "28800"]).await?;
    }
    let manifests = gateway("session: {timeoutSeconds: 60}");
    let (status, said) =
        refused(&manifests, &["--session-timeout-max", "30", "--session-timeout-min", "5"]).await?;
    assert_eq!(status.code(), Some(2));
    assert!(said.contains("5 to 30"), "{said}");
    Ok(())
}

#[tokio::test]
async fn manifests_that_serve_nothing_or_nobody_are_refused() -> Outcome {
    is_refused("apiVersion: v1\nkind: Service\nmetadata: {name: x}\n", &["no MCPGateway"]).await?;
    is_refused(&manifest::target("alone", "tools", "http://127.0.0.1:1/mcp"), &[]).await?;
    let elsewhere =
        manifest::gateway("tools") + &manifest::target("alone", "other", "http://127.0.0.1:1/mcp");
    is_refused(&elsewhere, &["MCPTarget alone", "gatewayRefs"]).await?;
    is_refused(&manifest::gateway("tools").replace("anonymous: {}", ""), &["MCPGateway tools", "auth"])
        .await?;
    is_refused(&manifest::gateway("null"), &["metadata.name"]).await?;
    is_refused(&target("").replace("spec: {, ", "spec: {").repeat(2), &["MCPGateway tools", "twice"]).await?;
    is_refused("kind: [", &["manifests.yaml"]).await
}
