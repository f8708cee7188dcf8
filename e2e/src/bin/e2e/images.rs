//! Packs images without a container engine and without a registry: a folder becomes an archive that nodes import.
//! Each is tagged by its content, so that a changed program is a changed image and rolls out.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use e2e::{
    peers,
    process::{self, SHORT},
    settings,
};
use tokio::process::Command;

use crate::{Failure, binaries};

/// An image: what it is called, and the archive that holds it.
pub(crate) struct Image {
    pub(crate) repository: String,
    pub(crate) tag: String,
    pub(crate) archive: PathBuf,
}

/// All images that a cluster needs.
pub(crate) struct Images {
    pub(crate) moored: Image,
    pub(crate) operator: Image,
    pub(crate) example_server: Image,
    pub(crate) everything: Image,
}

impl Images {
    /// The archives, for loading.
    pub(crate) fn archives(&self) -> Vec<PathBuf> {
        let Self { moored, operator, example_server, everything } = self;
        [moored, operator, example_server, everything].map(|image| image.archive.clone()).into()
    }
}

/// Builds the programs and packs every image that is not packed yet.
pub(crate) async fn pack() -> Result<Images, Failure> {
    let programs = binaries::for_images().await?;
    Ok(Images {
        moored: program("moored", &programs.moored).await?,
        operator: program("mooring-operator", &programs.operator).await?,
        example_server: program("example-server", &programs.example_server).await?,
        everything: everything().await?,
    })
}

/// An image of one static program and nothing else.
async fn program(name: &str, program: &Path) -> Result<Image, Failure> {
    let sum = process::output(Command::new("sha256sum").arg(program), SHORT).await?;
    let tag = sum.get(..12).ok_or("sha256sum gave no sum")?;
    let tag = if name == "example-server" { "dev" } else { tag };
    let entry = format!("/{name}");
    let config = format!(r#"{{"Entrypoint":["{entry}"],"User":"65532:65532"}}"#);
    let root = fresh_folder(name)?;
    fs::copy(program, root.join(name))?;
    archive(name, tag, &root, &config, Repack::Always).await
}

/// Node and server-everything, with the libraries that node is linked to.
async fn everything() -> Result<Image, Failure> {
    const NAME: &str = "server-everything";
    let (peers, tag) = (peers::install_node().await?, peers::EVERYTHING_VERSION);
    let config = format!(
        r#"{{"Entrypoint":["/bin/node","/app/{}","streamableHttp"],"User":"65532:65532"}}"#,
        peers::EVERYTHING_ENTRY
    );
    let root = fresh_folder(NAME)?;
    let copy = r#"mkdir -p "$0/bin" "$0/app"; cp "$1" "$0/bin/node"; cp -r "$2/node_modules" "$0/app/"
        ldd "$1" | grep -o '/[^ ]*' | while read -r library; do mkdir -p "$0$(dirname "$library")"; cp -L "$library" "$0$library"; done"#;
    let mut command = Command::new("sh");
    command.args(["-ec", copy]).arg(&root).arg(&peers.node).arg(&peers.npm);
    process::output(&mut command, SHORT).await?;
    archive(NAME, tag, &root, &config, Repack::IfMissing).await
}

/// Whether an archive of the same tag may be taken as it is.
#[derive(PartialEq, Eq)]
enum Repack {
    Always,
    IfMissing,
}

async fn archive(name: &str, tag: &str, root: &Path, config: &str, repack: Repack) -> Result<Image, Failure> {
    let folder = settings::cache().join("images");
    fs::create_dir_all(&folder)?;
    let (repository, archive) = (format!("local.test/{name}"), folder.join(format!("{name}-{tag}.tar")));
    if repack == Repack::Always || !archive.is_file() {
        let mut pack = Command::new("python3");
        pack.arg(settings::checkout().join("e2e/cluster/mkimage.py")).arg(&archive);
        pack.arg(format!("{repository}:{tag}")).arg(root).arg(config);
        process::output(&mut pack, process::LONG).await?;
    }
    fs::remove_dir_all(root)?;
    Ok(Image { repository, tag: tag.to_owned(), archive })
}

/// An empty folder to make an image's root of.
fn fresh_folder(name: &str) -> io::Result<PathBuf> {
    let folder = settings::cache().join("images").join(name);
    match fs::remove_dir_all(&folder) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
        Ok(()) | Err(_) => {}
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}
