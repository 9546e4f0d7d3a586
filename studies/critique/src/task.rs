//! A task of the critique study, its public part and its gold kept apart by type.

use std::collections::BTreeMap;

use judge::Tests;
use record::TaskId;
use rollout::TaskRow;
use serde::{Deserialize, Serialize};

/// A problem and one program for it, right or wrong: a training row of the study.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub id: TaskId,
    pub public: Public,
    pub facts: Facts,
    pub(crate) gold: Gold,
}

/// All that a prompt may be made from. Prompt builders take this type and cannot name the rest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Public {
    pub statement: String,
    pub program: String,
}

/// What metrics and reports break results down by. Never shown to a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Whether `program` passes every test as it stands.
    pub initially_right: bool,
    pub family: String,
    /// The kind of the planted bug; absent for right programs.
    #[serde(default)]
    pub bug: Option<String>,
    /// Identifies the function that the statement asks for, whatever the program: the split between
    /// training and evaluation is by this.
    pub function: String,
}

/// Hidden tests and known answers: read by the judge and by measures, reachable from no prompt.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gold {
    pub(crate) tests: Tests,
    /// The critique that names the fault exactly (or says that there is none).
    pub(crate) right_critique: String,
    /// Fixed critiques by kind, to measure what the reviser makes of them.
    #[serde(default)]
    pub(crate) probes: BTreeMap<String, String>,
}

impl Task {
    /// The task's fixed critique of a kind (`empty`, `malformed`, `good`, …): what scripted critics
    /// say in evaluations of the reviser. Gold for some kinds, so never part of a prompt of a policy
    /// that is trained or evaluated.
    pub fn probe(&self, kind: &str) -> Option<&str> {
        self.gold.probes.get(kind).map(String::as_str)
    }
}

impl TaskRow for Task {
    fn id(&self) -> &TaskId {
        &self.id
    }
}
