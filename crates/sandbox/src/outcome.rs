//! What a program did.

use serde::{Deserialize, Serialize};

use crate::{Enforced, Tier};

/// What a program did, seen from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunOutcome {
    /// When the build did not end well, the program did not run: this is then the build's status,
    /// and all else is empty.
    pub status: Status,
    pub stdout: Captured,
    pub stderr: Captured,
    /// What a harness emitted; empty for other programs.
    pub result: Vec<u8>,
    pub wall_ms: f64,
    /// User and system time of the run's processes.
    pub cpu_ms: f64,
    /// Bytes; the largest resident set of one process, the warm interpreter's share included, or
    /// where a control group counts, what all processes held together, if that is more.
    pub peak_memory: u64,
    pub tier: Tier,
    /// What held the limits.
    pub enforced: Enforced,
    /// How the build went, where there was one.
    pub build: Option<Box<RunOutcome>>,
    /// What became of the paths of [`Job::fetch`](crate::Job), in that order.
    pub files: Vec<FetchedFile>,
}

/// A file that a run left, or why it is not here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchedFile {
    /// As asked for.
    pub path: String,
    pub contents: Result<Vec<u8>, NotFetched>,
}

/// Why a file was left where it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum NotFetched {
    #[error("there is no such file")]
    Missing,
    /// A folder, link, FIFO, socket or device, or a path through a link.
    #[error("it is not a regular file, or its path leads through a link")]
    NotRegular,
    /// Larger than what is left of [`MAX_FETCHED`](crate::MAX_FETCHED) for this run.
    #[error("it has {bytes} bytes, more than may still be fetched")]
    TooLarge { bytes: u64 },
    #[error("it cannot be read: {detail}")]
    Unreadable { detail: String },
}

/// How a program ended. When several limits are hit, the first one seen counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Exit code 0. Says nothing about whether the work was done.
    Ok,
    /// Another exit code.
    NonZero(i32),
    /// Ended by a signal of its own making.
    Signal(i32),
    WallTimeout,
    CpuTimeout,
    /// Out of memory: an uncaught `MemoryError`, or all processes together past the limit.
    Memory,
    /// Wrote more than `output_max`.
    Output,
    /// An uncaught "no space left" or "file too large".
    Disk,
}

impl Status {
    /// As it is written: `ok`, `non_zero`, `wall_timeout`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NonZero(_) => "non_zero",
            Self::Signal(_) => "signal",
            Self::WallTimeout => "wall_timeout",
            Self::CpuTimeout => "cpu_timeout",
            Self::Memory => "memory",
            Self::Output => "output",
            Self::Disk => "disk",
        }
    }

    /// The place of this status in [`StatusCounts`](crate::StatusCounts).
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Ok => 0,
            Self::NonZero(_) => 1,
            Self::Signal(_) => 2,
            Self::WallTimeout => 3,
            Self::CpuTimeout => 4,
            Self::Memory => 5,
            Self::Output => 6,
            Self::Disk => 7,
        }
    }
}

/// The beginning and end of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    pub head: Vec<u8>,
    /// Follows `head` directly unless `truncated`.
    pub tail: Vec<u8>,
    /// Bytes written, kept or not.
    pub total: u64,
    /// Bytes between `head` and `tail` were dropped.
    pub truncated: bool,
}

impl RunOutcome {
    pub fn is_ok(&self) -> bool {
        self.status == Status::Ok
    }

    /// Of a program that was not run, as its build went wrong.
    pub(crate) fn not_run(build: &Self) -> Self {
        Self {
            status: build.status,
            stdout: Captured::default(),
            stderr: Captured::default(),
            result: Vec::new(),
            wall_ms: 0.0,
            cpu_ms: 0.0,
            peak_memory: 0,
            tier: build.tier,
            enforced: build.enforced.clone(),
            build: None,
            files: Vec::new(),
        }
    }

    /// False when there was a build and it did not end well, so that the program never ran.
    pub fn program_ran(&self) -> bool {
        self.build.as_ref().is_none_or(|build| build.is_ok())
    }
}

impl Captured {
    /// The kept bytes; a line says how many are missing where some are.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head.clone();
        if self.truncated {
            let dropped = self.total - (self.head.len() + self.tail.len()) as u64;
            bytes.extend_from_slice(format!("\n[{dropped} bytes dropped]\n").as_bytes());
        }
        bytes.extend_from_slice(&self.tail);
        bytes
    }

    /// For display only: invalid UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }
}
