//! Runs of tests as lines of `logs/test_runs.jsonl` (spec of the repair study, section 6).

use journal::{TestResult, TestRun as Fields};
use judge::pytest::TestStatus;
use record::{LineLog, LogLine};
use serde_json::json;

use super::{Ended, TestRequest, TestRun, Testbed};
use crate::TestFramework;

/// Characters of what a run prints that a line keeps.
const PRINTED: usize = 2_000;
/// Tests that a line names as those that did not pass.
const FAILED: usize = 50;

pub(super) fn line(testbed: &Testbed, request: &TestRequest, run: &TestRun) -> LogLine {
    let framework = match testbed.framework {
        TestFramework::Pytest => "pytest",
        TestFramework::Unittest => "unittest",
    };
    let failed: Vec<&String> = run
        .statuses
        .iter()
        .filter(|(_, status)| matches!(status, TestStatus::Failed | TestStatus::Error))
        .map(|(id, _)| id)
        .collect();
    let all_told = request.ids.iter().all(|id| run.statuses.contains_key(id));
    let passed =
        run.ended == Ended::Finished && !run.statuses.is_empty() && all_told && failed.is_empty();
    let status = match run.ended {
        Ended::Finished if passed => "passed",
        Ended::Finished => "failed",
        Ended::TimedOut => "timed_out",
        Ended::Crashed => "crashed",
    };
    let printed = run.output.chars().count().saturating_sub(PRINTED);
    let fields = Fields {
        backend: testbed.backend.capabilities().backend,
        command: format!("{} -m {framework}", testbed.python),
        selector: request.ids.clone(),
        duration_sec: run.seconds,
        result: TestResult {
            mode: "repository".to_owned(),
            // Of the framework, had it run alone.
            rc: match run.ended {
                Ended::Finished => Some(i32::from(!passed)),
                Ended::TimedOut | Ended::Crashed => None,
            },
            passed,
        },
        stdout: run.output.chars().skip(printed).collect(),
        workdir: Some(testbed.image.work_tree().to_owned()),
        dataset_json: None,
    };
    let mut line = LogLine::new(LineLog::TestRuns, "test_run", json!(fields));
    line.fields.insert("status".to_owned(), status.into());
    line.fields
        .insert("n_failed".to_owned(), failed.len().into());
    let failed: Vec<_> = failed.into_iter().take(FAILED).collect();
    line.fields.insert("failed".to_owned(), json!(failed));
    line
}
