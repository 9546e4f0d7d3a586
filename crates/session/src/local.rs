//! Sessions in jails of this machine: a checkout is copied on write, and nothing of it changes.
//!
//! Each session has a sandbox of one slot (crate `sandbox`, tier T1) with the work tree mounted in
//! it: an overlay over the checkout where the kernel lets its users mount one, a copy elsewhere.
//! Files are read and written from within the jail, so that no link leads out of it. A snapshot is
//! the layer of changes, frozen; commands go on in a new layer above it.
//!
//! Where this process is root, commands are a user who owns nothing but the session's files, so the
//! checkout is copied for that user first, as is one with files of several owners.

mod copy;
mod jail;
mod session;
mod tree;

use std::{
    fs,
    os::unix::fs::DirBuilderExt,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use async_trait::async_trait;
use sandbox::{Enforced, Mechanism, SandboxError};

use crate::{
    Backend, Capabilities, Enforcement, Image, Session, SessionError, SnapshotKind,
    lease::{Held, Leases},
};
use jail::{Jail, Plan, checked_folder, unsupported};
use session::{Home, LocalSession};
use tree::{Tree, own_ids};

/// The name of this backend.
pub const BACKEND: &str = "local";

/// The setup of a [`LocalBackend`]. Built with [`LocalConfig::new`], changed by field.
#[derive(Clone, Debug)]
pub struct LocalConfig {
    /// Where sessions are written down.
    pub leases: Leases,
    /// Where the folders of sessions are made: on a disk with room for copies of checkouts. Made
    /// itself when it is absent.
    pub scratch: PathBuf,
    /// The interpreter that looks after the jails; `None` searches for one, as the sandbox does.
    pub python: Option<PathBuf>,
    /// Where programs are looked for by the sandbox, such as the folders of `PATH`.
    pub search: Vec<PathBuf>,
    /// Folders outside the system's that commands may read, such as an interpreter's with what the
    /// repository needs.
    pub readable: Vec<PathBuf>,
    /// Copies even where overlays work.
    pub copy: bool,
}

/// Starts sessions in jails of this machine.
#[derive(Clone, Debug)]
pub struct LocalBackend {
    config: LocalConfig,
    capabilities: Capabilities,
    /// Why work trees are copied, where they are.
    copied_because: Option<String>,
}

impl LocalConfig {
    /// Sessions with their folders in `scratch`, and the interpreter found by searching.
    pub fn new(leases: Leases, scratch: impl Into<PathBuf>) -> Self {
        Self {
            leases,
            scratch: scratch.into(),
            python: None,
            search: Vec::new(),
            readable: Vec::new(),
            copy: false,
        }
    }
}

impl LocalBackend {
    /// Removes what dead owners left, and finds out what works here by doing it, with an empty work
    /// tree.
    ///
    /// # Errors
    /// [`SessionError::Sandbox`] where the walls of tier T1 cannot be built.
    pub async fn open(config: LocalConfig) -> Result<Self, SessionError> {
        let reaped = config.leases.reap(&[]).await;
        reaped.map_err(|error| unavailable(error.to_string()))?;
        let probe = move || {
            fs::create_dir_all(&config.scratch)
                .map_err(|error| unavailable(format!("{}: {error}", config.scratch.display())))?;
            let empty = |_: &Image| Ok(None);
            let mut refusal = Some("it was asked for".to_owned());
            if !config.copy {
                match begin(&config, SnapshotKind::Layer, &Image::default(), empty) {
                    Ok(begun) => return begun.finish(config, SnapshotKind::Layer, None),
                    Err(SessionError::Sandbox(error)) => refusal = Some(error.to_string()),
                    Err(error) => return Err(error),
                }
            }
            let begun = begin(&config, SnapshotKind::Copy, &Image::default(), empty)?;
            begun.finish(config, SnapshotKind::Copy, refusal)
        };
        blocking(probe).await
    }

    /// Why work trees are copied as a whole; `None` where they are copied on write.
    pub fn copied_because(&self) -> Option<&str> {
        self.copied_because.as_deref()
    }
}

#[async_trait]
impl Backend for LocalBackend {
    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    async fn start(&self, image: &Image) -> Result<Box<dyn Session>, SessionError> {
        let (backend, image) = (self.clone(), image.clone());
        let start = move || {
            let Self {
                config,
                capabilities,
                ..
            } = backend;
            let checkout = |image: &Image| {
                let folder = checked_folder(image.checkout.as_deref())?;
                Ok(Some(folder.to_owned()))
            };
            let begun = begin(&config, capabilities.snapshots, &image, checkout)?;
            let Begun {
                plan,
                jail,
                tree,
                home,
            } = begun;
            let session = LocalSession::new(config, capabilities, plan, jail, tree, home);
            Ok(Box::new(session) as Box<dyn Session>)
        };
        blocking(start).await
    }
}

/// A session's parts.
struct Begun {
    plan: Plan,
    jail: Jail,
    tree: Tree,
    home: Home,
}

impl Begun {
    /// Ends the probe that this was.
    fn finish(
        self,
        config: LocalConfig,
        snapshots: SnapshotKind,
        copied_because: Option<String>,
    ) -> Result<LocalBackend, SessionError> {
        let capabilities = capabilities(self.jail.sandbox().enforced(), snapshots);
        drop(self.jail);
        self.home.remove().map_err(unavailable)?;
        Ok(LocalBackend {
            config,
            capabilities,
            copied_because,
        })
    }
}

/// Starts a jail around a work tree of what `checkout` says, or an empty one.
fn begin(
    config: &LocalConfig,
    kind: SnapshotKind,
    image: &Image,
    checkout: impl Fn(&Image) -> Result<Option<PathBuf>, SessionError>,
) -> Result<Begun, SessionError> {
    let checkout = checkout(image)?;
    let lease = config.leases.take(BACKEND);
    let lease = lease.map_err(|error| unavailable(error.to_string()))?;
    let plan = Plan {
        id: lease.id(),
        place: image.work_tree().to_owned(),
        env: image.env.clone(),
        user: unowned_user(),
    };
    let folder = config.scratch.join(&plan.id);
    let scratch = |error: std::io::Error| unavailable(format!("{}: {error}", folder.display()));
    let folder = std::path::absolute(&folder).map_err(scratch)?;
    lease
        .hold(Held::Folder {
            path: folder.clone(),
        })
        .map_err(|error| unavailable(error.to_string()))?;
    // From here on, whatever goes wrong, what was made is removed.
    let home = Home {
        folder: folder.clone(),
        lease,
    };
    let made = || {
        let builder = fs::DirBuilder::new().mode(0o700).create(&folder);
        builder.map_err(scratch)?;
        let source = match checkout {
            Some(checkout) => checkout,
            None => {
                let empty = folder.join("empty");
                fs::create_dir(&empty).map_err(scratch)?;
                empty
            }
        };
        let tree = Tree::new(folder.clone(), &source, kind, plan.user);
        let tree = tree.map_err(|error| SessionError::Image {
            image: source.display().to_string(),
            detail: error.to_string(),
        })?;
        let jail = Jail::start(config, &plan, tree.as_work_tree());
        let jail = jail.map_err(|error| match error {
            SandboxError::Invalid { .. } => unsupported(error.to_string()),
            error => error.into(),
        })?;
        Ok((jail, tree))
    };
    match made() {
        Ok((jail, tree)) => Ok(Begun {
            plan,
            jail,
            tree,
            home,
        }),
        Err(error) => {
            // What is left is the next reaping's.
            let _ = home.remove();
            Err(error)
        }
    }
}

/// A user who owns nothing, of the session's own; `None` where this process may not choose.
fn unowned_user() -> Option<u32> {
    // Apart from the users that the sandbox gives its own slots.
    const FIRST: u32 = 900_000_000;
    const PROCESSES: u32 = 1 << 22;
    const SESSIONS: u32 = 128;
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    if own_ids().0 != 0 {
        return None;
    }
    let number = COUNTER.fetch_add(1, Relaxed) % SESSIONS;
    Some(FIRST + std::process::id() % PROCESSES * SESSIONS + number)
}

fn capabilities(enforced: &Enforced, snapshots: SnapshotKind) -> Capabilities {
    let counted = |by: &[Mechanism]| match by.contains(&Mechanism::Cgroup) {
        true => Enforcement::Whole,
        false => Enforcement::Watched,
    };
    Capabilities {
        backend: BACKEND.to_owned(),
        no_network: !enforced.network.is_empty(),
        wall: Enforcement::Whole,
        cpu: Enforcement::Watched,
        memory: counted(&enforced.memory),
        // A user of the session's own, whose processes the kernel counts.
        processes: Enforcement::Whole,
        disk: Enforcement::Watched,
        snapshots,
        usage: true,
    }
}

fn unavailable(detail: String) -> SessionError {
    SessionError::Unavailable {
        backend: BACKEND,
        detail,
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SessionError> + Send + 'static,
) -> Result<T, SessionError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(unavailable(error.to_string())))
}
