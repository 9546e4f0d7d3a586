//! Critiques as rows that a critic is supervised on, filtered step by step (spec of the critique study, section
//! 1.3).

use std::collections::{HashMap, HashSet};

use rand::seq::SliceRandom;
use record::{Seed, Speaker, TaskId};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{
    prepare::{CountTokens, Step},
    tried::Tried,
};
use crate::{
    format::{Gate, Judgment, read_critique},
    prompts::critique_prompt,
};

/// A critique of a program, and what it led to. Whoever trains reads the first two columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LessonRow {
    /// The critique prompt without a hint.
    pub critic_instruction: String,
    pub critique: String,
    pub task_id: String,
    pub data_source: Option<String>,
    pub split: Option<String>,
    pub test_digest: Option<String>,
    /// Who wrote the program that the critique is of.
    pub generator: Option<String>,
    /// Of the program that the critique is of.
    pub prev_hash: Option<String>,
    pub hash: Option<String>,
    /// Whether the program under criticism passes.
    pub initial_success: bool,
    /// Whether what the critique led to passes.
    pub success: bool,
    /// What the critique ends with, in its own word, where it can be read.
    #[serde(serialize_with = "as_said")]
    pub judgment: Option<Judgment>,
    /// The critique did not come to its end.
    #[serde(skip)]
    pub cut_off: bool,
}

/// Which critiques are kept.
pub struct LessonOptions<'a> {
    /// Counts for the filter by length; that is not applied without it.
    pub count_tokens: Option<&'a CountTokens<'a>>,
    /// Prompts with fewer tokens are kept.
    pub max_tokens: usize,
    /// Critiques that led to a passing program alone.
    pub only_successful: bool,
    /// Critiques with a judgment alone, as when they are to be balanced.
    pub only_judged: bool,
    /// As many `Correct` for each `Incorrect` as there are passing programs for each failing one, of all that were
    /// criticised.
    pub balance: bool,
    /// One row a problem: the first.
    pub one_per_problem: bool,
    /// Draws what balancing leaves out.
    pub seed: Seed,
}

impl LessonRow {
    /// The critique of `critic`, which is of the program of `of`, with its judgment as `gate` reads it.
    pub(super) fn of(of: &Tried<'_>, critic: &Tried<'_>, gate: Gate) -> Self {
        let problem = of.problem;
        let id = TaskId(problem.task_id.clone());
        let public = problem.task(id, of.attempt.program(), of.success).public;
        let instruction = critique_prompt(&public)
            .into_iter()
            .find(|message| message.role == Speaker::User)
            .map(|message| message.content);
        let critique = critic.attempt.critique.clone().unwrap_or_default();
        let cut_off = critic.attempt.cut_off;
        let judgment = (!cut_off).then(|| read_critique(&critique, gate).judgment);
        let column = |name: &str| {
            let value = problem.columns().get(name).and_then(Value::as_str);
            value.map(str::to_owned)
        };
        Self {
            critic_instruction: instruction.unwrap_or_default(),
            critique,
            task_id: problem.task_id.clone(),
            data_source: problem.data_source.clone(),
            split: column("split"),
            test_digest: column("test_digest"),
            generator: of.attempt.generator.clone(),
            prev_hash: critic.attempt.prev_hash.clone(),
            hash: critic.attempt.hash.clone(),
            initial_success: of.success,
            success: critic.success,
            judgment: judgment.flatten(),
            cut_off,
        }
    }
}

fn as_said<S: Serializer>(judgment: &Option<Judgment>, serializer: S) -> Result<S::Ok, S::Error> {
    judgment
        .map(|judgment| judgment.to_string())
        .serialize(serializer)
}

/// Keeps the rows that every step lets through, and says what each step dropped.
pub fn filter_lessons(
    rows: Vec<LessonRow>,
    options: &LessonOptions<'_>,
) -> (Vec<LessonRow>, Vec<Step>) {
    let programs = programs(&rows);
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
    step(&mut rows, "critique cut off", None, &mut |_, row| {
        !row.cut_off
    });
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
    let judged = options.only_judged || options.balance;
    let unjudged = (!judged).then_some("not asked for");
    step(
        &mut rows,
        "no judgment that can be read",
        unjudged,
        &mut |_, row| row.judgment.is_some(),
    );
    let as_they_are = (!options.balance).then_some("not asked for");
    let kept = balanced(&rows, programs, options.seed);
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

/// Programs under criticism that pass, and that fail.
fn programs(rows: &[LessonRow]) -> (usize, usize) {
    let mut programs: HashMap<(&Option<String>, &str, &Option<String>), bool> = HashMap::new();
    for row in rows {
        let key = (&row.data_source, row.task_id.as_str(), &row.prev_hash);
        programs.insert(key, row.initial_success);
    }
    let passing = programs.values().filter(|passes| **passes).count();
    (passing, programs.len() - passing)
}

/// The rows that are left when judgments are in the ratio of passing to failing programs: all of the judgment that
/// is too rare, and as many of the other as that allows.
fn balanced(rows: &[LessonRow], (passing, failing): (usize, usize), seed: Seed) -> HashSet<usize> {
    let says = |judgment: Judgment| {
        let rows = rows.iter().enumerate();
        let said = rows.filter(|(_, row)| row.judgment == Some(judgment));
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
    use Judgment::{Correct, Incorrect};

    fn row(task: usize, program: usize, right: bool, judgment: Option<Judgment>) -> LessonRow {
        LessonRow {
            critic_instruction: format!("Look at program {program} of task {task}."),
            critique: "A critique.".to_owned(),
            task_id: task.to_string(),
            data_source: None,
            split: None,
            test_digest: None,
            generator: None,
            prev_hash: Some(program.to_string()),
            hash: None,
            initial_success: right,
            success: right,
            judgment,
            cut_off: false,
        }
    }

    fn options<'a>() -> LessonOptions<'a> {
        LessonOptions {
            count_tokens: None,
            max_tokens: 2048,
            only_successful: false,
            only_judged: false,
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
            .map(|task| row(task, 0, task % 2 == 0, Some(Incorrect)))
            .collect();
        rows[0].critique = "As the hint says.".to_owned();
        rows[1].critic_instruction = "word ".repeat(30);
        rows[2].judgment = None;
        rows[4].task_id = "5".to_owned();
        let count = |text: &str| text.split_whitespace().count();
        let (kept, steps) = filter_lessons(rows.clone(), &options());
        assert_eq!(
            (kept.len(), dropped(&steps)),
            (5, vec![0, 1, 0, 0, 0, 0, 0])
        );
        let all = LessonOptions {
            count_tokens: Some(&count),
            max_tokens: 20,
            one_per_problem: true,
            ..options()
        };
        let (kept, steps) = filter_lessons(rows.clone(), &all);
        assert_eq!(
            (kept.len(), dropped(&steps)),
            (3, vec![0, 1, 1, 0, 0, 0, 1])
        );
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
        let says = |index: usize| if index < 5 { Correct } else { Incorrect };
        let rows: Vec<LessonRow> = (0..20)
            .map(|index| row(index % 8, index % 8, index % 8 < 2, Some(says(index))))
            .collect();
        let balance = LessonOptions {
            balance: true,
            ..options()
        };
        let said = |rows: &[LessonRow], judgment| {
            let said = rows.iter().filter(|row| row.judgment == Some(judgment));
            said.count()
        };
        let (kept, _) = filter_lessons(rows.clone(), &balance);
        assert_eq!((said(&kept, Correct), said(&kept, Incorrect)), (5, 15));
        let fewer: Vec<LessonRow> = rows[..11].to_vec();
        let (kept, steps) = filter_lessons(fewer.clone(), &balance);
        assert_eq!((said(&kept, Correct), said(&kept, Incorrect)), (2, 6));
        assert_eq!(steps[5].dropped, 3);
        assert_eq!(filter_lessons(fewer, &balance).0, kept);
        let right: Vec<LessonRow> = (0..4)
            .map(|index| row(index, 0, true, Some(says(index * 2))))
            .collect();
        let (kept, _) = filter_lessons(right, &balance);
        assert_eq!((said(&kept, Correct), said(&kept, Incorrect)), (3, 0));
    }
}
