//! How a command ends when it does not succeed.

use std::{fmt, path::PathBuf};

/// Why a command did not succeed; decides the exit code.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It was asked wrongly: a bad recipe, a missing file. Nothing was done. Exit code 2.
    Asked(anyhow::Error),
    /// The work failed. Exit code 1.
    Failed(anyhow::Error),
    /// Ctrl-C, with nothing to go on with. Exit code 130.
    Stopped,
    /// Ctrl-C, after everything that was committed was kept. Exit code 130.
    Interrupted {
        run: PathBuf,
        /// What goes on with the run.
        command: &'static str,
    },
}

pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Asked(_) => 2,
            Self::Failed(_) => 1,
            Self::Stopped | Self::Interrupted { .. } => 130,
        }
    }

    /// The same of a run that `etude eval` goes on with.
    pub(crate) fn of_evaluation(self) -> Self {
        match self {
            Self::Interrupted { run, .. } => Self::Interrupted {
                run,
                command: "eval",
            },
            other => other,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked(error) | Self::Failed(error) => {
                let mut text = error.to_string();
                // Some errors say their cause themselves.
                for cause in error.chain().skip(1).map(ToString::to_string) {
                    if !text.contains(&cause) {
                        text = format!("{text}: {cause}");
                    }
                }
                write!(f, "etude: {text}")
            }
            Self::Stopped => f.write_str("etude: stopped"),
            Self::Interrupted { run, command } => write!(
                f,
                "etude: stopped; what was committed is kept. Go on with: etude {command} --resume {}",
                run.display()
            ),
        }
    }
}

/// Says which kind of failure an error is.
pub(crate) trait Classify<T> {
    /// The user asked wrongly.
    fn asked(self) -> Outcome<T>;
    /// The work failed.
    fn failed(self) -> Outcome<T>;
}

impl<T, E: Into<anyhow::Error>> Classify<T> for Result<T, E> {
    fn asked(self) -> Outcome<T> {
        self.map_err(|error| Failure::Asked(error.into()))
    }
    fn failed(self) -> Outcome<T> {
        self.map_err(|error| Failure::Failed(error.into()))
    }
}
