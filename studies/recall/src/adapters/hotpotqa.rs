//! HotpotQA: a question over several paragraphs, in both layouts of its context (arXiv 1809.09600).

use dataset::{Row, RowError, json_text};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    desk::{Asked, Desk, Sample, equally_long, required},
    values::{Scalar, Texts, without_nulls},
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
        #[serde(flatten)]
        rest: Map<String, Value>,
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
        #[serde(flatten)]
        rest: Map<String, Value>,
    },
}

pub(super) fn read(row: &Row, desk: &mut Desk<'_>) -> Result<Vec<Dialogue>, RowError> {
    let parsed: HotpotRow = row.parse()?;
    let answers = required(row, "answer", parsed.answer)?;
    let mut beside = Map::new();
    let paragraphs = match parsed.context {
        Context::Pairs(pairs) => pairs,
        Context::Columns {
            title,
            sentences,
            rest,
        } => {
            beside.extend(without_nulls(rest));
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
        Some(Supporting::Columns {
            title,
            sent_id,
            rest,
        }) => {
            beside.extend(without_nulls(rest));
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
        let is_here =
            |(named, sentence): &(String, i64)| named == title && is_of(sentences, *sentence);
        if supporting.iter().any(is_here) {
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
        .filter(|(title, sentence)| {
            let mut paragraphs = paragraphs.iter();
            !paragraphs.any(|(known, said)| known == title && is_of(said, *sentence))
        })
        .count();
    desk.count("evidence that names nothing in the history", unknown as u64);
    if sessions.is_empty() {
        return Err(row.error("context", "no paragraph"));
    }

    let mut metadata = parsed.rest;
    if !beside.is_empty() {
        metadata.insert("columns".to_owned(), beside.into());
    }
    if !supporting.is_empty() {
        metadata.insert("supporting_facts".to_owned(), json!(supporting));
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
        metadata,
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

/// Whether a paragraph has a sentence of this number, from 0.
fn is_of(sentences: &[String], number: i64) -> bool {
    usize::try_from(number).is_ok_and(|number| number < sentences.len())
}
