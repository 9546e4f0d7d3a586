//! `etude sandbox run`: one program behind walls.

use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write},
    path::Path,
};

use anyhow::{Context, anyhow};
use sandbox::{
    Captured, Config, Enforced, Job, Language, Limits, MAX_JOB, Mechanism, RunOutcome, Sandbox,
    SandboxError, Status, Tier, Toolchains,
};
use serde::Serialize;

use crate::{
    args::SandboxRunArgs,
    failure::{Classify, Failure, Outcome},
    machine,
    report::print_json,
    screen::Screen,
};

/// Exit code 0 when the program's is 0, 1 when it failed or could not be run.
pub(crate) fn run(args: &SandboxRunArgs, _screen: Screen) -> Outcome<()> {
    let language = language(args)?;
    let source = file(&args.file)?;
    let stdin = stdin(args.stdin.as_deref())?;
    let limits = Limits {
        wall: args.timeout,
        cpu: args
            .cpu
            .unwrap_or_else(|| args.timeout.saturating_mul(machine::cores() as u32)),
        memory: args.memory << 20,
        ..Limits::SMALL
    };
    let ran = execute(args, language, source, stdin, limits);
    let report = match ran {
        Ok(outcome) => Ok((Report::of(language, &limits, &outcome), outcome)),
        Err(Stop::Interrupted) => return Err(Failure::Stopped),
        Err(Stop::Sandbox(
            error @ (SandboxError::Invalid { .. } | SandboxError::TooLarge { .. }),
        )) => {
            return Err(Failure::Asked(error.into()));
        }
        Err(Stop::Sandbox(error)) => Err(error),
        Err(Stop::Runtime(error)) => return Err(Failure::Failed(error.into())),
    };
    if args.json {
        match &report {
            Ok((report, _)) => print_json(report)?,
            Err(error) => print_json(&Report::of_error(language, error))?,
        }
    }
    let (_, outcome) = report.failed()?;
    if !args.json {
        if let Some(build) = outcome.build.as_deref().filter(|build| !build.is_ok()) {
            pass_on(build)?;
        }
        pass_on(&outcome)?;
    }
    match said(&outcome) {
        None => Ok(()),
        Some(said) => Err(Failure::Failed(anyhow!(said))),
    }
}

fn language(args: &SandboxRunArgs) -> Outcome<Language> {
    let known = || Language::ALL.map(Language::name).join(", ");
    if let Some(name) = &args.lang {
        let unknown = || anyhow!("no language is called {name:?}; known are {}", known());
        return Language::named(name).with_context(unknown).asked();
    }
    let extension = args
        .file
        .extension()
        .and_then(|extension| extension.to_str());
    let unknown = || {
        anyhow!(
            "{}: its name does not tell its language; say it with --lang, one of {}",
            args.file.display(),
            known()
        )
    };
    extension
        .and_then(Language::of_extension)
        .with_context(unknown)
        .asked()
}

fn stdin(from: Option<&Path>) -> Outcome<Vec<u8>> {
    match from {
        None => Ok(Vec::new()),
        Some(path) if path == Path::new("-") => {
            bounded(std::io::stdin(), Path::new("standard input"))
        }
        Some(path) => file(path),
    }
}

fn file(path: &Path) -> Outcome<Vec<u8>> {
    let opened = fs::File::open(path)
        .with_context(|| format!("{}", path.display()))
        .asked()?;
    bounded(opened, path)
}

/// All of it, if a run may have that much: a device may have no end.
fn bounded(from: impl Read, name: &Path) -> Outcome<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_JOB as u64 + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("{}", name.display()))
        .asked()?;
    if bytes.len() > MAX_JOB {
        let most = MAX_JOB >> 20;
        let name = name.display();
        return Err(Failure::Asked(anyhow!(
            "{name} has more than {most} MiB, which is all that a run may have"
        )));
    }
    Ok(bytes)
}

/// Why there is no outcome.
enum Stop {
    Sandbox(SandboxError),
    Runtime(std::io::Error),
    Interrupted,
}

fn execute(
    args: &SandboxRunArgs,
    language: Language,
    source: Vec<u8>,
    stdin: Vec<u8>,
    limits: Limits,
) -> Result<RunOutcome, Stop> {
    let config = machine::sandbox_config(1);
    let toolchains = Toolchains::probe(&[language], None, &config.search);
    let job = toolchains
        .job(language, source, limits)
        .map_err(Stop::Sandbox)?;
    let job = Job {
        stdin,
        arguments: args.arguments.clone(),
        ..job
    };
    let sandbox = Sandbox::start(Config {
        allow_weak_tier: args.allow_weak_tier,
        readable: toolchains.readable(),
        ..config
    })
    .map_err(Stop::Sandbox)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Stop::Runtime)?;
    runtime.block_on(async {
        tokio::select! {
            ran = sandbox.run(job) => ran.map_err(Stop::Sandbox),
            _ = tokio::signal::ctrl_c() => Err(Stop::Interrupted),
        }
    })
}

/// What the program wrote, byte for byte.
fn pass_on(outcome: &RunOutcome) -> Outcome<()> {
    let streams: [(&Captured, &mut dyn Write); 2] = [
        (&outcome.stdout, &mut std::io::stdout().lock()),
        (&outcome.stderr, &mut std::io::stderr().lock()),
    ];
    for (captured, stream) in streams {
        match stream
            .write_all(&captured.bytes())
            .and_then(|()| stream.flush())
        {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                return Err(error).failed();
            }
            _ => {}
        }
    }
    Ok(())
}

/// How the program failed, in a line; `None` when it did not.
fn said(outcome: &RunOutcome) -> Option<String> {
    let what = if outcome.program_ran() {
        "the program"
    } else {
        "the program was not run: its build"
    };
    let how = match outcome.status {
        Status::Ok => return None,
        Status::NonZero(code) => format!("ended with exit code {code}"),
        Status::Signal(signal) => format!("ended by signal {signal}"),
        Status::WallTimeout => "was ended at its time limit".to_owned(),
        Status::CpuTimeout => "was ended at its limit of CPU time".to_owned(),
        Status::Memory => "ran out of memory".to_owned(),
        Status::Output => "was ended for too much output".to_owned(),
        Status::Disk => "ran out of disk space".to_owned(),
    };
    Some(format!("{what} {how}"))
}

/// The JSON object.
#[derive(Debug, Serialize)]
struct Report {
    language: &'static str,
    #[serde(flatten)]
    run: Run,
    tier: Option<Tier>,
    limits: BTreeMap<&'static str, Limit>,
    /// How the compiler fared; null where there is none.
    build: Option<Run>,
    /// What kept the program from being run; null otherwise.
    error: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct Run {
    status: &'static str,
    exit_code: Option<i32>,
    signal: Option<i32>,
    /// Invalid UTF-8 is replaced.
    stdout: String,
    stderr: String,
    /// Bytes written, kept or not.
    stdout_bytes: u64,
    stderr_bytes: u64,
    truncated: bool,
    wall_ms: f64,
    cpu_ms: f64,
    peak_memory_mb: f64,
}

#[derive(Debug, Serialize)]
struct Limit {
    limit: f64,
    /// All of them together.
    enforced_by: Vec<Mechanism>,
}

impl Report {
    fn of(language: Language, limits: &Limits, outcome: &RunOutcome) -> Self {
        Self {
            language: language.name(),
            run: Run::of(outcome),
            tier: Some(outcome.tier),
            limits: enforced(limits, &outcome.enforced),
            build: outcome.build.as_deref().map(Run::of),
            error: None,
        }
    }

    fn of_error(language: Language, error: &SandboxError) -> Self {
        Self {
            language: language.name(),
            run: Run {
                status: "sandbox_error",
                ..Run::default()
            },
            tier: None,
            limits: BTreeMap::new(),
            build: None,
            error: Some(error.to_string()),
        }
    }
}

/// As many digits as mean anything.
fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

impl Run {
    fn of(outcome: &RunOutcome) -> Self {
        let (exit_code, signal) = match outcome.status {
            Status::Ok => (Some(0), None),
            Status::NonZero(code) => (Some(code), None),
            Status::Signal(signal) => (None, Some(signal)),
            _ => (None, None),
        };
        Self {
            status: outcome.status.name(),
            exit_code,
            signal,
            stdout: outcome.stdout.text(),
            stderr: outcome.stderr.text(),
            stdout_bytes: outcome.stdout.total,
            stderr_bytes: outcome.stderr.total,
            truncated: outcome.stdout.truncated || outcome.stderr.truncated,
            wall_ms: thousandths(outcome.wall_ms),
            cpu_ms: thousandths(outcome.cpu_ms),
            peak_memory_mb: thousandths(outcome.peak_memory as f64 / f64::from(1 << 20)),
        }
    }
}

/// Each limit and what holds it.
fn enforced(limits: &Limits, by: &Enforced) -> BTreeMap<&'static str, Limit> {
    let megabytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let limit = |limit: f64, by: &[Mechanism]| Limit {
        limit,
        enforced_by: by.to_vec(),
    };
    BTreeMap::from([
        ("wall_s", limit(limits.wall.as_secs_f64(), &by.wall)),
        ("cpu_s", limit(limits.cpu.as_secs_f64(), &by.cpu)),
        ("memory_mb", limit(megabytes(limits.memory), &by.memory)),
        ("processes", limit(limits.processes.into(), &by.processes)),
        ("disk_mb", limit(megabytes(limits.disk), &by.disk)),
        // Nothing may be reached.
        ("network", limit(0.0, &by.network)),
    ])
}
