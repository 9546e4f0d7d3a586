//! A jail around a work tree: what a session asks of it, and what it answers.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use code::RelativePath;
use sandbox::{
    Config, Job, Limits, MAX_JOB, RunOutcome, Sandbox, SandboxError, Status, TierChoice, WorkTree,
    Workspace,
};
use serde::{Deserialize, Serialize};

use super::{BACKEND, LocalConfig};
use crate::{Command, CommandOutcome, SessionError};

/// A sandbox of one slot with the work tree in it.
#[derive(Debug)]
pub(super) struct Jail {
    sandbox: Sandbox,
    harness: Arc<str>,
    plan: Plan,
}

/// What a jail is made of.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The session's.
    pub(super) id: String,
    /// Where commands see the work tree.
    pub(super) place: String,
    pub(super) env: Vec<(String, String)>,
    /// Who commands are outside; see [`Workspace`].
    pub(super) user: Option<u32>,
}

#[derive(Serialize)]
#[serde(tag = "operation", rename_all = "snake_case")]
enum Request<'a> {
    Exec {
        folder: String,
        argv: &'a [String],
        env: std::collections::BTreeMap<&'a str, &'a str>,
    },
    Read {
        tree: &'a str,
        path: &'a RelativePath,
        max: u64,
    },
    Write {
        tree: &'a str,
        path: &'a RelativePath,
        mode: u32,
    },
    Remove {
        tree: &'a str,
        path: &'a RelativePath,
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Refused(Refusal),
    Done {
        #[expect(dead_code, reason = "tells this answer from the others")]
        done: bool,
    },
}

#[derive(Deserialize)]
#[serde(tag = "refused", rename_all = "snake_case")]
enum Refusal {
    Absent,
    Kind { found: String },
    Size { bytes: u64 },
}

/// Bytes of a file that can be read at once; more would have to fit in memory several times.
const MAX_READ: u64 = 256 << 20;

impl Jail {
    /// Blocks for some tens of milliseconds.
    pub(super) fn start(
        config: &LocalConfig,
        plan: &Plan,
        tree: WorkTree,
    ) -> Result<Self, SandboxError> {
        let sandbox = Sandbox::start(Config {
            tier: TierChoice::Exactly(sandbox::Tier::Namespaces),
            python: config.python.clone(),
            search: config.search.clone(),
            readable: config.readable.clone(),
            preload: ["errno", "json", "os", "signal", "stat"]
                .map(str::to_owned)
                .to_vec(),
            preload_on_mention: Vec::new(),
            // Tests of repositories serve and ask themselves.
            loopback: true,
            workspace: Some(Workspace {
                place: PathBuf::from(&plan.place),
                tree,
                user: plan.user,
            }),
            ..Config::new(1)
        })?;
        Ok(Self {
            sandbox,
            harness: Arc::from(include_str!("harness.py")),
            plan: plan.clone(),
        })
    }

    pub(super) fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    pub(super) async fn exec(&self, command: &Command) -> Result<CommandOutcome, SessionError> {
        if command.argv.is_empty() {
            return Err(unsupported("a command needs a program".to_owned()));
        }
        let env = self.plan.env.iter().chain(&command.env);
        let env: std::collections::BTreeMap<&str, &str> = env
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let ill = |name: &&str| name.is_empty() || name.contains(['=', '\0']);
        if let Some(name) = env.keys().find(|name| ill(name)) {
            return Err(unsupported(format!("no variable has the name {name:?}")));
        }
        let mut texts = command
            .argv
            .iter()
            .map(String::as_str)
            .chain(env.values().copied());
        if texts.any(|text| text.contains('\0')) {
            let detail = "arguments and variables have no NUL bytes".to_owned();
            return Err(unsupported(detail));
        }
        let folder = match &command.folder {
            Some(folder) => format!("{}/{folder}", self.plan.place),
            None => self.plan.place.clone(),
        };
        let request = Request::Exec {
            folder,
            argv: &command.argv,
            env,
        };
        let job = self.job(&request, &[], command.limits)?;
        let outcome = self.run(job.with_stdin(command.stdin.clone())).await?;
        if !outcome.result.is_empty() {
            return Err(match &command.folder {
                Some(path) => SessionError::NotFound { path: path.clone() },
                None => self.lost("its work tree cannot be entered".to_owned()),
            });
        }
        Ok(CommandOutcome {
            status: outcome.status,
            stdout: outcome.stdout,
            stderr: outcome.stderr,
            wall_ms: outcome.wall_ms,
            cpu_ms: Some(outcome.cpu_ms),
            peak_memory: Some(outcome.peak_memory),
        })
    }

    pub(super) async fn read(
        &self,
        path: &RelativePath,
        max: u64,
    ) -> Result<Vec<u8>, SessionError> {
        let most = max.min(MAX_READ);
        let tree = &self.plan.place;
        let request = Request::Read {
            tree,
            path,
            max: most,
        };
        let answer = self.ask(&request, &[], most, path).await?;
        answer.map_err(|bytes| SessionError::FileTooLarge {
            path: path.clone(),
            bytes,
            limit: most,
        })
    }

    pub(super) async fn write(
        &self,
        path: &RelativePath,
        content: &[u8],
        mode: u32,
    ) -> Result<(), SessionError> {
        let most = (MAX_JOB - (1 << 20)) as u64;
        let bytes = content.len() as u64;
        if bytes > most {
            return Err(SessionError::FileTooLarge {
                path: path.clone(),
                bytes,
                limit: most,
            });
        }
        let tree = &self.plan.place;
        let request = Request::Write { tree, path, mode };
        self.ask(&request, content, bytes, path).await.map(drop)
    }

    pub(super) async fn remove(&self, path: &RelativePath) -> Result<(), SessionError> {
        let tree = &self.plan.place;
        let request = Request::Remove { tree, path };
        self.ask(&request, &[], 0, path).await.map(drop)
    }

    /// What the harness found; the inner error is the size of a file that is too large.
    async fn ask(
        &self,
        request: &Request<'_>,
        content: &[u8],
        bytes: u64,
        path: &RelativePath,
    ) -> Result<Result<Vec<u8>, u64>, SessionError> {
        let limits = Limits {
            wall: Duration::from_secs(60),
            cpu: Duration::from_secs(30),
            memory: (128 << 20) + 4 * bytes,
            address_space: false,
            output_max: bytes + (1 << 20),
            disk: bytes + (64 << 20),
            ..Limits::SMALL
        };
        let outcome = self.run(self.job(request, content, limits)?).await?;
        let line = outcome.result.iter().position(|byte| *byte == b'\n');
        let answer = line.and_then(|end| {
            let answer = serde_json::from_slice::<Answer>(&outcome.result[..end]).ok()?;
            Some((answer, &outcome.result[end + 1..]))
        });
        let path = path.clone();
        match answer {
            Some((Answer::Done { .. }, found)) if outcome.status == Status::Ok => {
                Ok(Ok(found.to_vec()))
            }
            Some((Answer::Refused(Refusal::Absent), _)) => Err(SessionError::NotFound { path }),
            Some((Answer::Refused(Refusal::Kind { found }), _)) => {
                Err(SessionError::NotAFile { path, found })
            }
            Some((Answer::Refused(Refusal::Size { bytes }), _)) => Ok(Err(bytes)),
            _ => {
                let detail = format!("{:?}: {}", outcome.status, outcome.stderr.text());
                Err(self.lost(detail))
            }
        }
    }

    fn lost(&self, detail: String) -> SessionError {
        SessionError::Lost {
            id: self.plan.id.clone(),
            detail,
        }
    }

    fn job(
        &self,
        request: &Request<'_>,
        content: &[u8],
        limits: Limits,
    ) -> Result<Job, SessionError> {
        let header = serde_json::to_vec(request).map_err(|error| unsupported(error.to_string()))?;
        let mut payload = (header.len() as u32).to_le_bytes().to_vec();
        payload.extend(header);
        payload.extend(content);
        Ok(Job::harness(self.harness.clone(), payload, limits))
    }

    async fn run(&self, job: Job) -> Result<RunOutcome, SessionError> {
        self.sandbox.run(job).await.map_err(|error| match error {
            SandboxError::Invalid { .. } | SandboxError::TooLarge { .. } => {
                unsupported(error.to_string())
            }
            error => error.into(),
        })
    }
}

pub(super) fn unsupported(detail: String) -> SessionError {
    SessionError::Unsupported {
        backend: BACKEND,
        detail,
    }
}

/// Whether `path` is a folder of this machine.
pub(super) fn checked_folder(path: Option<&Path>) -> Result<&Path, SessionError> {
    let image = |path: &Path, detail: String| SessionError::Image {
        image: path.display().to_string(),
        detail,
    };
    let Some(path) = path else {
        let detail = "the jail has no images of its own; give it a checkout".to_owned();
        return Err(image(Path::new("no folder"), detail));
    };
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(path),
        Ok(_) => Err(image(path, "it is no folder".to_owned())),
        Err(error) => Err(image(path, error.to_string())),
    }
}
