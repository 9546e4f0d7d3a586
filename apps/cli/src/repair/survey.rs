//! What the tests say before anything is changed.

use std::{
    collections::BTreeSet,
    pin::pin,
    time::{Duration, Instant},
};

use anyhow::anyhow;
use judge::pytest::TestStatus;
use repair::{
    Checks, Issue, Task, Testbeds,
    search::{
        SearchSettings, Sought, TestsObserved, failing_by_surroundings, foremost, observe_after,
        of_concern_to, speaks_of_any,
    },
    workplace::{Ended, Failure as TestFailure, TIMEOUT, TestRequest, TestRun, Workplace},
};

use super::{
    RepairArgs,
    readable::{absent_module, is_of_the_repository, not_installed},
};
use crate::{
    failure::{Classify, Failure, Outcome},
    screen::Screen,
};

/// All tests on the repository as it is.
pub(super) struct Survey {
    pub(super) run: TestRun,
    pub(super) python: String,
    /// How long later runs let single tests take.
    pub(super) test_limit: Duration,
    /// Tests that failed and, run again by themselves, passed.
    unsteady: BTreeSet<String>,
    /// Failing tests that cannot import what neither the repository nor the interpreter has, where the issue does not
    /// speak of it and others fail too: they tell of the machine.
    lacking: BTreeSet<String>,
    /// Names of modules that failing tests could not import and the repository does not have, by test.
    pub(super) absent: Vec<(String, String)>,
}

/// Between two words of a wait.
const EVERY: Duration = Duration::from_secs(15);

pub(super) async fn survey(
    task: &Task,
    testbeds: &Testbeds,
    args: &RepairArgs,
    screen: Screen,
) -> Outcome<Survey> {
    let testbed = testbeds(task).map_err(fault)?;
    let mut workplace = testbed.open().await.failed()?;
    screen.say(format!(
        "Running the tests of {} with {} …",
        args.repo_name(),
        testbed.python
    ));
    let surveyed = both_runs(&mut workplace, args, screen).await;
    workplace.close().await.failed()?;
    let (run, unsteady) = surveyed?;
    let absent = run.failures.iter().filter_map(|(id, failure)| {
        let module = absent_module(failure)?;
        (!is_of_the_repository(task, module)).then(|| (id.clone(), module.to_owned()))
    });
    let absent: Vec<(String, String)> = absent.collect();
    let issue = &task.public.issue;
    let is_untold = |module: &str| !issue.title.contains(module) && !issue.body.contains(module);
    let mut lacking: BTreeSet<String> = absent
        .iter()
        .filter(|(_, module)| args.tests.is_empty() && is_untold(module))
        .map(|(id, _)| id.clone())
        .collect();
    if with(&run, is_failing).iter().all(|id| lacking.contains(id)) {
        lacking.clear();
    }
    Ok(Survey {
        python: testbed.python,
        test_limit: run.test_limit(args.single_test_timeout),
        lacking,
        absent,
        run,
        unsteady,
    })
}

/// All tests, and those that fail once more.
async fn both_runs(
    workplace: &mut Workplace,
    args: &RepairArgs,
    screen: Screen,
) -> Outcome<(TestRun, BTreeSet<String>)> {
    workplace.limit_tests(args.single_test_timeout);
    let run = patiently(one(workplace, Vec::new(), args), screen).await?;
    let failing: Vec<String> = with(&run, is_failing);
    if failing.is_empty() || run.ended != Ended::Finished {
        return Ok((run, BTreeSet::new()));
    }
    workplace.limit_tests(run.test_limit(args.single_test_timeout));
    workplace.load_plugins(run.with_plugins);
    let again = patiently(one(workplace, failing.clone(), args), screen).await?;
    let unsteady = match again.ended {
        Ended::Finished => with(&again, |status| status == TestStatus::Passed),
        Ended::TimedOut | Ended::Crashed => Vec::new(),
    };
    let unsteady = unsteady.into_iter().filter(|id| failing.contains(id));
    Ok((run, unsteady.collect()))
}

async fn one(workplace: &mut Workplace, ids: Vec<String>, args: &RepairArgs) -> Outcome<TestRun> {
    let request = TestRequest {
        writes: Default::default(),
        ids,
        stop_at_failure: false,
        trace: false,
        wall: args.test_timeout,
    };
    let mut runs = workplace.run_tests(&[request]).await.map_err(fault)?;
    runs.pop()
        .ok_or_else(|| Failure::Failed(anyhow!("the tests said nothing")))
}

/// Says now and then how long the work has taken.
async fn patiently<T>(work: impl Future<Output = T>, screen: Screen) -> T {
    let mut work = pin!(work);
    let begun = Instant::now();
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(EVERY) => {
                screen.say(format!("  still running after {} s", begun.elapsed().as_secs()));
            }
        }
    }
}

/// That the tests cannot be run by this interpreter is a matter of what was asked.
fn fault(fault: record::Fault) -> Failure {
    match fault.kind {
        record::FaultKind::Grader => Failure::Asked(anyhow!("{}", fault.message)),
        _ => Failure::Failed(fault.into()),
    }
}

/// In the order in which they ran.
fn with(run: &TestRun, holds: impl Fn(TestStatus) -> bool) -> Vec<String> {
    let tests = run.order.iter();
    tests
        .filter(|id| run.statuses.get(*id).is_some_and(|status| holds(*status)))
        .cloned()
        .collect()
}

fn is_failing(status: TestStatus) -> bool {
    matches!(status, TestStatus::Failed | TestStatus::Error)
}

impl Survey {
    /// Those that fail every time and may tell of the program.
    fn failing(&self) -> Vec<String> {
        let mut failing = with(&self.run, is_failing);
        failing.retain(|id| !self.unsteady.contains(id) && !self.lacking.contains(id));
        failing
    }

    pub(super) fn passing(&self) -> Vec<String> {
        with(&self.run, |status| status == TestStatus::Passed)
    }

    /// Says what was found; without a failing test there is nothing to go by.
    pub(super) fn tell(&self, args: &RepairArgs, screen: Screen) -> Outcome<()> {
        let (failing, passing) = (self.failing(), self.passing());
        let repo = args.repo_name();
        match self.run.ended {
            Ended::Finished => {}
            Ended::TimedOut => {
                let endless = self.run.failures.iter();
                let mut endless = endless.filter(|(_, failure)| failure.kind == TIMEOUT);
                let seconds = args.test_timeout.as_secs();
                let which = endless.next().map_or_else(String::new, |(id, _)| {
                    format!("; {id} was running then: is it one that never ends?")
                });
                return Err(Failure::Failed(anyhow!(
                    "the tests of {repo} were not through after {seconds} s{which} (--test-timeout SECONDS gives more)"
                )));
            }
            Ended::Crashed => {
                let said = self.run.output.trim_end();
                let crashed = format!("the tests of {repo} could not be run to their end:\n{said}");
                // Of what all tests share, such as a `conftest.py`.
                return Err(match self.run.statuses.is_empty() && not_installed(said) {
                    true => Failure::Asked(anyhow!("{crashed}\n{}", self.how_to_install(args))),
                    false => Failure::Failed(anyhow!("{crashed}")),
                });
            }
        }
        if self.run.statuses.is_empty() {
            return Err(Failure::Asked(anyhow!(
                "no tests were found in {repo}; give the folder that has both the package and its tests, and \
                 --framework where they are not found by themselves"
            )));
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
        for id in &self.unsteady {
            screen.say(format!(
                "note: {id} failed and passed when it was run again; it is left out"
            ));
        }
        if !self.lacking.is_empty() {
            let lacking = self.absent.iter();
            let lacking = lacking.filter(|(id, _)| self.lacking.contains(id));
            let modules: BTreeSet<&str> = lacking.map(|(_, module)| module.as_str()).collect();
            let modules: Vec<&str> = modules.into_iter().collect();
            screen.say(format!(
                "note: {} more cannot import {}, which neither {repo} nor {} has; they are left out (--python PROGRAM \
                 takes an interpreter that has it)",
                self.lacking.len(),
                modules.join(", "),
                self.python
            ));
        }
        if failing.is_empty() && !self.unsteady.is_empty() {
            return Err(Failure::Asked(anyhow!(
                "no test of {repo} fails every time, so nothing can tell a repair: write a test that the issue \
                 makes fail whenever it is run"
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

    /// What a repair is told by: the failing tests that `wanted` names, or all of them.
    pub(super) fn checks(&self, wanted: &[String]) -> Outcome<Checks> {
        let failing = self.failing();
        let mut asked = Vec::new();
        for name in wanted {
            let named = failing.iter().filter(|id| is_named(id, name));
            let before = asked.len();
            asked.extend(named.cloned());
            if asked.len() == before {
                let is_unsteady = self.unsteady.iter().any(|id| is_named(id, name));
                let is_there = self.run.statuses.keys().any(|id| is_named(id, name));
                return Err(Failure::Asked(match is_there {
                    true if is_unsteady => {
                        anyhow!("--test {name}: it failed and passed when it was run again")
                    }
                    true => anyhow!("--test {name}: it does not fail"),
                    false => anyhow!("--test {name}: there is no such test{}", self.nearest(name)),
                }));
            }
        }
        let mut seen = BTreeSet::new();
        asked.retain(|id| seen.insert(id.clone()));
        Ok(Checks {
            fail_to_pass: if wanted.is_empty() { failing } else { asked },
            pass_to_pass: self.passing(),
        })
    }

    /// Tests, functions and classes that end as `wanted` does, or else ids that have it in them, those that fail first.
    fn nearest(&self, wanted: &str) -> String {
        let last = wanted.rsplit([':', '.', '/']).next().unwrap_or(wanted);
        let failing = self.failing();
        let mut near: Vec<(bool, bool, &str)> = self
            .run
            .statuses
            .keys()
            .filter(|_| !last.is_empty())
            .filter_map(|id| {
                let end = id.find(last)? + last.len();
                let is_whole = id[end..].is_empty() || id[end..].starts_with(['[', ':', '.']);
                let name = if is_whole { &id[..end] } else { id };
                Some((!failing.contains(id), !is_whole, name))
            })
            .collect();
        near.sort_unstable();
        near.dedup();
        if near.first().is_some_and(|(passes, ..)| !passes) {
            near.retain(|(passes, ..)| !passes);
        }
        let near: Vec<&str> = near.iter().take(3).map(|(_, _, name)| *name).collect();
        match near.is_empty() {
            true => match failing.first() {
                Some(first) => format!("; one that fails is {first}"),
                None => String::new(),
            },
            false => format!("; is it {}?", near.join(" or ")),
        }
    }

    /// What a search goes by: the lines that failing tests and others run.
    pub(super) async fn observed(
        &self,
        task: &Task,
        (args, issue): (&RepairArgs, &Issue),
        testbeds: &Testbeds,
        settings: &SearchSettings,
        screen: Screen,
    ) -> Outcome<TestsObserved> {
        let testbed = testbeds(task).map_err(fault)?;
        let mut workplace = testbed.open().await.failed()?;
        let sought = Sought {
            issue,
            named: match args.tests.is_empty() {
                true => &[],
                false => &task.checks.fail_to_pass,
            },
            unsteady: &self.unsteady.union(&self.lacking).cloned().collect(),
        };
        let observing = observe_after(&self.run, &sought, &mut workplace, settings);
        let observed = patiently(observing, screen).await;
        workplace.close().await.failed()?;
        observed.map_err(fault)
    }

    /// Holds the repair to those of the failing tests that the issue is about, where the user named none.
    pub(super) fn narrow(
        &self,
        task: &mut Task,
        observed: &TestsObserved,
        issue: &Issue,
        args: &RepairArgs,
        screen: Screen,
    ) {
        let mut asked = std::mem::take(&mut task.checks.fail_to_pass);
        let concern = of_concern_to(observed, issue);
        let aside = match args.tests.is_empty() {
            true => failing_by_surroundings(observed),
            false => BTreeSet::new(),
        };
        let n_failing = self.failing().len();
        let (who, how) = match args.tests.is_empty() {
            true => ("the issue is about", "; --test names those that must pass"),
            false => ("--test names", ""),
        };
        if args.tests.is_empty() && !concern.is_empty() {
            asked.retain(|id| concern.contains(id));
        }
        let is_by_surroundings =
            asked.len() + aside.len() == n_failing && !asked.iter().any(|id| aside.contains(id));
        if let (Some(first), true) = (aside.first(), is_by_surroundings) {
            let why = self.run.failures.get(first).map_or_else(String::new, said);
            screen.say(format!(
                "note: {} of the {n_failing} failing tests run no line of the repository's own and are left out{how}; \
                 {first}{why}",
                aside.len()
            ));
        } else if let (Some(first), true) = (asked.first(), asked.len() < n_failing) {
            screen.say(format!(
                "note: {who} {} of the {n_failing} failing tests, {first} the first; the others may go on failing{how}",
                asked.len()
            ));
        }
        let says_anything = !issue.title.is_empty() || !issue.body.is_empty();
        if asked.len() > 1 && says_anything && !speaks_of_any(observed, issue) {
            screen.say(format!(
                "note: the issue speaks of none of the {} failing tests by its name, its failure or the values that \
                 differ, so all must pass{how}",
                asked.len()
            ));
        }
        task.checks.fail_to_pass = asked;
    }

    /// The issue with what the first failing test of those that it speaks of tells, where it says nothing of that
    /// itself.
    pub(super) fn completed(&self, task: &Task, issue: Issue) -> Issue {
        let failing = &task.checks.fail_to_pass;
        // Where nobody says more, the names of what fails are what a planner can go by.
        let named = foremost(failing, &self.run.failures, (&issue, &[]), 8);
        let Some(first) = named.iter().find_map(|id| self.run.failures.get(id)) else {
            return issue;
        };
        let frame = first
            .frames
            .last()
            .map(|frame| format!("{}:{}", frame.path, frame.line));
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

/// Whether an id is what a user named: a test, or a function, class or file of which it is one. Files by their paths
/// too where ids are those of modules.
fn is_named(id: &str, name: &str) -> bool {
    let is_it = |name: &str| {
        let rest = id.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', ':', '.']))
    };
    let (file, inside) = name.split_once("::").unwrap_or((name, ""));
    let module = file.strip_suffix(".py").map(|module| {
        let module = module.replace('/', ".");
        match inside {
            "" => module,
            inside => format!("{module}.{}", inside.replace("::", ".")),
        }
    });
    is_it(name) || module.is_some_and(|module| is_it(&module))
}

fn said(failure: &TestFailure) -> String {
    let line = failure.message.lines().next().unwrap_or_default();
    format!(": {} {line}", failure.kind)
}
