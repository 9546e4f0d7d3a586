//! `etude train`: run a recipe, or go on with a run.

use std::path::{Path, PathBuf};

use journal::{Replay, RunDir, RunStarted};
use recipe::Resolved;
use record::Seed;
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
};
use train::Stop;

use crate::{
    args::TrainArgs,
    failure::{Classify, Failure, Outcome},
    machine,
    report::print_result,
    screen::Screen,
    walk::{Commands, Frame, StudyWalk, load},
};

pub(crate) fn run(args: &TrainArgs, screen: Screen) -> Outcome<()> {
    match (&args.resume, &args.recipe) {
        (Some(directory), _) => {
            let (run, replay) = RunDir::open(directory).asked()?;
            let text = run.recipe().asked()?;
            let study = Commands::of_run(directory, &text)?;
            (study.resume)((run, replay), &text, args, screen)
        }
        (None, Some(path)) => {
            let study = Commands::of_recipe(path, &args.set)?;
            (study.train)(path, args, screen)
        }
        (None, None) => Err(Failure::Asked(anyhow::anyhow!("name a recipe"))),
    }
}

/// Begins a run of a study.
pub(crate) fn begin<W: StudyWalk>(path: &Path, args: &TrainArgs, screen: Screen) -> Outcome<()> {
    let resolved = load::<W>(path, &args.set).asked()?;
    let recipe = &resolved.value;
    W::check(recipe).asked()?;
    W::check_files(recipe)?;
    // Before the directory, so that a machine without what the study needs leaves none behind.
    let instruments = W::start(recipe)?;
    let run = create::<W>(path, &resolved, args, screen)?;
    walk::<W>(
        recipe,
        (&run, &Replay::default()),
        &instruments,
        args,
        screen,
    )
}

/// Goes on with a run of a study.
pub(crate) fn resume<W: StudyWalk>(
    (run, replay): (RunDir, Replay),
    text: &str,
    args: &TrainArgs,
    screen: Screen,
) -> Outcome<()> {
    let recipe = resumed::<W>(&run, &replay, text, screen)?;
    let instruments = W::start(&recipe)?;
    walk::<W>(&recipe, (&run, &replay), &instruments, args, screen)
}

fn walk<W: StudyWalk>(
    recipe: &W::Recipe,
    (run, replay): (&RunDir, &Replay),
    instruments: &W::Instruments,
    args: &TrainArgs,
    screen: Screen,
) -> Outcome<()> {
    let (common, engines) = (W::common(recipe), instruments.as_ref());
    let stop = Stop::default();
    stop_on_request(&engines.runtime, &stop, screen)?;
    let frame = Frame {
        run,
        replay,
        engines,
        screen,
        stop: &stop,
        seed: Seed(common.seed),
        training: common.training,
    };
    W::train(&frame, recipe, instruments)?;
    frame.finish()?;
    print_result(run.path(), args.json, screen)
}

fn create<W: StudyWalk>(
    path: &Path,
    recipe: &Resolved<W::Recipe>,
    args: &TrainArgs,
    screen: Screen,
) -> Outcome<RunDir> {
    let Resolved { value, text, hash } = recipe;
    let common = W::common(value);
    let directory = match &args.run {
        Some(directory) => directory.clone(),
        None => free_directory(common.name),
    };
    let started = RunStarted {
        study: W::NAME.to_owned(),
        name: common.name.to_owned(),
        seed: common.seed,
        recipe_hash: hash.clone(),
        etude: env!("CARGO_PKG_VERSION").to_owned(),
        machine: machine::facts(),
    };
    let run = RunDir::create(&directory, text, started).asked()?;
    screen.say(format!(
        "{}: {}, seed {}",
        directory.display(),
        path.display(),
        common.seed
    ));
    Ok(run)
}

/// The recipe of a run that goes on, if it is the one that the run began with.
fn resumed<W: StudyWalk>(
    run: &RunDir,
    replay: &Replay,
    text: &str,
    screen: Screen,
) -> Outcome<W::Recipe> {
    let directory = run.path();
    let origin = directory.join("recipe.toml").display().to_string();
    let Resolved { value, hash, .. } = recipe::resolve::<W::Recipe>(text, &origin, &[]).asked()?;
    if let Some(started) = replay.started()
        && started.recipe_hash != hash
    {
        return Err(Failure::Asked(anyhow::anyhow!(
            "{origin} was changed since the run began: its hash is {hash}, but the journal's is {}; \
             restore it, or begin another run with the changed recipe",
            started.recipe_hash
        )));
    }
    let committed = match W::only_evaluates(&value) {
        true => "an evaluation".to_owned(),
        false => {
            let steps = replay.last_step("rl").map_or(0, |step| step.step);
            format!("{steps} reinforcement steps are committed")
        }
    };
    screen.say(format!("{}: going on; {committed}", directory.display()));
    if replay.recovered.torn_bytes > 0 || !replay.recovered.leftovers.is_empty() {
        screen.say(format!(
            "  the last process was cut short: {} bytes of a half-written record and {} uncommitted \
             files were removed",
            replay.recovered.torn_bytes,
            replay.recovered.leftovers.len()
        ));
    }
    Ok(value)
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
pub(crate) fn stop_on_request(runtime: &Runtime, stop: &Stop, screen: Screen) -> Outcome<()> {
    // The handlers stand when this returns, so no signal of a started run goes unheard.
    let _entered = runtime.enter();
    let mut interrupts = signal(SignalKind::interrupt()).failed()?;
    let mut terminations = signal(SignalKind::terminate()).failed()?;
    let stop = stop.clone();
    runtime.spawn(async move {
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
