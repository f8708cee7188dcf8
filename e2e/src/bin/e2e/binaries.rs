//! Builds the workspace's own programs: as they are for tests, static for images.

use std::path::PathBuf;

use e2e::{
    process::{self, LONG, SHORT},
    settings,
};
use tokio::process::Command;

use crate::Failure;

/// The programs that tests and the quickstart run.
pub(crate) struct Programs {
    pub(crate) moored: PathBuf,
    pub(crate) example_server: PathBuf,
}

/// Where the static programs for images are.
pub(crate) struct StaticPrograms {
    pub(crate) moored: PathBuf,
    pub(crate) operator: PathBuf,
    pub(crate) example_server: PathBuf,
}

/// A cargo command in the checkout.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(settings::checkout());
    cargo
}

/// Builds what runs on this machine, unoptimised, as `cargo test` shares it.
pub(crate) async fn for_tests() -> Result<Programs, Failure> {
    let moored = ["build", "--locked", "--package", "moored"];
    process::run(cargo().args(moored), LONG).await?;
    process::run(cargo().args(["build", "--locked", "--package", "e2e", "--bin", "example-server"]), LONG)
        .await?;
    let folder = settings::target().join("debug");
    Ok(Programs { moored: folder.join("moored"), example_server: folder.join("example-server") })
}

/// Builds what runs in images without anything else in them: linked statically, optimised.
pub(crate) async fn for_images() -> Result<StaticPrograms, Failure> {
    let version = process::output(Command::new("rustc").arg("-vV"), SHORT).await?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("rustc -vV names no host")?;
    // With an explicit target the flag stays away from build scripts and macros, which cannot be static.
    let flags = format!(r#"target.{host}.rustflags=["-C", "target-feature=+crt-static"]"#);
    let common = ["build", "--locked", "--profile", "image", "--target", host, "--config", &flags];
    for what in [&["--package", "moored", "--package", "mooring-operator"][..], &["--package", "e2e"]] {
        process::run(cargo().args(common).args(what).arg("--bins"), LONG).await?;
    }
    let folder = settings::target().join(host).join("image");
    Ok(StaticPrograms {
        moored: folder.join("moored"),
        operator: folder.join("mooring-operator"),
        example_server: folder.join("example-server"),
    })
}
