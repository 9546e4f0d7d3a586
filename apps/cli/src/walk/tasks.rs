//! Phase `tasks`: drawn from the tiny world and checked in the sandbox, or read from files.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use critique::{Task, make_tasks, tiny::Split};
use serde_json::json;

use super::{Walk, recipe::Recipe};
use crate::failure::{Classify, Failure, Outcome};

const TRAIN: &str = "train.jsonl";
const EVAL: &str = "eval.jsonl";

/// The tasks of a run.
pub(crate) struct TaskSets {
    pub(crate) train: Vec<Arc<Task>>,
    pub(crate) eval: Vec<Arc<Task>>,
}

impl TaskSets {
    /// Held-out tasks whose function is also one of the training tasks.
    fn shared_functions(&self) -> usize {
        let trained: BTreeSet<&str> = self
            .train
            .iter()
            .map(|task| task.facts.function.as_str())
            .collect();
        let shared = |task: &&Arc<Task>| trained.contains(task.facts.function.as_str());
        self.eval.iter().filter(shared).count()
    }
}

impl Walk<'_> {
    pub(super) fn tasks(&self) -> Outcome<TaskSets> {
        self.screen
            .headline("Tasks: small Python functions with planted bugs");
        self.phase("tasks", || {
            let tasks = &self.recipe.tasks;
            self.make(
                Split::Train,
                tasks.train,
                tasks.train_file.as_deref(),
                TRAIN,
            )?;
            self.make(Split::HeldOut, tasks.eval, tasks.eval_file.as_deref(), EVAL)?;
            self.run
                .note("sandbox/tier", self.instruments.sandbox.tier().to_string())
                .failed()?;
            Ok(0)
        })?;
        let sets = TaskSets {
            train: self.read(TRAIN)?,
            eval: self.read(EVAL)?,
        };
        let shared = sets.shared_functions();
        let apart = match shared {
            0 => "disjoint by function and so by bug".to_owned(),
            n => format!("but {n} of those ask for functions that are trained on"),
        };
        self.screen.say(format!(
            "  {} to train on, {} held out, {apart}; sandbox tier {}",
            sets.train.len(),
            sets.eval.len(),
            self.instruments.sandbox.tier(),
        ));
        Ok(sets)
    }

    fn make(&self, split: Split, n: usize, file: Option<&Path>, name: &str) -> Outcome<()> {
        let tasks = match file {
            Some(path) => read_tasks(path, n)?,
            None => self.draw(split, n)?,
        };
        let mut lines = Vec::new();
        for task in &tasks {
            serde_json::to_writer(&mut lines, task).failed()?;
            lines.push(b'\n');
        }
        self.run.write_tasks(name, &lines).failed()?;
        Ok(())
    }

    fn draw(&self, split: Split, n: usize) -> Outcome<Vec<Task>> {
        let work = self
            .screen
            .work(&format!("{} tasks", split.name()), n as u64);
        let share_right = self.recipe.tasks.share_right;
        let judge = &self.instruments.judge;
        let making = make_tasks(judge, self.seed(), split, n, share_right, |made| {
            work.at(made as u64);
        });
        let made = self.instruments.runtime.block_on(async {
            tokio::select! {
                made = making => made.failed(),
                () = self.stop.wait() => Err(self.interrupted()),
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
        self.run
            .note(&format!("tasks/{}", split.name()), json!(checked))
            .failed()?;
        Ok(made.into_iter().map(|made| made.task).collect())
    }

    fn read(&self, name: &str) -> Outcome<Vec<Arc<Task>>> {
        let path = self.path().join("tasks").join(name);
        let tasks: Vec<Task> = dataset::read_jsonl(&path).failed()?;
        Ok(tasks.into_iter().map(Arc::new).collect())
    }
}

/// Reads the files that a recipe names, so that a bad one is refused before anything is done.
pub(crate) fn check_task_files(recipe: &Recipe) -> Outcome<()> {
    let tasks = &recipe.tasks;
    for (file, n) in [
        (&tasks.train_file, tasks.train),
        (&tasks.eval_file, tasks.eval),
    ] {
        if let Some(path) = file {
            read_tasks(path, n)?;
        }
    }
    Ok(())
}

/// The first `n` tasks of a file that the user named.
pub(crate) fn read_tasks(path: &Path, n: usize) -> Outcome<Vec<Task>> {
    let mut tasks: Vec<Task> = dataset::read_jsonl(path).asked()?;
    if tasks.len() < n {
        let found = tasks.len();
        return Err(Failure::Asked(anyhow::anyhow!(
            "{} has {found} tasks, but {n} are asked for; lower tasks.train or tasks.eval",
            path.display()
        )));
    }
    tasks.truncate(n);
    Ok(tasks)
}
