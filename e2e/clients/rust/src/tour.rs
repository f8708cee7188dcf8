//! Does with one session all that its servers, named by their prefixes, are good for, and says what it saw.
#![expect(
    deprecated,
    reason = "sampling, roots and logging are, by a version later than the one that is tried"
)]

use std::{
    error::Error,
    sync::{Arc, Mutex},
    time::Duration,
};

use rmcp::{
    ClientHandler, ErrorData, Peer, RoleClient,
    model::{
        ArgumentInfo, CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig,
        ClientRequest, CompleteRequestParams, CreateMessageRequestParams, CreateMessageResult,
        ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, GetPromptRequestParams,
        Implementation, ListRootsResult, LoggingLevel, LoggingMessageNotificationParam,
        ProgressNotificationParam, ReadResourceRequestParams, Reference, ResourceUpdatedNotificationParam,
        Root, RootsCapabilities, SamplingCapability, SamplingMessage, SetLevelRequestParams,
        SubscribeRequestParams, UnsubscribeRequestParams,
    },
    service::{NotificationContext, PeerRequestOptions, RequestContext},
};
use serde_json::{Map, Value, json};
use tokio::{sync::Notify, time::timeout};

type Outcome<T> = Result<T, Box<dyn Error>>;

const PATIENCE: Duration = Duration::from_secs(20);
const WATCHED: &str = "demo://resource/dynamic/text/1";

/// What the servers asked of this client and told it.
#[derive(Default)]
struct Seen {
    asked: Vec<&'static str>,
    logs: usize,
    progress: Vec<Value>,
    updated: Option<String>,
}

#[derive(Clone, Default)]
struct Handler {
    seen: Arc<Mutex<Seen>>,
    has_news: Arc<Notify>,
}

impl Handler {
    fn see(&self, what: impl FnOnce(&mut Seen)) {
        what(&mut self.seen.lock().expect("nobody panics with it"));
        self.has_news.notify_one();
    }

    async fn until(&self, come: impl Fn(&Seen) -> bool) -> Outcome<()> {
        let wait = async {
            while !come(&self.seen.lock().expect("nobody panics with it")) {
                self.has_news.notified().await;
            }
        };
        Ok(timeout(PATIENCE, wait).await?)
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::default());
        capabilities.sampling = Some(SamplingCapability::default());
        capabilities.roots = Some(RootsCapabilities::default());
        ClientConfig::new(capabilities, Implementation::new("rust", "1"))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.see(|seen| seen.asked.push("elicitation"));
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"name": "Ann", "check": true})))
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.see(|seen| seen.asked.push("sampling"));
        Ok(CreateMessageResult::new(SamplingMessage::assistant_text("It was a model."), "none".into()))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new("file:///srv/boats").with_name("boats")]))
    }

    async fn on_logging_message(
        &self,
        _: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.see(|seen| seen.logs += 1);
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.see(|seen| seen.progress.push(json!([params.progress, params.total])));
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.see(|seen| seen.updated = Some(params.uri));
    }
}

/// One whole session, and the beginning of another.
pub async fn tour(url: &str, prefixes: &Value) -> Outcome<Value> {
    let handler = Handler::default();
    let client = crate::connect(url, handler.clone()).await?;
    let mut said = lists(&client).await?;
    let protocol = client.peer_info().map(|info| serde_json::to_value(&info.protocol_version)).transpose()?;
    said.insert("protocol".into(), protocol.into());
    let calls = prefixes["calls"].as_object().ok_or("no calls")?;
    let mut called = Map::new();
    for (tool, arguments) in calls {
        called.insert(tool.clone(), call(&client, tool.clone(), arguments.clone()).await?.into());
    }
    said.insert("calls".into(), called.into());
    if let Some(prefix) = prefixes["everything"].as_str() {
        said.append(&mut everything(&client, &handler, prefix).await?);
    }
    if let Some(prefix) = prefixes["fixture"].as_str() {
        said.append(&mut fixture(&client, &handler, prefix).await?);
    }
    client.cancel().await?;
    let again = crate::connect(url, ()).await?;
    let (tool, arguments) = calls.iter().next().ok_or("no calls")?;
    said.insert("again".into(), call(&again, tool.clone(), arguments.clone()).await?.into());
    again.cancel().await?;
    said.insert("asked".into(), json!(handler.seen.lock().expect("nobody panics with it").asked));
    Ok(said.into())
}

async fn lists(client: &Peer<RoleClient>) -> Outcome<Map<String, Value>> {
    let tools = client.list_all_tools().await?;
    let prompts = client.list_all_prompts().await?;
    let resources = client.list_all_resources().await?;
    let templates = client.list_all_resource_templates().await?;
    let lists = [
        ("tools", tools.into_iter().map(|tool| tool.name.into_owned()).collect::<Vec<_>>()),
        ("prompts", prompts.into_iter().map(|prompt| prompt.name).collect()),
        ("resources", resources.into_iter().map(|resource| resource.uri.clone()).collect()),
        ("templates", templates.into_iter().map(|template| template.uri_template.clone()).collect()),
    ];
    Ok(lists.into_iter().map(|(list, names)| (list.to_owned(), names.into())).collect())
}

async fn call(client: &Peer<RoleClient>, tool: String, arguments: Value) -> Outcome<String> {
    let mut params = CallToolRequestParams::new(tool);
    params.arguments = serde_json::from_value(arguments)?;
    let result = serde_json::to_value(client.call_tool(params).await?)?;
    Ok(result.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default().to_owned())
}

async fn everything(
    client: &Peer<RoleClient>,
    handler: &Handler,
    prefix: &str,
) -> Outcome<Map<String, Value>> {
    let own = |name: &str| format!("{prefix}{name}");
    let city = serde_json::from_value(json!({"city": "Kiel"}))?;
    let prompt =
        client.get_prompt(GetPromptRequestParams::new(own("args-prompt")).with_arguments(city)).await?;
    let resource = client.read_resource(ReadResourceRequestParams::new(WATCHED)).await?;
    let argument = ArgumentInfo::new("department", "S");
    let reference = Reference::for_prompt(own("completable-prompt"));
    let completed = client.complete(CompleteRequestParams::new(reference, argument)).await?;
    let mut said = Map::new();
    let mut say = |what: &str, said_there: Value| said.insert(what.to_owned(), said_there);
    say("prompt", serde_json::to_value(prompt)?["messages"][0]["content"]["text"].clone());
    say("resource", serde_json::to_value(resource)?["contents"][0]["text"].clone());
    say("completion", json!(completed.completion.values));
    say("elicitation", call(client, own("trigger-elicitation-request"), json!({})).await?.into());
    let sampling = json!({"prompt": "Say something", "maxTokens": 20});
    say("sampling", call(client, own("trigger-sampling-request"), sampling).await?.into());
    say("roots", call(client, own("get-roots-list"), json!({})).await?.into());
    handler.see(|seen| seen.progress.clear());
    let long = json!({"duration": 1, "steps": 4});
    say("long", call(client, own("trigger-long-running-operation"), long).await?.into());
    // This SDK hands out progress on the way, and may be at the last of it still.
    handler.until(|seen| seen.progress.len() >= 4).await?;
    say("progress", json!(handler.seen.lock().expect("nobody panics with it").progress));
    client.subscribe(SubscribeRequestParams::new(WATCHED)).await?;
    call(client, own("toggle-subscriber-updates"), json!({})).await?;
    handler.until(|seen| seen.updated.is_some()).await?;
    call(client, own("toggle-subscriber-updates"), json!({})).await?;
    client.unsubscribe(UnsubscribeRequestParams::new(WATCHED)).await?;
    say("updated", json!(handler.seen.lock().expect("nobody panics with it").updated));
    Ok(said)
}

async fn fixture(client: &Peer<RoleClient>, handler: &Handler, prefix: &str) -> Outcome<Map<String, Value>> {
    let own = |name: &str| format!("{prefix}{name}");
    let mut logged = Vec::new();
    for level in [LoggingLevel::Info, LoggingLevel::Error] {
        client.set_level(SetLevelRequestParams::new(level)).await?;
        handler.see(|seen| seen.logs = 0);
        call(client, own("test_tool_with_logging"), json!({})).await?;
        if level == LoggingLevel::Info {
            handler.until(|seen| seen.logs >= 3).await?;
        }
        logged.push(handler.seen.lock().expect("nobody panics with it").logs);
    }
    let reconnection = call(client, own("test_reconnection"), json!({})).await?;
    let waits_cancelled = async || call(client, own("test_waits_cancelled"), json!({})).await;
    let before = waits_cancelled().await?;
    handler.see(|seen| seen.progress.clear());
    let request =
        ClientRequest::CallToolRequest(CallToolRequest::new(CallToolRequestParams::new(own("test_wait"))));
    let wait = client.send_cancellable_request(request, PeerRequestOptions::default()).await?;
    handler.until(|seen| !seen.progress.is_empty()).await?;
    wait.cancel(Some("no longer wanted".into())).await?;
    let noticed = async {
        while waits_cancelled().await? == before {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok::<(), Box<dyn Error>>(())
    };
    timeout(PATIENCE, noticed).await??;
    let said = json!({"logged": logged, "reconnection": reconnection, "cancelled": true, "noticed": true});
    Ok(serde_json::from_value(said)?)
}
