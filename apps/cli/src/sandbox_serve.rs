//! `etude sandbox serve`: the sandbox and the judge over HTTP.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use anyhow::{Context, anyhow, bail};
use judge::VerdictStore;
use sandbox::{Config, Language, Sandbox, Toolchains};
use server::{Access, Class, Dataset, Options, Service};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use crate::{
    args::SandboxServeArgs,
    failure::{Classify, Failure, Outcome},
    machine,
    screen::Screen,
};

/// Serves until SIGTERM (exit code 0) or Ctrl-C (130), then finishes what is under way.
pub(crate) fn run(args: &SandboxServeArgs, screen: Screen) -> Outcome<()> {
    let options = Options {
        max_body: args.max_body << 20,
        token: args.token_file.as_deref().map(token).transpose().asked()?,
        drain: args.drain,
        log: args.log.then_some(log),
        ..Options::default()
    };
    let datasets = args
        .datasets
        .iter()
        .map(|text| dataset(text))
        .collect::<anyhow::Result<BTreeMap<_, _>>>()
        .asked()?;
    let store = match &args.cache {
        Some(folder) => Some(VerdictStore::open(folder, CACHE_BYTES).asked()?),
        None => None,
    };
    let config = machine::sandbox_config(args.slots.unwrap_or_else(machine::cores));
    let toolchains = Toolchains::probe(&Language::ALL, None, &config.search);
    let sandbox = Sandbox::start(Config {
        allow_weak_tier: args.allow_weak_tier,
        readable: toolchains.readable(),
        queue_limit: args.queue,
        ..config
    })
    .failed()?;
    let languages = Language::ALL
        .into_iter()
        .filter(|language| toolchains.get(*language).is_ok())
        .map(Language::name);
    let languages = languages.collect::<Vec<_>>().join(", ");
    let tier = sandbox.tier();
    let service = Service::new(sandbox, toolchains, args.memory << 20, store, datasets);
    let runtime = tokio::runtime::Runtime::new().failed()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(&args.bind)
            .await
            .with_context(|| format!("cannot listen on {}", args.bind))
            .asked()?;
        let address = listener.local_addr().failed()?;
        screen.say(format!(
            "listening on http://{address} (tier {tier}; {languages})"
        ));
        if options.token.is_none() && !address.ip().is_loopback() {
            screen
                .say("etude: anybody who reaches this address can run programs; see --token-file");
        }
        let mut terminated = signal(SignalKind::terminate()).failed()?;
        let (tell, told) = tokio::sync::oneshot::channel();
        let shutdown = async move {
            let interrupted = tokio::select! {
                _ = tokio::signal::ctrl_c() => true,
                _ = terminated.recv() => false,
            };
            // The command waits for it below.
            let _ = tell.send(interrupted);
        };
        server::serve(listener, service, options, shutdown).await;
        match told.await {
            Ok(true) => Err(Failure::Stopped),
            _ => Ok(()),
        }
    })
}

/// One line of JSON.
fn log(access: &Access) {
    if let Ok(line) = serde_json::to_string(access) {
        Screen::new().say(line);
    }
}

/// Bytes of verdicts kept on disk.
const CACHE_BYTES: u64 = 1 << 30;

fn token(path: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let token = text.trim();
    if token.is_empty() {
        bail!("{}: it holds no token", path.display());
    }
    Ok(token.to_owned())
}

/// `NAME=CLASS:FILE`.
fn dataset(text: &str) -> anyhow::Result<(String, Dataset)> {
    let wrong = || {
        anyhow!(
            "--dataset {text}: it must be NAME=CLASS:FILE, with CLASS one of CommonOJ, LiveCodeBench, \
             AutoEval, HumanEval, MBPP"
        )
    };
    let (name, rest) = text.split_once('=').ok_or_else(wrong)?;
    let (class, file) = rest.split_once(':').ok_or_else(wrong)?;
    let class = Class::named(class).ok_or_else(wrong)?;
    Ok((name.to_owned(), Dataset::read(class, Path::new(file))?))
}

/// Seconds for draining.
pub(crate) fn drain(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("must be a number of seconds from 0 to 3600".to_owned()),
    }
}
