//! The official conformance suite of 2025-11-25: against a server of ours that passes it alone, against the gateway in
//! front of that server and of another one, and, from the other side, against a client through the gateway.
//!
//! Nothing that the revision requires may fail: there is no list of expected failures. The fourteen scenarios for
//! clients under `auth/` are not here. In them a client must bring its token to the very server that asks for it, and
//! no client's token passes the gateway.

use std::net::{Ipv4Addr, SocketAddr};

use e2e::{
    example::ExampleServer,
    manifest,
    moored::Moored,
    peers::{
        FixtureServer,
        conformance::{self, Verdicts},
    },
    settings,
};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A gateway that leaves names as they are.
const PLAIN: &str = "---\napiVersion: mooring.dev/v1alpha1\nkind: MCPGateway\nmetadata: {name: tools}\n\
    spec: {auth: {anonymous: {}}, tools: {naming: Plain}}\n";

/// How many scenarios the revision requires of servers.
const REQUIRED: usize = 30;

fn assert_all_required(verdicts: &Verdicts) {
    assert_eq!(verdicts.failed(), Vec::<&str>::new(), "{}", verdicts.output);
    assert_eq!(verdicts.required.len(), REQUIRED, "{}", verdicts.output);
}

/// The suite's verdicts on the gateway in front of the conformance server and the example server, attached in an order.
async fn through_the_gateway(fixture: &str, example: &str) -> Result<Verdicts, Box<dyn std::error::Error>> {
    let server = FixtureServer::start().await?;
    let other = ExampleServer::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    let targets =
        [manifest::target(fixture, "tools", &server.url()), manifest::target(example, "tools", &other.url())];
    let moored = Moored::serve([PLAIN, &targets.concat()].concat()).await?;
    Ok(conformance::judge_server(&moored.url()).await?)
}

#[tokio::test]
async fn the_conformance_server_alone_passes_all_of_it() -> Outcome {
    let server = FixtureServer::start().await?;
    let verdicts = conformance::judge_server(&server.url()).await?;
    assert_all_required(&verdicts);
    assert_eq!(verdicts.unscored.len(), 3, "{}", verdicts.output);
    assert!(verdicts.unscored.values().all(|passed| *passed), "{}", verdicts.output);
    Ok(())
}

#[tokio::test]
async fn a_gateway_of_two_targets_passes_all_that_is_required() -> Outcome {
    let verdicts = through_the_gateway("a-fixture", "b-example").await?;
    assert_all_required(&verdicts);
    // None of these counts; all three hold of the gateway as well.
    assert!(verdicts.unscored.values().all(|passed| *passed), "{}", verdicts.output);
    Ok(())
}

#[tokio::test]
async fn the_order_of_the_targets_changes_none_of_that() -> Outcome {
    assert_all_required(&through_the_gateway("b-fixture", "a-example").await?);
    Ok(())
}

/// A scenario for clients, by a client that talks to the suite's server through a gateway.
async fn a_client_passes(scenario: &str) -> Outcome {
    let (passed, output) = conformance::judge_client(scenario, None).await?;
    assert!(passed, "the client alone fails:\n{output}");
    let moored = settings::moored_binary().ok_or("no moored binary")?;
    let (passed, output) = conformance::judge_client(scenario, Some(&moored)).await?;
    assert!(passed, "through the gateway it fails:\n{output}");
    Ok(())
}

#[tokio::test]
async fn a_client_behind_the_gateway_initializes() -> Outcome {
    a_client_passes("initialize").await
}

#[tokio::test]
async fn a_client_behind_the_gateway_calls_a_tool() -> Outcome {
    a_client_passes("tools_call").await
}

#[tokio::test]
async fn a_client_behind_the_gateway_answers_an_elicitation_with_its_defaults() -> Outcome {
    a_client_passes("elicitation-sep1034-client-defaults").await
}

#[tokio::test]
async fn a_client_behind_the_gateway_comes_back_to_a_stream_when_it_was_told_to() -> Outcome {
    a_client_passes("sse-retry").await
}
