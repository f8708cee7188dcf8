//! `cargo e2e up` and `down`: images, chart and example onto a cluster, and off it again.

use std::{fs, time::Duration};

use e2e::{
    cluster::Cluster,
    process::{self, LONG},
    settings,
};

use crate::{
    Failure,
    args::{Up, Where},
    console::{say, step},
    images::{self, Images},
    provider::Provider,
};

/// Where the operator lives, and what its release is called.
const NAMESPACE: &str = "mooring-system";
const RELEASE: &str = "mooring";

/// How long the operator, the gateway and the example may take to be ready.
const READY: Duration = Duration::from_mins(3);

/// Puts Mooring and the example on a cluster, and says what to do next.
pub(crate) async fn up(options: &Up) -> Result<(), Failure> {
    let provider = install(options).await?;
    let cluster = provider.cluster();
    step("apply examples/cluster.yaml", async {
        let example = fs::read_to_string(settings::checkout().join("examples/cluster.yaml"))?;
        cluster.apply("default", &example).await?;
        for waited in ["deployment/everything", "mcpgateway/tools", "mcptarget/everything"] {
            let condition = if waited.starts_with("deployment") { "Available" } else { "Ready" };
            let wait = ["wait", &format!("--for=condition={condition}"), waited, "--timeout=170s"];
            cluster.kubectl("default", &wait, READY).await?;
        }
        say(&cluster.kubectl("default", &["get", "mcpgateways,mcptargets"], READY).await?);
        Ok(())
    })
    .await?;
    say(&what_next(&cluster));
    Ok(())
}

/// Starts the cluster where needed, loads the images and installs the chart; what is there already is upgraded.
pub(crate) async fn install(options: &Up) -> Result<Provider, Failure> {
    let provider = Provider::choose(&options.place).await;
    step("cluster", provider.start()).await?;
    let images = step("build and pack images", images::pack()).await?;
    if !options.images_present {
        step("load images", provider.load(&images.archives())).await?;
    }
    step("install the chart", chart(&provider.cluster(), &images)).await?;
    Ok(provider)
}

/// Takes away what `up` put on a cluster. The cluster itself ends too if it is one that `up` starts.
pub(crate) async fn down(place: &Where) -> Result<(), Failure> {
    let provider = Provider::choose(place).await;
    if !provider.is_up().await? {
        say("there is no cluster to take down");
        return Ok(());
    }
    if let Provider::Context(_) = provider {
        let cluster = provider.cluster();
        step("delete examples/cluster.yaml", async {
            let example = settings::checkout().join("examples/cluster.yaml");
            let delete = ["delete", "--ignore-not-found", "--wait", "-f", &example.display().to_string()];
            Ok(cluster.kubectl("default", &delete, READY).await?)
        })
        .await?;
        step("uninstall the chart", async {
            let mut helm = cluster.helm();
            helm.args(["uninstall", RELEASE, "--namespace", NAMESPACE, "--ignore-not-found", "--wait"]);
            Ok(process::run(&mut helm, LONG).await?)
        })
        .await?;
        // The chart keeps the definitions, so that uninstalling never deletes anybody's objects; here they go too.
        let kinds = ["mcpgateways.mooring.dev", "mcptargets.mooring.dev", "acpagents.mooring.dev"];
        let delete = ["delete", "--ignore-not-found", "customresourcedefinition"];
        cluster.kubectl("default", &[&delete[..], &kinds[..]].concat(), READY).await?;
        return Ok(());
    }
    step("end the cluster", provider.end()).await
}

async fn chart(cluster: &Cluster, images: &Images) -> Result<(), Failure> {
    let mut helm = cluster.helm();
    helm.args(["upgrade", "--install", RELEASE]).arg(settings::checkout().join("charts/mooring"));
    helm.args(["--namespace", NAMESPACE, "--create-namespace", "--wait", "--timeout", "170s"]);
    // Definitions that were applied by hand, or kept when an older release was uninstalled, become the chart's.
    helm.arg("--take-ownership");
    for (role, image) in [("operator", &images.operator), ("daemon", &images.moored)] {
        helm.arg("--set").arg(format!("image.{role}.repository={}", image.repository));
        // A tag of digits alone would be read as a number.
        helm.arg("--set-string").arg(format!("image.{role}.tag={}", image.tag));
        helm.arg("--set").arg(format!("image.{role}.pullPolicy=IfNotPresent"));
    }
    process::run(&mut helm, READY).await?;
    Ok(())
}

/// The lines that let a person go on by hand.
fn what_next(cluster: &Cluster) -> String {
    let exports = cluster.exports();
    format!(
        "\nMooring is up. In a shell:\n\n{exports}  kubectl get mcpgateways,mcptargets\n  kubectl explain mcpgateway.spec\n  \
         kubectl port-forward service/tools-mcp 8080:80\n\nThen http://127.0.0.1:8080/mcp speaks MCP; the tools are named \
         everything___echo and so on.\n`cargo e2e down` takes it all away again.\n"
    )
}
