//! Phase `tasks`: dialogues of the small world, or of files.

use std::{collections::BTreeSet, path::Path};

use recall::{
    Task,
    tiny::{Draft, Split},
};
use record::Seed;

use super::{RecallRun, recipe::Recipe};
use crate::{
    failure::Outcome,
    walk::tasks::{EVAL, TRAIN, TaskSets, first_tasks},
};

impl RecallRun<'_> {
    pub(super) fn tasks(&self) -> Outcome<TaskSets<Task>> {
        let frame = self.frame;
        frame
            .screen
            .headline("Tasks: long dialogues, and questions about them");
        frame.phase("tasks", || {
            frame.write_tasks(TRAIN, &training_tasks(self.recipe)?)?;
            frame.write_tasks(EVAL, &held_out_tasks(self.recipe)?)?;
            Ok(0)
        })?;
        let sets: TaskSets<Task> = frame.read_tasks()?;
        let documents: BTreeSet<&str> = sets
            .train
            .iter()
            .map(|task| task.facts.document.as_str())
            .collect();
        let held_out = sets.eval.iter();
        let shared = held_out
            .filter(|task| documents.contains(task.facts.document.as_str()))
            .count();
        let apart = match shared {
            0 => "disjoint by document".to_owned(),
            n => format!("but {n} of those are about documents that are trained on"),
        };
        let all = || sets.train.iter().chain(&sets.eval);
        let targets: usize = all().map(|task| task.facts.questions.len()).sum();
        let turns: usize = all().map(|task| task.public.turns.len()).sum();
        let tasks = all().count().max(1) as f64;
        frame.screen.say(format!(
            "  {} to train on, {} held out, {apart}; on average {:.1} turns to remember and {:.1} questions",
            sets.train.len(),
            sets.eval.len(),
            (turns - targets) as f64 / tasks,
            targets as f64 / tasks,
        ));
        Ok(sets)
    }
}

pub(super) fn training_tasks(recipe: &Recipe) -> Outcome<Vec<Task>> {
    let tasks = &recipe.tasks;
    made(
        recipe,
        Split::Train,
        tasks.train,
        tasks.train_file.as_deref(),
    )
}

pub(super) fn held_out_tasks(recipe: &Recipe) -> Outcome<Vec<Task>> {
    let tasks = &recipe.tasks;
    made(
        recipe,
        Split::HeldOut,
        tasks.eval,
        tasks.eval_file.as_deref(),
    )
}

fn made(recipe: &Recipe, split: Split, n: usize, file: Option<&Path>) -> Outcome<Vec<Task>> {
    if let Some(path) = file {
        return first_tasks(path, n);
    }
    let (seed, granularity) = (Seed(recipe.seed), recipe.tasks.granularity);
    let mut tasks = Vec::new();
    for index in 0.. {
        let draft = Draft::new(seed, split, index, recipe.tasks.questions);
        tasks.extend(Task::of_dialogue(&draft.dialogue(), granularity));
        if tasks.len() >= n {
            break;
        }
    }
    tasks.truncate(n);
    Ok(tasks)
}

/// Reads the files that a recipe names.
pub(super) fn check_files(recipe: &Recipe) -> Outcome<()> {
    if recipe.tasks.train_file.is_some() {
        training_tasks(recipe)?;
    }
    if recipe.tasks.eval_file.is_some() {
        held_out_tasks(recipe)?;
    }
    Ok(())
}
