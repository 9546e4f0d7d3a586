//! MemoryAgentBench: one long context and many questions about it (arXiv 2507.05257).

use dataset::{Row, RowError, json_text};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    desk::{Asked, Desk, Sample, equally_long, required, turn},
    values::{Scalar, Texts, without_nulls},
};
use crate::dialogue::Dialogue;

#[derive(Deserialize)]
struct BenchRow {
    context: String,
    #[serde(deserialize_with = "json_text")]
    questions: Vec<String>,
    #[serde(deserialize_with = "json_text")]
    answers: Vec<Texts>,
    #[serde(default, deserialize_with = "json_text")]
    metadata: Metadata,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    source: Option<String>,
    #[serde(default, deserialize_with = "json_text")]
    qa_pair_ids: Option<Vec<Scalar>>,
    #[serde(default, deserialize_with = "json_text")]
    question_dates: Option<Vec<Scalar>>,
    #[serde(default, deserialize_with = "json_text")]
    question_types: Option<Vec<Scalar>>,
    /// The context once more, as sessions.
    #[serde(default)]
    haystack_sessions: Value,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

pub(super) fn read(row: &Row, desk: &mut Desk<'_>) -> Result<Vec<Dialogue>, RowError> {
    let parsed: BenchRow = row.parse()?;
    let notes = parsed.metadata;
    if parsed.context.trim().is_empty() {
        return Err(row.error("context", "empty turn"));
    }
    if parsed.questions.is_empty() {
        return Err(row.error("questions", "no target turn: nothing is asked"));
    }
    let count = Some(parsed.questions.len());
    equally_long(
        row,
        [
            ("questions", count),
            ("answers", Some(parsed.answers.len())),
        ],
    )?;
    // Sources without such notes have empty lists in their place.
    let noted = |list: Option<Vec<Scalar>>| list.filter(|list| !list.is_empty());
    let ids = noted(notes.qa_pair_ids);
    let dates = noted(notes.question_dates);
    let types = noted(notes.question_types);
    for (field, list) in [
        ("metadata.qa_pair_ids", &ids),
        ("metadata.question_dates", &dates),
        ("metadata.question_types", &types),
    ] {
        equally_long(
            row,
            [("questions", count), (field, list.as_ref().map(Vec::len))],
        )?;
    }
    let texts = |list: Option<Vec<Scalar>>| {
        list.unwrap_or_default()
            .into_iter()
            .map(|Scalar(text)| text)
    };
    let (mut ids, mut dates, mut types) = (texts(ids), texts(dates), texts(types));

    let source = notes.source.unwrap_or_else(|| "unnamed".to_owned());
    let data_source = format!("memoryagentbench-{source}");
    let mut questions = Vec::new();
    for (index, (text, answers)) in parsed.questions.into_iter().zip(parsed.answers).enumerate() {
        if text.trim().is_empty() {
            return Err(row.error(format!("questions[{index}]"), "empty turn"));
        }
        let question_id = ids.next().unwrap_or_else(|| format!("q{index}"));
        let abstain = source.contains("longmemeval") && question_id.ends_with("_abs");
        let answers = if abstain {
            answers.0
        } else {
            required(row, &format!("answers[{index}]"), Some(answers))?
        };
        questions.push(Asked {
            question_id,
            text,
            timestamp: dates.next(),
            question_type: types.next().unwrap_or_else(|| source.clone()),
            answers,
            abstain,
            evidence: Vec::new(),
        });
    }
    let again = !notes.haystack_sessions.is_null();
    desk.count(
        "sessions that repeat the context left out",
        u64::from(again),
    );
    let mut metadata = parsed.rest;
    metadata.extend(without_nulls(notes.rest));
    let sessions = desk
        .chunks(&parsed.context, &data_source)
        .into_iter()
        .enumerate()
        .map(|(index, range)| {
            turn(
                parsed.context[range].trim().to_owned(),
                format!("c{index}"),
                None,
            )
        })
        .collect();
    let sample = Sample {
        sample_id: None,
        data_source,
        document: None,
        metadata,
    };
    Ok(vec![desk.dialogue(row, sample, sessions, questions)])
}
