//! How an episode ended, with faults kept apart from failures.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// How an episode ended. Only [`Outcome::Graded`] carries a reward; every other variant leaves the
/// group statistics and the loss, and is counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The verifier reached a verdict.
    Graded { reward: Reward },
    /// The machinery failed: sandbox, network, engine. Never a reward.
    InfraFault { message: String },
    /// The grader itself failed: tests that cannot run, a reference that does not pass.
    GraderFault { message: String },
    /// The episode ran past its deadline. Never a reward.
    Timeout { message: String },
}

/// A finite scalar and the named parts that it was made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reward {
    pub total: f64,
    /// Logged apart, whatever their weight in `total`.
    pub components: BTreeMap<String, f64>,
}

/// Why an episode could not be played to its verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub kind: FaultKind,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Sandbox, network or engine; retried once by `rollout`, the only owner of that retry.
    Infra,
    /// The grader's own data is broken, or a model refuses; never retried.
    Grader,
    /// A prompt that leaves its model no room for an answer; never retried. As an outcome a grader fault, and apart only
    /// for studies that leave such prompts out.
    NoRoom,
    /// Past the episode's deadline; never retried.
    Timeout,
}

impl Reward {
    /// A reward of one component.
    pub fn of(name: &str, value: f64) -> Self {
        Self {
            total: value,
            components: BTreeMap::from([(name.to_owned(), value)]),
        }
    }
}

impl Outcome {
    pub fn reward(&self) -> Option<&Reward> {
        match self {
            Self::Graded { reward } => Some(reward),
            Self::InfraFault { .. } | Self::GraderFault { .. } | Self::Timeout { .. } => None,
        }
    }
}

impl Fault {
    pub fn infra(message: impl fmt::Display) -> Self {
        Self {
            kind: FaultKind::Infra,
            message: message.to_string(),
        }
    }
    pub fn grader(message: impl fmt::Display) -> Self {
        Self {
            kind: FaultKind::Grader,
            message: message.to_string(),
        }
    }
    pub fn no_room(message: impl fmt::Display) -> Self {
        Self {
            kind: FaultKind::NoRoom,
            message: message.to_string(),
        }
    }
    pub fn timeout(message: impl fmt::Display) -> Self {
        Self {
            kind: FaultKind::Timeout,
            message: message.to_string(),
        }
    }
}

impl From<Fault> for Outcome {
    fn from(fault: Fault) -> Self {
        let message = fault.message;
        match fault.kind {
            FaultKind::Infra => Self::InfraFault { message },
            FaultKind::Grader | FaultKind::NoRoom => Self::GraderFault { message },
            FaultKind::Timeout => Self::Timeout { message },
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            FaultKind::Infra => "infrastructure fault",
            FaultKind::Grader | FaultKind::NoRoom => "grader fault",
            FaultKind::Timeout => "timeout",
        };
        write!(f, "{kind}: {}", self.message)
    }
}

impl std::error::Error for Fault {}
