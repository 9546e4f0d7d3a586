//! Phase `tasks`: drawn from the tiny world and checked in the sandbox, or read from files.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use critique::{
    Prompter, Task,
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

/// What tasks have in common that are of one problem: the function of small worlds, whose statements tell less, and the
/// statement of files, whose names and numbers every file gives anew.
fn problem(task: &Task) -> &str {
    match task.public.prompter {
        Prompter::Tiny => &task.facts.function,
        _ => task.public.statement.trim(),
    }
}

/// Whether the held-out tasks are of problems that are trained on, for people.
fn apart(train: &[Arc<Task>], eval: &[Arc<Task>]) -> String {
    let trained: BTreeSet<&str> = train.iter().map(|task| problem(task)).collect();
    let of_files = eval
        .iter()
        .any(|task| task.public.prompter != Prompter::Tiny);
    let shared = eval.iter().filter(|task| trained.contains(problem(task)));
    match (shared.count(), of_files) {
        (0, false) => "disjoint by function and so by bug".to_owned(),
        (0, true) => "no statement of one is also that of the other".to_owned(),
        (n, false) => format!("but {n} of those ask for functions that are trained on"),
        (n, true) => format!("but {n} of those are of problems that are trained on"),
    }
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
        let tier = self.instruments.sandbox.tier();
        frame.screen.say(match (sets.train.len(), sets.eval.len()) {
            (0, eval) => format!("  {eval} to evaluate on; sandbox tier {tier}"),
            (train, eval) => format!(
                "  {train} to train on, {eval} held out, {}; sandbox tier {tier}",
                apart(&sets.train, &sets.eval)
            ),
        });
        Ok(sets)
    }

    fn make(&self, split: Split, n: usize, file: Option<&Path>, name: &str) -> Outcome<()> {
        let tasks = match file {
            _ if n == 0 => Vec::new(),
            Some(path) => {
                let all = read(path)?;
                if all.len() > n {
                    self.frame.screen.say(format!(
                        "  {}: the first {n} of {}",
                        path.display(),
                        all.len()
                    ));
                }
                first_of(all, path, n)?
            }
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
pub(super) const SHOWN_ERRORS: usize = 50;

/// Reads the files that a recipe names.
pub(super) fn check_files(recipe: &Recipe) -> Outcome<()> {
    let tasks = &recipe.tasks;
    if let Some(path) = tasks.train_file.as_ref().filter(|_| tasks.train > 0) {
        read_first(path, tasks.train)?;
    }
    if let Some(path) = &tasks.eval_file {
        let held_out = read_first(path, tasks.eval)?.into_iter().map(Arc::new);
        // A forest must fit the tasks, which are known here already.
        super::rounds::initial(recipe, &held_out.collect::<Vec<_>>())?;
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

#[cfg(test)]
mod tests {
    use critique::data::task_of_row;
    use dataset::Rows;

    use super::*;

    fn tasks(lines: &[(&str, &str)]) -> Vec<Arc<Task>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pairs.jsonl");
        let text: Vec<String> = lines
            .iter()
            .map(|(id, statement)| {
                serde_json::json!({
                    "id": id, "problem_id": id, "problem": statement, "prompter_type": "code_contests",
                    "sanitized_solution": "print(1)", "success": 0.0,
                    "all_uts": { "inputs": ["1\n"], "outputs": ["1\n"] },
                })
                .to_string()
            })
            .collect();
        std::fs::write(&path, text.join("\n")).unwrap();
        let rows = Rows::open(&path).unwrap();
        rows.map(|row| Arc::new(task_of_row(&row.unwrap()).unwrap()))
            .collect()
    }

    #[test]
    fn problems_of_files_are_told_apart_by_what_they_ask_for() {
        // Two files number their problems from 0; a problem may come with another number.
        let trained = tasks(&[("0", "Add two numbers."), ("1", "Sort a list.")]);
        let others = tasks(&[("0", "Reverse a text."), ("1", "Count the words.")]);
        assert_eq!(
            apart(&trained, &others),
            "no statement of one is also that of the other"
        );
        let again = tasks(&[("7", "Sort a list. \n"), ("8", "Count the words.")]);
        assert_eq!(
            apart(&trained, &again),
            "but 1 of those are of problems that are trained on"
        );
    }
}
