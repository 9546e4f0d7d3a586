//! What can go wrong in a run directory, with the facts and what to do about it.

use std::{io, path::PathBuf};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure of the run directory.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `create` was pointed at a run.
    #[error(
        "{} already holds a run, and nothing is overwritten: go on with it by `etude train --resume {}`, or name another directory",
        path.display(), path.display()
    )]
    RunExists { path: PathBuf },

    /// `create` was pointed at something that is neither absent nor an empty directory.
    #[error(
        "{} is not empty and holds no run, and nothing is overwritten: name another directory",
        path.display()
    )]
    Occupied { path: PathBuf },

    /// `open` was pointed at a directory without a journal.
    #[error("{} holds no run: there is no file `journal.log` in it", path.display())]
    NotARun { path: PathBuf },

    /// The first line of the log is of another program or another format version.
    #[error(
        "{} does not begin as a journal of this version of etude does (`{expected}`): it was written by another version, or is another file",
        path.display()
    )]
    Format {
        path: PathBuf,
        expected: &'static str,
    },

    /// The log lost its first record, which is written before the run appears.
    #[error(
        "{} has no first record: it was emptied or cut by something else; restore it from a copy (nothing of the run was touched)",
        path.display()
    )]
    NoBeginning { path: PathBuf },

    /// Another process holds the writer's lock.
    #[error(
        "another process is writing the run {}: wait until it ends, or stop it",
        path.display()
    )]
    Locked { path: PathBuf },

    /// A whole record is there, but not as it was written.
    #[error(
        "{}: record {record}, at byte {offset}, is damaged ({found}): restore the file from a copy, or give up everything from there on by cutting the file to {offset} bytes",
        path.display()
    )]
    Corrupt {
        path: PathBuf,
        record: usize,
        offset: u64,
        found: String,
    },

    /// An earlier append failed half-way, so the end of the file is unknown.
    #[error("{}: an earlier write failed, so nothing more is written: free the cause and resume the run", path.display())]
    Poisoned { path: PathBuf },

    /// The bytes of a file are not those that were committed.
    #[error(
        "{} is not what the journal committed: digest {expected} expected, {found} found; restore it from a copy",
        path.display()
    )]
    Digest {
        path: PathBuf,
        expected: String,
        found: String,
    },

    /// The content of a committed file cannot be read although its digest holds.
    #[error("{}: {reason}", path.display())]
    Content { path: PathBuf, reason: String },

    /// A name that cannot be a file name of the run, or that is taken.
    #[error("{what} name `{name}`: {reason}")]
    Name {
        what: &'static str,
        name: String,
        reason: &'static str,
    },

    /// A value that JSON cannot hold.
    #[error("{place}: `{name}` is {value}, and only finite numbers are journalled")]
    NotFinite {
        place: String,
        name: String,
        value: f64,
    },

    /// A step that is committed already.
    #[error(
        "step {step} of phase `{phase}` is not after the last committed step, {last}: a step is committed once"
    )]
    StepOrder { phase: String, step: u64, last: u64 },

    /// The journal has no such checkpoint, or it was pruned.
    #[error("the run {} has no checkpoint `{name}`; it has: {known}", path.display())]
    NoCheckpoint {
        path: PathBuf,
        name: String,
        known: String,
    },

    /// A task file that a resumed run would write differently.
    #[error(
        "{} was written with other content when the run began: the tasks of a run do not change; start a new run by `--run DIR`",
        path.display()
    )]
    TasksDiffer { path: PathBuf },

    /// The closure that fills a checkpoint failed.
    #[error("checkpoint `{name}` could not be written: {reason}")]
    Fill { name: String, reason: String },

    /// The file system said no.
    #[error("{}: {doing}: {source}", path.display())]
    Io {
        path: PathBuf,
        doing: &'static str,
        source: io::Error,
    },
}

/// Adds path and purpose to an I/O error.
pub(crate) trait IoContext<T> {
    fn at(self, path: &std::path::Path, doing: &'static str) -> Result<T>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn at(self, path: &std::path::Path, doing: &'static str) -> Result<T> {
        self.map_err(|source| Error::Io {
            path: path.to_owned(),
            doing,
            source,
        })
    }
}
