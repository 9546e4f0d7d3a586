//! What sessions look like as JSON between machines. Bytes are base64.

use std::time::Duration;

use code::RelativePath;
use sandbox::{Captured, Limits, Status};
use serde::{Deserialize, Serialize};

use crate::{Command, CommandOutcome, SessionError, SnapshotId};

/// Bytes as a base64 text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

/// [`Command`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WireCommand {
    pub(crate) argv: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) stdin: Bytes,
    pub(crate) folder: Option<RelativePath>,
    pub(crate) limits: WireLimits,
}

/// [`Limits`]; times in seconds, sizes in bytes. What is absent is generous: commands of a repository.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct WireLimits {
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
    pub(crate) memory: u64,
    pub(crate) address_space: bool,
    pub(crate) output_keep: usize,
    pub(crate) output_max: u64,
    pub(crate) processes: u32,
    pub(crate) disk: u64,
    pub(crate) files: u32,
}

/// [`CommandOutcome`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WireOutcome {
    pub(crate) status: Status,
    pub(crate) stdout: WireCaptured,
    pub(crate) stderr: WireCaptured,
    pub(crate) wall_ms: f64,
    pub(crate) cpu_ms: Option<f64>,
    pub(crate) peak_memory: Option<u64>,
}

/// [`Captured`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WireCaptured {
    pub(crate) head: Bytes,
    pub(crate) tail: Bytes,
    pub(crate) total: u64,
    pub(crate) truncated: bool,
}

/// [`SessionError`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Fault {
    NotFound {
        path: RelativePath,
    },
    NotAFile {
        path: RelativePath,
        found: String,
    },
    FileTooLarge {
        path: RelativePath,
        bytes: u64,
        limit: u64,
    },
    NoSuchSnapshot {
        snapshot: SnapshotId,
    },
    Unsupported {
        detail: String,
    },
    Image {
        image: String,
        detail: String,
    },
    Unavailable {
        detail: String,
    },
    /// Also for a kind that this version does not know.
    #[serde(other)]
    Lost,
}

/// The longest time that a request can name; larger ones are cut.
const LONGEST: f64 = 30.0 * 24.0 * 3600.0;

pub(crate) fn seconds(seconds: f64) -> Duration {
    match seconds {
        seconds if seconds.is_finite() && seconds > 0.0 => {
            Duration::from_secs_f64(seconds.min(LONGEST))
        }
        seconds if seconds == f64::INFINITY => Duration::from_secs_f64(LONGEST),
        _ => Duration::ZERO,
    }
}

impl Default for WireLimits {
    fn default() -> Self {
        Self::from(&Limits {
            wall: Duration::from_secs(900),
            cpu: Duration::from_secs(24 * 3600),
            memory: 64 << 30,
            address_space: false,
            output_keep: 512_000,
            output_max: 1 << 30,
            processes: 4096,
            disk: 64 << 30,
            files: 4096,
        })
    }
}

impl From<&Limits> for WireLimits {
    fn from(limits: &Limits) -> Self {
        Self {
            wall: limits.wall.as_secs_f64(),
            cpu: limits.cpu.as_secs_f64(),
            memory: limits.memory,
            address_space: limits.address_space,
            output_keep: limits.output_keep,
            output_max: limits.output_max,
            processes: limits.processes,
            disk: limits.disk,
            files: limits.files,
        }
    }
}

impl From<WireLimits> for Limits {
    fn from(limits: WireLimits) -> Self {
        Self {
            wall: seconds(limits.wall),
            cpu: seconds(limits.cpu),
            memory: limits.memory,
            address_space: limits.address_space,
            output_keep: limits.output_keep,
            output_max: limits.output_max,
            processes: limits.processes,
            disk: limits.disk,
            files: limits.files,
        }
    }
}

impl From<&Command> for WireCommand {
    fn from(command: &Command) -> Self {
        Self {
            argv: command.argv.clone(),
            env: command.env.clone(),
            stdin: Bytes(command.stdin.clone()),
            folder: command.folder.clone(),
            limits: WireLimits::from(&command.limits),
        }
    }
}

impl From<WireCommand> for Command {
    fn from(command: WireCommand) -> Self {
        Self {
            argv: command.argv,
            env: command.env,
            stdin: command.stdin.0,
            folder: command.folder,
            limits: command.limits.into(),
        }
    }
}

impl From<Captured> for WireCaptured {
    fn from(captured: Captured) -> Self {
        Self {
            head: Bytes(captured.head),
            tail: Bytes(captured.tail),
            total: captured.total,
            truncated: captured.truncated,
        }
    }
}

impl From<WireCaptured> for Captured {
    fn from(captured: WireCaptured) -> Self {
        Self {
            head: captured.head.0,
            tail: captured.tail.0,
            total: captured.total,
            truncated: captured.truncated,
        }
    }
}

impl From<CommandOutcome> for WireOutcome {
    fn from(outcome: CommandOutcome) -> Self {
        Self {
            status: outcome.status,
            stdout: outcome.stdout.into(),
            stderr: outcome.stderr.into(),
            wall_ms: outcome.wall_ms,
            cpu_ms: outcome.cpu_ms,
            peak_memory: outcome.peak_memory,
        }
    }
}

impl From<WireOutcome> for CommandOutcome {
    fn from(outcome: WireOutcome) -> Self {
        Self {
            status: outcome.status,
            stdout: outcome.stdout.into(),
            stderr: outcome.stderr.into(),
            wall_ms: outcome.wall_ms,
            cpu_ms: outcome.cpu_ms,
            peak_memory: outcome.peak_memory,
        }
    }
}

impl From<&SessionError> for Fault {
    fn from(error: &SessionError) -> Self {
        match error.clone() {
            SessionError::NotFound { path } => Self::NotFound { path },
            SessionError::NotAFile { path, found } => Self::NotAFile { path, found },
            SessionError::FileTooLarge { path, bytes, limit } => {
                Self::FileTooLarge { path, bytes, limit }
            }
            SessionError::NoSuchSnapshot { snapshot } => Self::NoSuchSnapshot { snapshot },
            SessionError::Unsupported { detail, .. } => Self::Unsupported { detail },
            SessionError::Image { image, detail } => Self::Image { image, detail },
            SessionError::Unavailable { detail, .. } => Self::Unavailable { detail },
            SessionError::Sandbox(error) => Self::Unavailable {
                detail: error.to_string(),
            },
            SessionError::Lost { .. } => Self::Lost,
        }
    }
}

impl Fault {
    /// As the error of `backend`'s session `id`; `text` is what the other side said.
    pub(crate) fn into_error(self, backend: &'static str, id: &str, text: String) -> SessionError {
        match self {
            Self::NotFound { path } => SessionError::NotFound { path },
            Self::NotAFile { path, found } => SessionError::NotAFile { path, found },
            Self::FileTooLarge { path, bytes, limit } => {
                SessionError::FileTooLarge { path, bytes, limit }
            }
            Self::NoSuchSnapshot { snapshot } => SessionError::NoSuchSnapshot { snapshot },
            Self::Unsupported { detail } => SessionError::Unsupported { backend, detail },
            Self::Image { image, detail } => SessionError::Image { image, detail },
            Self::Unavailable { detail } => SessionError::Unavailable { backend, detail },
            Self::Lost => SessionError::Lost {
                id: id.to_owned(),
                detail: text,
            },
        }
    }
}

impl From<Bytes> for String {
    fn from(bytes: Bytes) -> Self {
        use base64::{Engine, engine::general_purpose::STANDARD};
        STANDARD.encode(bytes.0)
    }
}

impl TryFrom<String> for Bytes {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        use base64::{Engine, engine::general_purpose::STANDARD};
        let decoded = STANDARD.decode(text.trim());
        decoded
            .map(Self)
            .map_err(|error| format!("base64: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, WireLimits, seconds};
    use sandbox::Limits;
    use std::time::Duration;

    #[test]
    fn odd_times_are_cut_to_what_can_be_waited_for() {
        for (told, meant) in [(1.5, 1500), (0.0, 0), (-1.0, 0), (f64::NAN, 0)] {
            assert_eq!(seconds(told), Duration::from_millis(meant), "{told}");
        }
        assert_eq!(seconds(f64::INFINITY), seconds(1e300));
    }

    #[test]
    fn limits_may_be_partial_and_come_back_whole() {
        let limits: WireLimits = serde_json::from_str(r#"{"wall":2,"unknown":1}"#).unwrap();
        assert_eq!(Limits::from(limits).wall, Duration::from_secs(2));
        let small = Limits::from(WireLimits::from(&Limits::SMALL));
        assert_eq!(small, Limits::SMALL);
    }

    #[test]
    fn an_unknown_fault_is_an_infrastructure_failure() {
        let fault: Fault = serde_json::from_str(r#"{"kind":"of_the_future","x":1}"#).unwrap();
        assert!(
            fault
                .into_error("ssh", "s", String::new())
                .is_infrastructure()
        );
    }
}
