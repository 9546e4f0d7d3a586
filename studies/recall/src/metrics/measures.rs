//! The study's measures over played episodes, with 95 % intervals over documents.
//!
//! Everything asked about one document is one draw, however many episodes and questions it makes: intervals
//! are as wide as the agreement inside documents says.

use std::collections::{BTreeMap, BTreeSet};

use record::{Estimate, Group};

use crate::{
    event::{Event, Evidence, Grade, Notes},
    memory::{Fact, FactId, OpKind, OpRecord, OpStatus},
};

use super::sample::{Kind, Sample};

/// The measures of an evaluation by name. One without anything to measure is absent; episodes without a
/// verdict are in none. Those marked * are there once more for every question type, as `f1/temporal`.
///
/// | name | over | what |
/// |---|---|---|
/// | `score`*, `exact_match`*, `f1`* | answers | as graded |
/// | `abstention_accuracy` | answers to questions without an answer | share that abstains |
/// | `false_abstention_rate`* | answers to the other questions | share that abstains |
/// | `retrieval_recall`* | questions with evidence, where anything retrieves | share of the evidence in what was retrieved |
/// | `retrieval_recall_any`, `…_all` | the same | 1 when some, when all of it was |
/// | `retrieval_recall_shown` | the same | share in what fitted into the prompt |
/// | `evidence_remembered`* | questions with evidence, where facts are written | share of the evidence in live facts |
/// | `memory_tokens`, `memory_items` | episodes | at the end |
/// | `memory_tokens_peak` | episodes | at its largest |
/// | `context_tokens` | answers | tokens of memory in the prompt |
/// | `truncated_share` | calls | share whose prompt had to be cut |
/// | `ops/KIND/STATUS` | episodes | how many there were, as `ops/add/done` |
/// | `ops_failed_rate`, `ops_skipped_rate` | memory operations | share |
/// | `step_reward`, `step_reward/NAME` | events that it scored | mean |
///
/// Shares have Wilson intervals at the effective number of independent items; all others the percentiles of
/// a bootstrap over documents (1000 resamples, always the same ones for the same number of documents), those
/// between 0 and 1 Wilson's too where documents are all alike. Amounts of a single document, or that are the
/// same in all of them, have no interval: their bounds meet.
pub fn of_evaluation(groups: &[Group]) -> BTreeMap<String, Estimate> {
    let measured = measure(&notes_of(groups));
    let estimated = |(name, sample): (String, Sample)| Some((name, sample.estimate()?));
    measured.into_iter().filter_map(estimated).collect()
}

/// The same measures without intervals, for the log of a training step.
pub fn of_step(groups: &[Group]) -> BTreeMap<String, f64> {
    let measured = measure(&notes_of(groups));
    let mean = |(name, sample): (String, Sample)| Some((name, sample.mean()?));
    measured.into_iter().filter_map(mean).collect()
}

/// What a measure gained from one evaluation to another of the same tasks: documents are drawn together, so that
/// what makes some harder than others is not in the interval. `None` where fewer than two documents are in
/// both, where the measure is not in both, or where all documents gained alike.
pub fn paired_gain(before: &[Group], after: &[Group], measure_name: &str) -> Option<Estimate> {
    let [before, after] = [before, after].map(|groups| measure(&notes_of(groups)));
    before
        .get(measure_name)?
        .paired_gain(after.get(measure_name)?)
}

/// How large memories are after a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemorySize {
    pub turn_id: u32,
    pub tokens: Estimate,
    /// Live facts.
    pub items: Estimate,
}

/// Memory size over time: after every turn, over the episodes that last as long. In turns that left no trace
/// the memory is as it was.
pub fn memory_over_turns(groups: &[Group]) -> Vec<MemorySize> {
    let mut turns: BTreeMap<u32, [Sample; 2]> = BTreeMap::new();
    for notes in notes_of(groups) {
        let mut events = notes.events.iter().peekable();
        let (mut tokens, mut items) = (0, 0);
        let last = notes.events.iter().map(|event| event.turn_id).max();
        for turn in 0..last.map_or(0, |last| last + 1) {
            while let Some(event) = events.next_if(|event| event.turn_id <= turn) {
                (tokens, items) = (event.memory_tokens, event.memory_items);
            }
            let samples = turns
                .entry(turn)
                .or_insert_with(|| [Sample::new(Kind::Amount), Sample::new(Kind::Amount)]);
            samples[0].add(&notes.document, tokens.into());
            samples[1].add(&notes.document, items.into());
        }
    }
    let size = |(turn_id, [tokens, items]): (u32, [Sample; 2])| {
        Some(MemorySize {
            turn_id,
            tokens: tokens.estimate()?,
            items: items.estimate()?,
        })
    };
    turns.into_iter().filter_map(size).collect()
}

/// Samples by the name of their measure.
#[derive(Default)]
struct Samples(BTreeMap<String, Sample>);

impl Samples {
    fn add(&mut self, name: &str, kind: Kind, document: &str, value: f64) {
        self.of(name, kind).add(document, value);
    }

    /// Under its name, and under the name with the question type.
    fn add_by_type(&mut self, name: &str, kind: Kind, at: (&str, &Grade), value: f64) {
        let (document, grade) = at;
        self.add(name, kind, document, value);
        if !grade.question_type.is_empty() {
            let name = format!("{name}/{}", grade.question_type);
            self.add(&name, kind, document, value);
        }
    }

    fn of(&mut self, name: &str, kind: Kind) -> &mut Sample {
        let sample = || Sample::new(kind);
        self.0.entry(name.to_owned()).or_insert_with(sample)
    }
}

fn notes_of(groups: &[Group]) -> Vec<Notes> {
    let episodes = groups.iter().flat_map(|group| &group.episodes);
    episodes.filter_map(Notes::of).collect()
}

fn measure(all: &[Notes]) -> BTreeMap<String, Sample> {
    let mut samples = Samples::default();
    let events = || all.iter().flat_map(|notes| &notes.events);
    let retrieves = events().any(|event| !event.retrieved.is_empty());
    let writes = all.iter().any(|notes| !notes.facts.is_empty());
    let kinds: BTreeSet<String> = events()
        .flat_map(|event| &event.memory_ops)
        .map(kind_and_status)
        .collect();
    for notes in all {
        for (event, grade) in answers(notes) {
            measure_answer(&mut samples, &notes.document, event, grade);
        }
        let evidence = EvidenceAt::of(notes);
        measure_evidence(&mut samples, &notes.document, &evidence, retrieves, writes);
        measure_memory(&mut samples, notes, &kinds);
    }
    samples.0
}

fn answers(notes: &Notes) -> impl Iterator<Item = (&Event, &Grade)> {
    let events = notes.events.iter();
    events.filter_map(|event| Some((event, event.grade.as_ref()?)))
}

fn measure_answer(samples: &mut Samples, document: &str, event: &Event, grade: &Grade) {
    let at = (document, grade);
    samples.add_by_type("score", Kind::Fraction, at, grade.score);
    samples.add_by_type("exact_match", Kind::Share, at, grade.exact_match);
    samples.add_by_type("f1", Kind::Fraction, at, grade.f1);
    let abstained = f64::from(grade.abstained);
    if grade.abstain {
        samples.add("abstention_accuracy", Kind::Share, document, abstained);
    } else {
        samples.add_by_type("false_abstention_rate", Kind::Share, at, abstained);
    }
    let tokens: u32 = event.budget.values().sum();
    samples.add("context_tokens", Kind::Amount, document, tokens.into());
}

/// Where the evidence for one answer was when the question came.
struct EvidenceAt<'a> {
    grade: &'a Grade,
    /// Of every piece of evidence: whether it was in a live fact, in one that was retrieved, in one that was
    /// shown.
    pieces: Vec<[bool; 3]>,
}

impl<'a> EvidenceAt<'a> {
    /// Of every answer that has evidence.
    fn of(notes: &'a Notes) -> Vec<Self> {
        let facts: BTreeMap<FactId, &Fact> =
            notes.facts.iter().map(|fact| (fact.id, fact)).collect();
        let mut dead: BTreeSet<FactId> = BTreeSet::new();
        let mut found = Vec::new();
        for event in &notes.events {
            if let Some(grade) = event.grade.as_ref().filter(|it| !it.evidence.is_empty()) {
                let before = event.turn_id;
                let in_live = |evidence: &Evidence| {
                    let mut live = facts.values().filter(|fact| !dead.contains(&fact.id));
                    live.any(|fact| evidence.is_in(fact, before))
                };
                let in_retrieved = |evidence: &Evidence, shown: bool| {
                    let mut hits = event.retrieved.iter().filter(|hit| hit.shown || !shown);
                    hits.any(|hit| {
                        let fact = facts.get(&hit.item_id);
                        fact.is_some_and(|fact| evidence.is_in(fact, before))
                    })
                };
                let pieces = grade.evidence.iter().map(|evidence| {
                    [
                        in_live(evidence),
                        in_retrieved(evidence, false),
                        in_retrieved(evidence, true),
                    ]
                });
                found.push(Self {
                    grade,
                    pieces: pieces.collect(),
                });
            }
            dead.extend(event.memory_ops.iter().filter_map(buried));
        }
        found
    }

    fn share(&self, place: usize) -> f64 {
        let found = self.pieces.iter().filter(|piece| piece[place]).count();
        found as f64 / self.pieces.len() as f64
    }
}

/// The fact that an operation took out of what is remembered.
fn buried(op: &OpRecord) -> Option<FactId> {
    match (op.status, op.kind) {
        (OpStatus::Done, OpKind::Delete | OpKind::Evict) => op.item_id,
        (OpStatus::Done, _) => op.replaced,
        _ => None,
    }
}

fn measure_evidence(
    samples: &mut Samples,
    document: &str,
    evidence: &[EvidenceAt<'_>],
    retrieves: bool,
    writes: bool,
) {
    for item in evidence {
        let at = (document, item.grade);
        if writes {
            samples.add_by_type("evidence_remembered", Kind::Fraction, at, item.share(0));
        }
        if retrieves {
            let retrieved = item.share(1);
            samples.add_by_type("retrieval_recall", Kind::Fraction, at, retrieved);
            for (name, kind, value) in [
                (
                    "retrieval_recall_any",
                    Kind::Share,
                    f64::from(retrieved > 0.0),
                ),
                (
                    "retrieval_recall_all",
                    Kind::Share,
                    f64::from(retrieved == 1.0),
                ),
                ("retrieval_recall_shown", Kind::Fraction, item.share(2)),
            ] {
                samples.add(name, kind, document, value);
            }
        }
    }
}

/// `kinds` are all operations of the suite: an episode without one of them has it 0 times.
fn measure_memory(samples: &mut Samples, notes: &Notes, kinds: &BTreeSet<String>) {
    let document = notes.document.as_str();
    if let Some(last) = notes.events.last() {
        let sizes = notes.events.iter().map(|event| event.memory_tokens);
        for (name, value) in [
            ("memory_tokens", last.memory_tokens),
            ("memory_items", last.memory_items),
            ("memory_tokens_peak", sizes.max().unwrap_or(0)),
        ] {
            samples.add(name, Kind::Amount, document, value.into());
        }
    }
    let calls = notes.events.iter().filter(|event| event.step_id.is_some());
    let n_calls = calls.count() as f64;
    if n_calls > 0.0 {
        let cut = f64::from(notes.truncated).min(n_calls);
        samples
            .of("truncated_share", Kind::Share)
            .add_all(document, cut, n_calls);
    }
    let mut counts: BTreeMap<&str, f64> = kinds.iter().map(|kind| (kind.as_str(), 0.0)).collect();
    for op in notes.events.iter().flat_map(|event| &event.memory_ops) {
        if let Some(count) = counts.get_mut(kind_and_status(op).as_str()) {
            *count += 1.0;
        }
        let is = |status| f64::from(op.status == status);
        let (failed, skipped) = (is(OpStatus::Failed), is(OpStatus::Skipped));
        samples.add("ops_failed_rate", Kind::Share, document, failed);
        samples.add("ops_skipped_rate", Kind::Share, document, skipped);
    }
    for (kind, count) in counts {
        samples.add(&format!("ops/{kind}"), Kind::Amount, document, count);
    }
    for event in &notes.events {
        for (name, value) in &event.step_rewards {
            let name = format!("step_reward/{name}");
            samples.add(&name, Kind::Amount, document, *value);
        }
        if let Some(value) = event.step_reward {
            samples.add("step_reward", Kind::Amount, document, value);
        }
    }
}

/// `add/done`, as it is counted.
fn kind_and_status(op: &OpRecord) -> String {
    let kind = match op.kind {
        OpKind::Add => "add",
        OpKind::Update => "update",
        OpKind::Delete => "delete",
        OpKind::Noop => "noop",
        OpKind::Summarize => "summarize",
        OpKind::DuplicateSkipped => "duplicate_skipped",
        OpKind::Evict => "evict",
        OpKind::Malformed => "malformed",
    };
    let status = match op.status {
        OpStatus::Done => "done",
        OpStatus::Skipped => "skipped",
        OpStatus::Failed => "failed",
    };
    format!("{kind}/{status}")
}

#[cfg(test)]
mod tests;
