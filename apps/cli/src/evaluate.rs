//! `etude eval`: evaluate a run's policies again, on its own tasks or others, which changes nothing in the run; or
//! what a recipe without training evaluates, as a run of its own.

use std::path::Path;

use anyhow::anyhow;
use journal::RunReader;
use serde_json::json;
use train::Stop;

use crate::{
    args::{EvalArgs, TrainArgs},
    failure::{Classify, Failure, Outcome},
    report::{print_json, print_text},
    screen::Screen,
    walk::{Again, Commands, StudyWalk},
};

pub(crate) fn run(args: &EvalArgs, screen: Screen) -> Outcome<()> {
    let path = match (&args.run, &args.resume) {
        (Some(path), _) => path,
        (None, Some(run)) => return go_on(run, args, screen),
        (None, None) => return Err(Failure::Asked(anyhow!("name a recipe or a run"))),
    };
    if path.is_file() {
        return of_recipe(path, args, screen);
    }
    if args.into.is_some() || !args.set.is_empty() || !args.flags.sets().is_empty() {
        return Err(Failure::Asked(anyhow!(
            "{} is no recipe; --run, --set and what is short for it are for evaluations that a recipe begins",
            path.display()
        )));
    }
    if !path.exists() {
        return Err(Failure::Asked(anyhow!(
            "{}: there is no such recipe or run",
            path.display()
        )));
    }
    let reader = RunReader::open(path).asked()?;
    let study = Commands::of_run(path, &reader.recipe().asked()?)?;
    (study.evaluate)(args, &reader, screen)
}

/// Goes on with a run of a recipe that only evaluates.
fn go_on(run: &Path, args: &EvalArgs, screen: Screen) -> Outcome<()> {
    if !args.flags.sets().is_empty() {
        return Err(Failure::Asked(anyhow!(
            "{} has its recipe, and goes on with that; flags that are short for --set are for one that begins",
            run.display()
        )));
    }
    let resumed = TrainArgs {
        recipe: None,
        run: None,
        set: Vec::new(),
        resume: Some(run.to_owned()),
        json: args.json,
    };
    crate::train::run(&resumed, screen).map_err(Failure::of_evaluation)
}

/// Begins a run of a recipe that only evaluates.
fn of_recipe(path: &Path, args: &EvalArgs, screen: Screen) -> Outcome<()> {
    if args.tasks.is_some() || args.samples.is_some() || args.seed.is_some() {
        return Err(Failure::Asked(anyhow!(
            "--tasks, --samples and --seed are for runs; a recipe says them itself: --set tasks.eval=FILE, \
             --set eval.samples=N, --set seed=N"
        )));
    }
    let set = [args.flags.sets(), args.set.clone()].concat();
    let study = Commands::of_recipe(path, &set)?;
    if !(study.only_evaluates)(path, &set)? {
        return Err(Failure::Asked(anyhow!(
            "{} trains before it evaluates: `etude train {}` does both, and `etude eval DIR` evaluates such a \
             run again",
            path.display(),
            path.display()
        )));
    }
    let train = TrainArgs {
        recipe: Some(path.to_owned()),
        run: args.into.clone(),
        set,
        resume: None,
        json: args.json,
    };
    (study.train)(path, &train, screen).map_err(Failure::of_evaluation)
}

/// Evaluates a run of a study.
pub(crate) fn again<W: StudyWalk>(
    args: &EvalArgs,
    reader: &RunReader,
    screen: Screen,
) -> Outcome<()> {
    let origin = reader.path().join("recipe.toml").display().to_string();
    let recipe = recipe::resolve::<W::Recipe>(&reader.recipe().asked()?, &origin, &[])
        .asked()?
        .value;
    let own = || reader.path().join("tasks").join("eval.jsonl");
    let again = Again {
        args,
        reader,
        screen,
        stop: &Stop::default(),
        tasks: args.tasks.clone().unwrap_or_else(own),
    };
    let results = W::evaluate(&again, &recipe)?;
    if args.json {
        let evaluations: Vec<_> = results
            .iter()
            .map(|one| {
                json!({
                    "name": one.name,
                    "policy": one.policy,
                    "n_tasks": one.n_tasks,
                    "metrics": one.metrics,
                    "timings": one.timings,
                    "faulted": one.tally.faulted(),
                })
            })
            .collect();
        return print_json(&json!({ "tasks": again.tasks, "evaluations": evaluations }));
    }
    let lines: Vec<String> = results.iter().map(|one| W::line(&recipe, one)).collect();
    print_text(&lines.join("\n"))
}
