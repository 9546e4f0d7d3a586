//! Sessions in containers, through any engine that speaks the Docker API.
//!
//! A session is one long-lived container without network, capabilities or new privileges. Its first
//! process is a shell that waits and does nothing else, so that a container with one process is a
//! quiet one: after each command the engine, not the container, is asked what still runs, and that
//! is killed. Files move as archives that the engine reads and writes, and every folder on the way
//! is looked at first, so that no link is followed.

mod archive;
mod container;
mod engine;
mod exec;
mod files;
mod session;
mod usage;

use std::sync::Arc;

use async_trait::async_trait;

pub use engine::{Engine, candidates};

use crate::{
    Backend, Capabilities, Enforcement, Image, Session, SessionError, SnapshotKind, lease::Leases,
};

pub(crate) const BACKEND: &str = "docker";

/// How containers are made.
#[derive(Clone, Debug)]
pub struct DockerConfig {
    /// `unix:///path`, an absolute path, or `tcp://host:port`. See [`candidates`].
    pub engine: String,
    pub leases: Leases,
    /// Containers reach the engine's default network.
    pub network: bool,
    /// Keeps the engine's default capabilities, which some images need to install or to start
    /// servers; none are kept otherwise.
    pub keep_capabilities: bool,
    /// Bytes resident in all processes of a container together.
    pub memory: u64,
    /// Processes and threads of a container at the same time.
    pub processes: u32,
    /// Cores; `None` is all.
    pub cpus: Option<f64>,
    /// Open files of a process, and the hard limit of processes of a user. Engines without
    /// `CAP_SYS_RESOURCE` cannot go above their own.
    pub user_limit: u32,
}

/// Containers of one engine.
#[derive(Debug)]
pub struct DockerBackend {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    engine: Engine,
    config: DockerConfig,
}

impl DockerConfig {
    /// 4 GiB, 512 processes, all cores, no network, no capabilities.
    pub fn new(engine: impl Into<String>, leases: Leases) -> Self {
        Self {
            engine: engine.into(),
            leases,
            network: false,
            keep_capabilities: false,
            memory: 4 << 30,
            processes: 512,
            cpus: None,
            user_limit: 4096,
        }
    }
}

impl DockerBackend {
    /// Reaches the engine, and removes what dead owners left there.
    ///
    /// # Errors
    /// [`SessionError::Unavailable`].
    pub async fn connect(config: DockerConfig) -> Result<Self, SessionError> {
        let engine = Engine::connect(&config.engine).await?;
        let reaped = config.leases.reap(&[&engine]).await;
        reaped.map_err(|error| unavailable(error.to_string()))?;
        let inner = Inner { engine, config };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    pub fn engine(&self) -> &Engine {
        &self.inner.engine
    }
}

impl Inner {
    fn capabilities(&self) -> Capabilities {
        let info = self.engine.info();
        let whole = |held: bool| match held {
            true => Enforcement::Whole,
            false => Enforcement::None,
        };
        Capabilities {
            backend: BACKEND.to_owned(),
            no_network: !self.config.network,
            wall: Enforcement::Whole,
            cpu: match info.sees_groups {
                true => Enforcement::Watched,
                false => Enforcement::PerProcess,
            },
            memory: match (info.memory, info.updates, info.sees_groups) {
                (false, ..) => Enforcement::None,
                (true, true, _) => Enforcement::Whole,
                // The container's limit is the kernel's business, a command's lower one is ours.
                (true, false, true) => Enforcement::Watched,
                (true, false, false) => Enforcement::None,
            },
            processes: whole(info.processes),
            disk: Enforcement::PerProcess,
            snapshots: SnapshotKind::Commit,
            usage: info.sees_groups,
        }
    }
}

#[async_trait]
impl Backend for DockerBackend {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn start(&self, image: &Image) -> Result<Box<dyn Session>, SessionError> {
        let session = session::DockerSession::start(Arc::clone(&self.inner), image).await?;
        Ok(Box::new(session))
    }
}

pub(crate) fn unavailable(detail: impl Into<String>) -> SessionError {
    SessionError::Unavailable {
        backend: BACKEND,
        detail: detail.into(),
    }
}

pub(crate) fn unsupported(detail: impl Into<String>) -> SessionError {
    SessionError::Unsupported {
        backend: BACKEND,
        detail: detail.into(),
    }
}
