//! Runs of tests as lines of `logs/test_runs.jsonl` (spec of the repair study, section 6).

use journal::{TestResult, TestRun as Line};
use judge::pytest::TestStatus;

use super::{Ended, TestRequest, TestRun, Testbed};
use crate::TestFramework;

/// Characters of what a run prints that a line keeps.
const PRINTED: usize = 2_000;

pub(super) fn line(testbed: &Testbed, request: &TestRequest, run: &TestRun) -> Line {
    let framework = match testbed.framework {
        TestFramework::Pytest => "pytest",
        TestFramework::Unittest => "unittest",
    };
    let passes = |status: &TestStatus| {
        use TestStatus::{Error, ExpectedFailure, Failed, Passed, Skipped};
        match status {
            Passed | ExpectedFailure | Skipped => true,
            Failed | Error => false,
        }
    };
    let all_told = request.ids.iter().all(|id| run.statuses.contains_key(id));
    let passed = run.ended == Ended::Finished
        && !run.statuses.is_empty()
        && all_told
        && run.statuses.values().all(passes);
    let printed = run.output.chars().count().saturating_sub(PRINTED);
    Line {
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
    }
}
