//! LoCoMo: months of sessions between two people, and questions of five categories (arXiv 2402.17753).

use std::collections::BTreeSet;

use dataset::{Row, RowError};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::{
    desk::{Asked, Desk, Sample, required},
    values::{Scalar, Texts, without_nulls},
};
use crate::dialogue::{Dialogue, Session, Utterance};

#[derive(Deserialize)]
struct Said {
    speaker: String,
    dia_id: String,
    #[serde(default)]
    text: String,
    /// What the image shows that was sent along.
    blip_caption: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct Qa {
    question: String,
    answer: Option<Texts>,
    evidence: Option<Texts>,
    category: Scalar,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// Summaries that its authors made, which are neither history nor asked for.
const LEFT_OUT: [&str; 3] = ["event_summary", "observation", "session_summary"];

pub(super) fn read(row: &Row, desk: &mut Desk<'_>) -> Result<Vec<Dialogue>, RowError> {
    let mut columns = row.object()?;
    let sample_id: Option<Scalar> = take(row, &mut columns, "sample_id")?;
    let qa: Vec<Qa> =
        take(row, &mut columns, "qa")?.ok_or_else(|| row.error("", "missing field `qa`"))?;
    for name in LEFT_OUT {
        let is_there = columns.remove(name).is_some();
        desk.count("columns of summaries left out", u64::from(is_there));
    }
    // Nested in the later release, beside the questions in the first one.
    let nested: Option<Map<String, Value>> = take(row, &mut columns, "conversation")?;
    let path = if nested.is_some() {
        "conversation."
    } else {
        ""
    };
    let mut conversation = match nested {
        Some(conversation) => conversation,
        None => std::mem::take(&mut columns),
    };
    let mut turns = Map::new();
    let sessions = sessions(row, (&mut conversation, path), &mut turns, desk)?;
    columns.extend(conversation);
    if !turns.is_empty() {
        columns.insert("turns".to_owned(), turns.into());
    }

    let names: BTreeSet<&str> = sessions
        .iter()
        .flat_map(|session| &session.utterances)
        .filter_map(|utterance| utterance.source_id.as_deref())
        .collect();
    let mut questions = Vec::new();
    let mut notes = Map::new();
    let mut unknown = 0;
    for (index, qa) in qa.into_iter().enumerate() {
        let question_id = format!("q{index}");
        if qa.question.trim().is_empty() {
            return Err(row.error(format!("qa[{index}].question"), "empty turn"));
        }
        let question_type = category(&qa.category.0).ok_or_else(|| {
            row.error(
                format!("qa[{index}].category"),
                format!("expected 1 to 5, found {}", qa.category.0),
            )
        })?;
        // The dialogue does not say; most have no `answer` at all, and none is right.
        let abstain = question_type == "adversarial";
        let answers = if abstain {
            Vec::new()
        } else {
            required(row, &format!("qa[{index}].answer"), qa.answer)?
        };
        let mut evidence = Vec::new();
        for id in qa
            .evidence
            .unwrap_or_default()
            .0
            .iter()
            .flat_map(|text| dialogue_ids(text))
        {
            if names.contains(id.as_str()) {
                evidence.push(id);
            } else {
                unknown += 1;
            }
        }
        let rest = without_nulls(qa.rest);
        if !rest.is_empty() {
            notes.insert(question_id.clone(), rest.into());
        }
        questions.push(Asked {
            question_id,
            text: qa.question,
            timestamp: None,
            question_type: question_type.to_owned(),
            answers,
            abstain,
            evidence,
        });
    }
    desk.count("evidence that names nothing in the history", unknown);
    if !notes.is_empty() {
        columns.insert("questions".to_owned(), notes.into());
    }
    let sample_id = sample_id.map(|Scalar(id)| id);
    let sample = Sample {
        document: sample_id.clone(),
        sample_id,
        data_source: "locomo".to_owned(),
        metadata: columns,
    };
    Ok(vec![desk.dialogue(row, sample, sessions, questions)])
}

/// `session_1`, `session_2`, … with their `session_1_date_time`, in the order of their numbers. What has no
/// place in an utterance, as the address of an image, goes to `turns` under its name.
fn sessions(
    row: &Row,
    (conversation, path): (&mut Map<String, Value>, &str),
    turns: &mut Map<String, Value>,
    desk: &mut Desk<'_>,
) -> Result<Vec<Session>, RowError> {
    let mut numbers: Vec<u32> = conversation
        .keys()
        .filter_map(|key| number(key, ""))
        .collect();
    numbers.sort_unstable();
    let mut sessions = Vec::new();
    for number in numbers {
        let name = format!("session_{number}");
        let said: Vec<Said> = take_below(row, conversation, path, &name)?.unwrap_or_default();
        let timestamp = take_below(row, conversation, path, &format!("{name}_date_time"))?;
        let mut utterances = Vec::new();
        for said in said {
            let text = match said.blip_caption {
                Some(caption) => format!("{} [image: {caption}]", said.text.trim()),
                None => said.text,
            };
            if text.trim().is_empty() {
                desk.count("empty utterances left out", 1);
                continue;
            }
            let rest = without_nulls(said.rest);
            if !rest.is_empty() {
                turns.insert(said.dia_id.clone(), rest.into());
            }
            utterances.push(Utterance {
                source_id: Some(said.dia_id),
                speaker: Some(said.speaker),
                text: text.trim().to_owned(),
            });
        }
        if utterances.is_empty() {
            desk.count("empty sessions left out", 1);
            continue;
        }
        sessions.push(Session {
            session_id: Some(name),
            timestamp,
            utterances,
        });
    }
    let dates: Vec<String> = conversation
        .keys()
        .filter(|key| number(key, "_date_time").is_some())
        .cloned()
        .collect();
    for date in &dates {
        conversation.remove(date);
    }
    desk.count("dates without a session left out", dates.len() as u64);
    if sessions.is_empty() {
        return Err(row.error(
            path.trim_end_matches('.'),
            "no session: expected `session_1`, …",
        ));
    }
    Ok(sessions)
}

/// The number of a key `session_NUMBER` with `ending` behind it.
fn number(key: &str, ending: &str) -> Option<u32> {
    key.strip_prefix("session_")?
        .strip_suffix(ending)?
        .parse()
        .ok()
}

/// Takes a column out of a row.
fn take<T: DeserializeOwned>(
    row: &Row,
    columns: &mut Map<String, Value>,
    name: &str,
) -> Result<Option<T>, RowError> {
    take_below(row, columns, "", name)
}

fn take_below<T: DeserializeOwned>(
    row: &Row,
    columns: &mut Map<String, Value>,
    path: &str,
    name: &str,
) -> Result<Option<T>, RowError> {
    match columns.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => row.typed(value, &format!("{path}{name}")).map(Some),
    }
}

/// By the numbers of the files (spec, section 3).
fn category(number: &str) -> Option<&'static str> {
    match number {
        "1" => Some("multi_hop"),
        "2" => Some("temporal"),
        "3" => Some("open_domain"),
        "4" => Some("single_hop"),
        "5" => Some("adversarial"),
        _ => None,
    }
}

/// The ids of a text, which may hold several, some with zeros in front, or be a list as Python prints it:
/// `D8:6; D30:05`, `['D2:3']`.
fn dialogue_ids(text: &str) -> impl Iterator<Item = String> {
    text.split(|character: char| !character.is_alphanumeric() && character != ':')
        .filter(|id| !id.is_empty())
        .map(|id| match id.split_once(':') {
            Some((session, turn)) => {
                let turn = match turn.trim_start_matches('0') {
                    "" => turn,
                    turn => turn,
                };
                format!("{session}:{turn}")
            }
            None => id.to_owned(),
        })
}
