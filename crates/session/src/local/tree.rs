//! The folders that a work tree is made of, and those of its snapshots.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
};

use sandbox::{WorkTree, remove_tree};

use super::copy::{all_owned_by, copy_tree};
use crate::SnapshotKind;

/// A work tree and its snapshots, in a folder of the session's own. Changed only while nothing runs.
#[derive(Debug)]
pub(super) struct Tree {
    folder: PathBuf,
    /// To whom its files belong; see [`sandbox::Workspace::user`].
    user: Option<u32>,
    made: u32,
    state: State,
    snapshots: Vec<Snapshot>,
}

#[derive(Debug)]
enum State {
    Layers {
        /// The topmost first. The last is the checkout or a copy of it.
        lower: Vec<PathBuf>,
        /// Has `upper` and `work`.
        top: PathBuf,
    },
    Copy(PathBuf),
}

#[derive(Debug)]
struct Snapshot {
    id: String,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Layers(Vec<PathBuf>),
    Copy(PathBuf),
}

/// Layers of one work tree: the kernel takes their names in one page.
pub(super) const MAX_LAYERS: usize = 150;

impl Tree {
    /// A work tree of what is in `checkout`, which stays as it is, with everything kept in `folder`.
    pub(super) fn new(
        folder: PathBuf,
        checkout: &Path,
        kind: SnapshotKind,
        user: Option<u32>,
    ) -> io::Result<Self> {
        let mut tree = Self {
            folder,
            user,
            made: 0,
            state: State::Copy(PathBuf::new()),
            snapshots: Vec::new(),
        };
        tree.state = if kind == SnapshotKind::Layer {
            let (own_user, own_group) = own_ids();
            // What is somebody else's cannot be copied on write.
            let base = match user {
                None if all_owned_by(checkout, own_user, own_group)? => checkout.to_owned(),
                _ => tree.copy_of(checkout)?,
            };
            let top = tree.new_top(&base)?;
            let lower = vec![base];
            State::Layers { lower, top }
        } else {
            State::Copy(tree.copy_of(checkout)?)
        };
        Ok(tree)
    }

    pub(super) fn as_work_tree(&self) -> WorkTree {
        match &self.state {
            State::Layers { lower, top } => WorkTree::Overlay {
                lower: lower.clone(),
                upper: top.join("upper"),
                work: top.join("work"),
            },
            State::Copy(folder) => WorkTree::Folder(folder.clone()),
        }
    }

    /// Puts the present tree aside as `id`.
    pub(super) fn snapshot(&mut self, id: String) -> io::Result<()> {
        let content = match &self.state {
            State::Layers { lower, top } => {
                let upper = top.join("upper");
                let (mut lower, old_top) = (lower.clone(), top.clone());
                lower.insert(0, upper.clone());
                let top = self.new_top(&upper)?;
                // Empty, and never used again.
                remove_tree(&old_top.join("work"))?;
                self.state = State::Layers {
                    lower: lower.clone(),
                    top,
                };
                Content::Layers(lower)
            }
            State::Copy(folder) => Content::Copy(self.copy_of(&folder.clone())?),
        };
        self.snapshots.push(Snapshot { id, content });
        Ok(())
    }

    /// Whether the tree has as many layers as it may.
    pub(super) fn is_full(&self) -> bool {
        matches!(&self.state, State::Layers { lower, .. } if lower.len() >= MAX_LAYERS)
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.snapshots.iter().any(|snapshot| snapshot.id == id)
    }

    /// Makes the tree what it was at the snapshot `id`, which exists.
    pub(super) fn restore(&mut self, id: &str) -> io::Result<()> {
        let found = self.snapshots.iter().find(|snapshot| snapshot.id == id);
        let content = found.map(|snapshot| &snapshot.content);
        let (next, old) = match (content, &self.state) {
            (Some(Content::Layers(lower)), State::Layers { top: old, .. }) => {
                let (lower, old) = (lower.clone(), old.clone());
                let top = self.new_top(&lower[0])?;
                (State::Layers { lower, top }, old)
            }
            (Some(Content::Copy(copy)), State::Copy(old)) => {
                let (copy, old) = (copy.clone(), old.clone());
                (State::Copy(self.copy_of(&copy)?), old)
            }
            _ => return Err(io::Error::other(format!("there is no snapshot {id}"))),
        };
        self.state = next;
        remove_tree(&old)
    }

    fn copy_of(&mut self, folder: &Path) -> io::Result<PathBuf> {
        let copy = self.new_folder("copy")?;
        copy_tree(folder, &copy, self.user)?;
        Ok(copy)
    }

    /// An empty layer for changes of `below`, whose permissions its root has.
    fn new_top(&mut self, below: &Path) -> io::Result<PathBuf> {
        let top = self.new_folder("layer")?;
        let found = fs::metadata(below)?;
        for name in ["upper", "work"] {
            let folder = top.join(name);
            fs::create_dir(&folder)?;
            chown(&folder, self.user, self.user)?;
        }
        let mode = fs::Permissions::from_mode(found.mode() & 0o777);
        fs::set_permissions(top.join("upper"), mode)?;
        Ok(top)
    }

    fn new_folder(&mut self, kind: &str) -> io::Result<PathBuf> {
        self.made += 1;
        let folder = self.folder.join(format!("{kind}-{}", self.made));
        fs::create_dir(&folder)?;
        Ok(folder)
    }
}

/// The effective user and group.
pub(super) fn own_ids() -> (u32, u32) {
    let user = rustix::process::geteuid().as_raw();
    (user, rustix::process::getegid().as_raw())
}

#[cfg(test)]
mod tests {
    use sandbox::{Limits, SandboxError};

    use super::*;
    use crate::{
        Command,
        lease::{Leases, TIME_TO_LIVE},
        local::{
            LocalConfig,
            jail::{Jail, Plan},
            unowned_user,
        },
    };

    #[tokio::test]
    async fn as_many_layers_as_there_may_be_can_be_mounted() {
        let place = tempfile::tempdir().unwrap();
        let [folder, checkout] = ["folder", "checkout"].map(|name| place.path().join(name));
        for folder in [&folder, &checkout] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(checkout.join("below"), "below\n").unwrap();
        let user = unowned_user();
        let mut tree = Tree::new(folder, &checkout, SnapshotKind::Layer, user).unwrap();
        let mut number = 0;
        while !tree.is_full() {
            number += 1;
            let WorkTree::Overlay { upper, .. } = tree.as_work_tree() else {
                unreachable!("layers were asked for");
            };
            fs::write(upper.join(format!("file-{number}")), "").unwrap();
            tree.snapshot(number.to_string()).unwrap();
        }
        assert_eq!(number, MAX_LAYERS - 1);
        let leases = Leases::open(place.path().join("leases"), TIME_TO_LIVE).unwrap();
        let config = LocalConfig::new(leases, place.path());
        let plan = Plan {
            id: "many-layers".to_owned(),
            place: "/testbed".to_owned(),
            env: Vec::new(),
            user,
        };
        let jail = match Jail::start(&config, &plan, tree.as_work_tree()) {
            Err(SandboxError::TierUnavailable { detail, .. }) => {
                eprintln!("skipped: no overlay can be mounted here: {detail}");
                return;
            }
            jail => jail.unwrap(),
        };
        let count = Command::shell("cat below; ls file-* | wc -l", Limits::SMALL);
        let outcome = jail.exec(&count).await.unwrap();
        assert_eq!(outcome.stdout.text(), format!("below\n{number}\n"));
        drop(jail);
        tree.restore("1").unwrap();
        assert!(!tree.is_full());
    }
}
