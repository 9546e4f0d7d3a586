//! What a run has committed, and the questions that a resumed run asks of it.

use std::collections::BTreeMap;

use crate::{
    entry::{
        Checkpoint, Entry, Evaluation, LogSizes, Metrics, PhaseEnded, Resumed, RunStarted, Stamped,
        Step,
    },
    summary::Summary,
    views,
};

/// What the phase of an evaluation is called, before its name.
pub(crate) const EVALUATION: &str = "eval/";

/// The committed records of a run, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replay {
    pub entries: Vec<Stamped>,
    /// What opening the run cut off and removed; empty after a clean end.
    pub recovered: Resumed,
}

impl Replay {
    /// The run's first record; `None` only when the log was cut before its end.
    pub fn started(&self) -> Option<&RunStarted> {
        self.find(|entry| match entry {
            Entry::RunStarted(started) => Some(started),
            _ => None,
        })
    }

    /// Whether the run came to its end.
    pub fn finished(&self) -> bool {
        self.entries
            .iter()
            .any(|stamped| stamped.entry == Entry::Finished)
    }

    /// The committed steps of a phase, in order.
    pub fn steps<'a>(&'a self, phase: &'a str) -> impl DoubleEndedIterator<Item = &'a Step> {
        self.all_steps().filter(move |step| step.phase == phase)
    }

    /// The committed steps of all phases, in order.
    pub fn all_steps(&self) -> impl DoubleEndedIterator<Item = &Step> {
        self.entries
            .iter()
            .filter_map(|stamped| match &stamped.entry {
                Entry::Step(step) => Some(step),
                _ => None,
            })
    }

    /// The last committed step of a phase.
    pub fn last_step(&self, phase: &str) -> Option<&Step> {
        self.all_steps().rfind(|step| step.phase == phase)
    }

    /// `metrics.jsonl` without timings: the same bytes for every run of the same recipe on the same
    /// machine, however often it was interrupted.
    pub fn metrics_without_timings(&self) -> String {
        let untimed = |step: &Step| Step {
            timings: Metrics::new(),
            ..step.clone()
        };
        let steps: Vec<Step> = self.all_steps().map(untimed).collect();
        views::metrics_file(steps.iter())
    }

    /// How a phase ended, if it did.
    pub fn phase_ended(&self, phase: &str) -> Option<&PhaseEnded> {
        self.find(|entry| match entry {
            Entry::PhaseEnded(ended) if ended.phase == phase => Some(ended),
            _ => None,
        })
    }

    /// Phases that were started, each once, in order of their first start.
    pub fn phases(&self) -> Vec<&str> {
        let mut phases = Vec::new();
        for stamped in &self.entries {
            if let Entry::PhaseStarted(started) = &stamped.entry
                && !phases.contains(&started.phase.as_str())
            {
                phases.push(started.phase.as_str());
            }
        }
        phases
    }

    /// The checkpoints that are still there, oldest first.
    pub fn checkpoints(&self) -> Vec<&Checkpoint> {
        let mut present: Vec<&Checkpoint> = Vec::new();
        for stamped in &self.entries {
            match &stamped.entry {
                Entry::Checkpoint(checkpoint) => present.push(checkpoint),
                Entry::CheckpointRemoved { name } => present.retain(|other| other.name != *name),
                _ => {}
            }
        }
        present
    }

    pub fn checkpoint(&self, name: &str) -> Option<&Checkpoint> {
        self.checkpoints()
            .into_iter()
            .find(|checkpoint| checkpoint.name == name)
    }

    /// The checkpoint to go on from: of those of the phase that are not ahead of its last
    /// committed step, the one with the highest step.
    pub fn latest_checkpoint(&self, phase: &str) -> Option<&Checkpoint> {
        self.checkpoints()
            .into_iter()
            .filter(|checkpoint| checkpoint.phase == phase && self.is_backed(checkpoint))
            .max_by_key(|checkpoint| checkpoint.step)
    }

    /// Whether the journal holds everything that the checkpoint's state came from: it is of a
    /// committed step, of the start of a phase, or of a phase that has ended.
    pub(crate) fn is_backed(&self, checkpoint: &Checkpoint) -> bool {
        checkpoint.step == 0
            || self
                .last_step(&checkpoint.phase)
                .is_some_and(|last| checkpoint.step <= last.step)
            || self.phase_ended(&checkpoint.phase).is_some()
    }

    /// The evaluations done, in order.
    pub fn evaluations(&self) -> impl Iterator<Item = &Evaluation> {
        self.entries
            .iter()
            .filter_map(|stamped| match &stamped.entry {
                Entry::Evaluation(evaluation) => Some(evaluation),
                _ => None,
            })
    }

    pub fn evaluation(&self, name: &str) -> Option<&Evaluation> {
        self.evaluations()
            .find(|evaluation| evaluation.name == name)
    }

    /// The last value noted under each name.
    pub fn notes(&self) -> BTreeMap<&str, &serde_json::Value> {
        let notes = self
            .entries
            .iter()
            .filter_map(|stamped| match &stamped.entry {
                Entry::Note { name, value } => Some((name.as_str(), value)),
                _ => None,
            });
        notes.collect()
    }

    pub fn note(&self, name: &str) -> Option<&serde_json::Value> {
        self.notes().remove(name)
    }

    /// The machine-readable end of the run, as far as it got.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.entries)
    }

    /// The evaluation that was begun last and is not committed.
    pub(crate) fn evaluation_on_its_way(&self) -> Option<&str> {
        let begun = self
            .entries
            .iter()
            .rev()
            .find_map(|stamped| match &stamped.entry {
                Entry::PhaseStarted(started) => Some(started.phase.as_str()),
                _ => None,
            });
        let name = begun?.strip_prefix(EVALUATION)?;
        self.evaluation(name).is_none().then_some(name)
    }

    /// Sizes of the line logs when the last piece of work was closed, and the records since then.
    ///
    /// A checkpoint or a note may be committed in the middle of a step: the lines before it are of
    /// work that a resumed run does again, so they do not count. An evaluation is one piece of work over all of its
    /// sittings, and its lines are made again from the episodes that were kept.
    pub(crate) fn closed(&self) -> (LogSizes, &[Stamped]) {
        let on_its_way = self.evaluation_on_its_way();
        let closes = |stamped: &Stamped| match &stamped.entry {
            Entry::PhaseStarted(started) => {
                on_its_way.is_none() || started.phase.strip_prefix(EVALUATION) != on_its_way
            }
            Entry::Resumed(_) => on_its_way.is_none(),
            Entry::RunStarted(_)
            | Entry::PhaseEnded(_)
            | Entry::Step(_)
            | Entry::Evaluation(_)
            | Entry::Finished => true,
            Entry::Stopped
            | Entry::Checkpoint(_)
            | Entry::CheckpointRemoved { .. }
            | Entry::Note { .. } => false,
        };
        match self.entries.iter().rposition(closes) {
            Some(index) => (self.entries[index].logs, &self.entries[index + 1..]),
            None => (LogSizes::default(), &self.entries),
        }
    }

    fn find<'a, T>(&'a self, pick: impl Fn(&'a Entry) -> Option<T>) -> Option<T> {
        self.entries.iter().find_map(|stamped| pick(&stamped.entry))
    }
}
