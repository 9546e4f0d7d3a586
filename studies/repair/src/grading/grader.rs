//! Whose rules decide over a task of somebody else's dataset, and all that they need for it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    log_parser::LogParser, r2e_gym::ExpectedStatuses, report::EvalType, swe_smith::SmithProfile,
};

/// How a task is graded, where running the tests of its `Checks` is not what its dataset does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grader {
    /// A script in the container, and its log (spec of the repair study, sections 11.2 and 11.3).
    SweBench(Box<SweBenchGrader>),
    /// Hidden tests in the image, and the status that each must have (section 11.4).
    R2eGym { expected: ExpectedStatuses },
    /// Every test of the checks must pass (section 11.4).
    SweSmith,
    /// The log of a command of the repository's own (section 11.4).
    SweSmithLog(SmithProfile),
    /// A script, `tests/test.sh`, that writes the reward to a file.
    Harbor(Box<HarborGrader>),
}

/// The columns of a row of SWE-bench that only grading reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SweBenchGrader {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment_setup_commit: Option<String>,
    /// As the row names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eval_script: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_parser: Option<LogParser>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eval_type: Option<EvalType>,
}

/// What a Harbor task says of its verifier.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HarborGrader {
    /// All of `task.toml`.
    pub settings: Map<String, Value>,
    /// Files below `solution/`.
    pub solution: BTreeMap<String, String>,
}

impl HarborGrader {
    /// Whether the task brings what solves it.
    pub fn has_solution(&self) -> bool {
        self.solution.contains_key("solution/solve.sh")
    }
}
