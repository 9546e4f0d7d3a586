//! Datasets as others publish them, to dialogues: one adapter a format, the same output.
//!
//! An adapter reads rows and gives [`Dialogue`]s; [`Task::of_dialogue`](crate::Task::of_dialogue) makes
//! episodes of them. Gold goes to a question's gold and nowhere else that a policy could see: names that
//! would tell it (LongMemEval's `answer_…` sessions) are replaced. Columns that have no place here are kept
//! as metadata. A row that does not fit is rejected by file, row and field, and what is left out of a row
//! on purpose is counted.

mod check;
mod chunk;
mod desk;
mod divide;
mod format;
mod hotpotqa;
mod locomo;
mod long_mem_eval;
mod mem_alpha;
mod memory_agent_bench;
mod memory_bench;
mod own;
mod qa;
mod reward;
mod squad;
mod values;
mod verl;

use std::{collections::HashMap, path::Path};

use dataset::{DatasetError, Place, Row, RowError, RowErrors, Rows};
use serde_json::Value;

use crate::dialogue::Dialogue;
use desk::Desk;

pub use check::check_task;
pub use chunk::{CountTokens, chunk_tokens, chunks};
pub use desk::Counts;
pub use divide::divide;
pub use format::Format;

/// What an adapter is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the dataset calls the part of itself that is read: `train`, `test`, …
    pub split: String,
    /// Names the dataset in place of what its rows say.
    pub data_source: Option<String>,
    /// Tokens of a history turn in place of [`chunk_tokens`].
    pub chunk_tokens: Option<usize>,
    /// Rows of verl may ask more than one question.
    pub multi_target: bool,
    /// Stands before the row number where a row has no name of its own.
    pub prefix: String,
    /// Rejections that are kept; all are counted.
    pub rejections: usize,
}

/// What a file gave.
#[derive(Debug)]
pub struct Adapted {
    /// In the order of the file, those of one sample together.
    pub dialogues: Vec<Dialogue>,
    pub rejected: RowErrors,
    pub counts: Counts,
}

/// Reads a file of `format`.
///
/// # Errors
/// What is wrong with the file. What is wrong with its rows is in [`Adapted::rejected`].
pub fn adapt(
    format: Format,
    path: &Path,
    options: &Options,
    count_tokens: &CountTokens<'_>,
) -> Result<Adapted, DatasetError> {
    let rows = match format {
        // The published files hold their articles so.
        Format::Squad => Rows::open_list(path, "data")?,
        _ => Rows::open(path)?,
    };
    let mut desk = Desk::new(options, count_tokens);
    let mut gathered = Gathered::default();
    let mut rejected = RowErrors::new(options.rejections);
    for row in rows {
        let row = row?;
        desk.count("rows", 1);
        let before = desk.counts().clone();
        let kept = format.read(&row, &mut desk).and_then(|dialogues| {
            dialogues
                .into_iter()
                .try_for_each(|dialogue| gathered.add(&row, dialogue, format.merges()))
        });
        if let Err(error) = kept {
            desk.go_back_to(before);
            desk.count("rejected rows", 1);
            rejected.push(error);
        }
    }
    let mut counts = desk.into_counts();
    let dialogues = gathered.dialogues;
    let sum = |of: fn(&Dialogue) -> usize| dialogues.iter().map(of).sum::<usize>() as u64;
    counts.add("dialogues", dialogues.len() as u64);
    counts.add("history turns", sum(|dialogue| dialogue.sessions.len()));
    counts.add("questions", sum(|dialogue| dialogue.questions.len()));
    Ok(Adapted {
        dialogues,
        rejected,
        counts,
    })
}

/// Dialogues by the names of their samples.
#[derive(Default)]
struct Gathered {
    dialogues: Vec<Dialogue>,
    /// By source, split and sample: which dialogue, and the row that it came from first.
    known: HashMap<[String; 3], (usize, Place)>,
}

impl Gathered {
    /// Adds a dialogue, or where rows of one sample `merge` and its history is known, its questions.
    fn add(&mut self, row: &Row, dialogue: Dialogue, merge: bool) -> Result<(), RowError> {
        desk::check(row, &dialogue)?;
        let key = [
            dialogue.data_source.clone(),
            dialogue.split.clone(),
            dialogue.sample_id.clone(),
        ];
        let Some(&(index, first)) = self.known.get(&key) else {
            self.known.insert(key, (self.dialogues.len(), row.place()));
            self.dialogues.push(dialogue);
            return Ok(());
        };
        let sample_id = &dialogue.sample_id;
        if !merge {
            return Err(row.error(
                "",
                format!("sample `{sample_id}` of this split is in {first} already; group ids must be unique"),
            ));
        }
        let known = &mut self.dialogues[index];
        if known.sessions != dialogue.sessions {
            return Err(row.error(
                "",
                format!(
                    "its history is not that of {first}, which is of the same sample `{sample_id}`"
                ),
            ));
        }
        let same = known
            .questions
            .iter()
            .map(|question| &question.question_id)
            .find(|id| {
                dialogue
                    .questions
                    .iter()
                    .any(|question| question.question_id == **id)
            });
        if let Some(same) = same {
            return Err(row.error(
                "",
                format!("question `{same}` of sample `{sample_id}` has been asked before"),
            ));
        }
        known.questions.extend(dialogue.questions);
        if let (Some(Value::Object(known)), Some(Value::Object(own))) = (
            known.metadata.get_mut("questions"),
            dialogue.metadata.get("questions"),
        ) {
            known.extend(own.clone());
        }
        Ok(())
    }
}
