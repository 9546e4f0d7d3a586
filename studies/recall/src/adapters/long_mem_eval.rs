//! LongMemEval: one question about a haystack of dated sessions (arXiv 2410.10813).

use dataset::{Row, RowError, json_text};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    desk::{Asked, Desk, Sample, equally_long, required},
    values::{Texts, without_nulls},
};
use crate::dialogue::{Dialogue, Session, Utterance};

#[derive(Deserialize)]
struct LongMemEvalRow {
    question_id: String,
    question_type: String,
    question: String,
    answer: Option<Texts>,
    question_date: Option<String>,
    #[serde(default, deserialize_with = "json_text")]
    haystack_dates: Option<Vec<String>>,
    #[serde(default, deserialize_with = "json_text")]
    haystack_session_ids: Option<Vec<String>>,
    #[serde(deserialize_with = "json_text")]
    haystack_sessions: Vec<Vec<Turn>>,
    #[serde(default, deserialize_with = "json_text")]
    answer_session_ids: Option<Vec<String>>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct Turn {
    role: String,
    content: String,
    has_answer: Option<bool>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// Of questions, without [`ABSTENTION`].
const TYPES: [&str; 6] = [
    "single-session-user",
    "single-session-assistant",
    "single-session-preference",
    "temporal-reasoning",
    "knowledge-update",
    "multi-session",
];

/// Ends the ids of questions whose answer the sessions do not hold.
const ABSTENTION: &str = "_abs";

pub(super) fn read(row: &Row, desk: &mut Desk<'_>) -> Result<Vec<Dialogue>, RowError> {
    let parsed: LongMemEvalRow = row.parse()?;
    let count = Some(parsed.haystack_sessions.len());
    for (field, given) in [
        (
            "haystack_dates",
            parsed.haystack_dates.as_ref().map(Vec::len),
        ),
        (
            "haystack_session_ids",
            parsed.haystack_session_ids.as_ref().map(Vec::len),
        ),
    ] {
        equally_long(row, [("haystack_sessions", count), (field, given)])?;
    }
    let abstain = parsed.question_id.ends_with(ABSTENTION);
    let answers = if abstain {
        // It says why there is no answer.
        parsed.answer.unwrap_or_default().0
    } else {
        required(row, "answer", parsed.answer)?
    };

    let mut dates = parsed.haystack_dates.unwrap_or_default().into_iter();
    let mut ids = parsed.haystack_session_ids.unwrap_or_default().into_iter();
    let mut haystack: Vec<Found> = parsed
        .haystack_sessions
        .into_iter()
        .map(|turns| Found {
            id: ids.next(),
            date: dates.next(),
            turns,
        })
        .collect();
    let dated = haystack.iter().filter(|session| session.date.is_some());
    let unreadable = dated.filter(|session| !is_sortable(session.date.as_deref()));
    let unreadable = unreadable.count() as u64;
    desk.count("dates that say no order", unreadable);
    desk.count(
        "haystacks left in the order of the file, for want of dates",
        u64::from(haystack.iter().any(|one| !is_sortable(one.date.as_deref()))),
    );
    if !TYPES.contains(&parsed.question_type.as_str()) {
        desk.count("questions of a type that the benchmark does not have", 1);
    }
    if haystack
        .iter()
        .all(|session| is_sortable(session.date.as_deref()))
        && !haystack.is_sorted_by(|a, b| a.date <= b.date)
    {
        haystack.sort_by(|a, b| a.date.cmp(&b.date));
        desk.count("haystacks put in the order of their dates", 1);
    }

    let answer_sessions = parsed.answer_session_ids.unwrap_or_default();
    let mut evidence_turns = Vec::new();
    let mut evidence_sessions = Vec::new();
    let mut known = Vec::new();
    let mut sessions = Vec::new();
    let mut original_ids = Map::new();
    let mut turns = Map::new();
    for found in haystack {
        // Their own names say which sessions hold the answer.
        let session_id = format!("s{}", sessions.len());
        let is_answer = found
            .id
            .as_ref()
            .is_some_and(|id| answer_sessions.contains(id));
        let mut utterances = Vec::new();
        for (index, turn) in found.turns.into_iter().enumerate() {
            if turn.content.trim().is_empty() {
                desk.count("empty utterances left out", 1);
                continue;
            }
            let source_id = format!("{session_id}:{index}");
            let rest = without_nulls(turn.rest);
            if !rest.is_empty() {
                turns.insert(source_id.clone(), rest.into());
            }
            if turn.has_answer == Some(true) {
                evidence_turns.push(source_id.clone());
            }
            utterances.push(Utterance {
                source_id: Some(source_id),
                speaker: Some(turn.role),
                text: turn.content,
            });
        }
        if utterances.is_empty() {
            desk.count("empty sessions left out", 1);
            continue;
        }
        if is_answer {
            evidence_sessions.push(session_id.clone());
        }
        if let Some(id) = found.id {
            original_ids.insert(session_id.clone(), id.clone().into());
            known.push(id);
        }
        sessions.push(Session {
            session_id: Some(session_id),
            timestamp: found.date,
            utterances,
        });
    }
    if sessions.is_empty() {
        return Err(row.error("haystack_sessions", "no session with anything said"));
    }
    let missing = answer_sessions
        .iter()
        .filter(|id| !known.contains(id))
        .count();
    desk.count("evidence that names nothing in the history", missing as u64);

    let mut metadata = parsed.rest;
    if !turns.is_empty() {
        metadata.insert("turns".to_owned(), turns.into());
    }
    if !original_ids.is_empty() {
        metadata.insert("session_ids".to_owned(), original_ids.into());
    }
    let base = parsed
        .question_id
        .strip_suffix(ABSTENTION)
        .unwrap_or(&parsed.question_id);
    let sample = Sample {
        sample_id: Some(parsed.question_id.clone()),
        data_source: "longmemeval".to_owned(),
        // A question and its twin without an answer are about the same sessions.
        document: Some(base.to_owned()),
        metadata,
    };
    let question = Asked {
        question_id: parsed.question_id,
        text: parsed.question,
        timestamp: parsed.question_date,
        question_type: parsed.question_type,
        answers,
        abstain,
        evidence: if evidence_turns.is_empty() {
            evidence_sessions
        } else {
            evidence_turns
        },
    };
    Ok(vec![desk.dialogue(row, sample, sessions, vec![question])])
}

/// A session of the haystack.
struct Found {
    id: Option<String>,
    date: Option<String>,
    turns: Vec<Turn>,
}

/// Whether a date is written so that the order of texts is that of time: `2023/05/20 (Sat) 02:21`.
fn is_sortable(date: Option<&str>) -> bool {
    const SHAPE: &[u8] = b"0000/00/00 (AAA) 00:00";
    date.is_some_and(|date| {
        date.len() == SHAPE.len()
            && date.bytes().zip(SHAPE).all(|(found, shape)| match shape {
                b'0' => found.is_ascii_digit(),
                b'A' => found.is_ascii_alphabetic(),
                shape => found == *shape,
            })
    })
}
