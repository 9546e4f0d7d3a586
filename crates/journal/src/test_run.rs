//! One line of `logs/test_runs.jsonl`: a run of tests in a sandbox.

use serde::{Deserialize, Serialize};

/// A run of tests, in the fields that the predecessor's log has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TestRun {
    /// Sandbox back end.
    pub backend: String,
    pub command: String,
    /// Which tests were asked for; empty for all.
    pub selector: Vec<String>,
    pub duration_sec: f64,
    pub result: TestResult,
    pub stdout: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset_json: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TestResult {
    /// How the tests are run: `stdio`, `function`, `script`, `repository`.
    pub mode: String,
    /// Exit code; `None` when there was none, as after a kill.
    pub rc: Option<i32>,
    pub passed: bool,
}
