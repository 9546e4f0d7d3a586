//! One work tree in a jail of this machine.

use std::{fmt, path::PathBuf};

use async_trait::async_trait;
use code::RelativePath;
use sandbox::{SandboxError, remove_tree};

use super::{
    LocalConfig,
    jail::{Jail, Plan, unsupported},
    tree::{MAX_LAYERS, Tree},
};
use crate::{
    Capabilities, Command, CommandOutcome, Session, SessionError, SnapshotId, lease::Lease,
};

/// See [`LocalBackend`](super::LocalBackend).
pub(super) struct LocalSession {
    id: String,
    config: LocalConfig,
    capabilities: Capabilities,
    plan: Plan,
    /// `None` when it could not be started again, and when the session has ended.
    jail: Option<Jail>,
    /// `None` while it is changed elsewhere, which ends the session when it does not come back.
    tree: Option<Tree>,
    snapshots: u64,
    home: Option<Home>,
}

/// The folder with everything that the session keeps, and the lease for it.
pub(super) struct Home {
    pub(super) folder: PathBuf,
    pub(super) lease: Lease,
}

impl Home {
    /// Removes the folder; when that fails, the next reaping tries again.
    pub(super) fn remove(self) -> Result<(), String> {
        remove_tree(&self.folder).map_err(|error| format!("{}: {error}", self.folder.display()))?;
        self.lease.release().map_err(|error| error.to_string())
    }
}

impl LocalSession {
    pub(super) fn new(
        config: LocalConfig,
        capabilities: Capabilities,
        plan: Plan,
        jail: Jail,
        tree: Tree,
        home: Home,
    ) -> Self {
        Self {
            id: plan.id.clone(),
            config,
            capabilities,
            plan,
            jail: Some(jail),
            tree: Some(tree),
            snapshots: 0,
            home: Some(home),
        }
    }

    fn jail(&self) -> Result<&Jail, SessionError> {
        let jail = self.jail.as_ref();
        jail.ok_or_else(|| self.lost("its jail is gone".to_owned()))
    }

    fn tree(&self) -> Result<&Tree, SessionError> {
        let tree = self.tree.as_ref();
        tree.ok_or_else(|| self.lost("its work tree is in an unknown state".to_owned()))
    }

    fn lost(&self, detail: String) -> SessionError {
        SessionError::Lost {
            id: self.id.clone(),
            detail,
        }
    }

    /// Ends the jail, changes the tree, and starts the jail again.
    async fn change(
        &mut self,
        change: impl FnOnce(&mut Tree) -> std::io::Result<()> + Send + 'static,
    ) -> Result<(), SessionError> {
        self.tree()?;
        let (jail, tree) = (self.jail.take(), self.tree.take());
        let (config, plan) = (self.config.clone(), self.plan.clone());
        let work = move || {
            drop(jail);
            let Some(mut tree) = tree else {
                return Err("there is no work tree".to_owned());
            };
            change(&mut tree).map_err(|error| error.to_string())?;
            let jail = Jail::start(&config, &plan, tree.as_work_tree())
                .map_err(|error: SandboxError| error.to_string())?;
            Ok((jail, tree))
        };
        let done = tokio::task::spawn_blocking(work).await;
        let done = done.unwrap_or_else(|error| Err(error.to_string()));
        let (jail, tree) = done.map_err(|detail| self.lost(detail))?;
        (self.jail, self.tree) = (Some(jail), Some(tree));
        Ok(())
    }

    /// Ends everything; twice is once.
    fn end(&mut self) -> impl FnOnce() -> Result<(), String> + Send + 'static {
        let (jail, home) = (self.jail.take(), self.home.take());
        move || {
            drop(jail);
            home.map_or(Ok(()), Home::remove)
        }
    }
}

#[async_trait]
impl Session for LocalSession {
    fn id(&self) -> &str {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    async fn exec(&mut self, command: &Command) -> Result<CommandOutcome, SessionError> {
        self.jail()?.exec(command).await
    }

    async fn read(&mut self, path: &RelativePath, max_bytes: u64) -> Result<Vec<u8>, SessionError> {
        self.jail()?.read(path, max_bytes).await
    }

    async fn write(
        &mut self,
        path: &RelativePath,
        content: &[u8],
        mode: u32,
    ) -> Result<(), SessionError> {
        self.jail()?.write(path, content, mode).await
    }

    async fn remove(&mut self, path: &RelativePath) -> Result<(), SessionError> {
        self.jail()?.remove(path).await
    }

    async fn snapshot(&mut self) -> Result<SnapshotId, SessionError> {
        if self.tree()?.is_full() {
            return Err(unsupported(format!(
                "the work tree has {MAX_LAYERS} snapshots below each other; restore an earlier one first"
            )));
        }
        self.snapshots += 1;
        let id = self.snapshots.to_string();
        let name = id.clone();
        self.change(move |tree| tree.snapshot(name)).await?;
        Ok(SnapshotId(id))
    }

    async fn restore(&mut self, snapshot: &SnapshotId) -> Result<(), SessionError> {
        if !self.tree()?.has(&snapshot.0) {
            return Err(SessionError::NoSuchSnapshot {
                snapshot: snapshot.clone(),
            });
        }
        let id = snapshot.0.clone();
        self.change(move |tree| tree.restore(&id)).await
    }

    async fn stop(mut self: Box<Self>) -> Result<(), SessionError> {
        let end = self.end();
        let ended = tokio::task::spawn_blocking(end).await;
        let ended = ended.unwrap_or_else(|error| Err(error.to_string()));
        ended.map_err(|detail| self.lost(detail))
    }
}

impl Drop for LocalSession {
    fn drop(&mut self) {
        // What is left is the next reaping's.
        let _ = self.end()();
    }
}

impl fmt::Debug for LocalSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalSession").field(&self.id).finish()
    }
}
