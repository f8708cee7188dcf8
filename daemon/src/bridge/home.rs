//! A process's own HOME and TMPDIR: folders that nobody else may enter, made before it and removed behind it.
//!
//! The daemon holds a lock in each, which goes with it: folders whose lock is free are those of a daemon that was
//! killed, and the next one removes them.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

/// How the folders' names begin.
const PREFIX: &str = "moored-";
/// The file that is locked.
const LOCK: &str = "lock";

/// Folders of one process. Removed at the latest when dropped.
#[derive(Debug)]
pub(super) struct Home {
    folder: PathBuf,
    removed: bool,
    lock: File,
}

impl Home {
    /// Makes the folders in the system's temporary place.
    pub(super) fn make() -> io::Result<Self> {
        let random = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
        let folder = std::env::temp_dir().join(format!("{PREFIX}{}-{random:016x}", std::process::id()));
        // One that exists is somebody else's, and an error.
        DirBuilder::new().mode(0o700).create(&folder)?;
        // It has its name only once it is locked, or a sweep might be faster.
        let unnamed = folder.join("unlocked");
        let lock = File::create(&unnamed)?;
        lock.lock()?;
        fs::rename(unnamed, folder.join(LOCK))?;
        let home = Self { folder, removed: false, lock };
        for inner in [home.home(), home.temporary()] {
            DirBuilder::new().mode(0o700).create(inner)?;
        }
        Ok(home)
    }

    /// `HOME`, and where the process starts.
    pub(super) fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    /// `TMPDIR`.
    pub(super) fn temporary(&self) -> PathBuf {
        self.folder.join("tmp")
    }

    /// Removes them and what is in them.
    pub(super) async fn remove(mut self) {
        said(&self.folder, tokio::fs::remove_dir_all(&self.folder).await);
        self.removed = true;
    }
}

/// Removes the folders of daemons that were killed. Blocks.
pub(super) fn sweep() {
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        // Somebody else's cannot be opened, and one that is being made has none.
        let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
        if ours && lock.try_lock().is_ok() {
            said(&entry.path(), fs::remove_dir_all(entry.path()));
        }
    }
}

fn said(folder: &Path, removed: io::Result<()>) {
    if let Err(error) = removed {
        tracing::warn!(folder = %folder.display(), %error, "a process's folder could not be removed");
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // A sweep may be faster; both want the same.
        if !self.removed && self.folder.exists() {
            said(&self.folder, fs::remove_dir_all(&self.folder));
        }
        drop(self.lock.unlock());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn a_home_is_for_one_and_goes_with_what_is_in_it() {
        let (home, dropped) = (Home::make().unwrap(), Home::make().unwrap());
        assert_ne!(home.home(), dropped.home());
        let mode = fs::metadata(&home.folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::write(home.home().join("kept"), "x").unwrap();
        let folders = [home.folder.clone(), dropped.folder.clone()];
        home.remove().await;
        drop(dropped);
        assert!(folders.iter().all(|folder| !folder.exists()));
    }
    #[test]
    fn the_folders_of_a_killed_daemon_are_removed_and_those_of_a_living_one_are_not() {
        let (alive, killed) = (Home::make().unwrap(), Home::make().unwrap());
        let left = killed.folder.clone();
        // The system unlocks what a killed daemon held.
        killed.lock.unlock().unwrap();
        sweep();
        assert!(alive.folder.exists());
        assert!(!left.exists());
    }
}
