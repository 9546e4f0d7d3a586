//! What runs of tests come to: for the record, for policies and for the next attempt.

use std::collections::BTreeSet;

use code::graph::is_test_path;
use judge::{CaseResult, pytest::grade};

use crate::{
    Checks, TestFramework,
    repairer::{Passed, Selected, TestFailure, TestReport},
    test_files::files_of,
    workplace::{Ended, TestRun},
};

/// Failures that are told.
const FAILURES: usize = 4;
/// Characters of a message that is told.
const MESSAGE: usize = 600;

/// The ids of tests that are run.
pub(super) fn ids(checks: &Checks, selected: Selected) -> Vec<String> {
    match selected {
        Selected::FailToPass => checks.fail_to_pass.clone(),
        Selected::All => {
            let all = checks.fail_to_pass.iter().chain(&checks.pass_to_pass);
            all.cloned().collect()
        }
    }
}

/// Grades a run of the selected tests by the rules of SWE-bench (spec, section 11.3).
pub(super) fn report(
    run: &TestRun,
    checks: &Checks,
    selected: Selected,
    framework: TestFramework,
) -> TestReport {
    let pass_to_pass = match selected {
        Selected::FailToPass => &[][..],
        Selected::All => &checks.pass_to_pass,
    };
    let graded = grade(&run.statuses, &checks.fail_to_pass, pass_to_pass);
    let passed = |cases: &[CaseResult]| Passed {
        passed: cases
            .iter()
            .filter(|case| **case == CaseResult::Passed)
            .count(),
        total: cases.len(),
    };
    let (fail_to_pass, kept) = (passed(&graded.fail_to_pass), passed(&graded.pass_to_pass));
    let results = graded.fail_to_pass.iter().chain(&graded.pass_to_pass);
    let ids = checks.fail_to_pass.iter().chain(pass_to_pass);
    let failed = ids
        .zip(results)
        .filter(|(_, case)| **case != CaseResult::Passed);
    let raised = run.failures.values().flat_map(|it| &it.frames);
    let known: BTreeSet<&str> = raised.map(|frame| frame.path.as_str()).collect();
    let deciding = checks.fail_to_pass.iter().chain(&checks.pass_to_pass);
    let deciding = files_of(deciding, framework, &known);
    let failures = failed
        .map(|(id, case)| failure(run, id, case, &deciding))
        // What one missing name breaks is told once.
        .fold(Vec::new(), |mut told: Vec<TestFailure>, failure| {
            if told.len() < FAILURES && !told.contains(&failure) {
                told.push(failure);
            }
            told
        });
    TestReport {
        fail_to_pass,
        pass_to_pass: kept,
        passed: graded.resolved(),
        failures,
        test_runs: 1,
    }
}

fn failure(run: &TestRun, id: &str, case: &CaseResult, deciding: &BTreeSet<String>) -> TestFailure {
    let Some(found) = run.failures.get(id) else {
        let message = match (case, run.ended) {
            (CaseResult::Missing, Ended::TimedOut) => "the tests ran out of time before this one",
            (CaseResult::Missing, Ended::Crashed) => "the interpreter died before this test",
            (CaseResult::Missing, Ended::Finished) => "there is no such test any more",
            _ => "the test did not pass",
        };
        return TestFailure {
            kind: "NotRun".to_owned(),
            message: message.to_owned(),
            frames: Vec::new(),
        };
    };
    let frames = found.frames.iter();
    let frames =
        frames.filter(|frame| !is_test_path(&frame.path) && !deciding.contains(&frame.path));
    TestFailure {
        kind: found.kind.clone(),
        message: found.message.chars().take(MESSAGE).collect(),
        frames: frames
            .map(|frame| format!("{}:{} {}", frame.path, frame.line, frame.function))
            .collect(),
    }
}

/// The failures as the author of a patch reads them.
pub(super) fn in_words(report: &TestReport) -> String {
    let mut text = format!(
        "{} of {} failing tests pass now",
        report.fail_to_pass.passed, report.fail_to_pass.total
    );
    if report.pass_to_pass.total > 0 {
        text += &format!(
            ", {} of {} others still do",
            report.pass_to_pass.passed, report.pass_to_pass.total
        );
    }
    for failure in &report.failures {
        text += &format!("\n{}: {}", failure.kind, failure.message);
        for frame in &failure.frames {
            text += &format!("\n  at {frame}");
        }
    }
    text
}
