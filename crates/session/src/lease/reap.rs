//! Removes what dead owners hold.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use async_trait::async_trait;
use rustix::mount::{UnmountFlags, unmount};
use serde::Serialize;

use super::{
    Held, LeaseError, LeaseRecord, Leases, Owner, Standing, fault, owner, process, record,
};

/// Removes what only a backend can: containers, and what is on other machines.
#[async_trait]
pub trait Reclaimer: Send + Sync {
    /// Removes `held` of the lease `id`. `None` when it is not of this reclaimer's kind; what is
    /// gone already counts as removed. An error says what to do.
    async fn reclaim(&self, id: &str, held: &Held) -> Option<Result<(), String>>;

    /// Removes what carries the mark of a dead owner, whether or not a lease file speaks of it, and
    /// writes it into the report.
    async fn sweep(&self, owners: &Owners, report: &mut ReapReport);
}

/// Which owners are dead, as of the beginning of a reaping.
#[derive(Debug)]
pub struct Owners {
    observer: Owner,
    leases: Vec<LeaseRecord>,
    /// Seconds since the boot.
    now: f64,
}

impl Owners {
    /// Whether what is marked with the lease `id` and `owner` may be removed.
    pub fn is_dead(&self, id: &str, owner: &Owner) -> bool {
        let known = self.leases.iter().find(|lease| lease.id == id);
        let standing = match known {
            Some(lease) => standing(lease, &self.observer, self.now),
            None => owner.standing(&self.observer),
        };
        standing == Standing::Dead
    }
}

/// What a reaping did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReapReport {
    /// Ids of leases that ended, all they held being gone.
    pub ended: Vec<String>,
    /// Leases of living owners, which were left alone.
    pub live: usize,
    /// Leases of other machines, which were left alone.
    pub elsewhere: usize,
    pub removed: Vec<Removed>,
    /// What could not be removed; the next reaping tries again.
    pub failed: Vec<Failed>,
    /// Files that are no leases, or of another version. They were left alone.
    pub damaged: Vec<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Removed {
    pub lease: String,
    pub held: Held,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failed {
    pub lease: String,
    pub held: Held,
    pub detail: String,
}

impl Leases {
    /// Removes everything that dead owners hold. Several programs may do this at once: each lease
    /// is handled by one of them.
    pub async fn reap(&self, reclaimers: &[&dyn Reclaimer]) -> Result<ReapReport, LeaseError> {
        let folder = self.folder();
        let now = owner::since_boot().map_err(|source| fault(folder, "dated", source))?;
        let (records, damaged) = record::load_all(folder)?;
        let mut report = ReapReport {
            damaged,
            ..ReapReport::default()
        };
        for record in &records {
            match standing(record, self.owner(), now) {
                Standing::Alive | Standing::Unseen => report.live += 1,
                Standing::Elsewhere => report.elsewhere += 1,
                Standing::Dead => self.end(record, reclaimers, &mut report).await?,
            }
        }
        let owners = Owners {
            observer: self.owner().clone(),
            leases: records,
            now,
        };
        for reclaimer in reclaimers {
            reclaimer.sweep(&owners, &mut report).await;
        }
        self.remove_unfinished();
        Ok(report)
    }

    /// Ends one lease, unless another program does.
    async fn end(
        &self,
        record: &LeaseRecord,
        reclaimers: &[&dyn Reclaimer],
        report: &mut ReapReport,
    ) -> Result<(), LeaseError> {
        let path = record::path(self.folder(), &record.id);
        let Some(_claim) = claim(&path).map_err(|source| fault(&path, "claimed", source))? else {
            return Ok(());
        };
        // What it held when it was listed may have been removed in part since.
        let record = &LeaseRecord::load(&path).map_err(|source| fault(&path, "read", source))?;
        let mut left = Vec::new();
        let mut held = record.held.clone();
        held.sort_by_key(Held::rank);
        for held in held {
            let result = match &held {
                Held::Process { pid, started } => process::kill(*pid, *started).await,
                Held::MarkedProcesses => process::kill_marked(&record.id).await,
                Held::Mount { path } => take_down(path),
                Held::Folder { path } => remove_folder(path, &record.id),
                _ => reclaim(&record.id, &held, reclaimers).await,
            };
            let lease = record.id.clone();
            match result {
                Ok(()) => report.removed.push(Removed { lease, held }),
                Err(detail) => {
                    left.push(held.clone());
                    report.failed.push(Failed {
                        lease,
                        held,
                        detail,
                    });
                }
            }
        }
        if left.is_empty() {
            fs::remove_file(&path).map_err(|source| fault(&path, "removed", source))?;
            report.ended.push(record.id.clone());
            return Ok(());
        }
        let rest = LeaseRecord {
            held: left,
            ..record.clone()
        };
        rest.save(&path, true)
    }

    /// Drafts of leases whose writer died before it could put them in place.
    fn remove_unfinished(&self) {
        let entries = fs::read_dir(self.folder()).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            let is_draft = path.extension().is_some_and(|found| found == record::DRAFT);
            if is_draft && matches!(claim(&path), Ok(Some(_))) {
                // The next reaping tries again.
                let _ = fs::remove_file(&path);
            }
        }
    }
}

/// `Dead` when the lease may be ended.
fn standing(record: &LeaseRecord, observer: &Owner, now: f64) -> Standing {
    match record.owner.standing(observer) {
        Standing::Alive if record.abandoned => Standing::Dead,
        Standing::Unseen if record.abandoned || record.overdue(now) > 0.0 => Standing::Dead,
        standing => standing,
    }
}

struct Claim(File);

impl Drop for Claim {
    fn drop(&mut self) {
        // Said aloud: a process forked meanwhile shares the lock until it runs its program.
        let _ = self.0.unlock();
    }
}

/// The lock of a lease, held until dropped; `None` when another program has it or the lease is gone.
fn claim(path: &Path) -> io::Result<Option<Claim>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => return Ok(None),
        Err(fs::TryLockError::Error(error)) => return Err(error),
    }
    let claim = Claim(file);
    // The file may have been replaced or removed between opening and locking.
    match fs::metadata(path) {
        Ok(found) if found.ino() == claim.0.metadata()?.ino() => Ok(Some(claim)),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

async fn reclaim(id: &str, held: &Held, reclaimers: &[&dyn Reclaimer]) -> Result<(), String> {
    for reclaimer in reclaimers {
        if let Some(result) = reclaimer.reclaim(id, held).await {
            return result;
        }
    }
    Err("nothing here can remove it: its backend was not asked or not reached".to_owned())
}

/// Takes down `path` and everything mounted below, the last mounted first.
fn take_down(path: &Path) -> Result<(), String> {
    for point in mounts_below(path).map_err(|error| error.to_string())? {
        match unmount(&point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
            Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(format!("{}: {error}", point.display())),
        }
    }
    match mounts_below(path) {
        Ok(left) if left.is_empty() => Ok(()),
        Ok(left) => Err(format!("{} is mounted again", left[0].display())),
        Err(error) => Err(error.to_string()),
    }
}

/// Mount points at or below `path` of this process's namespace, the last mounted first.
fn mounts_below(path: &Path) -> io::Result<Vec<PathBuf>> {
    let table = fs::read_to_string("/proc/self/mountinfo")?;
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    let mut points: Vec<PathBuf> = points
        .map(|point| PathBuf::from(unescape(point)))
        .filter(|point| point.starts_with(path))
        .collect();
    points.reverse();
    Ok(points)
}

/// `\040` and its like, as `/proc/self/mountinfo` writes spaces, tabs, newlines and backslashes.
fn unescape(text: &str) -> String {
    [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (code, plain)| {
        text.replace(code, plain)
    })
}

fn remove_folder(path: &Path, id: &str) -> Result<(), String> {
    let name = path.file_name().and_then(|name| name.to_str());
    if !path.is_absolute() || !name.is_some_and(|name| name.starts_with(id)) {
        return Err(format!(
            "refused: its name does not begin with {id}; remove it by hand"
        ));
    }
    // Nothing that is mounted there may be emptied.
    take_down(path)?;
    if let Err(error) = fs::remove_dir_all(path) {
        match error.kind() {
            io::ErrorKind::NotFound => return Ok(()),
            io::ErrorKind::PermissionDenied => {}
            _ => return Err(error.to_string()),
        }
        // Folders that their owner may not enter can be opened up by that owner.
        open_up(path);
        return match fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.to_string()),
            _ => Ok(()),
        };
    }
    Ok(())
}

/// Lets the owner of folders below `folder` enter and change them, as far as that goes.
fn open_up(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let _ = fs::set_permissions(&folder, fs::Permissions::from_mode(0o700));
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        let inner = entries.flatten().filter(|entry| {
            let kind = entry.file_type();
            kind.is_ok_and(|kind| kind.is_dir())
        });
        folders.extend(inner.map(|entry| entry.path()));
    }
}
