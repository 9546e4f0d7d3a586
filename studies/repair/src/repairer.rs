//! Who mends a work tree and tests it: the border between the environment and the repair loop.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use record::Fault;
use rollout::Cx;
use serde::{Deserialize, Serialize};

use crate::{
    Task,
    patch_model::{Feedback, PatchRequest, Proposal},
    search::Searched,
    workplace::Workplace,
};

/// The repair loop, as the environment calls it (spec of the repair study, section 4).
#[async_trait]
pub trait Repairer: Send + Sync + fmt::Debug {
    /// Asks for patches, tries them in `workplace` and leaves there the one that makes all tests of the task
    /// pass, or the work tree byte for byte as it was.
    ///
    /// # Errors
    /// Only what prevented an answer. A bad plan, a bad patch and failing tests are a [`RepairRecord`].
    async fn repair(
        &self,
        task: &Task,
        request: &PatchRequest,
        workplace: &mut Workplace,
        cx: &mut Cx,
    ) -> Result<RepairRecord, Fault>;

    /// Asks for a patch and checks it without running any test; the work tree stays as it is. Without a patch the
    /// record says why.
    ///
    /// # Errors
    /// As [`Repairer::repair`].
    async fn propose(
        &self,
        task: &Task,
        request: &PatchRequest,
        workplace: &mut Workplace,
        cx: &mut Cx,
    ) -> Result<(RepairRecord, Option<Proposal>), Fault>;

    /// Tries a patch that was proposed for `request`, as [`Repairer::repair`] tries those that it asks for.
    ///
    /// # Errors
    /// Infrastructure faults.
    async fn settle(
        &self,
        task: &Task,
        request: &PatchRequest,
        proposal: Proposal,
        workplace: &mut Workplace,
        cx: &mut Cx,
    ) -> Result<RepairRecord, Fault>;

    /// Runs tests of the task on the work tree as it is.
    ///
    /// # Errors
    /// Infrastructure faults.
    async fn test(
        &self,
        task: &Task,
        selected: Selected,
        workplace: &mut Workplace,
    ) -> Result<TestReport, Fault>;
}

/// Which tests are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selected {
    /// Those that fail and must pass.
    FailToPass,
    /// These, and those that pass and must go on passing.
    All,
}

/// What came of a repair (spec, sections 4.2 and 4.3).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RepairRecord {
    /// A patch was found that makes the tests pass.
    pub ok: bool,
    /// It is in the work tree.
    pub applied: bool,
    /// The fault's code (spec, section 1.5), where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What happened, in words.
    pub message: String,
    pub confidence: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback_reason: Option<String>,
    /// The best patch that was tried, as a unified diff.
    pub patch: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch_id: Option<String>,
    pub n_hunks: usize,
    pub added_lines: usize,
    pub removed_lines: usize,
    pub changed_files: Vec<String>,
    /// The patched files are Python.
    pub lint_ok: bool,
    /// Candidates whose tests were run: those that the patch model ran itself, else those of the patches that it
    /// proposed.
    pub candidates: usize,
    /// Of the best patch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestReport>,
    /// Runs of tests that all of this took.
    pub test_runs: usize,
    /// What the next attempt is told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub feedback: Vec<Feedback>,
    /// What the next request of the episode goes on from.
    #[serde(skip)]
    pub searched: Option<Arc<Searched>>,
}

/// What tests say, without their names: what a policy may be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestReport {
    pub fail_to_pass: Passed,
    pub pass_to_pass: Passed,
    /// All that were asked for pass, and there was one.
    pub passed: bool,
    /// Of the first tests that fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<TestFailure>,
    /// Runs that this took.
    pub test_runs: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    pub passed: usize,
    pub total: usize,
}

/// Why a test failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestFailure {
    /// The exception's type.
    pub kind: String,
    pub message: String,
    /// `path:line function`, inside the work tree and outside of the tests that decide, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<String>,
}
