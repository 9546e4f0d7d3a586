//! From samples to rows: what a critic is supervised on, and the pairs that it is reinforced on.

use std::collections::{BTreeMap, BTreeSet};

use rand::seq::SliceRandom;
use record::{Group, Seed};
use serde::{Deserialize, Serialize};

use super::study::{SynthesisNotes, notes_of};
use crate::{format::Judgment, lesson::CriticLesson, prompts::sanitise};

/// Which critiques make rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filters {
    /// Most tokens of a critic's prompt.
    pub max_prompt_tokens: usize,
    /// Keep critiques whose revision fails.
    pub keep_failed: bool,
    /// Keep one row a problem, its first.
    pub remove_duplicates: bool,
    /// Leave rows out until the judgments "Correct" and "Incorrect" are to each other as right and wrong solutions are.
    pub balance: bool,
}

/// A row to learn from, and where it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LessonRow {
    /// Of the solution that is criticised: its problem and its number.
    pub id: String,
    pub problem_id: String,
    #[serde(flatten)]
    pub lesson: CriticLesson,
    pub judgment: Judgment,
    /// Of the solution, and of its revision.
    pub success: bool,
    pub revised_success: bool,
}

/// A problem and one solution of it, with the columns of the original that are not the problem's own (spec of the
/// critique study, section 1.4).
#[derive(Clone, Debug, PartialEq)]
pub struct PairRow {
    pub id: String,
    pub problem_id: String,
    pub solution: String,
    pub sanitized_solution: String,
    pub program: String,
    pub success: bool,
    pub success_float: f64,
}

/// Rows, and how many samples each filter has dropped, by name and in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    pub rows: Vec<LessonRow>,
    pub counts: BTreeMap<String, usize>,
}

/// A critique that speaks of its hint holds "the hint" or "The hint".
const MENTIONS_HINT: &str = "he hint";

/// The rows of all samples that reached their verdicts, in the order of problems and samples.
///
/// Dropped, in this order and each counted: samples without a verdict; critiques that were cut off or end without a
/// judgment that can be read, that mention the hint, whose prompt is too long, whose revision fails, of a problem that
/// has a row already; and what balancing leaves out, drawn from `seed`.
pub fn lessons(
    groups: &[Group],
    filters: &Filters,
    count_tokens: impl Fn(&str) -> usize,
    seed: Seed,
) -> Written {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut count = |what: &str| *counts.entry(what.to_owned()).or_default() += 1;
    let mut rows: Vec<LessonRow> = Vec::new();
    let mut known = BTreeSet::new();
    let (mut right, mut wrong) = (0usize, 0usize);
    for group in groups {
        for (number, episode) in group.episodes.iter().enumerate() {
            count("samples");
            let Some(notes) = notes_of(episode) else {
                count("dropped: no verdict");
                continue;
            };
            *(if notes.success {
                &mut right
            } else {
                &mut wrong
            }) += 1;
            match row(&group.task.0, number, notes, filters, &count_tokens) {
                Err(why) => count(why),
                Ok(_) if filters.remove_duplicates && !known.insert(group.task.0.clone()) => {
                    count("dropped: another row of its problem");
                }
                Ok(row) => rows.push(row),
            }
        }
    }
    if filters.balance {
        let before = rows.len();
        rows = balanced(rows, right, wrong, seed);
        counts.insert("dropped: balancing".to_owned(), before - rows.len());
    }
    counts.insert("rows".to_owned(), rows.len());
    Written { rows, counts }
}

/// Every solution that was judged.
pub fn pairs(groups: &[Group]) -> Vec<PairRow> {
    let mut rows = Vec::new();
    for group in groups {
        for (number, episode) in group.episodes.iter().enumerate() {
            let Some(notes) = notes_of(episode) else {
                continue;
            };
            rows.push(PairRow {
                id: format!("{}/{number}", group.task),
                problem_id: group.task.0.clone(),
                sanitized_solution: sanitise(&notes.solution),
                solution: notes.solution,
                program: notes.program,
                success: notes.success,
                success_float: notes.success_float,
            });
        }
    }
    rows
}

fn row(
    problem: &str,
    number: usize,
    notes: SynthesisNotes,
    filters: &Filters,
    count_tokens: impl Fn(&str) -> usize,
) -> Result<LessonRow, &'static str> {
    if !notes.critique_finished {
        return Err("dropped: the critique was cut off");
    }
    let judgment = notes
        .judgment
        .ok_or("dropped: no judgment that can be read")?;
    if notes.critique.contains(MENTIONS_HINT) {
        return Err("dropped: mentions the hint");
    }
    if count_tokens(&notes.critic_instruction) >= filters.max_prompt_tokens {
        return Err("dropped: the prompt is too long");
    }
    if !(filters.keep_failed || notes.revised_success) {
        return Err("dropped: the revision fails");
    }
    Ok(LessonRow {
        id: format!("{problem}/{number}"),
        problem_id: problem.to_owned(),
        lesson: CriticLesson {
            critic_instruction: notes.critic_instruction,
            critique: notes.critique,
        },
        judgment,
        success: notes.success,
        revised_success: notes.revised_success,
    })
}

/// The largest choice of rows in which judgments are as solutions are, in their order.
fn balanced(rows: Vec<LessonRow>, right: usize, wrong: usize, seed: Seed) -> Vec<LessonRow> {
    let of = |judgment| rows.iter().filter(|row| row.judgment == judgment).count();
    let (correct, incorrect) = (of(Judgment::Correct), of(Judgment::Incorrect));
    // correct : incorrect = right : wrong, with one of them as it is.
    let keeps = if correct * wrong > incorrect * right {
        [incorrect * right / wrong.max(1), incorrect]
    } else {
        [correct, correct * wrong / right.max(1)]
    };
    // Without any right solution there is nothing to be Correct about, and the other way round.
    let keeps = match (right, wrong) {
        (0, _) => [0, incorrect],
        (_, 0) => [correct, 0],
        _ => keeps,
    };
    let mut kept = vec![false; rows.len()];
    let classes = [Judgment::Correct, Judgment::Incorrect];
    for (index, (judgment, keep)) in classes.into_iter().zip(keeps).enumerate() {
        let mut places: Vec<usize> = (0..rows.len())
            .filter(|&place| rows[place].judgment == judgment)
            .collect();
        places.shuffle(&mut seed.stream("balance", index as u64).rng());
        places.truncate(keep);
        places.into_iter().for_each(|place| kept[place] = true);
    }
    let rows = rows.into_iter().zip(kept);
    rows.filter_map(|(row, kept)| kept.then_some(row)).collect()
}

#[cfg(test)]
mod tests;
