//! Requests that lead to one target by what they name: prompts, resources, completions; the log level, which all targets
//! hear; and methods that nobody here knows.

use e2e::{
    client::Session,
    manifest::gateway_with,
    moored::Moored,
    scripted::{Interference, RawAnswer, Script, ScriptedServer},
};
use http::StatusCode;
use serde_json::{Value, json};

type Error = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<(), Error>;

const LEVEL: &str = "logging/setLevel";

/// A server that has one prompt, one resource and one template, says of everything who answered, and knows levels.
fn script(name: &str) -> Script {
    let said = || json!({"said": name});
    let known =
        ["prompts/get", "resources/read", "completion/complete"].map(|method| (method.to_owned(), said()));
    let silent = ["resources/subscribe", "resources/unsubscribe", LEVEL];
    let silent = silent.map(|method| (method.to_owned(), json!({})));
    let scheme = format!("{name}://");
    let mut script = Script::offering("echo", "prompt", &format!("{scheme}one"), &format!("{scheme}t/{{x}}"));
    script.capabilities = json!({"tools": {}, "prompts": {}, "resources": {"subscribe": true},
        "completions": {}, "logging": {}});
    script.results = known.into_iter().chain(silent).collect();
    script
}

async fn start() -> Result<(ScriptedServer, ScriptedServer, Moored, Session), Error> {
    let (a, b) = (ScriptedServer::start(script("a")).await, ScriptedServer::start(script("b")).await);
    let moored = Moored::serve(gateway_with([("a", a.url()), ("b", b.url())])).await?;
    let session = moored.client()?.initialize().await?;
    Ok((a, b, moored, session))
}

async fn result(session: &Session, method: &str, params: Value) -> Result<Value, Error> {
    let answer = session.ask(method, params).await?;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let result = answer.response().get("result").cloned();
    result.ok_or_else(|| answer.unexpected().into())
}

async fn code(session: &Session, method: &str, params: Value) -> Result<Option<i64>, Error> {
    let answer = session.ask(method, params).await?;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    Ok(answer.error_code())
}

#[tokio::test]
async fn a_prompt_is_got_from_the_target_that_its_name_leads_to_by_the_targets_own_name() -> Outcome {
    let (a, b, _moored, session) = start().await?;
    for (target, name) in [(&a, "a"), (&b, "b")] {
        let params = json!({"name": format!("{name}___prompt"), "arguments": {"x": "1"}});
        assert_eq!(result(&session, "prompts/get", params).await?, json!({"said": name}));
        let seen = target.seen("prompts/get");
        let wanted = json!({"name": "prompt", "arguments": {"x": "1"}});
        assert_eq!((seen.len(), &seen[0].message["params"]), (1, &wanted));
    }
    for params in [json!({"name": "c___prompt"}), json!({"name": "a___other"}), json!({}), json!({"name": 7})]
    {
        assert_eq!(code(&session, "prompts/get", params.clone()).await?, Some(-32602), "{params}");
    }
    Ok(())
}

#[tokio::test]
async fn a_resource_is_read_from_the_target_that_lists_it_or_whose_template_makes_it() -> Outcome {
    let (a, b, _moored, session) = start().await?;
    for (target, name) in [(&a, "a"), (&b, "b")] {
        for uri in [format!("{name}://one"), format!("{name}://t/5")] {
            for method in ["resources/read", "resources/subscribe", "resources/unsubscribe"] {
                let said = result(&session, method, json!({"uri": uri})).await?;
                let wanted = if method == "resources/read" { json!({"said": name}) } else { json!({}) };
                assert_eq!(said, wanted, "{method} {uri}");
                let seen = target.seen(method).pop().ok_or("not asked")?;
                assert_eq!(seen.message["params"]["uri"], json!(uri), "URIs pass unchanged");
            }
        }
    }
    assert_eq!((a.count("resources/read"), b.count("resources/read")), (2, 2));
    assert_eq!(code(&session, "resources/read", json!({})).await?, Some(-32602));
    Ok(())
}

#[tokio::test]
async fn a_resource_in_no_list_is_asked_of_the_sessions_open_targets_the_oldest_first() -> Outcome {
    let (a, b, _moored, session) = start().await?;
    let unlisted = || json!({"uri": "other://x"});
    let answer = session.ask("resources/read", unlisted()).await?;
    assert_eq!((answer.status, answer.error_code()), (StatusCode::OK, Some(-32002)));
    assert_eq!(answer.response()["error"]["data"], json!({"uri": "other://x"}));
    assert_eq!((a.count("resources/read"), b.count("resources/read")), (0, 0), "no session is begun for it");

    session.call("b___echo", json!({})).await?;
    assert_eq!(result(&session, "resources/read", unlisted()).await?, json!({"said": "b"}));
    session.call("a___echo", json!({})).await?;
    assert_eq!(result(&session, "resources/read", unlisted()).await?, json!({"said": "a"}));
    assert_eq!((a.count("resources/read"), b.count("resources/read")), (1, 1));
    // One that does not know it, or fails, is not the one.
    a.change(|script| drop(script.results.remove("resources/read")));
    assert_eq!(result(&session, "resources/read", unlisted()).await?, json!({"said": "b"}));
    a.interfere("resources/read", Interference::Answer(RawAnswer::status(StatusCode::BAD_GATEWAY)));
    assert_eq!(result(&session, "resources/read", unlisted()).await?, json!({"said": "b"}));
    b.change(|script| drop(script.results.remove("resources/read")));
    a.behave("resources/read");
    assert_eq!(code(&session, "resources/read", unlisted()).await?, Some(-32002));
    assert_eq!(a.seen("resources/read").pop().ok_or("not asked")?.message["params"], unlisted());
    Ok(())
}

#[tokio::test]
async fn an_argument_is_completed_by_the_target_of_its_prompt_or_of_its_template() -> Outcome {
    let (a, b, _moored, session) = start().await?;
    let argument = json!({"name": "x", "value": "1"});
    for (target, name) in [(&a, "a"), (&b, "b")] {
        for (reference, own) in [
            (
                json!({"type": "ref/prompt", "name": format!("{name}___prompt")}),
                json!({"type": "ref/prompt", "name": "prompt"}),
            ),
            (json!({"type": "ref/resource", "uri": format!("{name}://t/{{x}}")}), Value::Null),
            (json!({"type": "ref/resource", "uri": format!("{name}://one")}), Value::Null),
        ] {
            let params = json!({"ref": reference, "argument": argument});
            assert_eq!(
                result(&session, "completion/complete", params).await?,
                json!({"said": name}),
                "{reference}"
            );
            let seen = target.seen("completion/complete").pop().ok_or("not asked")?;
            let wanted = if own.is_null() { &reference } else { &own };
            assert_eq!(
                (&seen.message["params"]["ref"], &seen.message["params"]["argument"]),
                (wanted, &argument)
            );
        }
    }
    for reference in
        [json!({"type": "ref/tool", "name": "x"}), json!({}), json!({"type": "ref/prompt", "name": "x"})]
    {
        let params = json!({"ref": reference, "argument": argument});
        assert_eq!(code(&session, "completion/complete", params).await?, Some(-32602), "{reference}");
    }
    let nowhere = json!({"ref": {"type": "ref/resource", "uri": "x://{y}"}, "argument": argument});
    // Asked of the targets in use, the oldest first, as any URI in no list is.
    assert_eq!(result(&session, "completion/complete", nowhere).await?, json!({"said": "a"}));
    Ok(())
}

#[tokio::test]
async fn a_log_level_is_told_to_the_targets_in_use_and_to_those_that_come() -> Outcome {
    let (a, b, moored, session) = start().await?;
    session.call("a___echo", json!({})).await?;
    assert_eq!(result(&session, LEVEL, json!({"level": "warning"})).await?, json!({}));
    assert_eq!((a.count(LEVEL), b.count(LEVEL)), (1, 0));
    assert_eq!(a.seen(LEVEL)[0].message["params"], json!({"level": "warning"}));
    assert_eq!(a.seen(LEVEL)[0].session, a.seen("tools/call")[0].session);
    session.call("b___echo", json!({})).await?;
    b.until_seen(LEVEL, 1).await?;
    assert_eq!(b.seen(LEVEL)[0].message["params"], json!({"level": "warning"}));
    assert_eq!(b.seen(LEVEL)[0].session, b.seen("tools/call")[0].session);
    assert_eq!(result(&session, LEVEL, json!({"level": "debug"})).await?, json!({}));
    assert_eq!((a.count(LEVEL), b.count(LEVEL)), (2, 2));
    // It is this session's, and nobody else's.
    let other = moored.client()?.initialize().await?;
    other.call("a___echo", json!({})).await?;
    other.call("b___echo", json!({})).await?;
    assert_eq!((a.count(LEVEL), b.count(LEVEL)), (2, 2));
    Ok(())
}

#[tokio::test]
async fn a_log_level_that_there_is_not_is_refused_and_told_to_nobody() -> Outcome {
    let (a, _b, _moored, session) = start().await?;
    session.call("a___echo", json!({})).await?;
    for params in [
        json!({"level": "loud"}),
        json!({"level": "WARNING"}),
        json!({"level": 3}),
        json!({}),
        json!({"level": null}),
    ] {
        assert_eq!(code(&session, LEVEL, params.clone()).await?, Some(-32602), "{params}");
    }
    assert_eq!(a.count(LEVEL), 0);
    Ok(())
}

#[tokio::test]
async fn a_target_that_does_not_take_the_level_keeps_nobody_from_it() -> Outcome {
    let (a, b, _moored, session) = start().await?;
    session.call("a___echo", json!({})).await?;
    session.call("b___echo", json!({})).await?;
    a.interfere(LEVEL, Interference::Hang);
    let begun = tokio::time::Instant::now();
    assert_eq!(result(&session, LEVEL, json!({"level": "error"})).await?, json!({}));
    assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(b.count(LEVEL), 1);
    Ok(())
}

#[tokio::test]
async fn a_method_that_nobody_here_knows_passes_to_the_one_target_there_is_and_is_refused_among_several()
-> Outcome {
    let (_a, _b, _moored, session) = start().await?;
    for method in ["vendor/thing", "tools/other", "x"] {
        assert_eq!(code(&session, method, json!({"x": 1.0})).await?, Some(-32601), "{method}");
    }
    let mut alone = script("alone");
    alone.results.insert("vendor/thing".to_owned(), json!({"new": [1, 2.50]}));
    let alone = ScriptedServer::start(alone).await;
    let moored = Moored::serve(gateway_with([("alone", alone.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let raw = r#"{"jsonrpc":"2.0","id":"v","method":"vendor/thing", "params":{"x":1.0e2},"more":true}"#;
    let answer = session.post(raw).await?;
    assert_eq!(answer.response()["result"], json!({"new": [1, 2.50]}));
    assert_eq!(alone.seen("vendor/thing")[0].body, raw.as_bytes(), "it passes byte for byte");
    assert_eq!(code(&session, "vendor/other", json!({})).await?, Some(-32601), "the target's own word");
    assert_eq!(alone.count("vendor/other"), 1);
    Ok(())
}
