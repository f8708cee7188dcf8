//! `tasks/list`: the tasks of every target that the session has used, under our ids (2025-11-25, tasks, experimental).

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use http::Response;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::Context;
use crate::{
    body::Answer,
    fault::Fault,
    jsonrpc::{reply, span},
    relay::json_response,
    session::{Session, targets::TargetSession, task_ids},
    target::unary,
};

/// How long a target may take, over all its pages; one that takes longer is left out.
const LISTED: Duration = Duration::from_secs(10);
/// Pages that are read of one target.
const MOST_PAGES: usize = 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    tasks: Vec<Box<RawValue>>,
    #[serde(default)]
    next_cursor: Option<Box<RawValue>>,
}

pub(super) async fn list(
    context: &Context<'_>,
    session: &Arc<Session>,
    id: &[u8],
) -> Result<Response<Answer>, Fault> {
    let open = session.open_targets();
    let lists = join_all(open.iter().map(|open| timeout(LISTED, of_target(context, open)))).await;
    let all: Vec<String> = lists.into_iter().filter_map(Result::ok).flatten().collect();
    let result = format!(r#"{{"tasks":[{}]}}"#, all.join(","));
    Ok(json_response(Answer::whole(reply::result(id, result.as_bytes()))))
}

/// The tasks of one target; none where it knows no tasks.
async fn of_target(context: &Context<'_>, open: &TargetSession) -> Vec<String> {
    let (mut tasks, mut cursor) = (Vec::new(), None::<Box<RawValue>>);
    for _ in 0..MOST_PAGES {
        let params = cursor.map_or_else(|| "{}".to_owned(), |cursor| format!(r#"{{"cursor":{cursor}}}"#));
        let id = context.gateway.sessions.own_id();
        let wire = open.newest_wire();
        let asked = unary::ask_as(&open.target, &wire, &id, "tasks/list", &params).await;
        let page = asked.ok().and_then(|reply| serde_json::from_str::<Page>(reply.result.get()).ok());
        let Some(page) = page else { return tasks };
        tasks.extend(page.tasks.iter().filter_map(|task| exposed(task, open.target.alias())));
        cursor = page.next_cursor.filter(|cursor| cursor.get() != "null");
        if cursor.is_none() {
            break;
        }
    }
    tasks
}

fn exposed(task: &RawValue, alias: &str) -> Option<String> {
    let raw = bytes::Bytes::copy_from_slice(task.get().as_bytes());
    let range = span::find(&raw, &["taskId"])?;
    let own: String = serde_json::from_slice(raw.get(range.clone())?).ok()?;
    let with = serde_json::Value::from(task_ids::exposed(&own, alias)).to_string();
    String::from_utf8(span::replace(&raw, vec![(range, with)]).to_vec()).ok()
}
