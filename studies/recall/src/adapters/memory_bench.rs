//! MemoryBench: what users said in the dialogue about a task, and the task itself (arXiv 2510.17281).

use dataset::{Row, RowError, json_text, unpack};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    desk::{Asked, Desk, Sample, required},
    values::{Scalar, Texts, without_nulls},
};
use crate::dialogue::{Dialogue, Session, Utterance};

#[derive(Deserialize)]
struct BenchRow {
    test_idx: Scalar,
    input_prompt: Option<String>,
    #[serde(default, deserialize_with = "json_text")]
    input_chat_messages: Option<Vec<Message>>,
    dataset_name: String,
    /// Kept as it is, save for the gold answer.
    #[serde(default)]
    info: Value,
    #[serde(default, deserialize_with = "json_text")]
    dialog: Option<Vec<Message>>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    content: String,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// Where its tasks keep what is right.
const GOLD: [&str; 3] = ["golden_answer", "answer", "gold_answer"];

pub(super) fn read(row: &Row, desk: &mut Desk<'_>) -> Result<Vec<Dialogue>, RowError> {
    let parsed: BenchRow = row.parse()?;
    let mut info = match unpack(parsed.info) {
        Value::Object(info) => info,
        Value::Null => Map::new(),
        _ => return Err(row.error("info", "expected an object")),
    };
    let gold = GOLD.iter().find_map(|name| info.remove(*name));
    let answers = match gold {
        None => None,
        Some(gold) => Some(row.typed::<Texts>(gold, "info.golden_answer")?),
    };
    // Tasks that only a judge can score have none.
    let answers = required(row, "info.golden_answer", answers)?;

    let mut history = parsed.dialog.unwrap_or_default();
    let mut asked_with = Map::new();
    let question = match (parsed.input_prompt, parsed.input_chat_messages) {
        (Some(prompt), _) if !prompt.trim().is_empty() => prompt,
        (_, Some(mut messages)) => match messages.pop() {
            Some(last) => {
                messages.append(&mut history);
                history = messages;
                asked_with = without_nulls(last.rest);
                last.content
            }
            None => return Err(row.error("input_chat_messages", "no target turn")),
        },
        _ => return Err(row.error("input_prompt", "no target turn: nothing is asked")),
    };
    if question.trim().is_empty() {
        return Err(row.error("input_prompt", "empty turn"));
    }
    if let Some(index) = history
        .iter()
        .position(|said| said.content.trim().is_empty())
    {
        return Err(row.error(format!("dialog[{index}].content"), "empty turn"));
    }
    let mut turns = Map::new();
    let utterances: Vec<Utterance> = history
        .into_iter()
        .enumerate()
        .map(|(index, said)| {
            let source_id = format!("d{index}");
            let rest = without_nulls(said.rest);
            if !rest.is_empty() {
                turns.insert(source_id.clone(), rest.into());
            }
            Utterance {
                source_id: Some(source_id),
                speaker: Some(said.role),
                text: said.content,
            }
        })
        .collect();
    let sessions = if utterances.is_empty() {
        Vec::new()
    } else {
        vec![Session {
            session_id: None,
            timestamp: None,
            utterances,
        }]
    };
    let mut metadata = parsed.rest;
    metadata.insert("info".to_owned(), info.into());
    for (name, kept) in [("turns", turns), ("question", asked_with)] {
        if !kept.is_empty() {
            metadata.insert(name.to_owned(), kept.into());
        }
    }
    let sample = Sample {
        sample_id: Some(format!("{}-{}", parsed.dataset_name, parsed.test_idx.0)),
        data_source: format!("memorybench-{}", parsed.dataset_name),
        document: Some(question.clone()),
        metadata,
    };
    let question = Asked {
        question_id: "q0".to_owned(),
        text: question,
        timestamp: None,
        question_type: parsed.dataset_name,
        answers,
        abstain: false,
        evidence: Vec::new(),
    };
    Ok(vec![desk.dialogue(row, sample, sessions, vec![question])])
}
