//! Phase `tasks`: drawn from the tiny world and checked in the sandbox, or read from files.

use std::{collections::BTreeSet, path::Path};

use critique::{
    Task,
    data::read_tasks,
    make_tasks,
    tiny::{self, Split, TaskSet},
};
use serde_json::json;

use super::{CritiqueRun, critiques::check_file, recipe::Recipe};
use crate::{
    failure::{Classify, Outcome},
    walk::tasks::{EVAL, TRAIN, TaskSets, first_of},
};

/// Held-out tasks whose function is also one of the training tasks.
fn shared_functions(sets: &TaskSets<Task>) -> usize {
    let trained: BTreeSet<&str> = sets
        .train
        .iter()
        .map(|task| task.facts.function.as_str())
        .collect();
    let held_out = sets.eval.iter();
    held_out
        .filter(|task| trained.contains(task.facts.function.as_str()))
        .count()
}

impl CritiqueRun<'_> {
    pub(super) fn tasks(&self) -> Outcome<TaskSets<Task>> {
        let frame = self.frame;
        let files = &self.recipe.tasks;
        frame
            .screen
            .headline(match (&files.train_file, &files.eval_file) {
                (Some(_), Some(_)) => "Tasks: problems and programs of the given files",
                _ => match files.set {
                    TaskSet::Functions => "Tasks: small Python functions with planted bugs",
                    TaskSet::Programs => "Tasks: small Python programs with planted bugs",
                },
            });
        frame.phase("tasks", || {
            let tasks = &self.recipe.tasks;
            self.make(
                Split::Train,
                tasks.train,
                tasks.train_file.as_deref(),
                TRAIN,
            )?;
            self.make(Split::HeldOut, tasks.eval, tasks.eval_file.as_deref(), EVAL)?;
            frame
                .run
                .note("sandbox/tier", self.instruments.sandbox.tier().to_string())
                .failed()?;
            Ok(0)
        })?;
        let sets = frame.read_tasks()?;
        let shared = shared_functions(&sets);
        let apart = match shared {
            0 => "disjoint by function and so by bug".to_owned(),
            n => format!("but {n} of those ask for functions that are trained on"),
        };
        frame.screen.say(format!(
            "  {} to train on, {} held out, {apart}; sandbox tier {}",
            sets.train.len(),
            sets.eval.len(),
            self.instruments.sandbox.tier(),
        ));
        Ok(sets)
    }

    fn make(&self, split: Split, n: usize, file: Option<&Path>, name: &str) -> Outcome<()> {
        let tasks = match file {
            Some(path) => read_first(path, n)?,
            None => self.draw(split, n)?,
        };
        self.frame.write_tasks(name, &tasks)
    }

    fn draw(&self, split: Split, n: usize) -> Outcome<Vec<Task>> {
        let frame = self.frame;
        let work = frame
            .screen
            .work(&format!("{} tasks", split.name()), n as u64);
        let share_right = self.recipe.tasks.share_right;
        let judge = &self.instruments.judge;
        let drafts = tiny::drafts(self.recipe.tasks.set, frame.seed, split, share_right);
        let making = make_tasks(judge, drafts, n, |made| {
            work.at(made as u64);
        });
        let made = frame.engines.runtime.block_on(async {
            tokio::select! {
                made = making => made.failed(),
                () = frame.stop.wait() => Err(frame.interrupted()),
            }
        });
        let (made, checked) = made?;
        work.done(format!(
            "{}: {} made; every right program passes its tests, every wrong one fails ({} drafts \
             thrown away: harmless bugs, constant outputs)",
            split.name(),
            checked.kept,
            checked.harmless + checked.constant + checked.broken,
        ));
        frame
            .run
            .note(&format!("tasks/{}", split.name()), json!(checked))
            .failed()?;
        Ok(made.into_iter().map(|made| made.task).collect())
    }
}

/// The first `n` tasks of a file that the user named: tasks as a run keeps them, or rows of problems and programs.
fn read_first(path: &Path, n: usize) -> Outcome<Vec<Task>> {
    first_of(read(path)?, path, n)
}

/// All of them.
pub(super) fn read(path: &Path) -> Outcome<Vec<Task>> {
    read_tasks(path, SHOWN_ERRORS).asked()
}

/// Bad rows that are shown; all are counted.
const SHOWN_ERRORS: usize = 50;

/// Reads the files that a recipe names.
pub(super) fn check_files(recipe: &Recipe) -> Outcome<()> {
    let tasks = &recipe.tasks;
    for (file, n) in [
        (&tasks.train_file, tasks.train),
        (&tasks.eval_file, tasks.eval),
    ] {
        if let Some(path) = file {
            read_first(path, n)?;
        }
    }
    for file in recipe
        .sft
        .critic
        .iter()
        .filter_map(|stage| stage.file.as_ref())
    {
        check_file(file)?;
    }
    super::rounds::check_file(recipe)?;
    super::pairs::check_file(recipe)
}
