//! An episode turn by turn: what was said, written, retrieved, forgotten and answered.

use recall::{
    Event, Grade, Notes, TurnRole,
    memory::{OpKind, OpRecord, OpStatus, Store},
    metrics::Metric,
};
use serde::Serialize;

use super::facts::{EvidenceView, FactView, FactsNow, FoundView};
use crate::words;

/// One turn and everything that was done in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct TurnView {
    pub(super) turn: u32,
    pub(super) question: bool,
    pub(super) timestamp: String,
    pub(super) said: String,
    pub(super) acts: Vec<Act>,
    /// `31 tokens, 4 facts`, after the turn.
    pub(super) memory: String,
}

/// One thing that was done: a rule that wrote, or a call of a policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Act {
    pub(super) who: String,
    /// What it read, where that is not what was said in the turn.
    pub(super) read: Option<String>,
    pub(super) response: Option<String>,
    pub(super) operations: Vec<Operation>,
    pub(super) retrieved: Vec<FoundView>,
    /// `facts 41, window 12 tokens`, by block of the prompt.
    pub(super) budget: String,
    pub(super) step_rewards: Vec<StepReward>,
    pub(super) grade: Option<GradeView>,
}

/// An entry of the log of memory operations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Operation {
    pub(super) kind: &'static str,
    /// Of the fact; empty where there is none.
    pub(super) id: String,
    /// The store, where it is not one of facts.
    pub(super) store: &'static str,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    /// `done`, `skipped` or `failed`.
    pub(super) status: &'static str,
    pub(super) error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct StepReward {
    pub(super) name: String,
    pub(super) value: String,
    /// `good` above 0, `bad` below.
    pub(super) tone: &'static str,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct GradeView {
    pub(super) question_type: String,
    pub(super) answer: String,
    pub(super) abstained: bool,
    /// Of the gold answers the nearest; `None` where the right answer is to abstain.
    pub(super) gold: Option<String>,
    pub(super) right: bool,
    /// `F1 0.50`, or `score 0.50` by another metric or a judge.
    pub(super) score: String,
    pub(super) evidence: Vec<EvidenceView>,
}

/// All turns of an episode that left a trace, and all facts at its end.
pub(super) fn turns_of(notes: &Notes) -> (Vec<TurnView>, Vec<FactView>) {
    let mut facts = FactsNow::before(notes);
    let same_turn = notes
        .events
        .chunk_by(|left, right| left.turn_id == right.turn_id);
    let turns = same_turn.filter_map(|events| {
        let (first, last) = (events.first()?, events.last()?);
        let acts = events.iter().map(|event| {
            let act = Act::of(event, &first.observation, &facts);
            for op in &event.memory_ops {
                facts.apply(op);
            }
            act
        });
        Some(TurnView {
            turn: first.turn_id,
            question: first.turn_role == TurnRole::Target,
            timestamp: first.timestamp.clone().unwrap_or_default(),
            said: first.observation.clone(),
            acts: acts.collect(),
            memory: format!(
                "{}, {}",
                words::count(last.memory_tokens.into(), "token"),
                words::count(last.memory_items.into(), "live fact")
            ),
        })
    });
    let turns = turns.collect();
    (turns, facts.all())
}

/// Whether an answer is right: as its question's metric says, or to the letter.
pub(super) fn is_right(grade: &Grade) -> bool {
    grade.score >= 1.0 || grade.exact_match >= 1.0
}

impl Act {
    fn of(event: &Event, said: &str, facts: &FactsNow) -> Self {
        let grade = event.grade.as_ref();
        let blocks: Vec<String> = event
            .budget
            .iter()
            .filter(|(_, tokens)| **tokens > 0)
            .map(|(block, tokens)| format!("{} {tokens}", block.replace('_', " ")))
            .collect();
        let total: u32 = event.budget.values().sum();
        let rewards = event
            .step_rewards
            .iter()
            .map(|(name, value)| StepReward::of(name, *value));
        let sum = event.step_reward.map(|sum| StepReward::of("sum", sum));
        Self {
            who: event.agent_role.replace('_', " "),
            read: (event.observation != said).then(|| event.observation.clone()),
            response: event.response.clone(),
            operations: event.memory_ops.iter().map(Operation::of).collect(),
            retrieved: event
                .retrieved
                .iter()
                .map(|hit| facts.found(hit, grade.map(|grade| (grade, event.turn_id))))
                .collect(),
            budget: if blocks.is_empty() {
                String::new()
            } else {
                format!(
                    "{} of memory in the prompt ({})",
                    words::count(total.into(), "token"),
                    blocks.join(", ")
                )
            },
            step_rewards: rewards.chain(sum).collect(),
            grade: grade.map(|grade| GradeView::of(grade, event, facts)),
        }
    }
}

impl Operation {
    fn of(op: &OpRecord) -> Self {
        Self {
            kind: match op.kind {
                OpKind::Add if op.replaced.is_some() => "replaces",
                OpKind::Add => "adds",
                OpKind::Update => "changes",
                OpKind::Delete => "deletes",
                OpKind::Noop => "leaves all as it is",
                OpKind::Summarize => "summarises",
                OpKind::DuplicateSkipped => "knows already",
                OpKind::Evict => "evicts",
                OpKind::Malformed => "is not understood",
            },
            id: op.item_id.map(|id| id.to_string()).unwrap_or_default(),
            store: match op.store {
                Store::Core => "core",
                Store::Summary => "summary",
                Store::Window => "window",
                Store::Semantic | Store::Episodic => "",
            },
            before: op.before_text.clone(),
            after: op.after_text.clone(),
            status: match op.status {
                OpStatus::Done => "done",
                OpStatus::Skipped => "skipped",
                OpStatus::Failed => "failed",
            },
            error: op.error.clone(),
        }
    }
}

impl StepReward {
    fn of(name: &str, value: f64) -> Self {
        let tone = match value {
            value if value > 0.0 => "good",
            value if value < 0.0 => "bad",
            _ => "",
        };
        Self {
            name: name.replace('_', " "),
            value: words::number(value),
            tone,
        }
    }
}

impl GradeView {
    fn of(grade: &Grade, event: &Event, facts: &FactsNow) -> Self {
        let evidence = grade
            .evidence
            .iter()
            .map(|piece| facts.evidence(piece, event.turn_id, &event.retrieved));
        Self {
            question_type: grade.question_type.clone(),
            answer: grade.answer.clone(),
            abstained: grade.abstained,
            gold: (!grade.abstain).then(|| grade.gold.clone()),
            right: is_right(grade),
            score: match grade.metric {
                Metric::F1 if grade.judged.is_none() => format!("F1 {:.2}", grade.f1),
                _ => format!("score {:.2}", grade.score),
            },
            evidence: evidence.collect(),
        }
    }
}
