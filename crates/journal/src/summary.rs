//! `summary.json`: the machine-readable end of a run, computed from the journal alone.

use std::collections::BTreeMap;

use record::Estimate;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::entry::{Entry, Stamped, Step};

/// What a run cost and what came of it. Phases are in name order, evaluations in the order of
/// their commits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub study: String,
    pub seed: u64,
    /// Wall seconds by phase. One that was resumed is the sum of its sittings; of a sitting that was killed, up to
    /// what it last committed, or the last episode that it kept of an evaluation.
    pub seconds: BTreeMap<String, f64>,
    /// Tokens by phase: those of committed steps and those reported at its end.
    pub tokens: BTreeMap<String, u64>,
    pub evaluations: Vec<SummaryEvaluation>,
    /// Seconds by phase in which responses were decoded (`decoding`), programs ran (`sandbox`), both went on,
    /// or programs alone (`sandbox_alone`): sums over its steps of `overlap_s/…`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overlap: BTreeMap<String, BTreeMap<String, f64>>,
    /// Notes of the run whose names begin with `summary/`, by the rest of the name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub noted: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SummaryEvaluation {
    pub name: String,
    pub policy: String,
    pub n_tasks: u64,
    pub metrics: BTreeMap<String, Estimate>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub timings: BTreeMap<String, Estimate>,
}

impl Summary {
    pub(crate) fn of(entries: &[Stamped]) -> Self {
        let mut summary = Self::default();
        // Start of every phase that this sitting has begun and not ended.
        let mut open: BTreeMap<&str, jiff::Timestamp> = BTreeMap::new();
        let mut last_commit = None;
        for stamped in entries {
            match &stamped.entry {
                Entry::RunStarted(started) => {
                    summary.study.clone_from(&started.study);
                    summary.seed = started.seed;
                }
                Entry::Resumed(resumed) => {
                    if let Some(end) = last_commit.max(resumed.alive_until) {
                        summary.close(std::mem::take(&mut open), end);
                    }
                }
                Entry::PhaseStarted(started) => {
                    open.insert(&started.phase, stamped.at);
                }
                Entry::PhaseEnded(ended) => {
                    open.remove(ended.phase.as_str());
                    *summary.seconds.entry(ended.phase.clone()).or_default() += ended.seconds;
                    *summary.tokens.entry(ended.phase.clone()).or_default() += ended.tokens;
                }
                Entry::Step(step) => {
                    *summary.tokens.entry(step.phase.clone()).or_default() += step.tokens;
                    summary.add_overlap(step);
                }
                Entry::Evaluation(evaluation) => summary.evaluations.push(SummaryEvaluation {
                    name: evaluation.name.clone(),
                    policy: evaluation.policy.clone(),
                    n_tasks: evaluation.n_tasks,
                    metrics: evaluation.metrics.clone(),
                    timings: evaluation.timings.clone(),
                }),
                Entry::Note { name, value } => {
                    if let Some(name) = name.strip_prefix("summary/") {
                        summary.noted.insert(name.to_owned(), value.clone());
                    }
                }
                Entry::Stopped
                | Entry::Checkpoint(_)
                | Entry::CheckpointRemoved { .. }
                | Entry::Finished => {}
            }
            last_commit = Some(stamped.at);
        }
        if let Some(end) = last_commit {
            summary.close(open, end);
        }
        summary
    }

    fn add_overlap(&mut self, step: &Step) {
        for (name, seconds) in &step.timings {
            if let Some(name) = name.strip_prefix("overlap_s/") {
                let of_phase = self.overlap.entry(step.phase.clone()).or_default();
                *of_phase.entry(name.to_owned()).or_default() += seconds;
            }
        }
    }

    fn close(&mut self, open: BTreeMap<&str, jiff::Timestamp>, end: jiff::Timestamp) {
        for (phase, start) in open {
            // A clock that was set back must not make time negative.
            let seconds = end.duration_since(start).as_secs_f64().max(0.0);
            *self.seconds.entry(phase.to_owned()).or_default() += seconds;
        }
    }
}
