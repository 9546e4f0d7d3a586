//! `POST /run_code`: one program, perhaps built first.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use sandbox::{InputFile, Job, Limits, RunOutcome, Status};

use crate::{
    Service,
    decode::files,
    dialect::{CommandRunResult, CommandRunStatus, RunCodeRequest, RunCodeResponse, RunStatus},
    fault::Fault,
};

/// Runs what `request` asks for. Checked by [`crate::decode`] already.
pub(crate) async fn run(
    service: &Service,
    request: &RunCodeRequest,
) -> Result<RunCodeResponse, Fault> {
    let language = Service::language(&request.language, &["body", "language"])?;
    let limits = limits(
        request.run_timeout,
        match request.memory_limit_mb {
            Some(megabytes) if megabytes > 0 => megabytes.unsigned_abs() << 20,
            _ => service.memory(),
        },
    );
    let mut job = service
        .toolchains()
        .job(language, request.code.as_bytes(), limits)?;
    let brought = files(request, &["body".into()])?;
    job.files.splice(
        0..0,
        brought.into_iter().map(|(path, contents)| InputFile {
            path,
            contents,
            executable: false,
        }),
    );
    if let Some(build) = &mut job.build {
        build.limits.wall = seconds(request.compile_timeout);
    }
    let job = Job {
        fetch: request.fetch_files.clone(),
        ..job
    };
    let stdin = request.stdin.clone().unwrap_or_default();
    let outcome = service.sandbox().run(job.with_stdin(stdin)).await?;
    Ok(response(&outcome))
}

/// Wall time as asked for. CPU time is limited apart and wider, for programs of several threads.
pub(crate) fn limits(run_timeout: f64, memory: u64) -> Limits {
    let wall = seconds(run_timeout);
    Limits {
        wall,
        cpu: wall.saturating_mul(4),
        memory,
        output_keep: 2 << 20,
        output_max: 256 << 20,
        ..Limits::SMALL
    }
}

pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(10))
}

/// The reply that says what `outcome` was.
pub(crate) fn response(outcome: &RunOutcome) -> RunCodeResponse {
    let compile_result = outcome.build.as_deref().map(command);
    let run_result = outcome.program_ran().then(|| command(outcome));
    let status = if outcome.is_ok() {
        RunStatus::Success
    } else {
        RunStatus::Failed
    };
    let mut files = BTreeMap::new();
    let mut files_not_fetched = BTreeMap::new();
    for file in &outcome.files {
        match &file.contents {
            Ok(contents) => {
                files.insert(file.path.clone(), BASE64_STANDARD.encode(contents));
            }
            Err(reason) => {
                files_not_fetched.insert(file.path.clone(), reason.to_string());
            }
        }
    }
    RunCodeResponse {
        status,
        message: String::new(),
        compile_result,
        run_result,
        executor_pod_name: None,
        files,
        files_not_fetched,
    }
}

fn command(outcome: &RunOutcome) -> CommandRunResult {
    let (status, return_code) = match outcome.status {
        Status::WallTimeout | Status::CpuTimeout => (CommandRunStatus::TimeLimitExceeded, None),
        Status::Ok => (CommandRunStatus::Finished, Some(0)),
        Status::NonZero(code) => (CommandRunStatus::Finished, Some(code)),
        Status::Signal(signal) => (CommandRunStatus::Finished, Some(-signal)),
        // Ended by the sandbox, with signal 9.
        Status::Memory | Status::Output | Status::Disk => (CommandRunStatus::Finished, Some(-9)),
    };
    CommandRunResult {
        status,
        execution_time: outcome.wall_ms / 1e3,
        cpu_time: outcome.cpu_ms / 1e3,
        return_code,
        stdout: outcome.stdout.text(),
        stderr: outcome.stderr.text(),
        truncated: outcome.stdout.truncated || outcome.stderr.truncated,
        outcome: outcome.status.name(),
        peak_memory_mb: outcome.peak_memory as f64 / f64::from(1 << 20),
    }
}
