//! A lease as it is written down.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{LeaseError, Owner, fault};

pub(super) const VERSION: u32 = 1;

/// The file name extension of a lease that is being written.
pub(super) const DRAFT: &str = "new";

/// One lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeaseRecord {
    pub version: u32,
    pub id: String,
    /// `local`, `docker`, `apptainer-queue`, `ssh`.
    pub backend: String,
    pub owner: Owner,
    /// Seconds since the boot of the owner's machine.
    pub taken: f64,
    /// Seconds since the boot of the owner's machine.
    pub renewed: f64,
    /// Seconds.
    pub time_to_live: f64,
    /// Its owner gave it up without removing what it holds.
    pub abandoned: bool,
    /// What must be gone before the lease is.
    pub held: Vec<Held>,
}

/// Something that outlives its owner unless it is removed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Held {
    /// A process of this machine; `started` in clock ticks since the boot.
    Process { pid: u32, started: u64 },
    /// Every process of this machine with [`MARK`](super::MARK) set to the lease's id in the
    /// environment that it was started with. Can be held before there is any.
    MarkedProcesses,
    /// A mount point, taken down with everything mounted below it.
    Mount { path: PathBuf },
    /// A folder with its content. Absolute, and the last part of its path must begin with the
    /// lease's id: no damaged lease can name another folder.
    Folder { path: PathBuf },
    /// A container, by name.
    Container { engine: String, name: String },
    /// A container image, by name and tag.
    ContainerImage { engine: String, name: String },
    /// Something of another machine; `place` says where and `id` what, as its backend wants it.
    Remote { place: String, id: String },
}

impl Held {
    /// Orders removal: what uses comes before what is used.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Process { .. } | Self::MarkedProcesses => 0,
            Self::Container { .. } | Self::Remote { .. } => 1,
            Self::ContainerImage { .. } => 2,
            Self::Mount { .. } => 3,
            Self::Folder { .. } => 4,
        }
    }
}

impl LeaseRecord {
    /// Seconds for which the lease has not been renewed past its time to live; negative before.
    pub fn overdue(&self, now: f64) -> f64 {
        now - self.renewed - self.time_to_live
    }

    /// Replaces the file as a whole. `durable` waits for the disk.
    pub(super) fn save(&self, path: &Path, durable: bool) -> Result<(), LeaseError> {
        let result = match self.replace(path, durable) {
            // A reaper took the draft for an unfinished one before it was locked.
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.replace(path, durable),
            result => result,
        };
        result.map_err(|source| fault(path, "written", source))
    }

    fn replace(&self, path: &Path, durable: bool) -> io::Result<()> {
        let draft = path.with_extension(DRAFT);
        let text = serde_json::to_vec(self).map_err(io::Error::other)?;
        let mut file = fs::File::create(&draft)?;
        // Tells reapers that somebody is at it.
        file.lock()?;
        file.write_all(&text)?;
        if durable {
            file.sync_data()?;
        }
        fs::rename(&draft, path)?;
        // Said aloud: a process forked meanwhile shares the lock until it runs its program.
        file.unlock()
    }

    pub(super) fn load(path: &Path) -> io::Result<Self> {
        let record: Self = serde_json::from_slice(&fs::read(path)?)?;
        if record.version != VERSION {
            let detail = format!("version {} of the lease format", record.version);
            return Err(io::Error::other(detail));
        }
        Ok(record)
    }
}

pub(super) fn path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.lease"))
}

/// Readable leases by id, and the files that are none.
pub(super) fn load_all(folder: &Path) -> Result<(Vec<LeaseRecord>, Vec<PathBuf>), LeaseError> {
    let entries = fs::read_dir(folder).map_err(|source| fault(folder, "listed", source))?;
    let (mut records, mut damaged) = (Vec::new(), Vec::new());
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|found| found != "lease") {
            continue;
        }
        match LeaseRecord::load(&path) {
            Ok(record) if self::path(folder, &record.id) == path => records.push(record),
            // Ended between the listing and now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Ok(_) | Err(_) => damaged.push(path),
        }
    }
    records.sort_by(|a, b| a.id.cmp(&b.id));
    damaged.sort();
    Ok((records, damaged))
}
