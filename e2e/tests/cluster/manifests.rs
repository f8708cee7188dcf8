//! What the cluster tests apply: gateways, targets, and the servers behind them.

use e2e::{
    client::{Client, Session},
    cluster::{Forward, Namespace},
    manifest,
};

/// An error of a test.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The example MCP server in a pod, behind a Service of the name `example`.
pub(crate) const EXAMPLE_SERVER: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: example}
spec:
  selector: {matchLabels: {app: example}}
  template:
    metadata: {labels: {app: example}}
    spec:
      automountServiceAccountToken: false
      containers:
      - name: example
        image: local.test/example-server:dev
        imagePullPolicy: IfNotPresent
        args: ["--listen", "0.0.0.0:8931"]
        ports: [{name: mcp, containerPort: 8931}]
        readinessProbe: {tcpSocket: {port: mcp}, periodSeconds: 1}
        resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {memory: 64Mi}}
---
apiVersion: v1
kind: Service
metadata: {name: example}
spec:
  selector: {app: example}
  ports: [{name: mcp, port: 8931, targetPort: mcp}]
"#;

/// A target at the Service of the example server.
pub(crate) fn example_target(name: &str) -> String {
    format!(
        "---\napiVersion: mooring.dev/v1alpha1\nkind: MCPTarget\nmetadata: {{name: {name}}}\nspec:\n  \
         gatewayRefs: [{{name: tools}}]\n  server: {{type: Service, service: {{name: example, port: 8931}}}}\n"
    )
}

/// The gateway `tools` with the example server as its one target, `first`, all of it ready.
pub(crate) async fn working_gateway(namespace: &Namespace) -> Result<(), Failure> {
    working_gateway_of(namespace, EXAMPLE_SERVER).await
}

/// The same where the server shows its callers with which headers they ask, by a tool of its own.
pub(crate) async fn showing_gateway(namespace: &Namespace) -> Result<(), Failure> {
    let shows = r#""0.0.0.0:8931", "--show", "x-key", "--show", "authorization"]"#;
    working_gateway_of(namespace, &EXAMPLE_SERVER.replace(r#""0.0.0.0:8931"]"#, shows)).await
}

async fn working_gateway_of(namespace: &Namespace, server: &str) -> Result<(), Failure> {
    let all = [server, &manifest::gateway("tools"), &example_target("first")].concat();
    namespace.apply(&all).await?;
    namespace.until_condition("mcpgateway/tools", "Ready", "True").await?;
    namespace.until_condition("mcptarget/first", "Ready", "True").await?;
    Ok(())
}

/// A way to the gateway `tools`, and a session begun through it.
pub(crate) async fn session(namespace: &Namespace) -> Result<(Forward, Session), Failure> {
    let forward = namespace.forward("service/tools-mcp", 80).await?;
    let session = Client::new(&forward.url())?.initialize().await?;
    Ok((forward, session))
}

/// The gateway's pods: the name, the uid and the number of restarts of each.
pub(crate) async fn pods(namespace: &Namespace) -> Result<Vec<String>, Failure> {
    let columns = "jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} \
                   {.status.containerStatuses[0].restartCount}{\"\\n\"}{end}";
    let select = ["get", "pods", "--selector", "app.kubernetes.io/instance=tools", "--output", columns];
    Ok(namespace.kubectl(&select).await?.lines().map(ToOwned::to_owned).collect())
}
