//! `etude runner`: the serving end of file queues and of ssh channels.

use std::{io::Read, path::PathBuf, time::Duration};

use anyhow::{Context, anyhow};
use session::{
    Apptainer, ApptainerOptions,
    lease::{Leases, TIME_TO_LIVE},
    local::{LocalBackend, LocalConfig},
    queue::{self, Queue, QueueOptions, RunnerOptions, instance_name},
    ssh,
};
use tokio::{
    io::BufReader,
    signal::unix::{SignalKind, signal},
};

use crate::{
    args::RunnerArgs,
    failure::{Classify, Failure, Outcome},
    graph_operation, machine,
    report::print_json,
    sandbox_reap,
    screen::Screen,
};

pub(crate) fn run(args: &RunnerArgs, screen: Screen) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .failed()?;
    let done = runtime.block_on(async {
        match (args.stdio, args.swe_proxy) {
            (true, _) => stdio(args).await,
            (_, true) => proxy(args).await,
            _ => serve(args, screen).await,
        }
    });
    // Reading standard input cannot be given up; nothing else is left to wait for.
    runtime.shutdown_background();
    done
}

/// Serves one folder of a queue until a signal.
async fn serve(args: &RunnerArgs, screen: Screen) -> Outcome<()> {
    let queue = queue_folder(args)?;
    let backend = apptainer(args, &queue)?;
    backend.reap().await.failed()?;
    let options = RunnerOptions {
        queue: queue.clone(),
        id: args.id,
        idle_timeout: args.idle_timeout,
        orphan_ttl: args.orphan_ttl.unwrap_or(args.idle_timeout),
        once: args.once,
        clock,
    };
    screen.say(format!("serving {}/runner-{}", queue.display(), args.id));
    let mut terminated = signal(SignalKind::terminate()).failed()?;
    let mut interrupted = false;
    let stopped = async {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => interrupted = true,
            _ = terminated.recv() => {}
        }
    };
    let ended = queue::serve(options, Box::new(backend), stopped).await;
    match (ended, interrupted) {
        (Err(error @ queue::RunnerError::Served { .. }), _) => Err(Failure::Asked(error.into())),
        (Err(error), _) => Err(error).failed(),
        (Ok(()), true) => Err(Failure::Stopped),
        (Ok(()), false) => Ok(()),
    }
}

/// The other end of an ssh channel: requests on standard input, answers on standard output.
async fn stdio(args: &RunnerArgs) -> Outcome<()> {
    let version = env!("CARGO_PKG_VERSION");
    let input = BufReader::new(tokio::io::stdin());
    let output = tokio::io::stdout();
    let ended = match args.backend.as_str() {
        "queue" => {
            let queue = Queue::new(QueueOptions::new(queue_folder(args)?));
            ssh::serve_lines(&queue, version, input, output).await
        }
        "local" => {
            let missing =
                || anyhow!("neither XDG_STATE_HOME nor HOME is set; it is needed for leases");
            let leases = sandbox_reap::default_folder()
                .with_context(missing)
                .asked()?;
            let leases = Leases::open(leases, TIME_TO_LIVE).failed()?;
            let scratch = args.share.clone().unwrap_or_else(std::env::temp_dir);
            let config = LocalConfig {
                search: machine::search_path(),
                ..LocalConfig::new(leases, scratch)
            };
            let backend = LocalBackend::open(config).await.failed()?;
            ssh::serve_lines(&backend, version, input, output).await
        }
        _ => {
            // Channels come and go at the same time: each has an instance of its own.
            let state = args.queue.clone().unwrap_or_else(std::env::temp_dir);
            let args = RunnerArgs {
                id: std::process::id(),
                ..args.clone()
            };
            let backend = apptainer(&args, &state)?;
            backend.reap_dead().await.failed()?;
            ssh::serve_lines(&backend, version, input, output).await
        }
    };
    ended.failed()
}

async fn proxy(args: &RunnerArgs) -> Outcome<()> {
    let mut payload = Vec::new();
    std::io::stdin().read_to_end(&mut payload).failed()?;
    if let Some(answer) = graph_operation::answer(&payload) {
        return print_json(&answer);
    }
    let runners = match std::env::var_os("GP_NUM_RUNNERS") {
        None => None,
        Some(told) => {
            let number = told.to_str().and_then(|text| text.parse().ok());
            let odd = || anyhow!("GP_NUM_RUNNERS must be a number, and is {told:?}");
            Some(number.with_context(odd).asked()?)
        }
    };
    let queue = Queue::new(QueueOptions {
        runners,
        fail_if_no_runners: std::env::var_os("GP_FAIL_IF_NO_RUNNERS").is_some_and(|it| it == "1"),
        ..QueueOptions::new(queue_folder(args)?)
    });
    let answer = queue::swe_proxy(&queue, &payload).await;
    print_json(&answer.map_err(|error| Failure::Asked(anyhow!(error)))?)
}

fn queue_folder(args: &RunnerArgs) -> Outcome<PathBuf> {
    let missing = || anyhow!("say where the queue is, with --queue or the variable QUEUE_ROOT");
    let told = args.queue.clone().or_else(|| variable("QUEUE_ROOT"));
    let told = told.or_else(|| Some(variable("HOME")?.join("gp_queue")));
    std::path::absolute(told.with_context(missing).asked()?).asked()
}

fn apptainer(args: &RunnerArgs, state: &std::path::Path) -> Outcome<Apptainer> {
    let sif_dir = args.sif_dir.clone();
    let sif_dir = sif_dir
        .or_else(|| variable("GP_SIF_DIR"))
        .or_else(|| variable("SIF_DIR"));
    let missing =
        || anyhow!("say where the .sif files are, with --sif-dir or the variable GP_SIF_DIR");
    let folder = state.join(format!("runner-{}", args.id));
    let env = ["PATH", "HOME", "USER", "TMPDIR", "XDG_RUNTIME_DIR", "LANG"];
    let share = args
        .share
        .clone()
        .map(std::path::absolute)
        .transpose()
        .asked()?;
    if let Some(share) = &share
        && !share.is_dir()
    {
        return Err(Failure::Asked(anyhow!("{} is no folder", share.display())));
    }
    std::fs::create_dir_all(state)
        .with_context(|| format!("{}", state.display()))
        .asked()?;
    Ok(Apptainer::new(ApptainerOptions {
        program: args.apptainer.clone(),
        env: env
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), variable(name)?.to_str()?.to_owned())))
            .collect(),
        sif_dir: std::path::absolute(sif_dir.with_context(missing).asked()?).asked()?,
        work: share.clone().unwrap_or_else(|| state.join("work")),
        share,
        instance: instance_name(args.id),
        record: folder.with_extension("instance.json"),
    }))
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// Seconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "heartbeats say when they were given, for people and other programs; nothing here reads it"
)]
fn clock() -> f64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap_or(Duration::ZERO).as_secs_f64()
}
