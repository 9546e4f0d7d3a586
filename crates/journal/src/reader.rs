//! Looking at a run without writing, and the one view that is written on request.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use record::Group;

use crate::{
    checkpoint,
    entry::{EpisodesRef, Resumed, Stamped},
    episodes,
    error::{Error, IoContext, Result},
    files,
    log::{self, Scanned},
    replay::Replay,
};

pub(crate) const JOURNAL: &str = "journal.log";
pub(crate) const RECIPE: &str = "recipe.toml";
pub(crate) const RECIPE_HASH: &str = "recipe.hash";
const REPORT: &str = "report.html";

/// A run as it was committed when it was opened. Takes no lock, so a run in progress can be read.
#[derive(Clone, Debug)]
pub struct RunReader {
    root: PathBuf,
    replay: Replay,
}

impl RunReader {
    /// # Errors
    /// [`Error::NotARun`], [`Error::Format`] or [`Error::Corrupt`]. A half-written record at the
    /// end is no error: it is not committed.
    pub fn open(path: &Path) -> Result<Self> {
        let log_path = path.join(JOURNAL);
        let bytes = match fs::read(&log_path) {
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Err(Error::NotARun {
                    path: path.to_owned(),
                });
            }
            read => read.at(&log_path, "read")?,
        };
        let scanned = log::scan(&bytes, &log_path)?;
        scanned.require_beginning(&log_path)?;
        let recovered = Resumed {
            torn_bytes: scanned.torn,
            leftovers: Vec::new(),
            alive_until: None,
        };
        let replay = Replay {
            entries: decode(scanned, &log_path)?,
            recovered,
        };
        Ok(Self {
            root: path.to_owned(),
            replay,
        })
    }

    pub fn path(&self) -> &Path {
        &self.root
    }

    pub fn replay(&self) -> &Replay {
        &self.replay
    }

    /// The resolved recipe.
    pub fn recipe(&self) -> Result<String> {
        read_recipe(&self.root)
    }

    /// The episodes of a committed step or evaluation, bit for bit.
    ///
    /// # Errors
    /// [`Error::Digest`] when the file is not the one that was committed.
    pub fn read_episodes(&self, reference: &EpisodesRef) -> Result<Vec<Group>> {
        episodes::read(&self.root, reference)
    }

    /// The directory of a checkpoint, verified.
    ///
    /// # Errors
    /// [`Error::NoCheckpoint`], or [`Error::Digest`] when its files are not those committed.
    pub fn checkpoint_path(&self, name: &str) -> Result<PathBuf> {
        verified_checkpoint(&self.root, &self.replay, name)
    }
}

/// Writes `report.html` into a run, finished or in progress.
pub fn write_report(run: &Path, html: &str) -> Result<PathBuf> {
    if !run.join(JOURNAL).is_file() {
        return Err(Error::NotARun {
            path: run.to_owned(),
        });
    }
    let path = run.join(REPORT);
    files::write_atomically(&path, html.as_bytes())?;
    Ok(path)
}

pub(crate) fn read_recipe(root: &Path) -> Result<String> {
    let path = root.join(RECIPE);
    fs::read_to_string(&path).at(&path, "read")
}

pub(crate) fn verified_checkpoint(root: &Path, replay: &Replay, name: &str) -> Result<PathBuf> {
    let checkpoint = replay.checkpoint(name).ok_or_else(|| {
        let names: Vec<&str> = replay
            .checkpoints()
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        let known = if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        };
        Error::NoCheckpoint {
            path: root.to_owned(),
            name: name.to_owned(),
            known,
        }
    })?;
    let path = root.join(checkpoint::DIRECTORY).join(&checkpoint.name);
    let found = checkpoint::digest(&path)?;
    if found != checkpoint.digest {
        return Err(Error::Digest {
            path,
            expected: checkpoint.digest.clone(),
            found,
        });
    }
    Ok(path)
}

pub(crate) fn decode(scanned: Scanned, path: &Path) -> Result<Vec<Stamped>> {
    let decoded = scanned
        .records
        .iter()
        .enumerate()
        .map(|(record, (offset, payload))| {
            serde_json::from_slice(payload).map_err(|error| Error::Corrupt {
                path: path.to_owned(),
                record,
                offset: *offset,
                found: format!("its digest holds, but this version cannot read it: {error}"),
            })
        });
    decoded.collect()
}
