//! What to run, and how much of the machine it may use.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

/// One run. Built with [`Job::script`], [`Job::exec`] or [`Job::harness`], changed by field.
#[derive(Clone, Debug)]
pub struct Job {
    pub program: Program,
    /// Handed to the program behind its own name.
    pub arguments: Vec<String>,
    /// The program's standard input; it may leave it unread. A build has none.
    pub stdin: Vec<u8>,
    /// Variables of program and build besides the few that every run has, or in their place. The
    /// interpreter of a script is warm: where a name begins with `PYTHON`, `LD_`, `MALLOC_` or
    /// `GLIBC_TUNABLES`, a cold one is started instead, so that the variable means what it always
    /// does.
    pub env: Vec<(String, String)>,
    /// Written below the working folder before anything runs. They count against no disk limit.
    pub files: Vec<InputFile>,
    /// Paths below the working folder that are read back when all processes have ended. Regular
    /// files only; no link is followed. See [`RunOutcome::files`](crate::RunOutcome).
    pub fetch: Vec<String>,
    /// Runs first, in the same working folder. The program runs only when this ends with
    /// [`Status::Ok`](crate::Status).
    pub build: Option<Build>,
    pub limits: Limits,
    /// When still queued at this moment, the job fails with [`SandboxError::Deadline`](crate::SandboxError::Deadline).
    pub deadline: Option<Instant>,
}

/// What runs in the jail.
#[derive(Clone, Debug)]
pub enum Program {
    /// A Python program, run as `python3 main.py` would. Need not be UTF-8: what Python says about
    /// that is the outcome.
    Script { source: Vec<u8> },
    /// A trusted Python module that defines `main(payload, emit)`. The module is executed once per
    /// slot, before any foreign code; each run calls `main` in a fresh child with the payload's
    /// bytes and a function that appends bytes to [`RunOutcome::result`](crate::RunOutcome), a
    /// channel apart from stdout and stderr. Foreign code belongs in the payload.
    Harness { source: Arc<str>, payload: Vec<u8> },
    /// A program of the jail's file system; `argv[0]` is a path, absolute or from the working folder.
    Exec { argv: Vec<String> },
}

/// A file that a run finds in its working folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    /// Relative, without `..`; its folders are made.
    pub path: String,
    pub contents: Vec<u8>,
    pub executable: bool,
}

/// What makes a program out of a job's files, such as a compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// As of [`Program::Exec`].
    pub argv: Vec<String>,
    pub limits: Limits,
}

/// What one run may use. Wall time and CPU time are limited apart, so that a busy machine is not
/// mistaken for an endless program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Limits {
    pub wall: Duration,
    /// Of all processes of the run together.
    pub cpu: Duration,
    /// Bytes resident in all processes together.
    pub memory: u64,
    /// Limits the address space of each process to `memory` as well, which turns an allocation that
    /// is too large into an error that the program sees. Not for runtimes that reserve far more
    /// than they use: those of Java, JavaScript and Go.
    pub address_space: bool,
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
    pub fn script(source: impl Into<Vec<u8>>, limits: Limits) -> Self {
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

    pub fn with_file(mut self, path: impl Into<String>, contents: impl Into<Vec<u8>>) -> Self {
        self.files.push(InputFile {
            path: path.into(),
            contents: contents.into(),
            executable: false,
        });
        self
    }

    pub fn with_fetch<S: Into<String>>(mut self, paths: impl IntoIterator<Item = S>) -> Self {
        self.fetch.extend(paths.into_iter().map(Into::into));
        self
    }

    pub fn with_build(self, build: Build) -> Self {
        Self {
            build: Some(build),
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
            arguments: Vec::new(),
            stdin: Vec::new(),
            env: Vec::new(),
            files: Vec::new(),
            fetch: Vec::new(),
            build: None,
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
        address_space: true,
        output_keep: 64 << 10,
        output_max: 16 << 20,
        processes: 64,
        disk: 64 << 20,
        files: 256,
    };
}
