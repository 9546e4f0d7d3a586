//! SQuAD 1.1 and 2.0: questions about a paragraph, nested as published or one a row (arXiv 1606.05250,
//! 1806.03822).

use std::ops::Range;

use dataset::{Row, RowError, json_text};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    desk::{Asked, Desk, Sample, turn},
    values::{Scalar, without_nulls},
};
use crate::dialogue::Dialogue;

/// Tells the layouts apart.
#[derive(Deserialize)]
struct Layout {
    paragraphs: Option<serde::de::IgnoredAny>,
}

/// An article of the published files.
#[derive(Deserialize)]
struct Article {
    title: Option<String>,
    paragraphs: Vec<Paragraph>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct Paragraph {
    context: String,
    qas: Vec<NestedQuestion>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct NestedQuestion {
    id: Scalar,
    question: String,
    #[serde(default)]
    answers: Vec<NestedAnswer>,
    is_impossible: Option<bool>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct NestedAnswer {
    text: String,
    answer_start: Option<i64>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// One question a row, as dataset hubs have it.
#[derive(Deserialize)]
struct FlatRow {
    id: Scalar,
    title: Option<String>,
    context: String,
    question: String,
    #[serde(default, deserialize_with = "json_text")]
    answers: FlatAnswers,
    is_impossible: Option<bool>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Default, Deserialize)]
struct FlatAnswers {
    text: Vec<String>,
    #[serde(default)]
    answer_start: Vec<i64>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// A question of either layout.
struct Found {
    id: String,
    question: String,
    answers: Vec<(String, Option<i64>)>,
    is_impossible: Option<bool>,
    rest: Map<String, Value>,
}

pub(super) fn read(row: &Row, desk: &mut Desk<'_>) -> Result<Vec<Dialogue>, RowError> {
    if row.parse::<Layout>()?.paragraphs.is_some() {
        return nested(row, desk);
    }
    let flat: FlatRow = row.parse()?;
    let mut rest = flat.rest;
    let beside = without_nulls(flat.answers.rest);
    if !beside.is_empty() {
        rest.insert("answers".to_owned(), beside.into());
    }
    let starts = flat.answers.answer_start.into_iter().map(Some);
    let found = Found {
        id: flat.id.0,
        question: flat.question,
        answers: flat
            .answers
            .text
            .into_iter()
            .zip(starts.chain(std::iter::repeat(None)))
            .collect(),
        is_impossible: flat.is_impossible,
        rest,
    };
    let fields = [(
        "context".to_owned(),
        "question".to_owned(),
        "answers".to_owned(),
    )];
    dialogue(row, desk, flat.title, &flat.context, vec![found], &fields).map(|read| vec![read])
}

fn nested(row: &Row, desk: &mut Desk<'_>) -> Result<Vec<Dialogue>, RowError> {
    let article: Article = row.parse()?;
    let mut dialogues = Vec::new();
    for (index, paragraph) in article.paragraphs.into_iter().enumerate() {
        let at = format!("paragraphs[{index}]");
        if paragraph.qas.is_empty() {
            desk.count("paragraphs without a question left out", 1);
            continue;
        }
        let fields: Vec<_> = (0..paragraph.qas.len())
            .map(|question| {
                let at_question = format!("{at}.qas[{question}]");
                (
                    format!("{at}.context"),
                    format!("{at_question}.question"),
                    format!("{at_question}.answers"),
                )
            })
            .collect();
        let found = paragraph
            .qas
            .into_iter()
            .map(|question| {
                let mut rest = question.rest;
                let beside = question.answers.iter();
                let beside: Vec<_> = beside
                    .map(|answer| without_nulls(answer.rest.clone()))
                    .collect();
                if beside.iter().any(|beside| !beside.is_empty()) {
                    rest.insert("answers".to_owned(), json!(beside));
                }
                let answers = question.answers.into_iter();
                Found {
                    id: question.id.0,
                    question: question.question,
                    answers: answers
                        .map(|answer| (answer.text, answer.answer_start))
                        .collect(),
                    is_impossible: question.is_impossible,
                    rest,
                }
            })
            .collect();
        let title = article.title.clone();
        let mut made = dialogue(row, desk, title, &paragraph.context, found, &fields)?;
        made.metadata.extend(without_nulls(paragraph.rest));
        made.metadata.extend(without_nulls(article.rest.clone()));
        dialogues.push(made);
    }
    Ok(dialogues)
}

/// `fields` says where context, question and answers of each question stand in the row.
fn dialogue(
    row: &Row,
    desk: &mut Desk<'_>,
    title: Option<String>,
    context: &str,
    found: Vec<Found>,
    fields: &[(String, String, String)],
) -> Result<Dialogue, RowError> {
    const SOURCE: &str = "squad";
    let ranges = desk.chunks(context, SOURCE);
    let mut questions = Vec::new();
    let mut notes = Map::new();
    for (found, (context_field, question_field, answers_field)) in found.into_iter().zip(fields) {
        if context.trim().is_empty() {
            return Err(row.error(context_field, "empty turn"));
        }
        if found.question.trim().is_empty() {
            return Err(row.error(question_field, "empty turn"));
        }
        let has_answer = found
            .answers
            .iter()
            .any(|(text, _)| !text.trim().is_empty());
        // Flat rows of 2.0 say by their empty list alone that there is no answer.
        let abstain = found.is_impossible.unwrap_or(!has_answer);
        if !abstain && !has_answer {
            return Err(row.error(answers_field, "missing answer"));
        }
        let mut rest = without_nulls(found.rest);
        let starts: Vec<_> = found.answers.iter().map(|(_, start)| *start).collect();
        if starts.iter().any(Option::is_some) {
            rest.insert("answer_start".to_owned(), json!(starts));
        }
        let mut answers: Vec<String> = Vec::new();
        let mut evidence = Vec::new();
        if !abstain {
            for (text, start) in found.answers {
                let chunk = start.and_then(|start| chunk_at(context, &ranges, start));
                if let Some(id) = chunk.map(|chunk| format!("c{chunk}"))
                    && !evidence.contains(&id)
                {
                    evidence.push(id);
                }
                if !answers.contains(&text) {
                    answers.push(text);
                }
            }
        }
        if !rest.is_empty() {
            notes.insert(found.id.clone(), rest.into());
        }
        questions.push(Asked {
            question_id: found.id,
            text: found.question,
            timestamp: None,
            question_type: if abstain { "impossible" } else { "answerable" }.to_owned(),
            answers,
            abstain,
            evidence,
        });
    }
    let mut metadata = Map::new();
    if !notes.is_empty() {
        metadata.insert("questions".to_owned(), json!(notes));
    }
    let name = blake3::hash(context.as_bytes()).to_hex()[..12].to_owned();
    let sample = Sample {
        sample_id: Some(match &title {
            Some(title) => format!("{title}-{name}"),
            None => name,
        }),
        data_source: SOURCE.to_owned(),
        document: title,
        metadata,
    };
    let sessions = ranges
        .into_iter()
        .enumerate()
        .map(|(index, range)| turn(context[range].trim().to_owned(), format!("c{index}"), None))
        .collect();
    Ok(desk.dialogue(row, sample, sessions, questions))
}

/// The chunk that the character at `start` is in; starts count characters, not bytes.
fn chunk_at(context: &str, ranges: &[Range<usize>], start: i64) -> Option<usize> {
    let start = usize::try_from(start).ok()?;
    let (at, _) = context.char_indices().nth(start)?;
    ranges.iter().position(|range| range.contains(&at))
}
