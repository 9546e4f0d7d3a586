//! What one record of the journal says.

use std::collections::BTreeMap;

use record::Estimate;
use serde::{Deserialize, Serialize};

/// Values by metric name, in name order.
pub type Metrics = BTreeMap<String, f64>;

/// One record: when it was committed and what it says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stamped {
    pub at: jiff::Timestamp,
    /// Sizes of the line logs at this commit.
    pub logs: LogSizes,
    pub entry: Entry,
}

/// Bytes of `logs/events.jsonl` and `logs/test_runs.jsonl`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSizes {
    pub events: u64,
    pub test_runs: u64,
}

/// A committed fact of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    RunStarted(RunStarted),
    /// The process stopped because it was asked to.
    Stopped,
    /// A later process went on with the run.
    Resumed(Resumed),
    PhaseStarted(PhaseStarted),
    PhaseEnded(PhaseEnded),
    Step(Step),
    Checkpoint(Checkpoint),
    /// A checkpoint was pruned, or belonged to a step that was never committed.
    CheckpointRemoved {
        name: String,
    },
    Evaluation(Evaluation),
    /// A study's own fact: what its panels of the report read.
    Note {
        name: String,
        value: serde_json::Value,
    },
    Finished,
}

/// What the run is; its first record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    pub study: String,
    /// Name of the run: the `run_id` of the line logs.
    pub name: String,
    pub seed: u64,
    /// Hash of the resolved recipe.
    pub recipe_hash: String,
    /// Version of etude that began the run.
    pub etude: String,
    /// What the machine offers (cores, memory, sandbox tier …), as the caller sees it.
    #[serde(default)]
    pub machine: BTreeMap<String, String>,
}

/// What `open` had to put right before the run could go on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// Bytes of a half-written record that were cut off the log.
    pub torn_bytes: u64,
    /// Paths, relative to the run, that no record speaks of and that were removed.
    pub leftovers: Vec<String>,
    /// When the process before kept its last episode of an evaluation on its way, where that is later than its last
    /// record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alive_until: Option<jiff::Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseStarted {
    pub phase: String,
}

/// A phase is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseEnded {
    pub phase: String,
    /// Wall time since the phase was started by the same process.
    pub seconds: f64,
    /// Tokens of the phase that no [`Step`] has counted.
    pub tokens: u64,
}

/// One optimizer step, committed by this one record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub phase: String,
    pub step: u64,
    /// Tokens sampled and trained on.
    #[serde(default)]
    pub tokens: u64,
    /// The same in every run of the same recipe on the same machine.
    pub metrics: Metrics,
    /// Seconds and rates: different in every run, so kept apart.
    #[serde(default)]
    pub timings: Metrics,
    /// Set by [`crate::RunDir::commit_step`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub episodes: Option<EpisodesRef>,
}

/// A file of episodes inside the run directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpisodesRef {
    /// Path relative to the run directory.
    pub file: String,
    /// BLAKE3 of the file as it lies on disk, in hex.
    pub digest: String,
    pub groups: u64,
    pub episodes: u64,
}

/// A directory under `checkpoints/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Path relative to `checkpoints/`.
    pub name: String,
    pub phase: String,
    /// The state after this many steps of the phase.
    pub step: u64,
    /// BLAKE3 over names, sizes and contents of all files, in name order, in hex.
    pub digest: String,
}

/// What a policy achieved on a suite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    pub name: String,
    pub policy: String,
    pub n_tasks: u64,
    pub metrics: BTreeMap<String, Estimate>,
    /// Seconds: different in every run, so kept apart.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub timings: BTreeMap<String, Estimate>,
    /// Wall seconds of each episode, in the order of groups and members; empty where nobody keeps them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub episode_seconds: Vec<f64>,
    /// Set by [`crate::RunDir::commit_evaluation`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub episodes: Option<EpisodesRef>,
}

impl Evaluation {
    /// A metric or a timing.
    pub fn measure(&self, name: &str) -> Option<&Estimate> {
        self.metrics.get(name).or_else(|| self.timings.get(name))
    }

    /// Names of metrics, then of timings.
    pub fn measures(&self) -> impl Iterator<Item = &str> {
        let names = self.metrics.keys().chain(self.timings.keys());
        names.map(String::as_str)
    }
}
