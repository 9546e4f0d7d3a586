//! What the tests say before anything is changed.

use std::time::Duration;

use anyhow::anyhow;
use judge::pytest::TestStatus;
use repair::{
    Checks, Issue, Task, Testbeds,
    workplace::{Ended, Failure as TestFailure, TestRequest, TestRun},
};

use super::RepairArgs;
use crate::{
    failure::{Classify, Failure, Outcome},
    screen::Screen,
};

/// All tests on the repository as it is.
pub(super) struct Survey {
    run: TestRun,
}

/// Seconds that all tests may take.
const WALL: Duration = Duration::from_secs(600);

pub(super) async fn survey(task: &Task, testbeds: &Testbeds) -> Outcome<Survey> {
    let testbed = testbeds(task).map_err(|fault| match fault.kind {
        // The tests cannot be run by the interpreter that there is.
        record::FaultKind::Grader => Failure::Asked(anyhow!("{}", fault.message)),
        _ => Failure::Failed(anyhow!("{}", fault.message)),
    })?;
    let mut workplace = testbed.open().await.failed()?;
    let request = TestRequest {
        writes: Default::default(),
        ids: Vec::new(),
        stop_at_failure: false,
        trace: false,
        wall: WALL,
    };
    let runs = workplace.run_tests(&[request]).await;
    workplace.close().await.failed()?;
    let mut runs = match runs {
        Ok(runs) => runs,
        Err(fault) if fault.kind == record::FaultKind::Grader => {
            return Err(Failure::Asked(anyhow!("{}", fault.message)));
        }
        Err(fault) => return Err(fault).failed(),
    };
    let run = runs
        .pop()
        .ok_or_else(|| Failure::Failed(anyhow!("the tests said nothing")))?;
    Ok(Survey { run })
}

impl Survey {
    fn with(&self, holds: impl Fn(TestStatus) -> bool) -> Vec<String> {
        let tests = self.run.statuses.iter();
        tests
            .filter(|(_, status)| holds(**status))
            .map(|(id, _)| id.clone())
            .collect()
    }

    fn failing(&self) -> Vec<String> {
        self.with(|status| matches!(status, TestStatus::Failed | TestStatus::Error))
    }

    /// Says what was found; without a failing test there is nothing to go by.
    pub(super) fn tell(&self, args: &RepairArgs, screen: Screen) -> Outcome<()> {
        let (failing, passing) = (
            self.failing(),
            self.with(|status| status == TestStatus::Passed),
        );
        let repo = args.repo.display();
        match self.run.ended {
            Ended::Finished => {}
            Ended::TimedOut => {
                return Err(Failure::Failed(anyhow!(
                    "the tests of {repo} were not through after {} s",
                    WALL.as_secs()
                )));
            }
            Ended::Crashed => {
                return Err(Failure::Failed(anyhow!(
                    "the tests of {repo} could not be run to their end:\n{}",
                    self.run.output.trim_end()
                )));
            }
        }
        screen.say(format!(
            "{repo}: {} tests pass and {} fail, in {:.1} s",
            passing.len(),
            failing.len(),
            self.run.seconds
        ));
        for id in failing.iter().take(8) {
            let why = self.run.failures.get(id).map_or_else(String::new, said);
            screen.say(format!("  {id}{why}"));
        }
        if failing.len() > 8 {
            screen.say(format!("  and {} more", failing.len() - 8));
        }
        if self.run.statuses.is_empty() {
            return Err(Failure::Asked(anyhow!(
                "no tests were found in {repo}; give the folder that has both the package and its tests, and \
                 --framework where they are not found by themselves"
            )));
        }
        if failing.is_empty() {
            return Err(Failure::Asked(anyhow!(
                "no test of {repo} fails, so nothing can tell a repair: write a test that the issue makes fail, \
                 and ask again"
            )));
        }
        Ok(())
    }

    /// What a repair is told by: `wanted` of the failing tests, or all of them.
    pub(super) fn checks(&self, wanted: &[String]) -> Outcome<Checks> {
        let failing = self.failing();
        for id in wanted {
            if !failing.contains(id) {
                return Err(Failure::Asked(match self.run.statuses.get(id) {
                    Some(_) => anyhow!("--test {id}: it does not fail"),
                    None => anyhow!("--test {id}: there is no such test"),
                }));
            }
        }
        Ok(Checks {
            fail_to_pass: if wanted.is_empty() {
                failing
            } else {
                wanted.to_vec()
            },
            pass_to_pass: self.with(|status| status == TestStatus::Passed),
        })
    }

    /// The issue with what the first failing test tells, where it says nothing of that itself.
    pub(super) fn completed(&self, task: &Task, issue: Issue) -> Issue {
        let first = task
            .checks
            .fail_to_pass
            .iter()
            .find_map(|id| self.run.failures.get(id));
        let Some(first) = first else {
            return issue;
        };
        let frame = first
            .frames
            .last()
            .map(|frame| format!("{}:{}", frame.path, frame.line));
        // Where nobody says more, the names of what fails are what a search can go by.
        let named: Vec<&str> = task
            .checks
            .fail_to_pass
            .iter()
            .map(String::as_str)
            .take(8)
            .collect();
        Issue {
            body: format!("{}\n\nFailing tests:\n{}", issue.body, named.join("\n"))
                .trim()
                .to_owned(),
            failure_frame: issue.failure_frame.or(frame),
            top_assert: issue.top_assert.or_else(|| Some(first.message.clone())),
            error_kind: issue.error_kind.or_else(|| Some(first.kind.clone())),
            ..issue
        }
    }
}

fn said(failure: &TestFailure) -> String {
    let line = failure.message.lines().next().unwrap_or_default();
    format!(": {} {line}", failure.kind)
}
