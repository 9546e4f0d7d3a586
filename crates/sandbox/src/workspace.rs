//! A folder of this machine that programs may change, copied on write or as it is.

use std::{
    ffi::CString,
    fs, io,
    os::fd::{AsRawFd, OwnedFd},
    path::{Component, Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{SandboxError, jail, removal, sys};

/// A work tree, shared by the runs of its sandbox and kept when that ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// Where programs see it: absolute, in no folder that the jail has of its own.
    pub place: PathBuf,
    pub tree: WorkTree,
    /// Who programs are outside of the jail, to whom the files belong that they change: a user who
    /// owns nothing else. `None` where that is the starting user, who is not root.
    pub user: Option<u32>,
}

/// What the work tree is made of. The folders exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkTree {
    /// The folders of `lower`, the topmost first, under those changes that `upper` holds. `work` is
    /// an empty folder beside `upper`.
    Overlay {
        lower: Vec<PathBuf>,
        upper: PathBuf,
        work: PathBuf,
    },
    /// A folder that is changed itself.
    Folder(PathBuf),
}

/// Removes the folder at `path` whatever programs have made of it: trees of any depth, folders that
/// may not be entered. Nothing may write there any more; no link is followed.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    removal::remove(path)
}

/// Folders that the jail has of its own.
const TAKEN: [&str; 12] = [
    "usr", "etc", "dev", "proc", "tmp", "box", "bin", "sbin", "lib", "lib32", "lib64", "libx32",
];

impl Workspace {
    pub(crate) fn check(&self, readable: &[PathBuf]) -> Result<(), SandboxError> {
        let refuse = |detail: String| {
            Err(SandboxError::Invalid {
                field: "workspace.place",
                value: self.place.display().to_string(),
                detail,
            })
        };
        let mut parts = self.place.components();
        let rooted = parts.next() == Some(Component::RootDir);
        let plain = parts.all(|part| matches!(part, Component::Normal(_)));
        let Some(Component::Normal(first)) = self.place.components().nth(1) else {
            return refuse("it must be an absolute path below /".to_owned());
        };
        if !rooted || !plain {
            return refuse("it must be an absolute path without `..`".to_owned());
        }
        if TAKEN.iter().any(|taken| first == *taken) {
            let first = first.display();
            return refuse(format!("the jail has a /{first} of its own"));
        }
        let overlaps =
            |path: &&PathBuf| path.starts_with(&self.place) || self.place.starts_with(path);
        match readable.iter().find(overlaps) {
            Some(path) => refuse(format!(
                "it overlaps {}, which is read-only",
                path.display()
            )),
            None => Ok(()),
        }
    }
}

/// A work tree whose folders are open, so that it can be mounted by somebody who may not enter them.
pub(crate) struct Opened<'a> {
    workspace: &'a Workspace,
    lower: Vec<OwnedFd>,
    work: Option<OwnedFd>,
    /// The folder that programs change, through the mount.
    pub(crate) changes: OwnedFd,
}

impl<'a> Opened<'a> {
    pub(crate) fn new(workspace: &'a Workspace) -> io::Result<Self> {
        let open = |path: &PathBuf| {
            let opened = sys::c_path(path).and_then(|path| sys::open_path(&path));
            opened.map_err(|error| jail::at(path, error))
        };
        Ok(match &workspace.tree {
            WorkTree::Overlay { lower, upper, work } => Self {
                workspace,
                lower: lower.iter().map(open).collect::<io::Result<_>>()?,
                work: Some(open(work)?),
                changes: open(upper)?,
            },
            WorkTree::Folder(folder) => Self {
                workspace,
                lower: Vec::new(),
                work: None,
                changes: open(folder)?,
            },
        })
    }

    /// Mounts the tree at its place below `base`. Called as the user of the programs, with the
    /// host's `/proc` still in sight.
    pub(crate) fn mount_below(&self, base: &Path) -> io::Result<()> {
        let place = &self.workspace.place;
        let target = base.join(place.strip_prefix("/").unwrap_or(place));
        fs::create_dir_all(&target)?;
        let hidden = libc::MS_NOSUID | libc::MS_NODEV;
        let mounted = match &self.work {
            Some(work) => {
                // Descriptors instead of paths: short, and free of characters with a meaning.
                let name = |folder: &OwnedFd| format!("/proc/self/fd/{}", folder.as_raw_fd());
                let lower: Vec<String> = self.lower.iter().map(name).collect();
                let options = format!(
                    "userxattr,lowerdir={},upperdir={},workdir={}",
                    lower.join(":"),
                    name(&self.changes),
                    name(work)
                );
                let kind = Some(c"overlay");
                let options = CString::new(options)?;
                sys::mount(kind, &sys::c_path(&target)?, kind, hidden, Some(&options))
            }
            None => jail::bind(&self.changes, &target)
                .and_then(|()| sys::make_harmless(&sys::c_path(&target)?)),
        };
        mounted.map_err(|error| jail::at(place, error))
    }
}
