//! The memory from outside: spec of the recall study, section 7, item 7.

#![allow(clippy::unwrap_used, reason = "tests")]

mod extraction;
mod model;
mod operations;
mod protocol;
mod retrieval;
mod short_term;
mod view;

use std::sync::Arc;

use recall::{
    TurnRole, TurnSpec, Utterance,
    memory::{Author, CountTokens, FactId, FactKind, MemoryConfig, MemoryManager, MemoryOp},
};

/// A word is a token.
fn words() -> CountTokens {
    Arc::new(|text: &str| text.split_whitespace().count())
}

fn manager(config: MemoryConfig) -> MemoryManager {
    MemoryManager::new(config, words(), None).unwrap()
}

fn history(turn_id: u32, lines: &[&str]) -> TurnSpec {
    TurnSpec {
        turn_id,
        turn_role: TurnRole::History,
        timestamp: None,
        session_id: None,
        utterances: lines
            .iter()
            .map(|line| Utterance {
                source_id: None,
                speaker: None,
                text: (*line).to_owned(),
            })
            .collect(),
    }
}

fn add(text: &str) -> MemoryOp {
    MemoryOp::Insert {
        kind: FactKind::Semantic,
        text: text.to_owned(),
        importance: None,
        timestamp: None,
    }
}

fn update(id: u32, text: &str) -> MemoryOp {
    MemoryOp::Update {
        id: FactId(id),
        text: text.to_owned(),
        kind: None,
    }
}

fn delete(id: u32) -> MemoryOp {
    MemoryOp::Delete {
        id: FactId(id),
        kind: None,
    }
}

fn at(turn_id: u32) -> Author {
    Author {
        turn_id,
        agent_role: "memory".to_owned(),
        step_id: Some(turn_id),
        timestamp: Some(format!("2024-01-{:02}", turn_id + 1)),
        source_ids: vec![format!("D{turn_id}")],
        observation_tokens: 0,
    }
}
