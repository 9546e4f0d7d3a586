//! Commands in a container: their output as it comes, their limits, their end.

use std::time::{Duration, Instant};

use bollard::{
    container::LogOutput,
    exec::{CreateExecOptions, StartExecResults},
};
use futures::{Stream, StreamExt};
use sandbox::{Capture, Limits, Status};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    time::{sleep, sleep_until, timeout},
};

use super::{Inner, container::Container};
use crate::CommandOutcome;

/// Goes to the folder `$1` and runs the rest under the limits `$2` CPU seconds, `$3` blocks of 512
/// bytes a file, `$4` open files, `$5` KiB of address space (0: any). A limit that cannot be set
/// is above one that holds already.
const WRAPPER: &str = r#"cd "$1" 2>/dev/null || exit 97
ulimit -H -t $(($2 + 1)) 2>/dev/null; ulimit -S -t "$2" 2>/dev/null
ulimit -f "$3" 2>/dev/null; ulimit -n "$4" 2>/dev/null
[ "$5" = 0 ] || ulimit -v "$5" 2>/dev/null
shift 5
exec "$@""#;

/// What the wrapper says when it cannot enter the folder; a program may say it as well.
pub(super) const NO_FOLDER: i64 = 97;

/// How often a running command's use is looked at.
const WATCH: Duration = Duration::from_millis(25);

/// How often the engine is asked whether a command has ended; its output tells earlier, unless a
/// process that it left behind holds on to it.
const ASK: Duration = Duration::from_millis(250);

/// How long output may take to arrive after the end of all who write it.
const DRAIN: Duration = Duration::from_secs(10);

/// Bytes kept of what the backend's own commands print.
const OWN_OUTPUT: usize = 64 << 10;

/// The wall time of the backend's own commands.
const OWN_WALL: Duration = Duration::from_secs(60);

/// A command as the engine gets it.
pub(super) struct Request<'a> {
    pub(super) argv: &'a [String],
    pub(super) env: Vec<String>,
    pub(super) stdin: &'a [u8],
    /// Absolute.
    pub(super) folder: &'a str,
    pub(super) limits: &'a Limits,
}

/// What a command did, and the exit code that its engine gave when no limit ended it.
pub(super) struct Ran {
    pub(super) outcome: CommandOutcome,
    pub(super) code: i64,
}

type Output =
    std::pin::Pin<Box<dyn Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>;
type Input = std::pin::Pin<Box<dyn AsyncWrite + Send>>;

impl Inner {
    /// Runs a command to its end and leaves the container quiet.
    ///
    /// # Errors
    /// The session is lost, and why.
    pub(super) async fn run(
        &self,
        container: &mut Container,
        request: Request<'_>,
    ) -> Result<Ran, String> {
        let limits = request.limits;
        let groups = container.groups.clone();
        let cpu_before = groups.as_ref().and_then(|groups| groups.cpu_ms());
        let kills_before = groups.as_ref().and_then(|groups| groups.memory_kills());
        let started = Instant::now();
        let (id, output, input) = self.begin(&container.name, &request).await?;
        let feed = tokio::spawn(feed(input, request.stdin.to_vec()));
        let mut run = Running {
            output: Some(output),
            stdout: Capture::new(limits.output_keep),
            stderr: Capture::new(limits.output_keep),
            peak: None,
        };
        let used = |groups: &super::usage::Groups| Some(groups.cpu_ms()? - cpu_before?);
        let stopped = self.follow(&mut run, &id, limits, || {
            let groups = groups.as_ref()?;
            Some((used(groups)?, groups.memory()?))
        });
        let stopped = stopped.await;
        let wall_ms = started.elapsed().as_secs_f64() * 1e3;
        let cpu_ms = groups.as_ref().and_then(used);
        feed.abort();
        // Told first: a container that must be started anew forgets its commands.
        let (code, stopped) = match stopped? {
            None => (self.exit_code(&id).await?, None),
            Some(status) => (0, Some(status)),
        };
        self.quiet(container).await?;
        timeout(DRAIN, run.drain())
            .await
            .map_err(|_| "output kept coming after every process was ended".to_owned())??;
        let kills = groups.as_ref().and_then(|groups| groups.memory_kills());
        let starved = kills
            .zip(kills_before)
            .is_some_and(|(now, then)| now > then);
        let status = stopped.unwrap_or_else(|| status(code, starved, cpu_ms, limits));
        Ok(Ran {
            outcome: CommandOutcome {
                status,
                stdout: run.stdout.finish(),
                stderr: run.stderr.finish(),
                wall_ms,
                cpu_ms,
                peak_memory: run.peak,
            },
            code,
        })
    }

    /// Runs `script` of the backend itself with arguments; exit code and standard output.
    pub(super) async fn shell(
        &self,
        name: &str,
        script: &str,
        arguments: &[&str],
    ) -> Result<(i64, Vec<u8>), String> {
        let head = ["/bin/sh", "-c", script, "etude"];
        let options = CreateExecOptions {
            cmd: Some([&head, arguments].concat()),
            attach_stdout: Some(true),
            ..CreateExecOptions::default()
        };
        let (id, mut output, _input) = self.attach(name, options).await?;
        let mut stdout = Capture::new(OWN_OUTPUT);
        let collect = async {
            while let Some(part) = output.next().await {
                if let LogOutput::StdOut { message } = part.map_err(|error| error.to_string())? {
                    stdout.push(&message);
                }
            }
            Ok::<(), String>(())
        };
        let overdue = |_| "the container's shell does not end".to_owned();
        timeout(OWN_WALL, collect).await.map_err(overdue)??;
        let code = timeout(OWN_WALL, self.exit_code(&id)).await;
        Ok((code.map_err(overdue)??, stdout.finish().bytes()))
    }

    async fn begin(
        &self,
        name: &str,
        request: &Request<'_>,
    ) -> Result<(String, Output, Option<Input>), String> {
        let limits = request.limits;
        let seconds = limits.cpu.as_secs() + u64::from(limits.cpu.subsec_nanos() > 0);
        let numbers = [
            seconds.max(1),
            limits.disk.div_ceil(512),
            limits.files.into(),
            match limits.address_space {
                true => limits.memory.div_ceil(1024),
                false => 0,
            },
        ];
        let mut cmd = ["/bin/sh", "-c", WRAPPER, "etude", request.folder]
            .map(str::to_owned)
            .to_vec();
        cmd.extend(numbers.map(|number| number.to_string()));
        cmd.extend_from_slice(request.argv);
        let options = CreateExecOptions {
            cmd: Some(cmd),
            env: Some(request.env.clone()),
            attach_stdin: Some(!request.stdin.is_empty()),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            ..CreateExecOptions::default()
        };
        let (id, output, input) = self.attach(name, options).await?;
        Ok((id, output, (!request.stdin.is_empty()).then_some(input)))
    }

    async fn attach<T: Into<String> + serde::Serialize>(
        &self,
        name: &str,
        options: CreateExecOptions<T>,
    ) -> Result<(String, Output, Input), String>
    where
        CreateExecOptions<T>: Into<bollard::models::ExecConfig>,
    {
        let client = self.engine.client();
        let made = client.create_exec(name, options).await;
        let id = made.map_err(|error| error.to_string())?.id;
        let attached = client.start_exec(&id, None).await;
        match attached.map_err(|error| error.to_string())? {
            StartExecResults::Attached { output, input } => Ok((id, output, input)),
            StartExecResults::Detached => Err("the engine did not attach".to_owned()),
        }
    }

    /// Collects output until the command has ended (`None`) or went past a limit.
    async fn follow(
        &self,
        run: &mut Running,
        id: &str,
        limits: &Limits,
        mut used: impl FnMut() -> Option<(f64, u64)>,
    ) -> Result<Option<Status>, String> {
        let started = tokio::time::Instant::now();
        let deadline = started + limits.wall;
        let (mut watch, mut ask, mut patience) = (started + WATCH, started + ASK, ASK);
        let cpu_limit = limits.cpu.as_secs_f64() * 1e3;
        loop {
            tokio::select! {
                biased;
                () = sleep_until(deadline) => return Ok(Some(Status::WallTimeout)),
                () = sleep_until(watch) => {
                    if let Some((cpu, memory)) = used() {
                        run.peak = Some(run.peak.unwrap_or(0).max(memory));
                        if memory > limits.memory {
                            return Ok(Some(Status::Memory));
                        }
                        if cpu > cpu_limit {
                            return Ok(Some(Status::CpuTimeout));
                        }
                    }
                    watch = tokio::time::Instant::now() + WATCH;
                }
                () = sleep_until(ask) => {
                    if !self.runs(id).await? {
                        return Ok(None);
                    }
                    patience = (patience * 2).min(ASK);
                    ask = tokio::time::Instant::now() + patience;
                }
                open = run.next() => match open? {
                    true if run.stdout.total + run.stderr.total > limits.output_max => {
                        return Ok(Some(Status::Output));
                    }
                    true => {}
                    // The end, unless it only closed its output.
                    false => (patience, ask) = (WATCH / 4, tokio::time::Instant::now()),
                },
            }
        }
    }

    async fn runs(&self, id: &str) -> Result<bool, String> {
        let found = self.engine.client().inspect_exec(id).await;
        let found = found.map_err(|error| error.to_string())?;
        Ok(found.running.unwrap_or(false))
    }

    /// Waits for the engine to have noticed the end.
    async fn exit_code(&self, id: &str) -> Result<i64, String> {
        let deadline = Instant::now() + DRAIN;
        loop {
            let found = self.engine.client().inspect_exec(id).await;
            let found = found.map_err(|error| error.to_string())?;
            if found.running != Some(true)
                && let Some(code) = found.exit_code
            {
                return Ok(code);
            }
            if Instant::now() > deadline {
                return Err("the engine does not tell how the command ended".to_owned());
            }
            sleep(WATCH).await;
        }
    }
}

/// A command under way.
struct Running {
    /// `None` once it has ended.
    output: Option<Output>,
    stdout: Capture,
    stderr: Capture,
    /// Bytes, as far as they were seen.
    peak: Option<u64>,
}

impl Running {
    /// Takes the next piece of output; false at its end. Waits for ever after that.
    async fn next(&mut self) -> Result<bool, String> {
        let Some(output) = &mut self.output else {
            return std::future::pending().await;
        };
        match output.next().await {
            Some(Ok(LogOutput::StdErr { message })) => self.stderr.push(&message),
            Some(Ok(LogOutput::StdOut { message } | LogOutput::Console { message })) => {
                self.stdout.push(&message);
            }
            Some(Ok(LogOutput::StdIn { .. })) => {}
            Some(Err(error)) => return Err(error.to_string()),
            None => {
                self.output = None;
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn drain(&mut self) -> Result<(), String> {
        while self.output.is_some() {
            self.next().await?;
        }
        Ok(())
    }
}

/// Programs may leave their input unread, so that errors say nothing.
async fn feed(input: Option<Input>, stdin: Vec<u8>) {
    if let Some(mut input) = input {
        let _ = input.write_all(&stdin).await;
        let _ = input.shutdown().await;
        // Closing it altogether would end the output as well.
        std::future::pending::<()>().await;
    }
}

/// Engines tell signals as 128 and their number.
fn status(code: i64, starved: bool, cpu_ms: Option<f64>, limits: &Limits) -> Status {
    const KILLED: i64 = 128 + 9;
    const CPU_TIME: i64 = 128 + 24;
    const FILE_SIZE: i64 = 128 + 25;
    let spent = cpu_ms.is_some_and(|used| used >= limits.cpu.as_secs_f64() * 1e3);
    match code {
        0 => Status::Ok,
        _ if starved => Status::Memory,
        CPU_TIME => Status::CpuTimeout,
        KILLED if spent => Status::CpuTimeout,
        FILE_SIZE => Status::Disk,
        129..=192 => Status::Signal((code - 128) as i32),
        code => Status::NonZero(code as i32),
    }
}
