//! Changes of a memory: facts come and go in every index at once, and each change has a record.

use super::{
    apply::Author,
    duplicates::Features,
    fact::{Fact, FactId, FactKind},
    op::{Compressed, OpKind, OpRecord, OpStatus, Store},
    state::{Leaving, MemoryState, Text},
};

/// What came of an operation, before it is a record.
pub(super) struct Outcome {
    pub(super) kind: OpKind,
    pub(super) store: Store,
    pub(super) status: OpStatus,
    pub(super) item_id: Option<FactId>,
    pub(super) replaced: Option<FactId>,
    /// Text before and its hash.
    pub(super) before: Option<(String, String)>,
    pub(super) after: Option<String>,
    pub(super) error: Option<String>,
    pub(super) tokens: i64,
    pub(super) compressed: Option<Compressed>,
}

impl MemoryState {
    pub(super) fn record(&mut self, outcome: Outcome, by: &Author) -> OpRecord {
        let op_id = self.records;
        self.records += 1;
        let (before_text, before_hash) = outcome.before.unzip();
        OpRecord {
            op_id,
            kind: outcome.kind,
            store: outcome.store,
            item_id: outcome.item_id,
            replaced: outcome.replaced,
            before_hash,
            before_text,
            after_text: outcome.after,
            turn_id: by.turn_id,
            agent_role: by.agent_role.clone(),
            step_id: by.step_id,
            status: outcome.status,
            error: outcome.error,
            tokens: outcome.tokens,
            compressed: outcome.compressed,
        }
    }

    /// A live fact, or why it cannot be changed.
    pub(super) fn living(&self, id: FactId, kind: Option<FactKind>) -> Result<&Fact, String> {
        let fact = self
            .fact(id)
            .ok_or_else(|| format!("there is no fact {id}"))?;
        if let Some(successor) = fact.superseded_by {
            return Err(format!("{id} is no longer: {successor} took its place"));
        }
        if fact.deleted {
            return Err(format!("{id} is no longer: it was deleted"));
        }
        match kind {
            Some(kind) if kind != fact.kind => Err(format!(
                "{id} is in the {} store, not in the {} one",
                fact.kind.name(),
                kind.name()
            )),
            _ => Ok(fact),
        }
    }

    /// Adds a fact whose id is the next.
    pub(super) fn append(&mut self, fact: Fact, features: &Features) -> FactId {
        let id = fact.id;
        self.file_under(&fact, features);
        self.facts.push_back_mut(fact);
        id
    }

    /// Puts a live fact in the place of the live one of its id.
    pub(super) fn replace(&mut self, fact: Fact, features: &Features) {
        let place = fact.id.0 as usize;
        if let Some(old) = self.facts.get(place).cloned() {
            self.unfile(&old);
        }
        self.file_under(&fact, features);
        self.facts.set_mut(place, fact);
    }

    /// Ends a live fact: it stays on record, changed by `mark`.
    pub(super) fn bury(&mut self, id: FactId, mark: impl FnOnce(&mut Fact)) -> Outcome {
        let place = id.0 as usize;
        let Some(mut fact) = self.facts.get(place).cloned() else {
            return Outcome::failed(OpKind::Delete, Store::Semantic, String::new());
        };
        self.unfile(&fact);
        mark(&mut fact);
        let outcome = Outcome {
            item_id: Some(id),
            before: Some((fact.text.clone(), fact.content_hash.clone())),
            tokens: -i64::from(fact.tokens),
            ..Outcome::done(OpKind::Delete, fact.kind.into())
        };
        self.facts.set_mut(place, fact);
        outcome
    }

    /// Makes a live fact known to every index but the vectors.
    pub(super) fn file(&mut self, fact: &Fact) {
        let features = self.duplicates.features(
            fact.kind,
            &fact.text,
            &fact.content_hash,
            fact.timestamp.as_deref(),
        );
        self.file_under(fact, &features);
    }

    fn file_under(&mut self, fact: &Fact, features: &Features) {
        self.duplicates.insert(fact.id, features);
        self.live.insert_mut(fact.id);
        self.leaving.insert_mut(Leaving::of(fact));
        self.bm25.insert(fact.id.0, &fact.text);
        self.fact_tokens += u64::from(fact.tokens);
    }

    fn unfile(&mut self, fact: &Fact) {
        self.duplicates.remove(fact);
        self.live.remove_mut(&fact.id);
        self.leaving.remove_mut(&Leaving::of(fact));
        self.bm25.remove(fact.id.0);
        if let Some(dense) = &mut self.dense {
            dense.remove(fact.id.0);
        }
        self.fact_tokens -= u64::from(fact.tokens);
    }
}

impl Outcome {
    pub(super) fn done(kind: OpKind, store: Store) -> Self {
        Self {
            kind,
            store,
            status: OpStatus::Done,
            item_id: None,
            replaced: None,
            before: None,
            after: None,
            error: None,
            tokens: 0,
            compressed: None,
        }
    }

    pub(super) fn failed(kind: OpKind, store: Store, error: String) -> Self {
        Self {
            status: OpStatus::Failed,
            error: Some(error),
            ..Self::done(kind, store)
        }
    }

    /// A text of the memory that took another's place.
    pub(super) fn of_text(kind: OpKind, store: Store, before: &Text, after: &Text) -> Self {
        let text = |text: &Text| Some(text.text.to_string()).filter(|text| !text.is_empty());
        Self {
            before: text(before).map(|text| {
                let hash = content_hash(&text);
                (text, hash)
            }),
            after: text(after),
            tokens: i64::from(after.tokens) - i64::from(before.tokens),
            ..Self::done(kind, store)
        }
    }
}

/// BLAKE3 of a text, the first 16 hex digits.
pub(super) fn content_hash(text: &str) -> String {
    let mut hash = blake3::hash(text.as_bytes()).to_hex().to_string();
    hash.truncate(16);
    hash
}
