//! `etude eval`: evaluate a run's policies again, on its own tasks or others. Changes nothing in the run.

use journal::RunReader;
use serde_json::json;
use train::Stop;

use crate::{
    args::EvalArgs,
    failure::{Classify, Outcome},
    report::{print_json, print_text},
    screen::Screen,
    walk::{Again, Commands, StudyWalk},
};

pub(crate) fn run(args: &EvalArgs, screen: Screen) -> Outcome<()> {
    let reader = RunReader::open(&args.run).asked()?;
    let study = Commands::of_run(&args.run, &reader.recipe().asked()?)?;
    (study.evaluate)(args, &reader, screen)
}

/// Evaluates a run of a study.
pub(crate) fn again<W: StudyWalk>(
    args: &EvalArgs,
    reader: &RunReader,
    screen: Screen,
) -> Outcome<()> {
    let origin = args.run.join("recipe.toml").display().to_string();
    let recipe = recipe::resolve::<W::Recipe>(&reader.recipe().asked()?, &origin, &[])
        .asked()?
        .value;
    let own = || args.run.join("tasks").join("eval.jsonl");
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
                    "faulted": one.tally.faulted(),
                })
            })
            .collect();
        return print_json(&json!({ "tasks": again.tasks, "evaluations": evaluations }));
    }
    let lines: Vec<String> = results.iter().map(W::line).collect();
    print_text(&lines.join("\n"))
}
