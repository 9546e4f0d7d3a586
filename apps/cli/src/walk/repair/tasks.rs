//! Phase `tasks`: bugs planted in the packages that come with the program, or tasks of a file.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf, absolute},
    sync::Arc,
};

use anyhow::anyhow;
use journal::RunDir;
use repair::{PACKAGES, Package, Place, Task, read_tasks};

use super::{RepairRun, recipe::Recipe};
use crate::{
    failure::{Classify, Failure, Outcome},
    sandboxes::BackendName,
    walk::tasks::{EVAL, TRAIN, TaskSets, first_of},
};

impl RepairRun<'_> {
    pub(super) fn tasks(&self) -> Outcome<TaskSets<Task>> {
        let frame = self.frame;
        frame
            .screen
            .headline("Tasks: repositories with failing tests");
        let trains = self.recipe.trains();
        frame.phase("tasks", || {
            let tasks = tasks_of(self.recipe, |package| unpack(frame.run, package))?;
            if trains {
                frame.write_tasks(TRAIN, &tasks.train)?;
            }
            frame.write_tasks(EVAL, &tasks.eval)?;
            Ok(0)
        })?;
        let train = match trains {
            true => frame.read_set(TRAIN)?,
            false => Vec::new(),
        };
        let sets: TaskSets<Task> = TaskSets {
            train,
            eval: frame.read_set(EVAL)?,
        };
        if trains {
            self.say_packages("train on", &sets.train);
        }
        self.say_packages("repair", &sets.eval);
        Ok(sets)
    }

    fn say_packages(&self, what_for: &str, tasks: &[Arc<Task>]) {
        let mut packages: BTreeMap<&str, usize> = BTreeMap::new();
        for task in tasks {
            *packages.entry(task.public.repo.as_str()).or_default() += 1;
        }
        let packages: Vec<String> = packages
            .iter()
            .map(|(name, n)| format!("{n} of {name}"))
            .collect();
        let (n, packages) = (tasks.len(), packages.join(", "));
        self.frame
            .screen
            .say(format!("  {n} to {what_for}: {packages}"));
    }
}

/// What a recipe trains and evaluates on.
pub(super) struct Tasks {
    pub(super) train: Vec<Task>,
    pub(super) eval: Vec<Task>,
}

/// The tasks of a recipe; `unpack` gives the folder of a package that comes with the program. A recipe that only
/// evaluates takes all packages; one that trains those that are for it, and it is evaluated on the others.
pub(super) fn tasks_of(
    recipe: &Recipe,
    unpack: impl Fn(&Package) -> Outcome<PathBuf>,
) -> Outcome<Tasks> {
    let (settings, trains) = (&recipe.tasks, recipe.trains());
    let eval = match &settings.eval {
        Some(file) => {
            let tasks = tasks_of_file(file)?;
            let n = settings.limit.unwrap_or(tasks.len()).min(tasks.len());
            // Of a file without any nothing can be said.
            first_of(tasks, file, n.max(1))?
        }
        None => {
            let held_out = |package: &Package| !(trains && package.is_for_training);
            of_packages(held_out, settings.limit, &unpack)?
        }
    };
    let train = match (trains, settings.train.is_empty()) {
        (false, _) => Vec::new(),
        (true, true) => {
            let for_training = |package: &Package| package.is_for_training;
            of_packages(for_training, settings.train_limit, &unpack)?
        }
        (true, false) => {
            let mut tasks = Vec::new();
            for file in &settings.train {
                tasks.extend(tasks_of_file(file)?);
            }
            tasks.truncate(settings.train_limit.unwrap_or(usize::MAX));
            tasks
        }
    };
    check_apart(&train, &eval)?;
    if recipe.sandbox.backend == BackendName::Local {
        check_places(train.iter().chain(&eval))?;
    }
    Ok(Tasks { train, eval })
}

/// Tasks of the packages that come with the program; of the first so many, each package has its share.
fn of_packages(
    wanted: impl Fn(&Package) -> bool,
    limit: Option<usize>,
    unpack: impl Fn(&Package) -> Outcome<PathBuf>,
) -> Outcome<Vec<Task>> {
    let mut tasks = Vec::new();
    for package in PACKAGES.iter().filter(|package| wanted(package)) {
        let folder = unpack(package)?;
        tasks.extend(package.tasks(&folder).failed()?);
    }
    if let Some(limit) = limit {
        tasks = in_turns(tasks);
        tasks.truncate(limit);
    }
    Ok(tasks)
}

/// Jails of this machine hold folders.
fn check_places<'a>(mut tasks: impl Iterator<Item = &'a Task>) -> Outcome<()> {
    let in_image =
        |task: &&Task| matches!(task.place, Place::Image { .. } | Place::PatchedImage { .. });
    match tasks.find(in_image) {
        None => Ok(()),
        Some(task) => Err(Failure::Asked(anyhow!(
            "task {} is in a container image, and the sandbox is this machine's own: give `sandbox.backend = \
             \"docker\"` (of eval --sandbox-backend docker)",
            task.id
        ))),
    }
}

/// No repository is trained and evaluated on.
fn check_apart(train: &[Task], eval: &[Task]) -> Outcome<()> {
    let trained: BTreeSet<&str> = train.iter().map(|task| task.public.repo.as_str()).collect();
    let shared = eval
        .iter()
        .find(|task| trained.contains(task.public.repo.as_str()));
    match shared {
        None => Ok(()),
        Some(task) => Err(Failure::Asked(anyhow!(
            "{} has tasks to train on and tasks to evaluate on, {} among them; what is evaluated has to be held \
             out: take it out of tasks.train or of tasks.eval",
            task.public.repo,
            task.id
        ))),
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
