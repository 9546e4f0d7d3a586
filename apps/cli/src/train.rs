//! `etude train`: run a recipe, or go on with a run.

use std::path::{Path, PathBuf};

use journal::{Replay, RunDir, RunStarted};
use recipe::Resolved;
use tokio::signal::unix::{SignalKind, signal};
use train::Stop;

use crate::{
    args::TrainArgs,
    failure::{Classify, Failure, Outcome},
    machine,
    report::print_result,
    screen::Screen,
    walk::{Instruments, Walk, recipe::Recipe, tasks::check_task_files},
};

pub(crate) fn run(args: &TrainArgs, screen: Screen) -> Outcome<()> {
    match (&args.resume, &args.recipe) {
        (Some(directory), _) => {
            let (recipe, run, replay) = resume(directory, screen)?;
            let instruments = Instruments::start(&recipe)?;
            walk(&recipe, &run, &replay, &instruments, args.json, screen)
        }
        (None, Some(path)) => {
            let resolved = Recipe::load(path, &args.set).asked()?;
            resolved.value.check().asked()?;
            check_task_files(&resolved.value)?;
            // Before the directory, so that a machine without a sandbox leaves none behind.
            let instruments = Instruments::start(&resolved.value)?;
            let run = begin(path, &resolved, args, screen)?;
            walk(
                &resolved.value,
                &run,
                &Replay::default(),
                &instruments,
                args.json,
                screen,
            )
        }
        (None, None) => Err(Failure::Asked(anyhow::anyhow!("name a recipe"))),
    }
}

fn walk(
    recipe: &Recipe,
    run: &RunDir,
    replay: &Replay,
    instruments: &Instruments,
    json: bool,
    screen: Screen,
) -> Outcome<()> {
    let stop = Stop::default();
    stop_on_request(instruments, &stop, screen)?;
    let walk = Walk {
        recipe,
        run,
        replay,
        instruments,
        screen,
        stop: &stop,
    };
    walk.train()?;
    print_result(run.path(), json, screen)
}

fn begin(
    path: &Path,
    recipe: &Resolved<Recipe>,
    args: &TrainArgs,
    screen: Screen,
) -> Outcome<RunDir> {
    let Resolved { value, text, hash } = recipe;
    let directory = match &args.run {
        Some(directory) => directory.clone(),
        None => free_directory(&value.name),
    };
    let started = RunStarted {
        study: "critique".to_owned(),
        name: value.name.clone(),
        seed: value.seed,
        recipe_hash: hash.clone(),
        etude: env!("CARGO_PKG_VERSION").to_owned(),
        machine: machine::facts(),
    };
    let run = RunDir::create(&directory, text, started).asked()?;
    screen.say(format!(
        "{}: {}, seed {}",
        directory.display(),
        path.display(),
        value.seed
    ));
    Ok(run)
}

fn resume(directory: &Path, screen: Screen) -> Outcome<(Recipe, RunDir, Replay)> {
    let (run, replay) = RunDir::open(directory).asked()?;
    let text = run.recipe().asked()?;
    let origin = directory.join("recipe.toml").display().to_string();
    let Resolved { value, hash, .. } = recipe::resolve::<Recipe>(&text, &origin, &[]).asked()?;
    if let Some(started) = replay.started()
        && started.recipe_hash != hash
    {
        return Err(Failure::Asked(anyhow::anyhow!(
            "{origin} was changed since the run began: its hash is {hash}, but the journal's is {}; \
             restore it, or begin another run with the changed recipe",
            started.recipe_hash
        )));
    }
    let steps = replay.last_step("rl").map_or(0, |step| step.step);
    screen.say(format!(
        "{}: going on; {} reinforcement steps are committed",
        directory.display(),
        steps
    ));
    if replay.recovered.torn_bytes > 0 || !replay.recovered.leftovers.is_empty() {
        screen.say(format!(
            "  the last process was cut short: {} bytes of a half-written record and {} uncommitted \
             files were removed",
            replay.recovered.torn_bytes,
            replay.recovered.leftovers.len()
        ));
    }
    Ok((value, run, replay))
}

/// `runs/<name>`, or with the first number behind it that is free.
fn free_directory(name: &str) -> PathBuf {
    let first = Path::new("runs").join(name);
    if !first.exists() {
        return first;
    }
    (2u32..)
        .map(|n| Path::new("runs").join(format!("{name}-{n}")))
        .find(|path| !path.exists())
        .unwrap_or(first)
}

/// The first Ctrl-C, or request to terminate, asks the loops to stop where nothing is lost; the
/// second ends the process.
fn stop_on_request(instruments: &Instruments, stop: &Stop, screen: Screen) -> Outcome<()> {
    // The handlers stand when this returns, so no signal of a started run goes unheard.
    let _runtime = instruments.runtime.enter();
    let mut interrupts = signal(SignalKind::interrupt()).failed()?;
    let mut terminations = signal(SignalKind::terminate()).failed()?;
    let stop = stop.clone();
    instruments.runtime.spawn(async move {
        let mut asked = async || {
            tokio::select! {
                heard = interrupts.recv() => heard,
                heard = terminations.recv() => heard,
            }
        };
        if asked().await.is_none() {
            return;
        }
        screen.say("\nstopping at the next safe point; Ctrl-C again ends at once");
        stop.request();
        if asked().await.is_some() {
            std::process::exit(130);
        }
    });
    Ok(())
}
