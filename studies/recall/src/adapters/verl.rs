//! Rows as verl's trainer reads them: `prompt` as messages, and in `extra_info` what each of them is.

use std::collections::BTreeSet;

use dataset::{Row, RowError, json_text};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    desk::{Asked, Desk, Sample, equally_long, required},
    values::{Scalar, Texts, without_nulls},
};
use crate::dialogue::{Dialogue, Session, Utterance};

#[derive(Deserialize)]
struct VerlRow {
    #[serde(deserialize_with = "json_text")]
    prompt: Vec<Message>,
    #[serde(default, deserialize_with = "json_text")]
    extra_info: ExtraInfo,
    data_source: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    content: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Default, Deserialize)]
struct ExtraInfo {
    group_id: Option<Scalar>,
    #[serde(default, deserialize_with = "json_text")]
    turn_roles: Option<Vec<Role>>,
    #[serde(default, deserialize_with = "json_text")]
    turn_metadata: Option<Vec<Option<TurnMetadata>>>,
    final_query: Option<String>,
    #[serde(default, deserialize_with = "json_text")]
    target_answer: Option<Value>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    History,
    Target,
    /// Instructions that are no turn.
    System,
}

#[derive(Default, Deserialize)]
struct TurnMetadata {
    turn_id: Option<Scalar>,
    timestamp: Option<Scalar>,
    session_id: Option<Scalar>,
    dia_id: Option<Scalar>,
    speaker: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl TurnMetadata {
    /// What has no place in a turn of this role.
    fn left(&mut self, role: Role) -> Map<String, Value> {
        let mut left = std::mem::take(&mut self.rest);
        let mut keep = |name: &str, value: Option<String>| {
            left.extend(value.map(|value| (name.to_owned(), Value::from(value))));
        };
        keep(
            "turn_id",
            self.turn_id.as_ref().map(|Scalar(id)| id.clone()),
        );
        if role != Role::History {
            keep("session_id", self.session_id.take().map(|Scalar(id)| id));
            keep("dia_id", self.dia_id.take().map(|Scalar(id)| id));
            keep("speaker", self.speaker.take());
        }
        if role == Role::System {
            keep("timestamp", self.timestamp.take().map(|Scalar(text)| text));
        }
        without_nulls(left)
    }
}

pub(super) fn read(row: &Row, desk: &mut Desk<'_>) -> Result<Vec<Dialogue>, RowError> {
    let parsed: VerlRow = row.parse()?;
    let extra = parsed.extra_info;
    let messages = parsed.prompt;
    let roles = match extra.turn_roles {
        Some(roles) => roles,
        None if messages.len() == 1 => vec![Role::Target],
        None => {
            return Err(row.error(
                "extra_info.turn_roles",
                format!("missing, and `prompt` has {} messages", messages.len()),
            ));
        }
    };
    let count = Some(messages.len());
    equally_long(
        row,
        [
            ("prompt", count),
            ("extra_info.turn_roles", Some(roles.len())),
        ],
    )?;
    let given = extra.turn_metadata.as_ref().map(Vec::len);
    equally_long(
        row,
        [("prompt", count), ("extra_info.turn_metadata", given)],
    )?;
    let mut notes = extra.turn_metadata.unwrap_or_default().into_iter();

    let mut metadata = parsed.rest;
    metadata.extend(extra.rest);
    let mut turns = Map::new();
    let mut turn_ids = BTreeSet::new();
    let mut history = Vec::new();
    let mut targets = Vec::new();
    for (index, (message, role)) in messages.into_iter().zip(roles).enumerate() {
        let field = format!("prompt[{index}].content");
        let mut note = notes.next().flatten().unwrap_or_default();
        let mut left = note.left(role);
        left.extend(without_nulls(message.rest));
        if !left.is_empty() {
            turns.insert(index.to_string(), left.into());
        }
        if let Some(Scalar(id)) = note.turn_id
            && !turn_ids.insert(id.clone())
        {
            return Err(row.error(
                format!("extra_info.turn_metadata[{index}].turn_id"),
                format!("turn `{id}` is there twice"),
            ));
        }
        let mut text = message.content.unwrap_or_default();
        if role == Role::Target && text.trim().is_empty() {
            text = extra.final_query.clone().unwrap_or_default();
        }
        if text.trim().is_empty() {
            return Err(row.error(field, "empty turn"));
        }
        let timestamp = note.timestamp.map(|Scalar(text)| text);
        match role {
            Role::System => {
                metadata.insert("system".to_owned(), text.into());
            }
            Role::Target => targets.push((text, timestamp)),
            Role::History if !targets.is_empty() => {
                return Err(row.error(
                    format!("extra_info.turn_roles[{index}]"),
                    "a history turn behind a target turn; questions are asked when all has been read",
                ));
            }
            Role::History => {
                let session = Session {
                    session_id: note.session_id.map(|Scalar(id)| id),
                    timestamp,
                    utterances: vec![Utterance {
                        source_id: note.dia_id.map(|Scalar(id)| id),
                        speaker: note.speaker,
                        text,
                    }],
                };
                history.push((session, message.role));
            }
        }
    }
    match targets.len() {
        0 => return Err(row.error("extra_info.turn_roles", "no target turn")),
        1 => {}
        _ if desk.options().multi_target => {}
        number => {
            return Err(row.error(
                "extra_info.turn_roles",
                format!("{number} target turns; more than one must be asked for (multi_target)"),
            ));
        }
    }
    if !turns.is_empty() {
        metadata.insert("turn_metadata".to_owned(), turns.into());
    }
    let answers = answers_of(row, extra.target_answer, targets.len())?;
    if let [(target, _)] = targets.as_slice()
        && let Some(query) = extra.final_query.filter(|query| query != target)
    {
        metadata.insert("final_query".to_owned(), query.into());
    }
    let data_source = parsed.data_source.unwrap_or_else(|| "verl".to_owned());
    let questions = targets
        .into_iter()
        .zip(answers)
        .enumerate()
        .map(|(index, ((text, timestamp), answers))| Asked {
            question_id: format!("q{index}"),
            text,
            timestamp,
            question_type: data_source.clone(),
            answers,
            abstain: false,
            evidence: Vec::new(),
        })
        .collect();
    let sample = Sample {
        sample_id: extra.group_id.map(|Scalar(id)| id),
        data_source,
        document: None,
        metadata,
    };
    Ok(vec![desk.dialogue(row, sample, named(history), questions)])
}

/// Messages of more than one role are a conversation, whose roles are its speakers; those of one role
/// are chunks of a text.
fn named(history: Vec<(Session, String)>) -> Vec<Session> {
    let roles: BTreeSet<String> = history.iter().map(|(_, role)| role.clone()).collect();
    history
        .into_iter()
        .map(|(mut session, role)| {
            if roles.len() > 1 {
                for utterance in &mut session.utterances {
                    utterance.speaker.get_or_insert_with(|| role.clone());
                }
            }
            session
        })
        .collect()
}

/// The answers of every target: of one the alternatives, of several a list with one entry each.
fn answers_of(
    row: &Row,
    answer: Option<Value>,
    targets: usize,
) -> Result<Vec<Vec<String>>, RowError> {
    const FIELD: &str = "extra_info.target_answer";
    let texts = |value: Value, field: &str| {
        let texts =
            Texts::deserialize(value).map_err(|error| row.error(field, error.to_string()))?;
        required(row, field, Some(texts))
    };
    match answer {
        None => Err(row.error(FIELD, "missing answer")),
        Some(answer) if targets == 1 => Ok(vec![texts(answer, FIELD)?]),
        Some(Value::Array(answers)) if answers.len() == targets => answers
            .into_iter()
            .enumerate()
            .map(|(index, answer)| texts(answer, &format!("{FIELD}[{index}]")))
            .collect(),
        Some(_) => Err(row.error(
            FIELD,
            format!("expected a list with one entry for each of the {targets} target turns"),
        )),
    }
}
