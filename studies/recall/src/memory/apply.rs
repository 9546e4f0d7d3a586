//! Operations on a memory. Whatever is asked for, the answer is a record.

use crate::task::TurnSpec;

use super::{
    change::{Outcome, content_hash},
    config::{Extraction, UpdatePolicy},
    fact::{Fact, FactId, FactKind, Write},
    manager::{MemoryError, MemoryManager},
    op::{Compressed, MemoryOp, OpKind, OpRecord, OpStatus, Store},
    protocol::{OpFormat, Piece},
    sentences::cut_to_tokens,
    state::{Leaving, MemoryState, Text},
};

/// Who asks for an operation, and when.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Author {
    pub turn_id: u32,
    /// `rule`, or the role that was asked.
    pub agent_role: String,
    /// The policy call, as its index in the episode's calls.
    pub step_id: Option<u32>,
    /// What new facts carry that are given no other.
    pub timestamp: Option<String>,
    /// What new facts were made from.
    pub source_ids: Vec<String>,
    /// Tokens of what was read: they count as input of a new summary.
    pub observation_tokens: u32,
}

impl Author {
    /// A rule that reads `turn`.
    pub fn rule(turn: &TurnSpec) -> Self {
        Self::role(turn, "rule", None)
    }

    /// A role that reads `turn` in a call; sources are all of the turn's utterances and its session.
    pub fn role(turn: &TurnSpec, agent_role: &str, step_id: Option<u32>) -> Self {
        let utterances = turn.utterances.iter();
        Self {
            turn_id: turn.turn_id,
            agent_role: agent_role.to_owned(),
            step_id,
            timestamp: turn.timestamp.clone(),
            source_ids: utterances
                .filter_map(|utterance| utterance.source_id.clone())
                .chain(turn.session_id.clone())
                .collect(),
            observation_tokens: 0,
        }
    }
}

impl MemoryManager {
    /// Does an operation. The first record says what became of it; evictions that it led to follow.
    pub fn apply(&self, state: &mut MemoryState, op: MemoryOp, by: &Author) -> Vec<OpRecord> {
        let (mut records, mut written) = (Vec::new(), Vec::new());
        self.change(state, op, by, &mut records, &mut written);
        self.embed(state, &written);
        records
    }

    /// Does what a policy wrote: one record for every operation and for every part that cannot be read.
    pub fn apply_written(
        &self,
        state: &mut MemoryState,
        text: &str,
        format: OpFormat,
        by: &Author,
    ) -> Vec<OpRecord> {
        self.apply_pieces(state, super::protocol::read(text, format), by)
    }

    /// Does what `protocol` read out of a response.
    pub fn apply_pieces(
        &self,
        state: &mut MemoryState,
        pieces: Vec<Piece>,
        by: &Author,
    ) -> Vec<OpRecord> {
        let (mut records, mut written) = (Vec::new(), Vec::new());
        for piece in pieces {
            match piece {
                Piece::Op { op, .. } => self.change(state, op, by, &mut records, &mut written),
                Piece::Malformed { text, why, .. } => {
                    let outcome = Outcome {
                        after: Some(text),
                        ..Outcome::failed(OpKind::Malformed, Store::Semantic, why)
                    };
                    records.push(state.record(outcome, by));
                }
                Piece::Ignored { .. } => {}
            }
        }
        self.embed(state, &written);
        records
    }

    /// Does an operation, adding to `records`, and to `written` the facts whose texts are new.
    pub(super) fn change(
        &self,
        state: &mut MemoryState,
        op: MemoryOp,
        by: &Author,
        records: &mut Vec<OpRecord>,
        written: &mut Vec<FactId>,
    ) {
        let outcome = match op {
            MemoryOp::Insert {
                kind,
                text,
                importance,
                timestamp,
            } => self.insert(state, kind, &text, importance, timestamp, by),
            MemoryOp::Update { id, text, kind } => self.update(state, id, &text, kind, by),
            MemoryOp::Delete { id, kind } => self.delete(state, id, kind),
            MemoryOp::SetCore { text } => self.set_core(state, &text),
            MemoryOp::SetSummary { text } => self.set_summary(state, &text, by),
            MemoryOp::Noop => Outcome {
                status: OpStatus::Skipped,
                ..Outcome::done(OpKind::Noop, Store::Semantic)
            },
        };
        let newest = outcome
            .item_id
            .filter(|_| outcome.status == OpStatus::Done && outcome.after.is_some());
        records.push(state.record(outcome, by));
        written.extend(newest);
        while self.config.max_facts > 0 && state.len() > self.config.max_facts {
            let candidate = state.leaving.iter().find(|it| Some(it.id()) != newest);
            let Some(id) = candidate.map(Leaving::id) else {
                break;
            };
            let outcome = state.bury(id, |fact| fact.deleted = true);
            records.push(state.record(
                Outcome {
                    kind: OpKind::Evict,
                    ..outcome
                },
                by,
            ));
        }
    }

    fn insert(
        &self,
        state: &mut MemoryState,
        kind: FactKind,
        text: &str,
        importance: Option<f32>,
        timestamp: Option<String>,
        by: &Author,
    ) -> Outcome {
        let text = text.trim();
        let tokens = match self.check_text(text) {
            Ok(tokens) => tokens,
            Err(error) => {
                return Outcome {
                    after: Some(text.to_owned()),
                    ..Outcome::failed(OpKind::Add, kind.into(), error)
                };
            }
        };
        let timestamp = timestamp.or_else(|| by.timestamp.clone());
        let content_hash = content_hash(text);
        let features = state
            .duplicates
            .features(kind, text, &content_hash, timestamp.as_deref());
        if let Some(id) = state.duplicates.find(state, &features, kind, text) {
            return Outcome {
                status: OpStatus::Skipped,
                item_id: Some(id),
                after: Some(text.to_owned()),
                error: Some(format!("{id} says that already")),
                ..Outcome::done(OpKind::DuplicateSkipped, kind.into())
            };
        }
        let id = FactId(state.facts.len() as u32);
        let fact = Fact {
            id,
            text: text.to_owned(),
            kind,
            importance: importance
                .filter(|importance| !importance.is_nan())
                .map(|importance| importance.clamp(0.0, 1.0)),
            timestamp,
            written: vec![by.write(state.records)],
            superseded_by: None,
            deleted: false,
            content_hash,
            tokens,
        };
        state.append(fact, &features);
        Outcome {
            item_id: Some(id),
            after: Some(text.to_owned()),
            tokens: i64::from(tokens),
            ..Outcome::done(OpKind::Add, kind.into())
        }
    }

    fn update(
        &self,
        state: &mut MemoryState,
        id: FactId,
        text: &str,
        kind: Option<FactKind>,
        by: &Author,
    ) -> Outcome {
        let text = text.trim();
        let fact = match state.living(id, kind) {
            Ok(fact) => fact.clone(),
            Err(error) => {
                let store = kind
                    .or(state.fact(id).map(|fact| fact.kind))
                    .unwrap_or_default();
                return Outcome {
                    item_id: state.fact(id).map(|fact| fact.id),
                    after: Some(text.to_owned()),
                    ..Outcome::failed(OpKind::Update, store.into(), error)
                };
            }
        };
        let store = Store::from(fact.kind);
        let before = Some((fact.text.clone(), fact.content_hash.clone()));
        let tokens = match self.check_text(text) {
            Ok(tokens) => tokens,
            Err(error) => {
                return Outcome {
                    item_id: Some(id),
                    before,
                    after: Some(text.to_owned()),
                    ..Outcome::failed(OpKind::Update, store, error)
                };
            }
        };
        let content_hash = content_hash(text);
        let appends = self.config.update_policy == UpdatePolicy::AppendSupersede;
        // A fact that takes another's place is learnt now; a corrected one was learnt when it was written.
        let timestamp = if appends && by.timestamp.is_some() {
            by.timestamp.clone()
        } else {
            fact.timestamp.clone()
        };
        let features =
            state
                .duplicates
                .features(fact.kind, text, &content_hash, timestamp.as_deref());
        let same = if fact.text == text {
            Some(id)
        } else {
            state
                .duplicates
                .identical(state, &features, fact.kind, text)
        };
        if let Some(same) = same {
            return Outcome {
                status: OpStatus::Skipped,
                item_id: Some(same),
                before,
                after: Some(text.to_owned()),
                error: Some(format!("{same} says that already")),
                ..Outcome::done(OpKind::DuplicateSkipped, store)
            };
        }
        let mut successor = Fact {
            text: text.to_owned(),
            timestamp,
            content_hash,
            tokens,
            ..fact.clone()
        };
        successor.written.push(by.write(state.records));
        let (item_id, replaced) = if appends {
            let new = FactId(state.facts.len() as u32);
            state.bury(id, |fact| fact.superseded_by = Some(new));
            successor.id = new;
            (state.append(successor, &features), Some(id))
        } else {
            state.replace(successor, &features);
            (id, None)
        };
        Outcome {
            item_id: Some(item_id),
            replaced,
            before,
            after: Some(text.to_owned()),
            tokens: i64::from(tokens) - i64::from(fact.tokens),
            ..Outcome::done(OpKind::Update, store)
        }
    }

    fn delete(&self, state: &mut MemoryState, id: FactId, kind: Option<FactKind>) -> Outcome {
        match state.living(id, kind) {
            Ok(_) => state.bury(id, |fact| fact.deleted = true),
            Err(error) => {
                let store = kind
                    .or(state.fact(id).map(|fact| fact.kind))
                    .unwrap_or_default();
                Outcome {
                    item_id: state.fact(id).map(|fact| fact.id),
                    ..Outcome::failed(OpKind::Delete, store.into(), error)
                }
            }
        }
    }

    fn set_core(&self, state: &mut MemoryState, text: &str) -> Outcome {
        let (core, error) = self.cut("core", text, self.config.core_tokens);
        let before = std::mem::replace(&mut state.core, core);
        let kind = if state.core.text.is_empty() {
            OpKind::Delete
        } else {
            OpKind::Update
        };
        Outcome {
            error,
            ..Outcome::of_text(kind, Store::Core, &before, &state.core)
        }
    }

    pub(super) fn set_summary(&self, state: &mut MemoryState, text: &str, by: &Author) -> Outcome {
        let (summary, error) = self.cut("summary", text, self.config.summary_tokens);
        let before = std::mem::replace(&mut state.summary, summary);
        Outcome {
            error,
            compressed: Some(Compressed {
                input_tokens: before.tokens.saturating_add(by.observation_tokens),
                output_tokens: state.summary.tokens,
            }),
            ..Outcome::of_text(OpKind::Summarize, Store::Summary, &before, &state.summary)
        }
    }

    /// A text within its cap, and what its writer is told if it was not.
    fn cut(&self, name: &str, text: &str, limit: usize) -> (Text, Option<String>) {
        let text = text.trim();
        let kept = cut_to_tokens(text, limit, &|text| self.count(text));
        let error = (kept.len() < text.len()).then(|| {
            format!(
                "the {name} holds at most {limit} tokens: what is over was cut off behind a word"
            )
        });
        let text = Text {
            tokens: self.count(kept) as u32,
            text: kept.into(),
        };
        (text, error)
    }

    /// The tokens of a fact's text, or why it is none.
    fn check_text(&self, text: &str) -> Result<u32, String> {
        if text.is_empty() {
            return Err("a fact needs a text; to forget one, delete it".to_owned());
        }
        let tokens = self.count(text);
        let limit = match self.config.extraction {
            Extraction::Chunk => 0,
            _ => self.config.fact_tokens,
        };
        if limit > 0 && tokens > limit {
            return Err(format!(
                "a fact has at most {limit} tokens, and this one has {tokens}: write several"
            ));
        }
        Ok(u32::try_from(tokens).unwrap_or(u32::MAX))
    }

    /// Files the texts of `written` among the vectors, with one call of the embedder. A failure is no fault of
    /// who wrote them: it is kept, and the next retrieval fails with it.
    pub(super) fn embed(&self, state: &mut MemoryState, written: &[FactId]) {
        let (Some(embedder), Some(dense)) = (&self.embedder, &mut state.dense) else {
            return;
        };
        let living: Vec<&Fact> = written
            .iter()
            .filter_map(|id| state.facts.get(id.0 as usize))
            .filter(|fact| fact.is_live())
            .collect();
        if living.is_empty() {
            return;
        }
        let texts: Vec<&str> = living.iter().map(|fact| fact.text.as_str()).collect();
        let outcome = embedder.embed(&texts).map_err(|error| error.to_string());
        let outcome = outcome.and_then(|vectors| {
            if vectors.len() != living.len() {
                return Err(format!(
                    "it gave {} vectors for {} texts",
                    vectors.len(),
                    living.len()
                ));
            }
            for (fact, vector) in living.iter().zip(&vectors) {
                dense
                    .insert(fact.id.0, vector)
                    .map_err(|error| error.to_string())?;
            }
            Ok(())
        });
        if let Err(reason) = outcome {
            state.fault = Some(MemoryError::Embedding(reason));
        }
    }
}

impl Author {
    fn write(&self, op_id: u32) -> Write {
        Write {
            turn_id: self.turn_id,
            op_id,
            step_id: self.step_id,
            source_ids: self.source_ids.clone(),
        }
    }
}
