//! What a program did.

use serde::{Deserialize, Serialize};

use crate::Tier;

/// What a program did, seen from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunOutcome {
    pub status: Status,
    pub stdout: Captured,
    pub stderr: Captured,
    /// What a harness emitted; empty for other programs.
    pub result: Vec<u8>,
    pub wall_ms: f64,
    /// User and system time of the run's processes.
    pub cpu_ms: f64,
    /// Bytes; the largest resident set of one process, the warm interpreter's share included.
    pub peak_memory: u64,
    pub tier: Tier,
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
