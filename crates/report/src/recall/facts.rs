//! What became of every fact of an episode, as far as the turns have been walked through.

use std::collections::BTreeMap;

use recall::{
    Evidence, Grade, Notes, Retrieved,
    memory::{Fact, FactId, OpKind, OpRecord, OpStatus},
};
use serde::Serialize;

/// The facts of an episode at one moment of it.
#[derive(Clone, Debug)]
pub(super) struct FactsNow<'a> {
    facts: BTreeMap<FactId, &'a Fact>,
    texts: BTreeMap<FactId, String>,
    ends: BTreeMap<FactId, String>,
}

/// A fact at the end of an episode.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct FactView {
    pub(super) id: String,
    pub(super) text: String,
    pub(super) kind: &'static str,
    /// `turn 2, changed in turn 5`
    pub(super) written: String,
    /// What it died of; `None` while it lives.
    pub(super) end: Option<String>,
}

/// A fact that retrieval found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct FoundView {
    pub(super) id: String,
    pub(super) text: String,
    pub(super) score: String,
    pub(super) shown: bool,
    /// Whether the answer follows from it.
    pub(super) evidence: bool,
}

/// Where a piece of evidence was when its question came.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct EvidenceView {
    pub(super) source: String,
    pub(super) state: String,
    /// `good`, `warn` or `bad`.
    pub(super) tone: &'static str,
}

impl<'a> FactsNow<'a> {
    pub(super) fn before(notes: &'a Notes) -> Self {
        Self {
            facts: notes.facts.iter().map(|fact| (fact.id, fact)).collect(),
            texts: BTreeMap::new(),
            ends: BTreeMap::new(),
        }
    }

    pub(super) fn apply(&mut self, op: &OpRecord) {
        if op.status != OpStatus::Done {
            return;
        }
        let turn = op.turn_id;
        match (op.kind, op.item_id) {
            (OpKind::Delete, Some(id)) => {
                self.ends.insert(id, format!("deleted in turn {turn}"));
            }
            (OpKind::Evict, Some(id)) => {
                self.ends
                    .insert(id, format!("evicted in turn {turn}: the memory was full"));
            }
            (OpKind::Add | OpKind::Update, Some(id)) => {
                if let Some(text) = &op.after_text {
                    self.texts.insert(id, text.clone());
                }
            }
            _ => {}
        }
        if let Some((old, new)) = op.replaced.zip(op.item_id) {
            self.ends
                .insert(old, format!("superseded by {new} in turn {turn}"));
        }
    }

    /// The text of a fact as it is now.
    pub(super) fn text(&self, id: FactId) -> String {
        let now = self.texts.get(&id).cloned();
        now.or_else(|| self.facts.get(&id).map(|fact| fact.text.clone()))
            .unwrap_or_default()
    }

    pub(super) fn found(&self, hit: &Retrieved, grade: Option<(&Grade, u32)>) -> FoundView {
        let fact = self.facts.get(&hit.item_id);
        let evidence = grade.zip(fact).is_some_and(|((grade, turn), fact)| {
            grade.evidence.iter().any(|piece| piece.is_in(fact, turn))
        });
        FoundView {
            id: hit.item_id.to_string(),
            text: self.text(hit.item_id),
            score: format!("{:.2}", hit.score),
            shown: hit.shown,
            evidence,
        }
    }

    pub(super) fn evidence(
        &self,
        piece: &Evidence,
        turn: u32,
        retrieved: &[Retrieved],
    ) -> EvidenceView {
        let holders: Vec<FactId> = self
            .facts
            .values()
            .filter(|fact| piece.is_in(fact, turn))
            .map(|fact| fact.id)
            .collect();
        let hit = |shown: bool| {
            let mut hits = retrieved.iter();
            hits.any(|hit| holders.contains(&hit.item_id) && (hit.shown || !shown))
        };
        let live = holders.iter().find(|id| !self.ends.contains_key(id));
        let (state, tone) = if hit(true) {
            ("in the prompt".to_owned(), "good")
        } else if hit(false) {
            ("retrieved, but did not fit".to_owned(), "warn")
        } else if let Some(id) = live {
            (format!("remembered as {id}, not retrieved"), "warn")
        } else if let Some(id) = holders.first() {
            (format!("forgotten: {id} was {}", self.ends[id]), "bad")
        } else {
            ("never written".to_owned(), "bad")
        };
        let source = match &piece.source_id {
            Some(source) => format!("turn {}, {source}", piece.turn_id),
            None => format!("turn {}", piece.turn_id),
        };
        EvidenceView {
            source,
            state,
            tone,
        }
    }

    /// All facts, dead ones too.
    pub(super) fn all(&self) -> Vec<FactView> {
        let view = |fact: &&Fact| {
            let mut turns: Vec<u32> = fact.written.iter().map(|write| write.turn_id).collect();
            turns.dedup();
            let mut turns = turns.into_iter();
            let mut written = turns
                .next()
                .map_or_else(String::new, |turn| format!("turn {turn}"));
            let later: Vec<String> = turns.map(|turn| turn.to_string()).collect();
            if !later.is_empty() {
                written += &format!(", changed in turn {}", later.join(", "));
            }
            let end = self.ends.get(&fact.id).cloned();
            let end = end.or_else(|| (!fact.is_live()).then(|| "forgotten".to_owned()));
            FactView {
                id: fact.id.to_string(),
                text: fact.text.clone(),
                kind: fact.kind.name(),
                written,
                end,
            }
        };
        self.facts.values().map(view).collect()
    }
}
