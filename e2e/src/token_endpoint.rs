//! An OAuth token endpoint that answers as a test tells it and records what it was asked. It checks nothing itself.

use std::{net::SocketAddr, sync::Arc};

use http::{Request, StatusCode, header::AUTHORIZATION};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use parking_lot::Mutex;
use serde_json::json;

use crate::http::{Handler, Reply, Server, json};

/// A question to the endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Its `Authorization`.
    pub authorization: Option<String>,
    /// Its form, as it came.
    pub form: String,
}

/// A token endpoint; it ends when dropped. The tokens that it gives are `token-1`, `token-2` and so on.
#[derive(Debug)]
pub struct TokenEndpoint {
    server: Server,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    asked: Mutex<Vec<Asked>>,
    refusal: Mutex<Option<(StatusCode, String)>>,
}

impl TokenEndpoint {
    /// Starts an endpoint on a free port of 127.0.0.1.
    pub async fn start() -> std::io::Result<Self> {
        let state = Arc::new(State::default());
        let server = Server::start(SocketAddr::from(([127, 0, 0, 1], 0)), Arc::clone(&state)).await?;
        Ok(Self { server, state })
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}/token", self.server.address())
    }

    /// Every question, oldest first.
    pub fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().clone()
    }

    /// Refuses from now on with this status and body.
    pub fn refuse(&self, status: StatusCode, body: &str) {
        *self.state.refusal.lock() = Some((status, body.to_owned()));
    }
}

impl Handler for State {
    async fn handle(self: Arc<Self>, request: Request<Incoming>) -> Reply {
        let (head, body) = request.into_parts();
        let form = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let authorization = head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let number = {
            let mut asked = self.asked.lock();
            let form = String::from_utf8_lossy(&form).into_owned();
            asked.push(Asked { authorization: authorization.map(str::to_owned), form });
            asked.len()
        };
        if let Some((status, body)) = self.refusal.lock().clone() {
            return json(status, body);
        }
        let token = json!({
            "access_token": format!("token-{number}"),
            "token_type": "Bearer",
            "expires_in": 3600,
            "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        });
        json(StatusCode::OK, token.to_string())
    }
}
