//! One play of one task, and the group of plays that share a baseline.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Completion, Outcome};

/// Names a task for ever: the same id always means the same statement, program and tests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub String);

/// Where in a run an episode was played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EpisodeId {
    /// Optimizer step of the run, or 0 in an evaluation.
    pub step: u64,
    /// Index of the group inside its step.
    pub group: u32,
    /// Index of the episode inside its group.
    pub member: u32,
}

/// One policy request inside an episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The study's name for who was asked: `critic`, `reviser`, …
    pub role: String,
    pub completion: Completion,
}

/// One play of one task, as it is journalled and trained on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    pub id: EpisodeId,
    pub task: TaskId,
    /// In the order in which the calls were answered inside this episode.
    pub calls: Vec<Call>,
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Times that an infrastructure fault made `rollout` play it again.
    #[serde(default)]
    pub retries: u32,
    /// The study's own facts about the episode (texts, verdict, judgment): what reports show.
    pub notes: serde_json::Value,
}

/// The episodes of one task that share a baseline. Every member asked for is in it, in member
/// order, faulted ones too: nobody is lost silently.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    pub task: TaskId,
    pub episodes: Vec<Episode>,
}

impl Episode {
    /// The calls of one role, in order.
    pub fn calls_of<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a Call> {
        self.calls.iter().filter(move |call| call.role == role)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for EpisodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.step, self.group, self.member)
    }
}
