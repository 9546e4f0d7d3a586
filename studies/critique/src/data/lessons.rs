//! Critiques as rows that a critic is supervised on, filtered step by step (spec of the critique study, section
//! 1.3).

use std::collections::{HashMap, HashSet};

use rand::seq::SliceRandom;
use record::{Seed, Speaker, TaskId};
use serde::Serialize;

use super::{
    attempt::Attempt,
    prepare::{CountTokens, Step},
    problem::Problem,
};
use crate::{
    format::{Gate, Judgment, read_critique},
    prompts::critique_prompt,
};

/// A critique of a first program, and what it led to. Whoever trains reads the first two columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LessonRow {
    /// The critique prompt without a hint.
    pub critic_instruction: String,
    pub critique: String,
    pub task_id: String,
    pub data_source: Option<String>,
    /// Of the program that the critique is of.
    pub prev_hash: Option<String>,
    pub hash: Option<String>,
    /// Whether the program under criticism passes.
    pub initial_success: bool,
    /// Whether what the critique led to passes.
    pub success: bool,
    /// What the critique ends with, where it can be read.
    pub judgment: Option<String>,
}

/// Which critiques are kept.
pub struct LessonOptions<'a> {
    /// Counts for the filter by length; that is not applied without it.
    pub count_tokens: Option<&'a CountTokens<'a>>,
    /// Prompts with fewer tokens are kept.
    pub max_tokens: usize,
    /// Critiques that led to a passing program alone.
    pub only_successful: bool,
    /// As many `Correct` for each `Incorrect` as there are passing programs for each failing one.
    pub balance: bool,
    /// One row a problem: the first.
    pub one_per_problem: bool,
    /// Draws what balancing leaves out.
    pub seed: Seed,
}

impl Problem {
    /// The row of a critique of `program` with what it led to.
    pub fn lesson(
        &self,
        program: &Attempt,
        (critique, initial_success, success): (&Attempt, bool, bool),
    ) -> LessonRow {
        let id = TaskId(self.task_id.clone());
        let public = self.task(id, program.program(), initial_success).public;
        let prompt = critique_prompt(&public);
        let instruction = prompt
            .into_iter()
            .find(|message| message.role == Speaker::User)
            .map(|message| message.content);
        let text = critique.critique.clone().unwrap_or_default();
        LessonRow {
            critic_instruction: instruction.unwrap_or_default(),
            judgment: judgment(&text).map(|judgment| judgment.to_string()),
            critique: text,
            task_id: self.task_id.clone(),
            data_source: self.data_source.clone(),
            prev_hash: critique.prev_hash.clone(),
            hash: critique.hash.clone(),
            initial_success,
            success,
        }
    }
}

fn judgment(critique: &str) -> Option<Judgment> {
    read_critique(critique, Gate::Substring).judgment
}

/// Keeps the rows that every step lets through, and says what each step dropped.
pub fn filter_lessons(
    rows: Vec<LessonRow>,
    options: &LessonOptions<'_>,
) -> (Vec<LessonRow>, Vec<Step>) {
    let mut rows = rows;
    let mut steps = Vec::new();
    let mut step = |rows: &mut Vec<LessonRow>,
                    name: &'static str,
                    not_applied: Option<&str>,
                    keeps: &mut dyn FnMut(usize, &LessonRow) -> bool| {
        let before = rows.len();
        if not_applied.is_none() {
            let mut index = 0;
            rows.retain(|row| {
                index += 1;
                keeps(index - 1, row)
            });
        }
        steps.push(Step {
            step: name,
            dropped: (before - rows.len()) as u64,
            not_applied: not_applied.map(str::to_owned),
        });
    };
    step(
        &mut rows,
        "critique speaks of the hint",
        None,
        &mut |_, row| !row.critique.contains("he hint"),
    );
    let no_tokenizer = options
        .count_tokens
        .is_none()
        .then_some("no tokenizer given");
    step(
        &mut rows,
        "too many tokens in the prompt",
        no_tokenizer,
        &mut |_, row| {
            let count = options
                .count_tokens
                .map(|count| count(&row.critic_instruction));
            count.is_none_or(|count| count < options.max_tokens)
        },
    );
    let any = (!options.only_successful).then_some("not asked for");
    step(&mut rows, "revision does not pass", any, &mut |_, row| {
        row.success
    });
    let as_they_are = (!options.balance).then_some("not asked for");
    step(
        &mut rows,
        "no judgment to balance by",
        as_they_are,
        &mut |_, row| row.judgment.is_some(),
    );
    let kept = balanced(&rows, options.seed);
    step(
        &mut rows,
        "judgments out of balance",
        as_they_are,
        &mut |index, _| kept.contains(&index),
    );
    let every = (!options.one_per_problem).then_some("not asked for");
    let mut seen = HashSet::new();
    step(&mut rows, "problem seen before", every, &mut |_, row| {
        seen.insert((row.data_source.clone(), row.task_id.clone()))
    });
    (rows, steps)
}

/// The rows that are left when judgments are in the ratio of passing to failing programs: all of the judgment that
/// is too rare, and as many of the other as that allows.
fn balanced(rows: &[LessonRow], seed: Seed) -> HashSet<usize> {
    let mut programs: HashMap<(&Option<String>, &str, &Option<String>), bool> = HashMap::new();
    for row in rows {
        let key = (&row.data_source, row.task_id.as_str(), &row.prev_hash);
        programs.insert(key, row.initial_success);
    }
    let passing = programs.values().filter(|passes| **passes).count();
    let failing = programs.len() - passing;
    let says = |judgment: Judgment| {
        let word = judgment.to_string();
        let rows = rows.iter().enumerate();
        let said = rows.filter(move |(_, row)| row.judgment.as_deref() == Some(&word));
        said.map(|(index, _)| index).collect::<Vec<usize>>()
    };
    let (mut correct, mut incorrect) = (says(Judgment::Correct), says(Judgment::Incorrect));
    let mut rng = seed.stream("balance", 0).rng();
    correct.shuffle(&mut rng);
    incorrect.shuffle(&mut rng);
    // Where all programs fail, or all pass, no critique of the other kind is wanted.
    let share =
        |of: usize, per: usize, others: usize| (others * of).checked_div(per).unwrap_or(usize::MAX);
    let most_correct = share(passing, failing, incorrect.len());
    if correct.len() > most_correct {
        correct.truncate(most_correct);
    } else {
        incorrect.truncate(share(failing, passing, correct.len()));
    }
    correct.into_iter().chain(incorrect).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(task: usize, program: usize, right: bool, judgment: Option<&str>) -> LessonRow {
        LessonRow {
            critic_instruction: format!("Look at program {program} of task {task}."),
            critique: "A critique.".to_owned(),
            task_id: task.to_string(),
            data_source: None,
            prev_hash: Some(program.to_string()),
            hash: None,
            initial_success: right,
            success: right,
            judgment: judgment.map(str::to_owned),
        }
    }

    fn options<'a>() -> LessonOptions<'a> {
        LessonOptions {
            count_tokens: None,
            max_tokens: 2048,
            only_successful: false,
            balance: false,
            one_per_problem: false,
            seed: Seed(1),
        }
    }

    fn dropped(steps: &[Step]) -> Vec<u64> {
        steps.iter().map(|step| step.dropped).collect()
    }

    #[test]
    fn every_step_drops_what_it_is_named_for() {
        let mut rows: Vec<LessonRow> = (0..6)
            .map(|task| row(task, 0, task % 2 == 0, Some("Incorrect")))
            .collect();
        rows[0].critique = "As the hint says.".to_owned();
        rows[1].critic_instruction = "word ".repeat(30);
        rows[2].judgment = None;
        rows[4].task_id = "5".to_owned();
        let count = |text: &str| text.split_whitespace().count();
        let (kept, steps) = filter_lessons(rows.clone(), &options());
        assert_eq!((kept.len(), dropped(&steps)), (5, vec![1, 0, 0, 0, 0, 0]));
        let all = LessonOptions {
            count_tokens: Some(&count),
            max_tokens: 20,
            one_per_problem: true,
            ..options()
        };
        let (kept, steps) = filter_lessons(rows.clone(), &all);
        assert_eq!((kept.len(), dropped(&steps)), (3, vec![1, 1, 0, 0, 0, 1]));
        let successful = LessonOptions {
            only_successful: true,
            ..options()
        };
        let (kept, _) = filter_lessons(rows, &successful);
        assert!(kept.len() == 2 && kept.iter().all(|row| row.success));
    }

    #[test]
    fn judgments_come_in_the_ratio_of_programs() {
        // Two of eight programs pass; five critiques of them say so, and fifteen say no.
        let says = |index: usize| if index < 5 { "Correct" } else { "Incorrect" };
        let rows: Vec<LessonRow> = (0..20)
            .map(|index| row(index % 8, index % 8, index % 8 < 2, Some(says(index))))
            .collect();
        let balance = LessonOptions {
            balance: true,
            ..options()
        };
        let said = |rows: &[LessonRow], word: &str| {
            let said = rows
                .iter()
                .filter(|row| row.judgment.as_deref() == Some(word));
            said.count()
        };
        let (kept, _) = filter_lessons(rows.clone(), &balance);
        assert_eq!((said(&kept, "Correct"), said(&kept, "Incorrect")), (5, 15));
        let fewer: Vec<LessonRow> = rows[..11].to_vec();
        let (kept, steps) = filter_lessons(fewer.clone(), &balance);
        assert_eq!((said(&kept, "Correct"), said(&kept, "Incorrect")), (2, 6));
        assert_eq!(steps[4].dropped, 3);
        assert_eq!(filter_lessons(fewer, &balance).0, kept);
        let right: Vec<LessonRow> = (0..4)
            .map(|index| row(index, 0, true, Some(says(index * 2))))
            .collect();
        let (kept, _) = filter_lessons(right, &balance);
        assert_eq!((said(&kept, "Correct"), said(&kept, "Incorrect")), (3, 0));
    }
}
