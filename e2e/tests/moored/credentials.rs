//! What targets are asked with: values of Secrets, tokens of OAuth, and the headers that a client may hand on.

use e2e::{
    manifest,
    moored::Moored,
    scripted::{Interference, RawAnswer, Script, ScriptedServer},
    token_endpoint::TokenEndpoint,
};
use http::{Method, StatusCode};
use serde_json::json;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const SECRET: &str = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: keys}\nstringData: {k: hunter2, client_id: me, client_secret: hunter3}\n";

/// The gateway `tools` with the target `a` and a further member of its spec, beside a Secret.
fn manifests(url: &str, spec: &str) -> String {
    let target = manifest::target("a", "tools", url).replace("spec: {", &format!("spec: {{{spec}, "));
    format!("{}{target}{SECRET}", manifest::gateway("tools"))
}

fn client_credentials(endpoint: &TokenEndpoint) -> String {
    format!(
        "credentials: {{type: ClientCredentials, clientCredentials: {{tokenURL: \"{}\", clientSecretRef: {{name: keys}}, scopes: [read]}}}}",
        endpoint.url()
    )
}

/// Answers 401 as servers do that do not know a token.
fn unauthorized() -> Interference {
    Interference::Answer(RawAnswer {
        status: StatusCode::UNAUTHORIZED,
        headers: vec![("www-authenticate".to_owned(), "Bearer error=\"invalid_token\"".to_owned())],
        body: String::new(),
    })
}

#[tokio::test]
async fn a_header_of_a_secret_is_on_every_request_and_the_clients_own_token_on_none() -> Outcome {
    let target = ScriptedServer::start(Script::echoing(["echo"])).await;
    let headers =
        "credentials: {type: Headers, headers: [{name: X-API-Key, secretRef: {name: keys, key: k}}]}";
    let moored = Moored::serve(manifests(&target.url(), headers)).await?;
    let client = moored.client()?.with_header("authorization", "Bearer of-the-client")?;
    let session = client.initialize().await?;
    assert_eq!(session.tools().await?, ["a___echo"]);
    assert_eq!(session.call("a___echo", json!({})).await?.error_code(), None);
    session.delete().await?;
    target.until_seen("DELETE", 1).await?;
    let seen = target.requests();
    assert!(seen.iter().all(|seen| seen.header("x-api-key") == Some("hunter2")), "{seen:?}");
    assert!(seen.iter().all(|seen| !seen.headers.contains_key("authorization")), "{seen:?}");
    let log = format!("{:?}", moored.log());
    assert!(!log.contains("hunter") && !log.contains("of-the-client"), "{log}");
    Ok(())
}

#[tokio::test]
async fn one_token_serves_all_requests_until_the_target_refuses_it() -> Outcome {
    let (target, endpoint) =
        (ScriptedServer::start(Script::echoing(["echo"])).await, TokenEndpoint::start().await?);
    let moored = Moored::serve(manifests(&target.url(), &client_credentials(&endpoint))).await?;
    let session = moored.client()?.initialize().await?;
    assert_eq!(session.tools().await?, ["a___echo"]);
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..8 {
        let session = session.clone();
        calls.spawn(async move { session.call("a___echo", json!({ "n": n })).await });
    }
    while let Some(call) = calls.join_next().await {
        assert_eq!(call??.error_code(), None);
    }
    let asked = endpoint.asked();
    let [once] = asked.as_slice() else { return Err(format!("asked {asked:?}").into()) };
    assert_eq!(once.form, "grant_type=client_credentials&scope=read");
    // "me:hunter3"
    assert_eq!(once.authorization.as_deref(), Some("Basic bWU6aHVudGVyMw=="));

    target.interfere_once("tools/call", unauthorized());
    let answer = session.call("a___echo", json!({})).await?;
    assert_eq!(answer.error_code(), None, "{}", answer.text());
    let tokens: Vec<_> = target.seen("tools/call").into_iter().rev().take(2).collect();
    let tokens: Vec<_> = tokens.iter().map(|seen| seen.header("authorization")).collect();
    assert_eq!(tokens, [Some("Bearer token-2"), Some("Bearer token-1")]);
    Ok(())
}

#[tokio::test]
async fn a_target_that_refuses_a_fresh_token_too_is_named_with_its_status() -> Outcome {
    let (target, endpoint) =
        (ScriptedServer::start(Script::echoing(["echo"])).await, TokenEndpoint::start().await?);
    let moored = Moored::serve(manifests(&target.url(), &client_credentials(&endpoint))).await?;
    let session = moored.client()?.initialize().await?;
    assert_eq!(session.call("a___echo", json!({})).await?.error_code(), None);
    target.interfere("tools/call", unauthorized());
    let answer = session.call("a___echo", json!({})).await?;
    assert_eq!((answer.status, answer.error_code()), (StatusCode::OK, Some(-32603)));
    assert!(answer.text().contains("target a answered HTTP 401"), "{}", answer.text());
    assert_eq!(
        (target.count("tools/call"), endpoint.asked().len()),
        (3, 2),
        "it is tried twice, not for ever"
    );
    Ok(())
}

#[tokio::test]
async fn a_token_endpoint_that_refuses_is_named_without_what_it_was_shown() -> Outcome {
    let (target, endpoint) =
        (ScriptedServer::start(Script::echoing(["echo"])).await, TokenEndpoint::start().await?);
    endpoint.refuse(StatusCode::UNAUTHORIZED, r#"{"error":"invalid_client","error_description":"hunter3"}"#);
    let moored = Moored::serve(manifests(&target.url(), &client_credentials(&endpoint))).await?;
    let session = moored.client()?.initialize().await?;
    let answer = session.call("a___echo", json!({})).await?;
    assert_eq!((answer.status, answer.error_code()), (StatusCode::OK, Some(-32603)));
    let text = answer.text();
    assert!(text.contains("the token endpoint refused: invalid_client"), "{text}");
    assert!(text.contains("target_credentials"), "{text}");
    let log = format!("{:?}", moored.log());
    assert!(!text.contains("hunter") && !log.contains("hunter"), "{text} {log}");
    assert!(target.requests().is_empty(), "nothing is asked without the credentials");
    Ok(())
}

#[tokio::test]
async fn a_target_that_lists_for_each_session_is_handed_the_headers_with_the_list_and_its_handshake()
-> Outcome {
    let target = ScriptedServer::start(Script::echoing(["echo"])).await;
    let spec = "listing: PerSession, headers: {allowedRequest: [X-Tenant]}";
    let moored = Moored::serve(manifests(&target.url(), spec)).await?;
    let session = moored.client()?.with_header("x-tenant", "blue")?.initialize().await?;
    assert_eq!(session.tools().await?, ["a___echo"]);
    // Beside those of the catalogue, which may come at any time.
    for kind in ["tools/list", "initialize"] {
        let seen = target.seen(kind);
        assert!(seen.iter().any(|seen| seen.header("x-tenant") == Some("blue")), "{seen:?}");
    }
    Ok(())
}

#[tokio::test]
async fn what_a_target_takes_of_a_clients_headers_and_parameters_is_handed_on_and_back() -> Outcome {
    let target = ScriptedServer::start(Script::echoing(["echo"])).await;
    let headers =
        "headers: {allowedRequest: [X-Tenant], allowedResponse: [X-Left], allowedQueryParameters: [region]}";
    let moored = Moored::serve(manifests(&target.url(), headers)).await?;
    let plain = moored.client()?.initialize().await?;
    let client = e2e::client::Client::new(&format!("{}?region=eu%20west&key=k", moored.url()))?
        .with_header("x-tenant", "blue")?
        .with_header("x-other", "o")?
        .with_header("cookie", "c=1")?;
    let session = plain.through(&client);
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    let names =
        [("content-type", "application/json"), ("x-left", "7"), ("set-cookie", "s=1"), ("x-more", "m")];
    target.interfere_once(
        "tools/call",
        Interference::Answer(RawAnswer {
            status: StatusCode::OK,
            headers: names.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            body: result.to_owned(),
        }),
    );
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a___echo"}});
    let answer = client.send(session.request(Method::POST).body(call.to_string().into())?).await?;
    assert_eq!(answer.text(), result);
    assert_eq!(answer.header("x-left"), Some("7"));
    assert_eq!((answer.header("set-cookie"), answer.header("x-more")), (None, None));
    let seen = target.seen("tools/call").pop().ok_or("no call")?;
    assert_eq!(seen.path, "/mcp?region=eu%20west");
    assert_eq!(seen.header("x-tenant"), Some("blue"));
    assert!(!seen.headers.contains_key("x-other") && !seen.headers.contains_key("cookie"), "{seen:?}");
    Ok(())
}
