//! Episodes of an evaluation on its way, kept one by one: what a killed process need not play again.
//!
//! They lie in a log of their own, framed as `journal.log` is, until the evaluation is committed as a whole. The lines
//! that go with an episode are in its record first and in the run's line logs then, so that whoever opens the run can
//! make them again: none is lost, torn or there twice.

use std::{
    fs::{self, OpenOptions},
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use record::{Episode, LogLine};
use serde::{Deserialize, Serialize};

use crate::{
    episodes::{self, check_finite},
    error::{Error, IoContext, Result},
    files,
    log::{self, Log},
    state::{State, now},
};

/// Ending of these logs.
pub(crate) const ENDING: &str = ".kept";

/// The open log of one evaluation.
#[derive(Debug)]
pub struct KeptEpisodes<'run> {
    log: Mutex<Synced>,
    path: PathBuf,
    state: &'run Mutex<State>,
}

/// An episode that was kept.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// When it ended.
    pub at: jiff::Timestamp,
    /// Wall seconds of its plays.
    pub seconds: f64,
    pub episode: Episode,
    /// Lines for logs that go with it.
    pub log: Vec<LogLine>,
}

/// As it is written.
#[derive(Serialize)]
struct Record<'a> {
    at: jiff::Timestamp,
    seconds: f64,
    episode: &'a Episode,
    log: &'a [LogLine],
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

/// What was kept of an evaluation, without touching its log.
pub(crate) fn read(root: &Path, evaluation: &str) -> Result<Vec<Kept>> {
    let path = root.join(relative(evaluation));
    match fs::read(&path) {
        Ok(bytes) => decode(&log::scan(&bytes, &path)?.records, &path),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).at(&path, "read"),
    }
}

impl<'run> KeptEpisodes<'run> {
    /// The log of an evaluation, and the episodes in it in the order in which they ended.
    pub(crate) fn open(
        root: &Path,
        evaluation: &str,
        state: &'run Mutex<State>,
    ) -> Result<(Self, Vec<Kept>)> {
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
        let kept = decode(&payloads, &path)?;
        let log = Mutex::new(Synced {
            log,
            at: Instant::now(),
        });
        Ok((Self { log, path, state }, kept))
    }

    /// Returns once the episode outlives this process, and its lines are in the run's logs; a power cut loses
    /// those of the last tenth of a second, or the last one, which are then played again.
    ///
    /// # Errors
    /// [`Error::NotFinite`] for a log-prob, a reward or seconds that are no finite number; failures of the disk,
    /// after which every later episode is refused.
    pub fn keep(&self, episode: &Episode, seconds: f64, lines: &[LogLine]) -> Result<()> {
        check_finite(episode)?;
        if !seconds.is_finite() {
            return Err(Error::NotFinite {
                place: format!("episode {}", episode.id),
                name: "seconds".to_owned(),
                value: seconds,
            });
        }
        // Held over both, so that the lines are in the order of the records.
        let mut kept = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let at = now();
        let record = Record {
            at,
            seconds,
            episode,
            log: lines,
        };
        let payload = serde_json::to_vec(&record)
            .map_err(std::io::Error::from)
            .at(&self.path, "encode an episode")?;
        if kept.at.elapsed() < BETWEEN_SYNCS {
            kept.log.append_unsynced(&payload)?;
        } else {
            kept.log.append(&payload)?;
            kept.at = Instant::now();
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.write_lines(at, lines)
    }
}

fn decode(records: &[(u64, Vec<u8>)], path: &Path) -> Result<Vec<Kept>> {
    let decoded = records.iter().map(|(offset, payload)| {
        serde_json::from_slice(payload).map_err(|error| Error::Content {
            path: path.to_owned(),
            reason: format!("the record at byte {offset}: {error}"),
        })
    });
    decoded.collect()
}
