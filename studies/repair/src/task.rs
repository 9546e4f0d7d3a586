//! A task of the repair study: an issue and a checkout, its tests and its gold apart by type.

use std::{collections::BTreeMap, path::PathBuf};

use record::TaskId;
use rollout::TaskRow;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::grading::Grader;

/// An issue of a repository that some tests can tell the repair of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub id: TaskId,
    pub public: Public,
    /// What the environment makes the checkout from. No prompt takes it: a patch that planted the bug tells
    /// its repair.
    pub place: Place,
    pub checks: Checks,
    #[serde(default)]
    pub facts: Facts,
    #[serde(default)]
    pub gold: Gold,
}

/// All that prompts, graphs and memories may be made from. They take this type and cannot name the rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Public {
    /// `owner/name`, or the name of a package.
    pub repo: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_commit: Option<String>,
    pub issue: Issue,
    /// How the repository's tests are run.
    #[serde(default)]
    pub framework: TestFramework,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
}

/// What somebody reports (spec, section 7.2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Issue {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub title: String,
    pub body: String,
    /// Where the failure shows: `path:line`, or a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_frame: Option<String>,
    /// The assertion that fails first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_assert: Option<String>,
    /// The exception's type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<String>,
}

/// Where the work tree comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Place {
    /// A folder of this machine; relative ones are below the file that the task was read from.
    Folder(PathBuf),
    /// A folder of this machine, and a patch over it that makes the checkout: many tasks share one folder.
    Patched { folder: PathBuf, patch: String },
    /// A container image that brings its own work tree.
    Image {
        name: String,
        /// As commands see it.
        work_tree: String,
    },
    /// A container image, and a patch over its work tree that makes the checkout.
    PatchedImage {
        name: String,
        work_tree: String,
        patch: String,
    },
}

/// Who runs the tests, and so what their ids look like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestFramework {
    /// `tests/test_a.py::TestB::test_c`.
    #[default]
    Pytest,
    /// `tests.test_a.TestB.test_c`.
    Unittest,
}

/// Tests that decide. The environment runs them; a policy sees their results, never this list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checks {
    /// Ids of tests that fail and must pass.
    pub fail_to_pass: Vec<String>,
    /// Ids of tests that pass and must go on passing.
    pub pass_to_pass: Vec<String>,
}

/// What metrics and reports break results down by. Never shown to a policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    pub data_source: String,
    pub split: String,
    /// The kind of the planted bug.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// What solves the task, and what grades it: reachable from no prompt, graph, memory or sandbox of the
/// policy's own code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gold {
    /// A unified diff of the sources.
    pub patch: String,
    /// A unified diff of the tests, applied before grading.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub test_patch: String,
    /// Files written before grading, by path: tests that the checkout must not show.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub test_files: BTreeMap<String, String>,
    /// Whose rules decide; `None` is that the tests of [`Checks`] are run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grader: Option<Grader>,
}

impl TaskRow for Task {
    fn id(&self) -> &TaskId {
        &self.id
    }
}
