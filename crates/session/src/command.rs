//! What runs in a session, and what it did.

use code::RelativePath;
use sandbox::{Captured, Limits, Status};
use serde::{Deserialize, Serialize};

/// One command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// The program, looked up on the session's `PATH` unless it contains a `/`, and its arguments.
    pub argv: Vec<String>,
    /// Added to the session's environment, which has nothing of this process's.
    pub env: Vec<(String, String)>,
    pub stdin: Vec<u8>,
    /// Below the work tree; `None` is its top.
    pub folder: Option<RelativePath>,
    /// Which of these are enforced, and by what, is in [`Capabilities`](crate::Capabilities).
    pub limits: Limits,
}

/// What a command did, seen from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandOutcome {
    pub status: Status,
    pub stdout: Captured,
    pub stderr: Captured,
    pub wall_ms: f64,
    /// `None` where the backend cannot tell.
    pub cpu_ms: Option<f64>,
    /// Bytes; `None` where the backend cannot tell.
    pub peak_memory: Option<u64>,
}

impl Command {
    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>, limits: Limits) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            stdin: Vec::new(),
            folder: None,
            limits,
        }
    }

    /// `script` through the session's `sh -c`.
    pub fn shell(script: impl Into<String>, limits: Limits) -> Self {
        Self::new(["sh".to_owned(), "-c".to_owned(), script.into()], limits)
    }

    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    pub fn with_stdin(self, stdin: impl Into<Vec<u8>>) -> Self {
        Self {
            stdin: stdin.into(),
            ..self
        }
    }

    pub fn in_folder(self, folder: RelativePath) -> Self {
        Self {
            folder: Some(folder),
            ..self
        }
    }
}

impl CommandOutcome {
    pub fn is_ok(&self) -> bool {
        self.status == Status::Ok
    }
}
