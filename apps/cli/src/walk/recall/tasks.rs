//! Phase `tasks`: dialogues of the small world, or of files.

use std::collections::{BTreeMap, BTreeSet};

use recall::{
    JUDGE, Task,
    metrics::Metric,
    tiny::{Draft, Split},
};
use record::Seed;

use super::{RecallRun, files::tasks_of_files, recipe::Recipe};
use crate::{
    failure::Outcome,
    screen::count_of,
    walk::tasks::{EVAL, TRAIN, TaskSets},
};

impl RecallRun<'_> {
    pub(super) fn tasks(&self) -> Outcome<TaskSets<Task>> {
        let frame = self.frame;
        frame
            .screen
            .headline("Tasks: long dialogues, and questions about them");
        if let (Some(baseline), [_, ..]) =
            (self.recipe.baseline, &self.recipe.unasked_by_baseline()[..])
        {
            frame.screen.say(format!(
                "  baseline {}: nobody asks for {}, which the recipe's own memory is written by; whoever plays \
                 nothing else is left out",
                baseline.name(),
                self.recipe.unasked_by_baseline().join(", ")
            ));
        }
        frame.phase("tasks", || {
            let (train, eval) = tasks_of(self.recipe)?;
            frame.write_tasks(TRAIN, &train)?;
            frame.write_tasks(EVAL, &eval)?;
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
        frame.screen.say(format!(
            "  {}",
            scored(self.recipe, all().map(AsRef::as_ref))
        ));
        Ok(sets)
    }
}

/// How answers to these tasks are scored.
fn scored<'a>(recipe: &Recipe, tasks: impl Iterator<Item = &'a Task>) -> String {
    if recipe.reward.judge {
        return format!("answers are judged by the role {JUDGE}");
    }
    if let Some(metric) = recipe.reward.metric {
        return format!("answers are scored by {metric} (reward.metric)");
    }
    let mut counted: BTreeMap<Metric, usize> = BTreeMap::new();
    for task in tasks {
        *counted.entry(task.metric()).or_default() += 1;
    }
    let all: Vec<String> = match counted.len() {
        1 => counted.keys().map(ToString::to_string).collect(),
        _ => counted
            .iter()
            .map(|(metric, n)| format!("{metric} in {}", count_of(*n, "task")))
            .collect(),
    };
    format!(
        "answers are scored by {}, as their datasets are; reward.metric names another",
        all.join(", ")
    )
}

/// The tasks of a recipe, to train on and to evaluate on.
pub(super) fn tasks_of(recipe: &Recipe) -> Outcome<(Vec<Task>, Vec<Task>)> {
    let (train, eval) = tasks_of_files(recipe)?;
    let drawn = |split, n| draw(recipe, split, n);
    let tasks = &recipe.tasks;
    Ok((
        train.unwrap_or_else(|| drawn(Split::Train, tasks.train)),
        eval.unwrap_or_else(|| drawn(Split::HeldOut, tasks.eval)),
    ))
}

/// The first `n` tasks of the small world.
fn draw(recipe: &Recipe, split: Split, n: usize) -> Vec<Task> {
    let (seed, granularity) = (Seed(recipe.seed), recipe.tasks.granularity);
    let dialogues = (0..).map(|index| {
        let draft = Draft::new(seed, split, index, recipe.tasks.questions);
        let mut dialogue = draft.dialogue();
        if split == Split::Train {
            dialogue.chunk_questions = draft.chunk_questions(recipe.tasks.chunk_questions);
        }
        dialogue
    });
    dialogues
        .flat_map(|dialogue| Task::of_dialogue(&dialogue, granularity))
        .take(n)
        .collect()
}
