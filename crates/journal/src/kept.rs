//! Episodes of an evaluation on its way, kept one by one: what a killed process need not play again.
//!
//! They lie in a log of their own, framed as `journal.log` is, until the evaluation is committed as a whole.

use std::{
    fs::{self, OpenOptions},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use record::Episode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    episodes::{self, check_finite},
    error::{Error, IoContext, Result},
    files,
    log::Log,
};

/// Ending of these logs.
pub(crate) const ENDING: &str = ".kept";

/// The open log of one evaluation.
#[derive(Debug)]
pub struct KeptEpisodes {
    log: Mutex<Synced>,
    path: PathBuf,
}

/// An episode that was kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    pub episode: Episode,
    /// Lines for logs that go with it.
    pub log: Vec<Value>,
}

/// A record of an episode that has lines; one without them is the episode alone.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WithLog<E> {
    episode: E,
    log: Vec<Value>,
}

/// A log and when the disk last had all of it.
#[derive(Debug)]
struct Synced {
    log: Log,
    at: Instant,
}

/// Where episodes are short, waiting for the disk after each would take longer than playing them.
const BETWEEN_SYNCS: Duration = Duration::from_millis(100);

/// Below the run.
pub(crate) fn relative(evaluation: &str) -> String {
    format!("{}/evaluations/{evaluation}{ENDING}", episodes::DIRECTORY)
}

impl KeptEpisodes {
    /// The log of an evaluation, and the episodes in it in the order in which they ended.
    pub(crate) fn open(root: &Path, evaluation: &str) -> Result<(Self, Vec<Kept>)> {
        let path = root.join(relative(evaluation));
        if let Some(parent) = path.parent() {
            files::create_directory(parent)?;
        }
        // A process that died before the first episode may have left less than a first line.
        let begun = fs::metadata(&path).is_ok_and(|found| found.len() > 0);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .at(&path, "open")?;
        let (log, payloads) = match begun {
            true => {
                let (log, scanned) = Log::reopen(file, &path)?;
                (log, scanned.records)
            }
            false => (Log::begin(file, &path)?, Vec::new()),
        };
        let episodes = payloads.iter().map(|(offset, payload)| {
            read(payload).map_err(|error| Error::Content {
                path: path.clone(),
                reason: format!("the record at byte {offset}: {error}"),
            })
        });
        let episodes = episodes.collect::<Result<_>>()?;
        let log = Mutex::new(Synced {
            log,
            at: Instant::now(),
        });
        Ok((Self { log, path }, episodes))
    }

    /// Returns once the episode outlives this process, with the lines for logs that go with it; a power cut loses
    /// those of the last tenth of a second, or the last one, which are then played again.
    ///
    /// # Errors
    /// [`Error::NotFinite`] for a log-prob or a reward that is no finite number; failures of the disk, after
    /// which every later episode is refused.
    pub fn keep(&self, episode: &Episode, log: Vec<Value>) -> Result<()> {
        check_finite(episode)?;
        let payload = match log.is_empty() {
            true => serde_json::to_vec(episode),
            false => serde_json::to_vec(&WithLog { episode, log }),
        };
        let payload = payload
            .map_err(std::io::Error::from)
            .at(&self.path, "encode an episode")?;
        let mut kept = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.at.elapsed() < BETWEEN_SYNCS {
            return kept.log.append_unsynced(&payload);
        }
        kept.log.append(&payload)?;
        kept.at = Instant::now();
        Ok(())
    }
}

fn read(payload: &[u8]) -> serde_json::Result<Kept> {
    if let Ok(WithLog { episode, log }) = serde_json::from_slice(payload) {
        return Ok(Kept { episode, log });
    }
    let episode = serde_json::from_slice(payload)?;
    let log = Vec::new();
    Ok(Kept { episode, log })
}
