//! HotpotQA: a question over several paragraphs, in both layouts of its context (arXiv 1809.09600).

use dataset::{Row, RowError, json_text};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    desk::{Asked, Desk, Sample, equally_long, required},
    values::{Scalar, Texts},
};
use crate::dialogue::{Dialogue, Session, Utterance};

#[derive(Deserialize)]
struct HotpotRow {
    #[serde(alias = "_id")]
    id: Option<Scalar>,
    question: String,
    answer: Option<Texts>,
    #[serde(rename = "type")]
    question_type: Option<String>,
    #[serde(default, deserialize_with = "json_text")]
    supporting_facts: Option<Supporting>,
    #[serde(deserialize_with = "json_text")]
    context: Context,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// As published, pairs; as columns, two lists.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected [title, sentences] pairs, or `title` and `sentences` lists"
)]
enum Context {
    Pairs(Vec<(String, Vec<String>)>),
    Columns {
        title: Vec<String>,
        sentences: Vec<Vec<String>>,
    },
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected [title, sentence] pairs, or `title` and `sent_id` lists"
)]
enum Supporting {
    Pairs(Vec<(String, i64)>),
    Columns {
        title: Vec<String>,
        sent_id: Vec<i64>,
    },
}

pub(super) fn read(row: &Row, desk: &mut Desk<'_>) -> Result<Vec<Dialogue>, RowError> {
    let parsed: HotpotRow = row.parse()?;
    let answers = required(row, "answer", parsed.answer)?;
    let paragraphs = match parsed.context {
        Context::Pairs(pairs) => pairs,
        Context::Columns { title, sentences } => {
            let lengths = [
                ("context.title", Some(title.len())),
                ("context.sentences", Some(sentences.len())),
            ];
            equally_long(row, lengths)?;
            title.into_iter().zip(sentences).collect()
        }
    };
    let supporting = match parsed.supporting_facts {
        None => Vec::new(),
        Some(Supporting::Pairs(pairs)) => pairs,
        Some(Supporting::Columns { title, sent_id }) => {
            let lengths = [
                ("supporting_facts.title", Some(title.len())),
                ("supporting_facts.sent_id", Some(sent_id.len())),
            ];
            equally_long(row, lengths)?;
            title.into_iter().zip(sent_id).collect()
        }
    };

    let mut sessions = Vec::new();
    let mut evidence = Vec::new();
    for (index, (title, sentences)) in paragraphs.iter().enumerate() {
        let text = sentences.concat();
        if text.trim().is_empty() {
            return Err(row.error(format!("context[{index}]"), "empty turn"));
        }
        let source_id = format!("p{index}");
        if supporting.iter().any(|(supporting, _)| supporting == title) {
            evidence.push(source_id.clone());
        }
        sessions.push(Utterance {
            source_id: Some(source_id),
            speaker: Some(title.clone()),
            text: text.trim().to_owned(),
        });
    }
    let unknown = supporting
        .iter()
        .filter(|(title, _)| paragraphs.iter().all(|(known, _)| known != title))
        .count();
    desk.count("evidence that names nothing in the history", unknown as u64);
    if sessions.is_empty() {
        return Err(row.error("context", "no paragraph"));
    }

    let question = Asked {
        question_id: "q0".to_owned(),
        text: parsed.question,
        timestamp: None,
        question_type: parsed
            .question_type
            .unwrap_or_else(|| "hotpotqa".to_owned()),
        answers,
        abstain: false,
        evidence,
    };
    let sample = Sample {
        sample_id: parsed.id.map(|Scalar(id)| id),
        data_source: "hotpotqa".to_owned(),
        document: None,
        metadata: parsed.rest,
    };
    let session = Session {
        session_id: None,
        timestamp: None,
        utterances: sessions,
    };
    Ok(vec![desk.dialogue(
        row,
        sample,
        vec![session],
        vec![question],
    )])
}
