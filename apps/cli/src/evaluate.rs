//! `etude eval`: evaluate a run's policies again, on its own tasks or others. Changes nothing in the run.

use std::{path::Path, sync::Arc};

use chat::Chat;
use critique::Task;
use engine::Model;
use journal::RunReader;
use record::Seed;
use serde_json::json;
use train::Stop;

use crate::{
    args::EvalArgs,
    failure::{Classify, Failure, Outcome},
    report::{print_json, print_text},
    screen::Screen,
    walk::{
        Instruments,
        evaluate::{Played, line},
        recipe::Recipe,
        reinforce::CRITIC_RL,
        supervise::{CRITIC_SFT, REVISER},
    },
};

pub(crate) fn run(args: &EvalArgs, screen: Screen) -> Outcome<()> {
    let reader = RunReader::open(&args.run).asked()?;
    let origin = args.run.join("recipe.toml").display().to_string();
    let recipe: Recipe = recipe::resolve(&reader.recipe().asked()?, &origin, &[])
        .asked()?
        .value;
    let file = args
        .tasks
        .clone()
        .unwrap_or_else(|| args.run.join("tasks").join("eval.jsonl"));
    let tasks: Vec<Task> = dataset::read_jsonl(&file).asked()?;
    let tasks: Vec<Arc<Task>> = tasks.into_iter().map(Arc::new).collect();
    let reviser_directory = reader.checkpoint_path(REVISER).asked()?;
    let chat = Chat::load(&reviser_directory).asked()?;
    let instruments = Instruments::start(&recipe)?;
    let stop = Stop::default();
    let reviser = Arc::new(instruments.policy(REVISER, &chat, load(&reviser_directory)?)?);
    let mut results = Vec::new();
    for (name, checkpoint) in [("sft", CRITIC_SFT), ("rl", CRITIC_RL)] {
        if reader.replay().checkpoint(checkpoint).is_none() {
            continue;
        }
        let directory = reader.checkpoint_path(checkpoint).asked()?;
        let critic = instruments.policy(
            checkpoint,
            &Chat::load(&directory).asked()?,
            load(&directory)?,
        )?;
        let samples = args.samples.unwrap_or(recipe.eval.samples);
        let suite = Played {
            name,
            policy: checkpoint,
            critic: Arc::new(critic),
            sampling: recipe.critic.sampling(),
            reviser: reviser.clone(),
            tasks: &tasks,
            samples,
            seed: Seed(args.seed.unwrap_or(recipe.seed)),
        };
        let work = screen.work(name, tasks.len() as u64 * u64::from(samples));
        let evaluated = suite
            .play(&instruments, &recipe, &stop, |done| work.at(done))?
            .ok_or_else(|| Failure::Interrupted {
                run: args.run.clone(),
            })?;
        work.done(format!(
            "{name}: {} tasks, {} critiques each",
            tasks.len(),
            samples
        ));
        results.push(evaluated);
    }
    if results.is_empty() {
        return Err(Failure::Asked(anyhow::anyhow!(
            "{} has no trained critic yet; let it go on with `etude train --resume`",
            args.run.display()
        )));
    }
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
        return print_json(&json!({ "tasks": file, "evaluations": evaluations }));
    }
    let lines: Vec<String> = results.iter().map(line).collect();
    print_text(&lines.join("\n"))
}

fn load(directory: &Path) -> Outcome<Arc<Model>> {
    Ok(Arc::new(Model::load(directory).asked()?))
}
