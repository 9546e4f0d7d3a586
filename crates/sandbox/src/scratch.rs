//! The working folders of the weaker tiers, on the host's own file system.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
};

use crate::{ids, removal, sys};

/// The folder in which runs of one slot work. Removed with this value.
///
/// It is locked by the supervisor: one that can be locked was left by a dead one.
pub(crate) struct Scratch {
    root: PathBuf,
    _lock: File,
}

/// Folders carry this, their supervisor's process and the slot's number in their name.
const PREFIX: &str = "etude-sandbox-";

impl Scratch {
    /// A new folder below `parent` that belongs to `user` and `group`.
    pub(crate) fn new(parent: &Path, slot: usize, user: u32, group: u32) -> io::Result<Self> {
        let root = parent.join(format!("{}{slot}", prefix(std::process::id())));
        fs::create_dir(&root)?;
        let scratch = Self {
            _lock: sys::lock_folder(&root)?,
            root,
        };
        fs::create_dir(scratch.home())?;
        fs::set_permissions(&scratch.root, fs::Permissions::from_mode(0o700))?;
        for folder in [scratch.root.clone(), scratch.home()] {
            chown(folder, Some(user), Some(group))?;
        }
        Ok(scratch)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("box")
    }

    /// Removes what a run left behind, in the working folder or in its place.
    pub(crate) fn empty(&self) -> io::Result<()> {
        let home = self.home();
        if fs::symlink_metadata(&home).is_ok_and(|found| found.is_dir())
            && fs::read_dir(&self.root)?.count() == 1
        {
            fs::set_permissions(&home, fs::Permissions::from_mode(0o700))?;
            return removal::empty(&home);
        }
        removal::empty(&self.root)?;
        fs::create_dir(home)
    }

    /// Removes everything. For the slot, whose supervisor may be gone.
    pub(crate) fn remove(&self) {
        let _ = removal::remove(&self.root);
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Removes the folders of a supervisor that was killed before it could do so.
pub(crate) fn remove_scratch_of(supervisor: u32, parent: &Path) {
    let prefix = prefix(supervisor);
    remove_unlocked(parent, |name| name.starts_with(&prefix));
}

/// Removes the folders of all dead supervisors, and what is still running in them. Says which.
pub(crate) fn remove_abandoned(parent: &Path) -> Vec<PathBuf> {
    remove_unlocked(parent, |name| name.starts_with(PREFIX))
}

fn remove_unlocked(parent: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut removed = Vec::new();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !is_wanted(&entry.file_name().to_string_lossy()) {
            continue;
        }
        let Ok(_lock) = sys::lock_folder(&entry.path()) else {
            continue;
        };
        if let Ok(found) = entry.metadata() {
            ids::kill_all_of(found.uid());
        }
        if removal::remove(&entry.path()).is_ok() {
            removed.push(entry.path());
        }
    }
    removed
}

fn prefix(supervisor: u32) -> String {
    format!("{PREFIX}{supervisor}-")
}
