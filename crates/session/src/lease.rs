//! Who holds what: what a dead program left behind can be found and removed.
//!
//! Every session is written down before it makes anything: one file in a folder that all programs of
//! a user share, with its owner (a process of one boot of one machine) and what it holds. An owner
//! renews its leases for as long as it lives. [`Leases::reap`] removes what dead owners hold, and
//! never what a live one does: within a process namespace that is known for certain, and elsewhere
//! a lease ends when it was not renewed for its time to live. All times are seconds since the boot,
//! sleep included, so that setting the clock changes nothing.

mod owner;
mod process;
mod reap;
mod record;

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::Duration,
};

pub use owner::{Owner, Standing};
pub use reap::{Failed, Owners, ReapReport, Reclaimer, Removed};
pub use record::{Held, LeaseRecord};

/// How long a lease outlives its last renewal where its owner cannot be seen.
pub const TIME_TO_LIVE: Duration = Duration::from_secs(120);

/// The variable whose value is a lease's id: see [`Held::MarkedProcesses`].
pub const MARK: &str = "ETUDE_LEASE";

/// Leases of one folder, taken by this process. Clones share everything.
#[derive(Clone, Debug)]
pub struct Leases {
    inner: Arc<Inner>,
}

/// What one session holds, for as long as it lives. Dropped without [`Lease::release`], it is given
/// up: the next reaping removes what it holds although its owner lives on.
pub struct Lease {
    shared: Arc<Shared>,
    released: bool,
}

/// The lease folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the lease {path} cannot be {action}: {source}")]
pub struct LeaseError {
    pub path: PathBuf,
    pub action: &'static str,
    pub source: std::io::Error,
}

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    owner: Owner,
    time_to_live: Duration,
    taken: Mutex<Vec<Weak<Shared>>>,
    /// Dropped with the last clone, which ends the thread that renews.
    heart: Mutex<Option<mpsc::Sender<()>>>,
}

struct Shared {
    path: PathBuf,
    record: Mutex<LeaseRecord>,
}

impl Leases {
    /// Leases in `folder`, which is made when absent, for this user alone.
    pub fn open(folder: impl Into<PathBuf>, time_to_live: Duration) -> Result<Self, LeaseError> {
        use std::os::unix::fs::DirBuilderExt;
        let folder = folder.into();
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(|source| fault(&folder, "kept there", source))?;
        let folder = folder
            .canonicalize()
            .map_err(|source| fault(&folder, "kept there", source))?;
        let owner = Owner::this_process().map_err(|source| fault(&folder, "owned", source))?;
        let inner = Inner {
            folder,
            owner,
            time_to_live,
            taken: Mutex::default(),
            heart: Mutex::default(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// A new lease that holds nothing yet.
    pub fn take(&self, backend: &str) -> Result<Lease, LeaseError> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let inner = &self.inner;
        let number = COUNTER.fetch_add(1, Relaxed);
        let id = format!("etude-{}-{number}", inner.owner.digest());
        let path = record::path(&inner.folder, &id);
        let now = owner::since_boot().map_err(|source| fault(&path, "dated", source))?;
        let record = LeaseRecord {
            version: record::VERSION,
            id,
            backend: backend.to_owned(),
            owner: inner.owner.clone(),
            taken: now,
            renewed: now,
            time_to_live: inner.time_to_live.as_secs_f64(),
            abandoned: false,
            held: Vec::new(),
        };
        record.save(&path, true)?;
        let shared = Arc::new(Shared {
            path,
            record: Mutex::new(record),
        });
        let mut taken = lock(&inner.taken);
        taken.retain(|lease| lease.strong_count() > 0);
        taken.push(Arc::downgrade(&shared));
        drop(taken);
        self.start_heart();
        Ok(Lease {
            shared,
            released: false,
        })
    }

    /// Every lease of the folder that can be read, whoever owns it, by id.
    pub fn list(&self) -> Result<Vec<LeaseRecord>, LeaseError> {
        let (records, _) = record::load_all(&self.inner.folder)?;
        Ok(records)
    }

    pub fn folder(&self) -> &Path {
        &self.inner.folder
    }

    pub fn owner(&self) -> &Owner {
        &self.inner.owner
    }

    fn start_heart(&self) {
        let mut heart = lock(&self.inner.heart);
        if heart.is_some() {
            return;
        }
        let (stop, stopped) = mpsc::channel();
        let period = self.inner.time_to_live / 4;
        let inner = Arc::downgrade(&self.inner);
        let beat = move || {
            while stopped.recv_timeout(period) == Err(mpsc::RecvTimeoutError::Timeout) {
                let Some(inner) = inner.upgrade() else { return };
                inner.renew_all();
            }
        };
        // Without the thread, leases of this process still hold wherever its life can be seen.
        let thread = thread::Builder::new().name("lease-heart".to_owned());
        if thread.spawn(beat).is_ok() {
            *heart = Some(stop);
        }
    }
}

impl Inner {
    fn renew_all(&self) {
        let Ok(now) = owner::since_boot() else { return };
        let leases: Vec<_> = lock(&self.taken).iter().filter_map(Weak::upgrade).collect();
        for lease in leases {
            let mut record = lock(&lease.record);
            // A lease that somebody ended stays ended.
            if !record.abandoned && lease.path.exists() {
                record.renewed = now;
                // A full disk may spare us next time; the owner's life is looked at first anyway.
                let _ = record.save(&lease.path, false);
            }
        }
    }
}

impl Lease {
    /// Unique among the sessions of this machine; names of containers and folders begin with it.
    pub fn id(&self) -> String {
        lock(&self.shared.record).id.clone()
    }

    /// Writes down that `held` is about to be made. Call it before making it.
    pub fn hold(&self, held: Held) -> Result<(), LeaseError> {
        self.change(|record| {
            if !record.held.contains(&held) {
                record.held.push(held);
            }
        })
    }

    /// Writes down that `held` is gone. Call it after removing it.
    pub fn let_go(&self, held: &Held) -> Result<(), LeaseError> {
        self.change(|record| record.held.retain(|other| other != held))
    }

    pub fn held(&self) -> Vec<Held> {
        lock(&self.shared.record).held.clone()
    }

    /// Kills every process that was started with this lease's mark. See [`Held::MarkedProcesses`].
    pub async fn kill_marked(&self) -> Result<(), String> {
        process::kill_marked(&self.id()).await
    }

    /// Ends the lease. Everything that it held must be gone.
    pub fn release(mut self) -> Result<(), LeaseError> {
        self.released = true;
        let mut record = lock(&self.shared.record);
        record.abandoned = true;
        fs::remove_file(&self.shared.path)
            .map_err(|source| fault(&self.shared.path, "ended", source))
    }

    fn change(&self, change: impl FnOnce(&mut LeaseRecord)) -> Result<(), LeaseError> {
        let mut record = lock(&self.shared.record);
        change(&mut record);
        record.save(&self.shared.path, true)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.released {
            // When it cannot be written down, the owner's end still ends it.
            let _ = self.change(|record| record.abandoned = true);
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lease").field(&self.shared.path).finish()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shared").field(&self.path).finish()
    }
}

fn fault(path: &Path, action: &'static str, source: std::io::Error) -> LeaseError {
    LeaseError {
        path: path.to_owned(),
        action,
        source,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
