//! Phase `tasks`: bugs planted in the packages that come with the program, or tasks of a file.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf, absolute},
    sync::Arc,
};

use anyhow::anyhow;
use journal::RunDir;
use repair::{PACKAGES, Package, Task, read_tasks};

use super::{RepairRun, recipe::Recipe};
use crate::{
    failure::{Classify, Failure, Outcome},
    walk::tasks::{EVAL, first_of},
};

impl RepairRun<'_> {
    pub(super) fn tasks(&self) -> Outcome<Vec<Arc<Task>>> {
        let frame = self.frame;
        frame
            .screen
            .headline("Tasks: repositories with failing tests");
        frame.phase("tasks", || {
            let tasks = tasks_of(self.recipe, |package| unpack(frame.run, package))?;
            frame.write_tasks(EVAL, &tasks)?;
            Ok(0)
        })?;
        let tasks: Vec<Arc<Task>> = frame.read_set(EVAL)?;
        let mut packages: BTreeMap<&str, usize> = BTreeMap::new();
        for task in &tasks {
            *packages.entry(task.public.repo.as_str()).or_default() += 1;
        }
        let packages: Vec<String> = packages
            .iter()
            .map(|(name, n)| format!("{n} of {name}"))
            .collect();
        frame.screen.say(format!(
            "  {} to repair: {}",
            tasks.len(),
            packages.join(", ")
        ));
        Ok(tasks)
    }
}

/// The tasks that a recipe evaluates on; `unpack` gives the folder of a package that comes with the program.
pub(super) fn tasks_of(
    recipe: &Recipe,
    unpack: impl Fn(&Package) -> Outcome<PathBuf>,
) -> Outcome<Vec<Task>> {
    let limit = recipe.tasks.limit;
    match &recipe.tasks.eval {
        Some(file) => {
            let tasks = tasks_of_file(file)?;
            let n = limit.unwrap_or(tasks.len());
            first_of(tasks, file, n)
        }
        None => {
            let mut tasks = Vec::new();
            for package in &PACKAGES {
                let folder = unpack(package)?;
                tasks.extend(package.tasks(&folder).failed()?);
            }
            // The first tasks of a run are of all packages, not of the first alone.
            if let Some(limit) = limit {
                tasks = in_turns(tasks);
                tasks.truncate(limit);
            }
            Ok(tasks)
        }
    }
}

/// The tasks of a file that the user named.
fn tasks_of_file(file: &Path) -> Outcome<Vec<Task>> {
    let tasks = read_tasks(file).asked()?;
    match tasks.is_empty() {
        true => Err(Failure::Asked(anyhow!("{} has no task", file.display()))),
        false => Ok(tasks),
    }
}

/// The same, to be played.
pub(super) fn shared_tasks_of_file(file: &Path) -> Outcome<Vec<Arc<Task>>> {
    Ok(tasks_of_file(file)?.into_iter().map(Arc::new).collect())
}

/// A package's files below the tasks of the run: they stay with it.
fn unpack(run: &RunDir, package: &Package) -> Outcome<PathBuf> {
    let place = format!("packages/{}", package.name);
    for (path, content) in package.files {
        run.write_tasks(&format!("{place}/{path}"), content.as_bytes())
            .failed()?;
    }
    absolute(run.path().join("tasks").join(place)).failed()
}

/// One task of each package in turn.
fn in_turns(tasks: Vec<Task>) -> Vec<Task> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut placed: Vec<(usize, Task)> = tasks
        .into_iter()
        .map(|task| {
            let turn = seen.entry(task.public.repo.clone()).or_default();
            *turn += 1;
            (*turn, task)
        })
        .collect();
    placed.sort_by_key(|(turn, _)| *turn);
    placed.into_iter().map(|(_, task)| task).collect()
}
