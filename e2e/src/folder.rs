//! Folders that go with the value that stands for them, and files that are put where others may read them already.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// A folder in the system's temporary place, removed when dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes a folder whose name begins so.
    pub fn temporary(name: &str) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("mooring-{name}-{}", unique()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// What no other test has in a name.
fn unique() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Puts a copy of `file` at `place`, as a whole: a program that another test has just started may be reading it there.
pub(crate) fn put(file: &Path, place: &Path) -> io::Result<()> {
    let beside = place.with_added_extension(unique());
    fs::copy(file, &beside)?;
    fs::rename(&beside, place)
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed stays in a place that the system sweeps.
        drop(fs::remove_dir_all(&self.0));
    }
}
