//! Our own dialogues, one a row.

use dataset::{Row, RowError};

use super::desk::{Asked, Desk, Sample};
use crate::dialogue::Dialogue;

pub(super) fn read(row: &Row, desk: &mut Desk<'_>) -> Result<Vec<Dialogue>, RowError> {
    let dialogue: Dialogue = row.parse()?;
    super::desk::check(row, &dialogue)?;
    let sample = Sample {
        sample_id: Some(dialogue.sample_id),
        data_source: dialogue.data_source,
        document: Some(dialogue.document),
        metadata: dialogue.metadata,
    };
    let questions = dialogue
        .questions
        .into_iter()
        .map(|question| Asked {
            question_id: question.question_id,
            text: question.text,
            timestamp: question.timestamp,
            question_type: question.question_type,
            answers: question.gold.answers,
            abstain: question.gold.abstain,
            evidence: question.gold.evidence,
        })
        .collect();
    let mut read = desk.dialogue(row, sample, dialogue.sessions, questions);
    // It says itself which part it is of, and may say how answers are scored.
    read.split = dialogue.split;
    read.metric = dialogue.metric.or(read.metric);
    read.chunk_questions = dialogue.chunk_questions;
    Ok(vec![read])
}
