//! An OpenID Connect provider of others, oauth2-mock-server, pinned and run as it is: its keys rotate and it goes away
//! when a test says so. It ends with the value that stands for it.

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
    process::Stdio,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use crate::{
    folder,
    peers::{InstallError, Packages, install_packages},
    settings,
};

/// How long one command may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why there is no provider.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// It is not there.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// It cannot be run.
    #[error("the identity provider cannot be run")]
    Io(#[from] io::Error),
    /// It did not do what it was told.
    #[error("the identity provider did not {0}")]
    Silent(String),
}

/// A provider, perhaps not started yet.
#[derive(Debug)]
pub struct IdentityProvider {
    port: u16,
    _child: Child,
    commands: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl IdentityProvider {
    /// A provider that listens.
    pub async fn start() -> Result<Self, IdentityError> {
        let mut provider = Self::prepare().await?;
        provider.listen().await?;
        Ok(provider)
    }

    /// A provider that nobody can reach yet.
    pub async fn prepare() -> Result<Self, IdentityError> {
        let peers = install_packages(Packages::Identity).await?;
        // Node looks for packages beside the script, not where it is started.
        let script = peers.npm.join("provider.mjs");
        folder::put(&settings::checkout().join("e2e/clients/oidc/provider.mjs"), &script)?;
        // It takes a port, not a socket: one that was free a moment ago.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut command = Command::new(&peers.node);
        command.arg(script).env("PORT", port.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (commands, answers) = pipes.ok_or_else(|| IdentityError::Silent("have pipes".to_owned()))?;
        Ok(Self { port, _child: child, commands, answers: BufReader::new(answers).lines() })
    }

    /// Its issuer.
    pub fn issuer(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Begins to listen, with a new key and no other.
    pub async fn listen(&mut self) -> Result<(), IdentityError> {
        self.command(json!({"do": "start"})).await.map(drop)
    }

    /// Stops listening.
    pub async fn stop(&mut self) -> Result<(), IdentityError> {
        self.command(json!({"do": "stop"})).await.map(drop)
    }

    /// Goes on with a new key in place of the one before.
    pub async fn rotate(&mut self) -> Result<(), IdentityError> {
        self.stop().await?;
        self.listen().await
    }

    /// A token with these claims, which expires in an hour.
    pub async fn token(&mut self, claims: Value) -> Result<String, IdentityError> {
        self.expiring_token(claims, 3600).await
    }

    /// A token with these claims, which expires in so many seconds.
    pub async fn expiring_token(&mut self, claims: Value, seconds: i64) -> Result<String, IdentityError> {
        let answer = self.command(json!({"do": "sign", "claims": claims, "expiresIn": seconds})).await?;
        let token = answer.get("token").and_then(Value::as_str).map(str::to_owned);
        token.ok_or_else(|| IdentityError::Silent("sign a token".to_owned()))
    }

    async fn command(&mut self, command: Value) -> Result<Value, IdentityError> {
        let silent = || IdentityError::Silent(command.to_string());
        self.commands.write_all(format!("{command}\n").as_bytes()).await?;
        let line = timeout(PATIENCE, self.answers.next_line()).await.map_err(|_| silent())??;
        serde_json::from_str(&line.ok_or_else(silent)?).map_err(|_| silent())
    }
}
