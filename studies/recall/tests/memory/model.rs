//! Memories and their snapshots against a list of texts that is copied whole.

use proptest::prelude::*;
use recall::memory::{
    FactId, FactKind, MemoryConfig, MemoryOp, MemoryState, OpKind, OpStatus, RetrieveOptions,
    UpdatePolicy,
};

use crate::{at, history, manager};

/// One of a few memories does something, or becomes a snapshot of another.
#[derive(Clone, Debug)]
enum Action {
    Apply { memory: usize, op: MemoryOp },
    Read { memory: usize, text: String },
    Snapshot { from: usize, to: usize },
}

/// A memory as simply as it can be written.
#[derive(Clone, Debug, Default)]
struct Naive {
    facts: Vec<NaiveFact>,
    core: String,
    summary: String,
    window: Vec<String>,
    records: u32,
}

#[derive(Clone, Debug, PartialEq)]
struct NaiveFact {
    kind: FactKind,
    text: String,
    writers: Vec<(u32, u32)>,
    is_live: bool,
    superseded_by: Option<FactId>,
}

const MEMORIES: usize = 3;
const WINDOW: usize = 3;

impl Naive {
    fn has(&self, kind: FactKind, text: &str) -> bool {
        let mut live = self.facts.iter().filter(|fact| fact.is_live);
        live.any(|fact| fact.kind == kind && fact.text == text)
    }

    fn apply(&mut self, op: &MemoryOp, turn: u32, policy: UpdatePolicy) -> (OpKind, OpStatus) {
        let writer = (turn, self.records);
        self.records += 1;
        match op {
            MemoryOp::Insert { kind, text, .. } => {
                if self.has(*kind, text) {
                    return (OpKind::DuplicateSkipped, OpStatus::Skipped);
                }
                self.facts.push(NaiveFact {
                    kind: *kind,
                    text: text.clone(),
                    writers: vec![writer],
                    is_live: true,
                    superseded_by: None,
                });
                (OpKind::Add, OpStatus::Done)
            }
            MemoryOp::Update { id, text, kind } => {
                let Some(mut fact) = self.living(*id, *kind) else {
                    return (OpKind::Update, OpStatus::Failed);
                };
                if self.has(fact.kind, text) {
                    return (OpKind::DuplicateSkipped, OpStatus::Skipped);
                }
                fact.text.clone_from(text);
                fact.writers.push(writer);
                let place = id.0 as usize;
                match policy {
                    UpdatePolicy::Crud => self.facts[place] = fact,
                    UpdatePolicy::AppendSupersede => {
                        self.facts[place].is_live = false;
                        self.facts[place].superseded_by = Some(FactId(self.facts.len() as u32));
                        self.facts.push(fact);
                    }
                }
                (OpKind::Update, OpStatus::Done)
            }
            MemoryOp::Delete { id, kind } => {
                if self.living(*id, *kind).is_none() {
                    return (OpKind::Delete, OpStatus::Failed);
                }
                self.facts[id.0 as usize].is_live = false;
                (OpKind::Delete, OpStatus::Done)
            }
            MemoryOp::SetCore { text } => {
                self.core.clone_from(text);
                (OpKind::Update, OpStatus::Done)
            }
            MemoryOp::SetSummary { text } => {
                self.summary.clone_from(text);
                (OpKind::Summarize, OpStatus::Done)
            }
            MemoryOp::Noop => (OpKind::Noop, OpStatus::Skipped),
        }
    }

    fn living(&self, id: FactId, kind: Option<FactKind>) -> Option<NaiveFact> {
        let fact = self.facts.get(id.0 as usize)?;
        let fits = fact.is_live && kind.is_none_or(|kind| kind == fact.kind);
        fits.then(|| fact.clone())
    }

    fn read(&mut self, text: &str) {
        self.window.push(text.to_owned());
        if self.window.len() > WINDOW {
            self.window.remove(0);
            self.records += 1;
        }
    }

    fn check(&self, state: &MemoryState) {
        let facts: Vec<NaiveFact> = state
            .facts()
            .map(|fact| NaiveFact {
                kind: fact.kind,
                text: fact.text.clone(),
                writers: fact
                    .written
                    .iter()
                    .map(|write| (write.turn_id, write.op_id))
                    .collect(),
                is_live: fact.is_live(),
                superseded_by: fact.superseded_by,
            })
            .collect();
        assert_eq!(facts, self.facts);
        let live: Vec<u32> = state.live_facts().map(|fact| fact.id.0).collect();
        let wanted: Vec<u32> = (0..)
            .zip(&self.facts)
            .filter(|(_, fact)| fact.is_live)
            .map(|(id, _)| id)
            .collect();
        assert_eq!(live, wanted);
        assert_eq!(state.len(), wanted.len());
        assert_eq!(state.core(), self.core);
        assert_eq!(state.summary(), self.summary);
        let window: Vec<&str> = state.window().map(|turn| turn.text.as_str()).collect();
        assert_eq!(window, self.window);
        let words = |text: &str| text.split_whitespace().count();
        let tokens = state.tokens();
        let live = self.facts.iter().filter(|fact| fact.is_live);
        assert_eq!(
            tokens.facts,
            live.map(|fact| words(&fact.text)).sum::<usize>()
        );
        assert_eq!(
            tokens.window,
            self.window.iter().map(|text| words(text)).sum::<usize>()
        );
        assert_eq!(tokens.core, words(&self.core));
        assert_eq!(tokens.summary, words(&self.summary));
    }
}

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(0..6_u8, 1..4).prop_map(|words| {
        let words: Vec<String> = words.iter().map(|word| format!("word{word}")).collect();
        words.join(" ")
    })
}

fn op() -> impl Strategy<Value = MemoryOp> {
    let kind = prop_oneof![Just(FactKind::Semantic), Just(FactKind::Episodic)];
    let maybe = proptest::option::weighted(0.3, kind.clone());
    let id = (0..12_u32).prop_map(FactId);
    prop_oneof![
        4 => (kind, text()).prop_map(|(kind, text)| MemoryOp::Insert {
            kind,
            text,
            importance: None,
            timestamp: None,
        }),
        3 => (id.clone(), text(), maybe.clone())
            .prop_map(|(id, text, kind)| MemoryOp::Update { id, text, kind }),
        2 => (id, maybe).prop_map(|(id, kind)| MemoryOp::Delete { id, kind }),
        1 => text().prop_map(|text| MemoryOp::SetCore { text }),
        1 => text().prop_map(|text| MemoryOp::SetSummary { text }),
        1 => Just(MemoryOp::Noop),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let memory = 0..MEMORIES;
    prop_oneof![
        6 => (memory.clone(), op()).prop_map(|(memory, op)| Action::Apply { memory, op }),
        1 => (memory.clone(), text()).prop_map(|(memory, text)| Action::Read { memory, text }),
        1 => (memory.clone(), memory).prop_map(|(from, to)| Action::Snapshot { from, to }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn snapshots_are_worlds_of_their_own(
        actions in proptest::collection::vec(action(), 1..120),
        appends in any::<bool>(),
    ) {
        let policy = if appends { UpdatePolicy::AppendSupersede } else { UpdatePolicy::Crud };
        let manager = manager(MemoryConfig {
            update_policy: policy,
            near_duplicate: 0.0,
            window_turns: WINDOW,
            ..MemoryConfig::default()
        });
        let mut states = vec![manager.initialize(); MEMORIES];
        let mut models = vec![Naive::default(); MEMORIES];
        for (turn, action) in (0..).zip(actions) {
            match action {
                Action::Apply { memory, op } => {
                    let wanted = models[memory].apply(&op, turn, policy);
                    let records = manager.apply(&mut states[memory], op, &at(turn));
                    prop_assert_eq!(records.len(), 1);
                    prop_assert_eq!((records[0].kind, records[0].status), wanted);
                }
                Action::Read { memory, text } => {
                    models[memory].read(&text);
                    manager.compress_short_term(&mut states[memory], &history(turn, &[&text]));
                }
                Action::Snapshot { from, to } => {
                    states[to] = states[from].clone();
                    models[to] = models[from].clone();
                }
            }
            for (state, model) in states.iter().zip(&models) {
                model.check(state);
            }
        }
        // What is searched is what is remembered, whatever way led to it.
        for state in &states {
            let options = RetrieveOptions { top_k: Some(100), ..RetrieveOptions::default() };
            let hits = manager.retrieve(state, "word0 word1", &options).unwrap();
            let mut found: Vec<FactId> = hits.iter().map(|hit| hit.item_id).collect();
            found.sort();
            let wanted: Vec<FactId> = state
                .live_facts()
                .filter(|fact| fact.text.contains("word0") || fact.text.contains("word1"))
                .map(|fact| fact.id)
                .collect();
            prop_assert_eq!(found, wanted);
            let mut written = Vec::new();
            state.write(&mut written).unwrap();
            let read = manager.read(written.as_slice()).unwrap();
            let mut again = Vec::new();
            read.write(&mut again).unwrap();
            prop_assert_eq!(&written, &again);
            prop_assert_eq!(manager.retrieve(&read, "word0 word1", &options).unwrap(), hits);
            prop_assert_eq!(read.tokens(), state.tokens());
        }
    }

    /// Near duplicates are found through an index of prefixes; here every fact is compared.
    #[test]
    fn near_duplicates_are_found_exactly(
        texts in proptest::collection::vec(
            proptest::collection::vec(0..9_u8, 1..14), 1..60),
        threshold in prop_oneof![Just(0.75), Just(0.8), Just(0.9), Just(1.0)],
    ) {
        let manager = manager(MemoryConfig {
            near_duplicate: threshold,
            ..MemoryConfig::default()
        });
        let mut state = manager.initialize();
        let shingles = |text: &str| {
            let mut words = vec![String::new()];
            words.extend(text.split(' ').map(str::to_owned));
            let pairs = words.windows(2).map(|pair| pair.join(" "));
            let all: std::collections::BTreeSet<String> =
                words[1..].iter().cloned().chain(pairs).collect();
            all
        };
        for words in texts {
            let words: Vec<char> = words.iter().map(|word| (b'a' + word) as char).collect();
            let text: Vec<String> = words.iter().map(|word| format!("{word}{word}")).collect();
            let text = text.join(" ");
            let own = shingles(&text);
            let mut best: Option<(f64, FactId)> = None;
            for fact in state.live_facts() {
                let other = shingles(&fact.text);
                let shared = own.intersection(&other).count() as f64;
                let overlap = shared / own.union(&other).count() as f64;
                if overlap >= threshold && best.is_none_or(|(highest, _)| overlap > highest) {
                    best = Some((overlap, fact.id));
                }
            }
            let same = state.live_facts().find(|fact| fact.text == text).map(|fact| fact.id);
            let wanted = same.or(best.map(|(_, id)| id));
            let record = manager.apply(&mut state, crate::add(&text), &at(0)).remove(0);
            match wanted {
                Some(id) => {
                    prop_assert_eq!(record.kind, OpKind::DuplicateSkipped);
                    prop_assert_eq!(record.item_id, Some(id));
                }
                None => prop_assert_eq!(record.kind, OpKind::Add),
            }
        }
    }
}
