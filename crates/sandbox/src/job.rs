//! What to run, and how much of the machine it may use.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

/// One run.
#[derive(Clone, Debug)]
pub struct Job {
    pub program: Program,
    /// The program's standard input; it may leave it unread.
    pub stdin: Vec<u8>,
    pub limits: Limits,
    /// When still queued at this moment, the job fails with [`SandboxError::Deadline`](crate::SandboxError::Deadline).
    pub deadline: Option<Instant>,
}

/// What runs in the jail.
#[derive(Clone, Debug)]
pub enum Program {
    /// A Python program, run as `python3 main.py` would.
    Script { source: String },
    /// A trusted Python module that defines `main(payload, emit)`. The module is executed once per
    /// slot, before any foreign code; each run calls `main` in a fresh child with the payload's
    /// bytes and a function that appends bytes to [`RunOutcome::result`](crate::RunOutcome), a
    /// channel apart from stdout and stderr. Foreign code belongs in the payload.
    Harness { source: Arc<str>, payload: Vec<u8> },
    /// A program of the jail's file system; `argv[0]` is an absolute path.
    Exec { argv: Vec<String> },
}

/// What one run may use. Wall time and CPU time are limited apart, so that a busy machine is not
/// mistaken for an endless program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Limits {
    pub wall: Duration,
    /// Of all processes of the run together.
    pub cpu: Duration,
    /// Bytes of address space of each process, and bytes resident in all processes together.
    pub memory: u64,
    /// Bytes kept of each of stdout and stderr: the first half and the last half.
    pub output_keep: usize,
    /// Bytes written to stdout and stderr together, or to the result channel, before the run is ended.
    pub output_max: u64,
    /// Processes and threads at the same time.
    pub processes: u32,
    /// Bytes in each of `/tmp` and `/box`.
    pub disk: u64,
    /// Open files of a process.
    pub files: u32,
}

impl Job {
    pub fn script(source: impl Into<String>, limits: Limits) -> Self {
        Self::new(
            Program::Script {
                source: source.into(),
            },
            limits,
        )
    }

    pub fn harness(source: Arc<str>, payload: Vec<u8>, limits: Limits) -> Self {
        Self::new(Program::Harness { source, payload }, limits)
    }

    pub fn exec<S: Into<String>>(argv: impl IntoIterator<Item = S>, limits: Limits) -> Self {
        Self::new(
            Program::Exec {
                argv: argv.into_iter().map(Into::into).collect(),
            },
            limits,
        )
    }

    pub fn with_stdin(self, stdin: impl Into<Vec<u8>>) -> Self {
        Self {
            stdin: stdin.into(),
            ..self
        }
    }

    pub fn with_deadline(self, deadline: Instant) -> Self {
        Self {
            deadline: Some(deadline),
            ..self
        }
    }

    fn new(program: Program, limits: Limits) -> Self {
        Self {
            program,
            stdin: Vec::new(),
            limits,
            deadline: None,
        }
    }
}

impl Limits {
    /// Limits of a small program: 2 s of CPU, 10 s of wall time, 512 MiB, 64 processes.
    pub const SMALL: Self = Self {
        wall: Duration::from_secs(10),
        cpu: Duration::from_secs(2),
        memory: 512 << 20,
        output_keep: 64 << 10,
        output_max: 16 << 20,
        processes: 64,
        disk: 64 << 20,
        files: 256,
    };
}
