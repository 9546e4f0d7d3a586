//! The evaluation: every task is repaired once or several times, and every episode kept as it ends.

use std::{collections::BTreeMap, sync::Arc};

use eval::Evaluated;
use journal::TestRun;
use record::Seed;
use repair::{Repair, Task, metrics::notes_of, play::Notes};
use serde_json::{Value, json};

use super::{
    RepairRun,
    instruments::Instruments,
    players::{cast, study, who},
    recipe::Recipe,
    tasks::shared_tasks_of_file,
};
use crate::{
    failure::{Classify, Outcome},
    walk::{
        Again,
        evaluate::{Played, faults, share},
    },
};

/// Of a recipe without training there is one evaluation.
const NAME: &str = "eval";

impl RepairRun<'_> {
    pub(super) fn evaluate(&self, tasks: &[Arc<Task>]) -> Outcome<()> {
        let (frame, recipe) = (self.frame, self.recipe);
        let policy = who(recipe);
        frame.screen.headline(format!("Repair: {policy}"));
        let suite = Played {
            name: NAME,
            policy: &policy,
            study: study(recipe, self.instruments)?,
            roles: cast(recipe, &frame.engines.runtime)?,
            tasks,
            samples: recipe.eval.samples,
            seed: frame.seed,
            rollout: &recipe.rollout,
            keeps: true,
        };
        frame.suite_with(&suite, line, |evaluated, runs| self.logs(evaluated, runs))?;
        self.predictions(&policy)
    }

    /// The trace of every episode, in the order of tasks, as lines of `logs/events.jsonl`; and the runs of tests.
    fn logs(&self, evaluated: &Evaluated, runs: Vec<Value>) -> Outcome<()> {
        let episodes = evaluated.groups.iter().flat_map(|group| &group.episodes);
        for episode in episodes {
            let Some(notes) = notes_of(episode) else {
                continue;
            };
            for event in notes.events(&episode.task) {
                self.frame.run.event("planner_step", event).failed()?;
            }
        }
        for run in runs {
            let run: TestRun = serde_json::from_value(run).failed()?;
            self.frame.run.test_run(&run).failed()?;
        }
        Ok(())
    }

    /// The patches as SWE-bench's harness takes them: `predictions.jsonl`.
    fn predictions(&self, policy: &str) -> Outcome<()> {
        let frame = self.frame;
        let replay = frame.run.replay();
        let Some(episodes) = replay
            .evaluation(NAME)
            .and_then(|one| one.episodes.as_ref())
        else {
            return Ok(());
        };
        let groups = frame.run.read_episodes(episodes).failed()?;
        let mut lines = Vec::new();
        for group in &groups {
            let notes = group.episodes.iter().find_map(notes_of);
            let prediction = json!({
                "instance_id": group.task.0,
                "model_name_or_path": policy,
                "model_patch": notes.map_or_else(String::new, |notes: Notes| notes.patch),
            });
            serde_json::to_writer(&mut lines, &prediction).failed()?;
            lines.push(b'\n');
        }
        frame.run.write_view("predictions.jsonl", &lines).failed()
    }
}

/// Plays the evaluation of a run again, on its own tasks or others.
pub(super) fn again(again: &Again<'_>, recipe: &Recipe) -> Outcome<Vec<Evaluated>> {
    let instruments = Instruments::start(recipe)?;
    let tasks = shared_tasks_of_file(&again.tasks)?;
    let policy = who(recipe);
    let suite: Played<'_, Repair> = Played {
        name: NAME,
        policy: &policy,
        study: study(recipe, &instruments)?,
        roles: cast(recipe, &instruments.engines.runtime)?,
        tasks: &tasks,
        samples: again.args.samples.unwrap_or(recipe.eval.samples),
        seed: Seed(again.args.seed.unwrap_or(recipe.seed)),
        rollout: &recipe.rollout,
        keeps: false,
    };
    let evaluated = again.play(&suite, &instruments.engines, || NAME.to_owned())?;
    Ok(vec![evaluated])
}

/// An evaluation in one line.
pub(super) fn line(evaluated: &Evaluated) -> String {
    let mean = |name: &str| {
        evaluated
            .metrics
            .get(name)
            .map_or(f64::NAN, |found| found.value)
    };
    let packages: BTreeMap<&str, f64> = evaluated
        .metrics
        .iter()
        .filter_map(|(name, found)| Some((name.strip_prefix("resolved/repo/")?, found.value)))
        .collect();
    format!(
        "{:<6} resolved {} of {} tasks in {} packages, {:.0} candidates and {:.0} test runs a task{}",
        evaluated.name,
        share(evaluated, "resolved"),
        evaluated.n_tasks,
        packages.len(),
        mean("candidates"),
        mean("test_runs"),
        faults(evaluated),
    )
}
