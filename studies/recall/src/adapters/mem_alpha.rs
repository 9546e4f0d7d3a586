//! Mem-alpha's rows: the chunks of a document, and all questions about it.

use dataset::{Row, RowError, json_text, unpack};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    desk::{Asked, Desk, Sample, required, turn},
    values::{Scalar, Texts, without_nulls},
};
use crate::dialogue::Dialogue;

#[derive(Deserialize)]
struct MemAlphaRow {
    #[serde(deserialize_with = "json_text")]
    chunks: Vec<String>,
    #[serde(deserialize_with = "json_text")]
    questions_and_answers: Vec<QuestionAndAnswer>,
    data_source: Option<String>,
    #[serde(default)]
    metadata: Value,
    #[serde(alias = "sample_id", alias = "id")]
    instance_id: Option<Scalar>,
    /// Made from the chunks.
    #[serde(default)]
    prompt: Value,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct QuestionAndAnswer {
    question: String,
    #[serde(alias = "answers")]
    answer: Option<Texts>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

pub(super) fn read(row: &Row, desk: &mut Desk<'_>) -> Result<Vec<Dialogue>, RowError> {
    let parsed: MemAlphaRow = row.parse()?;
    if let Some(index) = parsed
        .chunks
        .iter()
        .position(|chunk| chunk.trim().is_empty())
    {
        return Err(row.error(format!("chunks[{index}]"), "empty turn"));
    }
    desk.count(
        "prompts made of other columns left out",
        u64::from(!parsed.prompt.is_null()),
    );
    let source = parsed.data_source.unwrap_or_else(|| "unnamed".to_owned());
    let mut notes = Map::new();
    let mut questions = Vec::new();
    for (index, asked) in parsed.questions_and_answers.into_iter().enumerate() {
        let field = format!("questions_and_answers[{index}]");
        let question_id = format!("q{index}");
        let answers = required(row, &format!("{field}.answer"), asked.answer)?;
        if asked.question.trim().is_empty() {
            return Err(row.error(format!("{field}.question"), "empty turn"));
        }
        let rest = without_nulls(asked.rest);
        if !rest.is_empty() {
            notes.insert(question_id.clone(), rest.into());
        }
        questions.push(Asked {
            question_id,
            text: asked.question,
            timestamp: None,
            question_type: source.clone(),
            answers,
            abstain: false,
            evidence: Vec::new(),
        });
    }
    if questions.is_empty() {
        return Err(row.error("questions_and_answers", "no target turn: nothing is asked"));
    }
    let mut metadata = parsed.rest;
    metadata.insert("metadata".to_owned(), unpacked_twice(parsed.metadata));
    if !notes.is_empty() {
        metadata.insert("questions".to_owned(), notes.into());
    }
    let sessions = parsed
        .chunks
        .into_iter()
        .enumerate()
        .map(|(index, chunk)| turn(chunk, format!("c{index}"), None))
        .collect();
    let sample = Sample {
        sample_id: parsed.instance_id.map(|Scalar(id)| id),
        data_source: format!("memalpha-{source}"),
        document: None,
        metadata,
    };
    Ok(vec![desk.dialogue(row, sample, sessions, questions)])
}

/// Its metadata is JSON text that may hold JSON text once more, under its own name.
fn unpacked_twice(metadata: Value) -> Value {
    match unpack(metadata) {
        Value::Object(mut object) => {
            if let Some(inner) = object.get_mut("metadata") {
                *inner = unpack(inner.take());
            }
            Value::Object(object)
        }
        other => other,
    }
}
