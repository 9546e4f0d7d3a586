//! Memories after histories that were read before.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use serde::Serialize;

use crate::task::TurnSpec;

use super::config::MemoryConfig;

/// What the memory after a history follows from, as long as no policy is sampled in its turns: a digest of the
/// turns, the configuration and the name of what counts tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SnapshotKey([u8; 32]);

impl SnapshotKey {
    /// `also` names whatever else the memory depends on: the tokenizer, the embedder.
    pub fn of(config: &MemoryConfig, turns: &[TurnSpec], also: &str) -> Self {
        #[derive(Serialize)]
        struct Parts<'a> {
            config: &'a MemoryConfig,
            turns: &'a [TurnSpec],
            also: &'a str,
        }
        let parts = Parts {
            config,
            turns,
            also,
        };
        let mut hasher = blake3::Hasher::new();
        // Maps of these types have texts as keys and hashing takes all that is written: neither can fail.
        let _ = serde_json::to_writer(&mut hasher, &parts);
        Self(*hasher.finalize().as_bytes())
    }
}

/// Keeps what was made for the keys that were used last, for all threads. Rollouts of a group ask for one
/// history at about the same time: one of them makes it, the others wait for that. What comes out is the
/// same with and without a cache; only time is saved.
pub struct SnapshotCache<V> {
    capacity: usize,
    entries: Mutex<Entries<V>>,
    made: AtomicU64,
    found: AtomicU64,
}

struct Entries<V> {
    by_key: BTreeMap<SnapshotKey, Entry<V>>,
    uses: u64,
}

struct Entry<V> {
    slot: Arc<Mutex<Option<V>>>,
    last_use: u64,
}

impl<V: Clone> SnapshotCache<V> {
    /// Keeps at most `capacity` values; with 0, none.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            entries: Mutex::new(Entries {
                by_key: BTreeMap::new(),
                uses: 0,
            }),
            made: AtomicU64::new(0),
            found: AtomicU64::new(0),
        }
    }

    /// What is kept for `key`, or what `make` makes, which is kept from then on.
    ///
    /// # Errors
    ///
    /// Those of `make`; nothing is kept then.
    pub fn get_or_make<E>(
        &self,
        key: SnapshotKey,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, E> {
        if self.capacity == 0 {
            self.made.fetch_add(1, Ordering::Relaxed);
            return make();
        }
        let slot = self.slot(key);
        let mut value = lock(&slot);
        if let Some(value) = &*value {
            self.found.fetch_add(1, Ordering::Relaxed);
            return Ok(value.clone());
        }
        let made = make()?;
        self.made.fetch_add(1, Ordering::Relaxed);
        *value = Some(made.clone());
        Ok(made)
    }

    /// How many values were made, and how many were found.
    pub fn counts(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.made), read(&self.found))
    }

    pub fn len(&self) -> usize {
        lock(&self.entries).by_key.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn slot(&self, key: SnapshotKey) -> Arc<Mutex<Option<V>>> {
        let mut entries = lock(&self.entries);
        entries.uses += 1;
        let last_use = entries.uses;
        let entry = entries.by_key.entry(key).or_insert_with(|| Entry {
            slot: Arc::default(),
            last_use,
        });
        entry.last_use = last_use;
        let slot = Arc::clone(&entry.slot);
        if entries.by_key.len() > self.capacity {
            let by_use = entries
                .by_key
                .iter()
                .map(|(key, entry)| (entry.last_use, *key));
            if let Some((_, oldest)) = by_use.min() {
                entries.by_key.remove(&oldest);
            }
        }
        slot
    }
}

impl<V> fmt::Debug for SnapshotCache<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotCache")
            .field("capacity", &self.capacity)
            .field("made", &self.made)
            .field("found", &self.found)
            .finish_non_exhaustive()
    }
}

/// Values are stored whole or not at all, so that a thread that panicked has left nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
