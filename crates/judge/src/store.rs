//! Verdicts on disk, for the next run: an append-only log of checksummed records, bounded in size.
//!
//! ```text
//! DIR/lock            held by the one process that writes
//! DIR/verdicts.log    MAGIC, then records: length u32 | checksum [u8; 8] | key [u8; 32] | JSON
//! ```
//!
//! A record is written by one `write` and believed when its checksum fits, so a process may be killed
//! at any instruction: what is torn is cut off when the next writer opens the store. A second process
//! that opens it reads, also what the first goes on to write, and writes nothing. Past the bound, the
//! newer half is copied to a new log that replaces the old one.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{CacheKey, Verdict, verdict::Reuse};

/// A folder of verdicts. Holds no timeout and, since those are no verdicts, no infrastructure error.
///
/// Its work is small reads and writes of the page cache, done on the caller's thread. What fails
/// later than opening costs executions, never verdicts: it is counted in [`StoreStats::errors`].
#[derive(Debug)]
pub struct VerdictStore {
    log: Mutex<Log>,
    max_bytes: u64,
    writable: bool,
    /// Keeps the lock until the store is dropped or the process ends.
    _lock: File,
}

/// The folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the verdict store {} cannot be {action}: {source}", .path.display())]
pub struct StoreError {
    pub path: PathBuf,
    pub action: &'static str,
    pub source: io::Error,
}

/// What a store holds, and how it went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    pub verdicts: usize,
    /// Of the log.
    pub bytes: u64,
    /// Verdicts that were dropped, oldest first, since opening.
    pub dropped: u64,
    /// Reads and writes that failed since opening.
    pub errors: u64,
    /// Whether this process is the one that writes.
    pub writable: bool,
}

const MAGIC: &[u8; 18] = b"etude verdicts 01\n";
const HEADER: usize = 4 + 8 + 32;
/// A longer verdict is executed again instead.
const MAX_RECORD: usize = 1 << 20;
const LOG: &str = "verdicts.log";

#[derive(Debug)]
struct Log {
    path: PathBuf,
    file: File,
    /// Where the next record begins; everything before it is whole.
    end: u64,
    places: HashMap<CacheKey, Place>,
    dropped: u64,
    errors: u64,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    start: u64,
    length: u32,
}

impl VerdictStore {
    /// Opens `folder`, making it when absent. It grows to about `max_bytes`.
    pub fn open(folder: &Path, max_bytes: u64) -> Result<Self, StoreError> {
        let at = |action| {
            move |source| StoreError {
                path: folder.to_owned(),
                action,
                source,
            }
        };
        fs::create_dir_all(folder).map_err(at("made"))?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        let lock = options.open(folder.join("lock")).map_err(at("locked"))?;
        let writable = match lock.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => false,
            Err(TryLockError::Error(error)) => return Err(at("locked")(error)),
        };
        let path = folder.join(LOG);
        let file = options.open(&path).map_err(at("opened"))?;
        let mut log = Log {
            path,
            file,
            end: 0,
            places: HashMap::new(),
            dropped: 0,
            errors: 0,
        };
        log.start(writable).map_err(at("read"))?;
        let store = Self {
            log: Mutex::new(log),
            max_bytes: max_bytes.max(4 * MAX_RECORD as u64),
            writable,
            _lock: lock,
        };
        store.keep_within_bounds(&mut store.log());
        Ok(store)
    }

    /// The verdict that was stored under `key`.
    pub fn get(&self, key: CacheKey) -> Option<Verdict> {
        let mut log = self.log();
        if !self.writable && !log.places.contains_key(&key) && log.grow().is_err() {
            log.errors += 1;
        }
        let place = *log.places.get(&key)?;
        match log.read(key, place) {
            Ok(verdict) => Some(verdict),
            Err(_) => {
                log.places.remove(&key);
                log.errors += 1;
                None
            }
        }
    }

    /// Stores `verdict` under its key, unless it is there, is a timeout or another process writes.
    pub fn put(&self, verdict: &Verdict) {
        if !self.writable || verdict.reuse() != Reuse::Always {
            return;
        }
        let mut log = self.log();
        if log.places.contains_key(&verdict.key) {
            return;
        }
        let Ok(json) = serde_json::to_vec(verdict) else {
            log.errors += 1;
            return;
        };
        if json.len() > MAX_RECORD {
            return;
        }
        if log.append(verdict.key, &json).is_err() {
            log.errors += 1;
        }
        self.keep_within_bounds(&mut log);
    }

    pub fn stats(&self) -> StoreStats {
        let log = self.log();
        StoreStats {
            verdicts: log.places.len(),
            bytes: log.end,
            dropped: log.dropped,
            errors: log.errors,
            writable: self.writable,
        }
    }

    fn keep_within_bounds(&self, log: &mut Log) {
        if self.writable && log.end > self.max_bytes && log.compact(self.max_bytes / 2).is_err() {
            log.errors += 1;
        }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        // The index is consistent between any two of its operations.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    fn start(&mut self, writable: bool) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        let mut magic = [0; MAGIC.len()];
        let known = length >= MAGIC.len() as u64
            && self.file.read_exact_at(&mut magic, 0).is_ok()
            && magic == *MAGIC;
        if !known && !writable {
            // The writer has not begun; its records are found when the log has grown.
            return Ok(());
        }
        if !known {
            self.file.set_len(0)?;
            self.file.write_all_at(MAGIC, 0)?;
        }
        self.end = MAGIC.len() as u64;
        self.grow()?;
        if writable {
            self.file.set_len(self.end)?;
        }
        Ok(())
    }

    /// Takes in the whole records after `end`.
    fn grow(&mut self) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        if self.end == 0 {
            let mut magic = [0; MAGIC.len()];
            if length < MAGIC.len() as u64 {
                return Ok(());
            }
            self.file.read_exact_at(&mut magic, 0)?;
            if magic != *MAGIC {
                return Ok(());
            }
            self.end = MAGIC.len() as u64;
        }
        let mut payload = Vec::new();
        while length - self.end.min(length) >= HEADER as u64 {
            let mut header = [0; HEADER];
            self.file.read_exact_at(&mut header, self.end)?;
            let Some(record) = Header::read(&header) else {
                break;
            };
            let next = self.end + (HEADER + record.length as usize) as u64;
            if next > length {
                break;
            }
            payload.resize(record.length as usize, 0);
            self.file
                .read_exact_at(&mut payload, self.end + HEADER as u64)?;
            if checksum(&record.key, &payload) != record.checksum {
                break;
            }
            let place = Place {
                start: self.end,
                length: record.length,
            };
            self.places.insert(record.key, place);
            self.end = next;
        }
        Ok(())
    }

    fn read(&self, key: CacheKey, place: Place) -> io::Result<Verdict> {
        let mut bytes = vec![0; HEADER + place.length as usize];
        self.file.read_exact_at(&mut bytes, place.start)?;
        let (header, payload) = bytes.split_at(HEADER);
        let damaged = || io::Error::from(io::ErrorKind::InvalidData);
        let header = header.try_into().map_err(|_| damaged())?;
        let record = Header::read(header).ok_or_else(damaged)?;
        if record.key != key || checksum(&key, payload) != record.checksum {
            return Err(damaged());
        }
        let verdict: Verdict = serde_json::from_slice(payload)?;
        match verdict.key == key {
            true => Ok(verdict),
            false => Err(damaged()),
        }
    }

    fn append(&mut self, key: CacheKey, payload: &[u8]) -> io::Result<()> {
        let mut record = Vec::with_capacity(HEADER + payload.len());
        record.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        record.extend_from_slice(&checksum(&key, payload));
        record.extend_from_slice(key.bytes());
        record.extend_from_slice(payload);
        // What a failed write left behind is written over by the next.
        self.file.write_all_at(&record, self.end)?;
        let place = Place {
            start: self.end,
            length: payload.len() as u32,
        };
        self.places.insert(key, place);
        self.end += record.len() as u64;
        Ok(())
    }

    /// Keeps the newest records, at most `keep` bytes of them.
    fn compact(&mut self, keep: u64) -> io::Result<()> {
        let from = self.end.saturating_sub(keep);
        let starts = self.places.values().map(|place| place.start);
        let cut = starts
            .filter(|start| *start >= from)
            .min()
            .unwrap_or(self.end);
        let path = self.path.with_extension("new");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let mut file = options.open(&path)?;
        file.write_all(MAGIC)?;
        let mut chunk = vec![0; 1 << 20];
        let mut at = cut;
        while at < self.end {
            let length = chunk.len().min((self.end - at) as usize);
            self.file.read_exact_at(&mut chunk[..length], at)?;
            file.write_all(&chunk[..length])?;
            at += length as u64;
        }
        file.sync_data()?;
        fs::rename(&path, &self.path)?;
        let moved = cut - MAGIC.len() as u64;
        let before = self.places.len();
        self.places.retain(|_, place| place.start >= cut);
        for place in self.places.values_mut() {
            place.start -= moved;
        }
        self.dropped += (before - self.places.len()) as u64;
        self.end -= moved;
        self.file = file;
        Ok(())
    }
}

struct Header {
    length: u32,
    checksum: [u8; 8],
    key: CacheKey,
}

impl Header {
    fn read(bytes: &[u8; HEADER]) -> Option<Self> {
        let length = u32::from_le_bytes(bytes[..4].try_into().ok()?);
        (length as usize <= MAX_RECORD).then_some(Self {
            length,
            checksum: bytes[4..12].try_into().ok()?,
            key: CacheKey::from_bytes(bytes[12..].try_into().ok()?),
        })
    }
}

fn checksum(key: &CacheKey, payload: &[u8]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(key.bytes());
    hasher.update(payload);
    let mut first = [0; 8];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CaseResult, VerdictStatus};
    use sandbox::Tier;

    fn verdict(at: u32, status: VerdictStatus) -> Verdict {
        let mut key = [7; 32];
        key[..4].copy_from_slice(&at.to_le_bytes());
        Verdict {
            passed: status == VerdictStatus::Passed,
            n_passed: 1,
            n_tests: 2,
            cases: vec![
                CaseResult::Passed,
                CaseResult::Error("no".repeat(at as usize % 50)),
            ],
            status,
            message: None,
            key: CacheKey::from_bytes(key),
            cached: false,
            wall_ms: 1.25,
            cpu_ms: f64::from(at),
            tier: Tier::Namespaces,
        }
    }

    fn stored(store: &VerdictStore, numbers: std::ops::Range<u32>) -> Vec<u32> {
        numbers
            .filter(|at| {
                let wanted = verdict(*at, VerdictStatus::Error);
                let found = store.get(wanted.key);
                assert!(
                    found.is_none() || found == Some(wanted),
                    "{at} came back changed"
                );
                found.is_some()
            })
            .collect()
    }

    const MAX: u64 = 64 << 20;

    #[test]
    fn verdicts_come_back_after_the_store_was_closed() {
        let folder = tempfile::tempdir().unwrap();
        let store = VerdictStore::open(folder.path(), MAX).unwrap();
        (0..100).for_each(|at| store.put(&verdict(at, VerdictStatus::Error)));
        assert_eq!(stored(&store, 0..101).len(), 100);
        drop(store);
        let store = VerdictStore::open(folder.path(), MAX).unwrap();
        assert_eq!(stored(&store, 0..101).len(), 100);
        assert_eq!(store.stats().errors, 0);
    }

    #[test]
    fn timeouts_are_never_stored() {
        let folder = tempfile::tempdir().unwrap();
        let store = VerdictStore::open(folder.path(), MAX).unwrap();
        store.put(&verdict(0, VerdictStatus::CpuTimeout));
        store.put(&verdict(1, VerdictStatus::WallTimeout));
        let mut mixed = verdict(2, VerdictStatus::Wrong);
        mixed
            .cases
            .push(CaseResult::Error(crate::harness::WALL_TIMEOUT.to_owned()));
        store.put(&mixed);
        assert_eq!(store.stats().verdicts, 0);
    }

    #[test]
    fn a_log_cut_anywhere_keeps_its_whole_records() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOG);
        let store = VerdictStore::open(folder.path(), MAX).unwrap();
        (0..4).for_each(|at| store.put(&verdict(at, VerdictStatus::Error)));
        drop(store);
        let whole = fs::read(&path).unwrap();
        let mut most = 4;
        for cut in (0..whole.len()).rev() {
            fs::write(&path, &whole[..cut]).unwrap();
            let store = VerdictStore::open(folder.path(), MAX).unwrap();
            let found = stored(&store, 0..4);
            assert!(found.iter().copied().eq(0..found.len() as u32));
            assert!(found.len() <= most);
            most = found.len();
            store.put(&verdict(9, VerdictStatus::Error));
            drop(store);
            let store = VerdictStore::open(folder.path(), MAX).unwrap();
            assert_eq!(stored(&store, 0..10).len(), found.len() + 1);
        }
        assert_eq!(most, 0);
    }

    #[test]
    fn a_changed_byte_loses_records_and_invents_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOG);
        let store = VerdictStore::open(folder.path(), MAX).unwrap();
        (0..3).for_each(|at| store.put(&verdict(at, VerdictStatus::Error)));
        drop(store);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            fs::write(&path, &changed).unwrap();
            let store = VerdictStore::open(folder.path(), MAX).unwrap();
            assert!(stored(&store, 0..3).len() < 3);
        }
    }

    #[test]
    fn the_oldest_go_first_when_the_store_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let max = 4 * MAX_RECORD as u64;
        let store = VerdictStore::open(folder.path(), max).unwrap();
        let count = 30_000;
        (0..count).for_each(|at| store.put(&verdict(at, VerdictStatus::Error)));
        let found = stored(&store, 0..count);
        let stats = store.stats();
        assert!(
            stats.bytes <= max && stats.dropped > 0 && stats.errors == 0,
            "{stats:?}"
        );
        assert_eq!(found.len() as u64 + stats.dropped, u64::from(count));
        assert!(found.iter().copied().eq(count - found.len() as u32..count));
        drop(store);
        let store = VerdictStore::open(folder.path(), max).unwrap();
        assert_eq!(stored(&store, 0..count), found);
    }

    #[test]
    fn a_second_opener_reads_what_the_first_writes_and_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let first = VerdictStore::open(folder.path(), MAX).unwrap();
        let second = VerdictStore::open(folder.path(), MAX).unwrap();
        assert!(first.stats().writable && !second.stats().writable);
        first.put(&verdict(0, VerdictStatus::Error));
        second.put(&verdict(1, VerdictStatus::Error));
        assert_eq!(stored(&second, 0..2), [0]);
        assert_eq!(stored(&first, 0..2), [0]);
        drop(first);
        drop(second);
        assert!(
            VerdictStore::open(folder.path(), MAX)
                .unwrap()
                .stats()
                .writable
        );
    }
}
