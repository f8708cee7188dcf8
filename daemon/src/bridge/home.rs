//! A process's own HOME and TMPDIR: folders that nobody else may enter, made before it and removed behind it.

use std::{
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

/// Folders of one process. Removed at the latest when dropped; what a killed daemon leaves, the system's sweep takes.
#[derive(Debug)]
pub(super) struct Home {
    folder: PathBuf,
    removed: bool,
}

impl Home {
    /// Makes the folders in the system's temporary place.
    pub(super) fn make() -> io::Result<Self> {
        let random = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
        let folder = std::env::temp_dir().join(format!("moored-{}-{random:016x}", std::process::id()));
        // One that exists is somebody else's, and an error.
        DirBuilder::new().mode(0o700).create(&folder)?;
        let home = Self { folder, removed: false };
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

fn said(folder: &Path, removed: io::Result<()>) {
    if let Err(error) = removed {
        tracing::warn!(folder = %folder.display(), %error, "a process's folder could not be removed");
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if !self.removed {
            said(&self.folder, std::fs::remove_dir_all(&self.folder));
        }
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
        let mode = std::fs::metadata(&home.folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        std::fs::write(home.home().join("kept"), "x").unwrap();
        let folders = [home.folder.clone(), dropped.folder.clone()];
        home.remove().await;
        drop(dropped);
        assert!(folders.iter().all(|folder| !folder.exists()));
    }
}
