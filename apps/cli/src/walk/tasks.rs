//! Files of tasks: those that a run keeps, and those that a recipe names.

use std::{path::Path, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};

use super::Frame;
use crate::{
    failure::{Classify, Failure, Outcome},
    screen::count_of,
};

/// The file of the training tasks below `tasks/` of a run.
pub(crate) const TRAIN: &str = "train.jsonl";
/// The file of the held-out tasks.
pub(crate) const EVAL: &str = "eval.jsonl";

/// The tasks of a run.
pub(crate) struct TaskSets<T> {
    pub(crate) train: Vec<Arc<T>>,
    pub(crate) eval: Vec<Arc<T>>,
}

impl Frame<'_> {
    /// Keeps tasks in the run.
    pub(crate) fn write_tasks<T: Serialize>(&self, name: &str, tasks: &[T]) -> Outcome<()> {
        let mut lines = Vec::new();
        for task in tasks {
            serde_json::to_writer(&mut lines, task).failed()?;
            lines.push(b'\n');
        }
        self.run.write_tasks(name, &lines).failed()?;
        Ok(())
    }

    /// The tasks that the run keeps.
    pub(crate) fn read_tasks<T: DeserializeOwned>(&self) -> Outcome<TaskSets<T>> {
        Ok(TaskSets {
            train: self.read_set(TRAIN)?,
            eval: self.read_set(EVAL)?,
        })
    }

    /// One file of them.
    pub(crate) fn read_set<T: DeserializeOwned>(&self, name: &str) -> Outcome<Vec<Arc<T>>> {
        let path = self.run.path().join("tasks").join(name);
        // Recipes that only evaluate may have nothing to train on.
        if std::fs::metadata(&path).is_ok_and(|file| file.len() == 0) {
            return Ok(Vec::new());
        }
        let tasks: Vec<T> = dataset::read_jsonl(&path).failed()?;
        Ok(tasks.into_iter().map(Arc::new).collect())
    }
}

/// The first `n` of the tasks that were read from `path`.
pub(crate) fn first_of<T>(mut tasks: Vec<T>, path: &Path, n: usize) -> Outcome<Vec<T>> {
    if tasks.len() < n {
        let found = count_of(tasks.len(), "task");
        let asked = if n == 1 { "is" } else { "are" };
        return Err(Failure::Asked(anyhow::anyhow!(
            "{} has {found} for this side, but {n} {asked} asked for (tasks.train and tasks.eval)",
            path.display()
        )));
    }
    tasks.truncate(n);
    Ok(tasks)
}
