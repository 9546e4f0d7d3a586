//! Trusted programs of this machine: container engines, `cp`, `git`. No walls, but clear edges.
//!
//! A host program sees only the environment that it is given, and is ended with everything that it
//! started at its time limit, when its future is dropped, and when it has ended itself.

use std::{
    ffi::OsString,
    fs, io,
    path::PathBuf,
    process::Stdio,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use crate::{Captured, Status, capture::Capture};

/// A program that this process trusts, and what it is given.
#[derive(Clone, Debug)]
pub struct HostCommand {
    /// Looked up on the `PATH` of `env` unless it contains a `/`.
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    pub folder: Option<PathBuf>,
    pub stdin: Vec<u8>,
    pub wall: Duration,
    /// Bytes kept of each of stdout and stderr: the first half and the last half.
    pub output_keep: usize,
    /// Bytes of stdout and stderr together before the program is ended.
    pub output_max: u64,
    /// A variable of the environment, with a value that nothing else has: processes of this machine
    /// that carry it are ended with the program, also those that left its process group.
    pub marker: Option<(String, String)>,
}

/// What a host program did.
#[derive(Clone, Debug, PartialEq)]
pub struct HostOutcome {
    pub status: Status,
    pub stdout: Captured,
    pub stderr: Captured,
    pub wall_ms: f64,
}

/// A host program could not be started or looked after.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error("{} is not installed here, or not on the PATH that it was looked for on", .program.display())]
    Missing { program: PathBuf },
    #[error("{}: {detail}", .program.display())]
    Failed { program: PathBuf, detail: String },
}

/// How long streams may stay open after the end of their program.
const DRAIN: Duration = Duration::from_secs(1);

impl HostCommand {
    /// `program` with an empty environment, 60 s, and 1 MiB kept of each stream.
    pub fn new<S: Into<OsString>>(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = S>,
    ) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            folder: None,
            stdin: Vec::new(),
            wall: Duration::from_secs(60),
            output_keep: 1 << 20,
            output_max: u64::MAX,
            marker: None,
        }
    }

    /// Runs the program to its end. It needs a tokio runtime with time and I/O.
    pub async fn run(self) -> Result<HostOutcome, HostError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => HostError::Missing {
                program: self.program.clone(),
            },
            _ => HostError::Failed {
                program: self.program.clone(),
                detail: error.to_string(),
            },
        };
        let started = Instant::now();
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        let mut child = command.spawn().map_err(failed)?;
        let mut remains = Remains {
            group: child.id(),
            marker: self.marker.clone(),
        };
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());

        let written = AtomicU64::new(0);
        let mut out = Capture::new(self.output_keep);
        let mut err = Capture::new(self.output_keep);
        let status = {
            let streams = async {
                let (told, erred, ()) = tokio::join!(
                    drain(stdout, &mut out, &written, self.output_max),
                    drain(stderr, &mut err, &written, self.output_max),
                    feed(stdin, &self.stdin),
                );
                told || erred
            };
            tokio::pin!(streams);
            let limit = tokio::time::sleep(self.wall);
            tokio::pin!(limit);
            let mut closed = false;
            let status = loop {
                tokio::select! {
                    biased;
                    over = &mut streams, if !closed => {
                        closed = true;
                        if over {
                            break Status::Output;
                        }
                    }
                    ended = child.wait() => break status_of(ended.map_err(failed)?),
                    () = &mut limit => break Status::WallTimeout,
                }
            };
            remains.end();
            if !closed {
                match tokio::time::timeout(DRAIN, &mut streams).await {
                    Ok(true) => Status::Output,
                    Ok(false) | Err(_) => status,
                }
            } else {
                status
            }
        };
        drop(remains);
        // After its group was ended, so this does not wait for long.
        child.wait().await.map_err(failed)?;
        Ok(HostOutcome {
            status,
            stdout: out.finish(),
            stderr: err.finish(),
            wall_ms: started.elapsed().as_secs_f64() * 1e3,
        })
    }
}

impl HostOutcome {
    /// What the program complained about, for the text of an error.
    pub fn complaint(&self) -> String {
        let text = self.stderr.text();
        let text = match text.trim() {
            "" => self.stdout.text(),
            said => said.to_owned(),
        };
        let last: Vec<&str> = text.trim().lines().rev().take(5).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        format!("{}: {}", self.status.name(), last.join("; "))
    }
}

/// Reads to the end; true when that was more than `limit` in all.
async fn drain(
    stream: Option<impl AsyncRead + Unpin>,
    into: &mut Capture,
    written: &AtomicU64,
    limit: u64,
) -> bool {
    let Some(mut stream) = stream else {
        return false;
    };
    let mut buffer = vec![0; 16 << 10];
    while let Ok(n) = stream.read(&mut buffer).await {
        if n == 0 {
            break;
        }
        into.push(&buffer[..n]);
        if written.fetch_add(n as u64, Ordering::Relaxed) + n as u64 > limit {
            return true;
        }
    }
    false
}

/// A program that does not read all of its input is no failure.
async fn feed(stream: Option<impl tokio::io::AsyncWrite + Unpin>, bytes: &[u8]) {
    if let Some(mut stream) = stream {
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
    }
}

fn status_of(ended: std::process::ExitStatus) -> Status {
    use std::os::unix::process::ExitStatusExt;
    match (ended.code(), ended.signal()) {
        (Some(0), _) => Status::Ok,
        (Some(code), _) => Status::NonZero(code),
        (None, signal) => Status::Signal(signal.unwrap_or(libc::SIGKILL)),
    }
}

/// What is left when a program ends or is given up: its process group and whoever carries its marker.
#[derive(Debug)]
struct Remains {
    group: Option<u32>,
    marker: Option<(String, String)>,
}

impl Remains {
    /// Once: a number of a group that is gone may be given to another.
    fn end(&mut self) {
        if let Some(group) = self
            .group
            .take()
            .and_then(|id| libc::pid_t::try_from(id).ok())
            && group > 1
        {
            // SAFETY: sends a signal; the group is that of a child that has not been waited for by
            // anyone but its owner, and an empty group is an error that is ignored.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
        if let Some((name, value)) = self.marker.take() {
            end_marked(&name, &value);
        }
    }
}

impl Drop for Remains {
    fn drop(&mut self) {
        self.end();
    }
}

/// Kills the processes of this machine that carry `name=value` in the environment that they were
/// started with, and says how many there were. Looks again until none is left, up to five times.
pub fn end_marked(name: &str, value: &str) -> usize {
    let wanted = format!("{name}={value}");
    let mut ended = 0;
    for _ in 0..5 {
        let found = marked(wanted.as_bytes());
        for pid in &found {
            // SAFETY: sends a signal to one process.
            unsafe { libc::kill(*pid, libc::SIGKILL) };
        }
        ended += found.len();
        if found.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    ended
}

fn marked(wanted: &[u8]) -> Vec<libc::pid_t> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid > 1 && *pid as u32 != std::process::id())
        .filter(|pid| {
            // Empty for those that ended and are not yet waited for.
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|pair| pair == wanted))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{HostCommand, HostError};
    use crate::Status;

    fn shell(script: &str) -> HostCommand {
        HostCommand {
            env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
            ..HostCommand::new("sh", ["-c", script])
        }
    }

    #[tokio::test]
    async fn streams_and_exit_codes_are_told() {
        let command = HostCommand {
            stdin: b"in\0put".to_vec(),
            ..shell("cat; echo wrong >&2; exit 3")
        };
        let outcome = command.run().await.unwrap();
        assert_eq!(outcome.status, Status::NonZero(3));
        assert_eq!(outcome.stdout.bytes(), b"in\0put");
        assert_eq!(outcome.stderr.bytes(), b"wrong\n");
        assert_eq!(outcome.complaint(), "non_zero: wrong");
    }

    #[tokio::test]
    async fn the_environment_is_what_was_given() {
        let outcome = HostCommand::new("/usr/bin/env", [""; 0])
            .run()
            .await
            .unwrap();
        assert_eq!(outcome.stdout.bytes(), b"");
    }

    #[tokio::test]
    async fn an_absent_program_is_named() {
        let missing = HostCommand::new("/absent/program", [""; 0]).run().await;
        let program = "/absent/program".into();
        assert_eq!(missing, Err(HostError::Missing { program }));
    }

    #[tokio::test]
    async fn a_program_is_ended_at_its_limit_with_what_it_started() {
        let command = HostCommand {
            wall: Duration::from_millis(200),
            marker: Some(("HOST_TEST_LIMIT".to_owned(), "7c1".to_owned())),
            ..shell("export HOST_TEST_LIMIT=7c1; setsid sleep 1000 & sleep 1000")
        };
        let outcome = command.run().await.unwrap();
        assert_eq!(outcome.status, Status::WallTimeout);
        assert_eq!(super::end_marked("HOST_TEST_LIMIT", "7c1"), 0);
    }

    #[tokio::test]
    async fn what_a_program_left_behind_ends_with_it() {
        let command = HostCommand {
            marker: Some(("HOST_TEST_LEFT".to_owned(), "e10".to_owned())),
            ..shell(
                "export HOST_TEST_LEFT=e10; setsid sleep 1000 & sleep 1000 & sleep 0.1; echo done",
            )
        };
        let outcome = command.run().await.unwrap();
        assert_eq!(outcome.status, Status::Ok);
        assert_eq!(outcome.stdout.bytes(), b"done\n");
        assert_eq!(super::end_marked("HOST_TEST_LEFT", "e10"), 0);
    }

    #[tokio::test]
    async fn endless_output_is_ended_and_both_ends_are_kept() {
        let command = HostCommand {
            output_keep: 10,
            output_max: 1 << 20,
            ..shell("yes abcd")
        };
        let outcome = command.run().await.unwrap();
        assert_eq!(outcome.status, Status::Output);
        assert_eq!(outcome.stdout.head, b"abcd\n");
        assert!(outcome.stdout.truncated && outcome.stdout.total > 1 << 20);
    }

    #[tokio::test]
    async fn a_dropped_run_ends_its_program() {
        let command = HostCommand {
            marker: Some(("HOST_TEST_DROPPED".to_owned(), "a55".to_owned())),
            ..shell("export HOST_TEST_DROPPED=a55; sleep 1000")
        };
        let given_up = tokio::time::timeout(Duration::from_millis(200), command.run()).await;
        assert!(given_up.is_err());
        assert_eq!(super::end_marked("HOST_TEST_DROPPED", "a55"), 0);
    }
}
