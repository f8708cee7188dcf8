//! Tokens of the gateway's own ServiceAccount, by the API server's TokenRequest. Asks for no other account's.

use std::{fmt, time::Duration};

use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{Api, Client, api::PostParams};
use tokio::time::{Instant, timeout};

use super::{Trouble, cache::Token, grant};

/// How long the API server may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The ServiceAccount that this daemon runs as.
#[derive(Clone)]
pub struct Account {
    client: Client,
    namespace: String,
    name: String,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Account {
    /// The account of this name, asked through `client`.
    pub fn new(client: Client, namespace: String, name: String) -> Self {
        Self { client, namespace, name }
    }
}

/// Tokens of an account for one audience.
#[derive(Debug)]
pub(super) struct AccountTokens {
    account: Account,
    audience: String,
    seconds: u32,
}

impl AccountTokens {
    pub(super) fn new(account: &Account, audience: &str, seconds: u32) -> Self {
        Self { account: account.clone(), audience: audience.to_owned(), seconds }
    }

    /// Asks for a token. The API server may give it another life than was asked for; what it says counts.
    pub(super) async fn token(&self) -> Result<Token, Trouble> {
        let Account { client, namespace, name } = &self.account;
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                audiences: Some(vec![self.audience.clone()]),
                expiration_seconds: Some(self.seconds.into()),
                bound_object_ref: None,
            }),
            ..TokenRequest::default()
        };
        let issued = Instant::now();
        let params = PostParams::default();
        let asked = timeout(PATIENCE, accounts.create_token_request(name, &params, &request));
        let answer = match asked.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(refusal(&error)),
            Err(_) => return Err(Trouble::Timeout(PATIENCE.as_secs())),
        };
        let token = answer.status.and_then(|status| status.token).ok_or(Trouble::Answer("no token"))?;
        let value = grant::sensitive(&format!("Bearer {token}"))
            .map_err(|()| Trouble::Answer("a token that no header can carry"))?;
        let seconds = answer.spec.and_then(|spec| spec.expiration_seconds);
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        // 80 % of its life, as the kubelet has it: the rest is for whoever cannot renew it in time.
        let lifetime = Duration::from_secs(seconds.unwrap_or_else(|| self.seconds.into()));
        Ok(Token { value, issued, until: issued + lifetime * 4 / 5 })
    }
}

/// The API server's reason, never its answer's body.
fn refusal(error: &kube::Error) -> Trouble {
    let kube::Error::Api(status) = error else {
        return Trouble::Unreachable("the API server could not be asked".to_owned());
    };
    let reason = Some(status.reason.clone()).filter(|reason| !reason.is_empty());
    Trouble::Refused(reason.unwrap_or_else(|| format!("HTTP {}", status.code)))
}
