//! Rows of one question each: the chunks of its document, and lists and objects as JSON text.

use dataset::{Row, RowError, json_text};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    desk::{Asked, Desk, Sample, equally_long, required, turn},
    values::{Scalar, Texts, without_nulls},
};
use crate::dialogue::Dialogue;

#[derive(Deserialize)]
struct QaRow {
    #[serde(deserialize_with = "json_text")]
    chunks: Vec<String>,
    num_chunks: Option<usize>,
    question: String,
    answers: Option<Texts>,
    target_answer: Option<Texts>,
    data_source: Option<String>,
    sub_source: Option<String>,
    #[serde(default, deserialize_with = "json_text")]
    extra_info: Option<ExtraInfo>,
    /// Made from the chunks and the question.
    #[serde(default)]
    prompt: Value,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Default, Deserialize)]
struct ExtraInfo {
    sample_id: Option<Scalar>,
    instance_id: Option<Scalar>,
    question_idx: Option<u64>,
    #[serde(default, deserialize_with = "json_text")]
    turn_roles: Option<Vec<String>>,
    #[serde(default, deserialize_with = "json_text")]
    reading_dates: Option<Vec<Option<String>>>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

pub(super) fn read(row: &Row, desk: &mut Desk<'_>) -> Result<Vec<Dialogue>, RowError> {
    let parsed: QaRow = row.parse()?;
    let extra = parsed.extra_info.unwrap_or_default();
    let count = parsed.chunks.len();
    equally_long(
        row,
        [("chunks", Some(count)), ("num_chunks", parsed.num_chunks)],
    )?;
    if let Some(roles) = &extra.turn_roles {
        check_roles(row, roles, count)?;
    }
    let dates = extra.reading_dates;
    let given = dates.as_ref().map(Vec::len);
    equally_long(
        row,
        [("chunks", Some(count)), ("extra_info.reading_dates", given)],
    )?;
    if let Some(index) = parsed
        .chunks
        .iter()
        .position(|chunk| chunk.trim().is_empty())
    {
        return Err(row.error(format!("chunks[{index}]"), "empty turn"));
    }
    if parsed.question.trim().is_empty() {
        return Err(row.error("question", "empty turn"));
    }
    let answers = match parsed.answers.filter(|answers| !answers.0.is_empty()) {
        Some(answers) => Some(answers),
        None => parsed.target_answer,
    };
    let answers = required(row, "answers", answers)?;

    desk.count(
        "prompts made of other columns left out",
        u64::from(!parsed.prompt.is_null()),
    );
    let mut dates = dates.unwrap_or_default().into_iter();
    let sessions = parsed
        .chunks
        .into_iter()
        .enumerate()
        .map(|(index, chunk)| turn(chunk, format!("c{index}"), dates.next().flatten()))
        .collect();
    let data_source = parsed.data_source.unwrap_or_else(|| "qa".to_owned());
    let question_id = match (extra.instance_id, extra.question_idx) {
        (Some(Scalar(id)), _) => id,
        (None, Some(index)) => format!("q{index}"),
        (None, None) => "q0".to_owned(),
    };
    // What stands in every row of a sample, and what is this question's.
    let mut metadata: Map<String, Value> = parsed
        .rest
        .into_iter()
        .map(|(name, value)| (name, dataset::unpack(value)))
        .collect();
    if let Some(number) = parsed.num_chunks {
        metadata.insert("num_chunks".to_owned(), number.into());
    }
    let mut own = without_nulls(extra.rest);
    if let Some(index) = extra.question_idx {
        own.insert("question_idx".to_owned(), index.into());
    }
    metadata.insert("questions".to_owned(), json!({ &question_id: own }));
    let sample = Sample {
        sample_id: extra.sample_id.map(|Scalar(id)| id),
        document: None,
        metadata,
        data_source: data_source.clone(),
    };
    let question = Asked {
        question_id,
        text: parsed.question,
        timestamp: None,
        question_type: parsed.sub_source.unwrap_or(data_source),
        answers,
        abstain: false,
        evidence: Vec::new(),
    };
    Ok(vec![desk.dialogue(row, sample, sessions, vec![question])])
}

/// One history turn a chunk, then the target turn.
fn check_roles(row: &Row, roles: &[String], chunks: usize) -> Result<(), RowError> {
    let targets = roles.iter().filter(|role| *role == "target").count();
    let field = "extra_info.turn_roles";
    if targets == 0 {
        return Err(row.error(field, "no target turn"));
    }
    if targets > 1 {
        return Err(row.error(
            field,
            format!("{targets} target turns; rows ask one question"),
        ));
    }
    if roles.len() != chunks + 1 || roles.last().is_none_or(|role| role != "target") {
        return Err(row.error(
            field,
            format!(
                "expected {chunks} history turns, one a chunk, then the target; found {} turns",
                roles.len()
            ),
        ));
    }
    Ok(())
}
