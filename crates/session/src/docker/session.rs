//! A session in a container.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use bollard::{models::ContainerConfig, query_parameters::CommitContainerOptionsBuilder};
use code::RelativePath;

use super::{
    BACKEND, Inner,
    container::{Container, environment},
    exec::{NO_FOLDER, Request},
    files::{Kind, Trouble},
    unavailable, unsupported,
};
use crate::{
    Capabilities, Command, CommandOutcome, Image, Session, SessionError, SnapshotId,
    lease::{Held, Lease},
};

/// The repository that snapshots are images of.
const SNAPSHOTS: &str = "localhost/etude-snapshot";

#[derive(Debug)]
pub(super) struct DockerSession {
    inner: Arc<Inner>,
    image: Image,
    id: String,
    container: Container,
    /// `None` once stopped.
    lease: Option<Lease>,
    /// Containers that this session had, for their names.
    generation: u32,
    /// Image names by snapshot.
    snapshots: BTreeMap<String, String>,
    /// A command may still run: it was not waited for.
    unsettled: bool,
    /// The limits that the engine holds now: memory and processes.
    limits: (u64, u32),
}

impl DockerSession {
    pub(super) async fn start(inner: Arc<Inner>, image: &Image) -> Result<Self, SessionError> {
        let Some(image_name) = &image.name else {
            return Err(unsupported(
                "a container needs an image: name one that the engine has",
            ));
        };
        if !image.work_tree().starts_with('/') || image.work_tree().trim_matches('/').is_empty() {
            return Err(unsupported(format!(
                "the work tree {:?} is no absolute path below the root",
                image.work_tree()
            )));
        }
        let lease = inner.config.leases.take(BACKEND);
        let lease = lease.map_err(|error| unavailable(error.to_string()))?;
        let id = lease.id();
        let name = format!("{id}-c0");
        let held = Held::Container {
            engine: inner.engine.address().to_owned(),
            name: name.clone(),
        };
        lease
            .hold(held)
            .map_err(|error| unavailable(error.to_string()))?;
        // Until the session is whole, its lease cleans up after it.
        let begun = async {
            let container = inner.make(&name, &id, image_name, image).await?;
            let tree = image.work_tree();
            let uploaded = inner.upload(&container, tree, image.checkout.as_deref());
            match uploaded.await {
                Ok(()) => Ok(container),
                Err(Trouble::Refused(SessionError::Image { detail, .. })) => {
                    let folder = image.checkout.as_deref().unwrap_or_else(|| tree.as_ref());
                    let image = folder.display().to_string();
                    Err(SessionError::Image { image, detail })
                }
                Err(Trouble::Refused(error)) => Err(error),
                Err(Trouble::Lost(detail)) => Err(unavailable(detail)),
            }
        };
        match begun.await {
            Ok(container) => Ok(Self {
                limits: (inner.config.memory, inner.config.processes),
                inner,
                image: image.clone(),
                id,
                container,
                lease: Some(lease),
                generation: 0,
                snapshots: BTreeMap::new(),
                unsettled: false,
            }),
            Err(error) => {
                // A lease that is given up is reaped, should this fail.
                if inner.engine.remove_container(&name).await.is_ok() {
                    let _ = lease.release();
                }
                Err(error)
            }
        }
    }

    fn tree(&self) -> &str {
        self.image.work_tree().trim_end_matches('/')
    }

    fn lost(&self, detail: impl ToString) -> SessionError {
        SessionError::Lost {
            id: self.id.clone(),
            detail: detail.to_string(),
        }
    }

    fn trouble(&self, trouble: Trouble) -> SessionError {
        match trouble {
            Trouble::Refused(error) => error,
            Trouble::Lost(detail) => self.lost(detail),
        }
    }

    /// Ends what a command that was not waited for may have left.
    async fn settle(&mut self) -> Result<(), SessionError> {
        if self.unsettled {
            let quiet = self.inner.quiet(&mut self.container).await;
            quiet.map_err(|detail| self.lost(detail))?;
            self.unsettled = false;
        }
        Ok(())
    }

    fn hold(&self, held: Held) -> Result<(), SessionError> {
        match &self.lease {
            Some(lease) => lease.hold(held).map_err(|error| self.lost(error)),
            None => Err(self.lost("it was stopped")),
        }
    }

    fn held_container(&self, name: &str) -> Held {
        Held::Container {
            engine: self.inner.engine.address().to_owned(),
            name: name.to_owned(),
        }
    }

    /// Sets the kernel's limits to those of a command.
    async fn limit(&mut self, command: &Command) -> Result<(), SessionError> {
        let config = &self.inner.config;
        let wanted = (
            command.limits.memory.min(config.memory),
            // The waiting shell, the wrapper's and those of earlier commands are no processes of this one.
            (command.limits.processes + 2)
                .saturating_add(self.container.ended as u32)
                .min(config.processes),
        );
        if self.limits != wanted && self.inner.engine.info().updates {
            let limited = self.inner.limit(&self.container, wanted.0, wanted.1).await;
            limited.map_err(|detail| self.lost(detail))?;
            self.limits = wanted;
        }
        Ok(())
    }
}

#[async_trait]
impl Session for DockerSession {
    fn id(&self) -> &str {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn exec(&mut self, command: &Command) -> Result<CommandOutcome, SessionError> {
        if command.argv.is_empty() || command.argv.iter().any(|part| part.contains('\0')) {
            return Err(unsupported(
                "a command is one word or more, none with a NUL byte",
            ));
        }
        let env = environment(&command.env)?;
        self.settle().await?;
        self.limit(command).await?;
        let folder = match &command.folder {
            Some(folder) => format!("{}/{folder}", self.tree()),
            None => self.tree().to_owned(),
        };
        let request = Request {
            argv: &command.argv,
            env,
            stdin: &command.stdin,
            folder: &folder,
            limits: &command.limits,
        };
        self.unsettled = true;
        let ran = self.inner.run(&mut self.container, request).await;
        let ran = ran.map_err(|detail| self.lost(detail))?;
        self.unsettled = false;
        if ran.code == NO_FOLDER
            && let Some(path) = &command.folder
        {
            let found = self.inner.look(&self.container, &folder).await;
            match found.map_err(|trouble| self.trouble(trouble))? {
                Some(Kind::Folder | Kind::Other(_)) => {}
                None => return Err(SessionError::NotFound { path: path.clone() }),
                Some(Kind::File { .. }) => {
                    return Err(unsupported(format!(
                        "{path} is a file, not a folder to run in"
                    )));
                }
            }
        }
        Ok(ran.outcome)
    }

    async fn read(&mut self, path: &RelativePath, max_bytes: u64) -> Result<Vec<u8>, SessionError> {
        self.settle().await?;
        let read = self
            .inner
            .read(&self.container, self.tree(), path, max_bytes);
        read.await.map_err(|trouble| self.trouble(trouble))
    }

    async fn write(
        &mut self,
        path: &RelativePath,
        content: &[u8],
        mode: u32,
    ) -> Result<(), SessionError> {
        self.settle().await?;
        let written = self
            .inner
            .write(&self.container, self.tree(), path, content, mode);
        written.await.map_err(|trouble| self.trouble(trouble))
    }

    async fn remove(&mut self, path: &RelativePath) -> Result<(), SessionError> {
        self.settle().await?;
        let removed = self.inner.remove(&self.container, self.tree(), path);
        removed.await.map_err(|trouble| self.trouble(trouble))
    }

    async fn snapshot(&mut self) -> Result<SnapshotId, SessionError> {
        self.settle().await?;
        let snapshot = format!("s{}", self.snapshots.len());
        let tag = format!("{}-{snapshot}", self.id);
        let name = format!("{SNAPSHOTS}:{tag}");
        self.hold(Held::ContainerImage {
            engine: self.inner.engine.address().to_owned(),
            name: name.clone(),
        })?;
        let options = CommitContainerOptionsBuilder::new()
            .container(&self.container.name)
            .repo(SNAPSHOTS)
            .tag(&tag)
            .pause(false)
            .build();
        let client = self.inner.engine.client();
        let committed = client.commit_container(options, ContainerConfig::default());
        committed.await.map_err(|error| self.lost(error))?;
        self.snapshots.insert(snapshot.clone(), name);
        Ok(SnapshotId(snapshot))
    }

    async fn restore(&mut self, snapshot: &SnapshotId) -> Result<(), SessionError> {
        let Some(image_name) = self.snapshots.get(&snapshot.0).cloned() else {
            return Err(SessionError::NoSuchSnapshot {
                snapshot: snapshot.clone(),
            });
        };
        self.generation += 1;
        let name = format!("{}-c{}", self.id, self.generation);
        self.hold(self.held_container(&name))?;
        let made = self
            .inner
            .make(&name, &self.id, &image_name, &self.image)
            .await;
        let made = made.map_err(|error| self.lost(error))?;
        let old = std::mem::replace(&mut self.container, made);
        self.unsettled = false;
        self.limits = (self.inner.config.memory, self.inner.config.processes);
        let removed = self.inner.engine.remove_container(&old.name).await;
        removed.map_err(|error| self.lost(error))?;
        match &self.lease {
            Some(lease) => lease
                .let_go(&self.held_container(&old.name))
                .map_err(|error| self.lost(error)),
            None => Ok(()),
        }
    }

    async fn stop(mut self: Box<Self>) -> Result<(), SessionError> {
        match self.lease.take() {
            Some(lease) => {
                let end = end(Arc::clone(&self.inner), lease);
                end.await.map_err(|detail| self.lost(detail))
            }
            None => Ok(()),
        }
    }
}

impl Drop for DockerSession {
    fn drop(&mut self) {
        let Some(lease) = self.lease.take() else {
            return;
        };
        // Without a runtime, or when this fails, the lease is given up and the next reaping ends it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let inner = Arc::clone(&self.inner);
            runtime.spawn(async { end(inner, lease).await.is_ok() });
        }
    }
}

/// Removes all that a lease holds, containers before the images that they were made from.
async fn end(inner: Arc<Inner>, lease: Lease) -> Result<(), String> {
    let held = lease.held();
    for one in &held {
        if let Held::Container { name, .. } = one {
            let removed = inner.engine.remove_container(name).await;
            removed.map_err(|error| error.to_string())?;
        }
    }
    for one in held.iter().rev() {
        if let Held::ContainerImage { name, .. } = one {
            let removed = inner.engine.remove_image(name).await;
            removed.map_err(|error| error.to_string())?;
        }
    }
    lease.release().map_err(|error| error.to_string())
}
