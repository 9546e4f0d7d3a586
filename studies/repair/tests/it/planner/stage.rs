//! Episodes in a jail: a small package with a bug, planners that say what they are told to, and patches that
//! are known beforehand.

use std::{
    fs,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use chat::{BpeOptions, Chat, Tokenizer};
use code::Patch;
use judge::pytest::{TestStatus, grade};
use policy::{MessagePolicy, ScriptedPolicy};
use record::{Fault, LogLine, Outcome, Sampling, Seed, TaskId};
use repair::{
    Checks, Facts, Gold, Issue, Place as TaskPlace, Public, Repair, RepairConfig, Task,
    TestFramework,
    metrics::notes_of,
    patch_model::{Feedback, PatchRequest, Proposal},
    planner::{PLANNER, PlannerConfig, PlannerKind},
    play::Notes,
    repairer::{Passed, RepairRecord, Repairer, Selected, TestFailure, TestReport},
    workplace::{TestRequest, Workplace},
};
use rollout::{Cx, Options, Progress, Roles, Runner};

use crate::place::Place;

pub(crate) const CORE: &str = "\
\"\"\"Sums of numbers.\"\"\"


class Counter:
    \"\"\"Counts up.\"\"\"

    step = 1

    def __init__(self):
        self.value = 0

    def up(self):
        self.value += self.step
        return self.value


async def later(numbers):
    return total(numbers)


def total(numbers):
    \"\"\"The sum of all numbers.\"\"\"
    result = 0
    for number in numbers[1:]:
        result += number
    return result
";

pub(crate) const REPORT: &str = "\
from calc.core import total


def mean(numbers):
    return total(numbers) / len(numbers)


def line(name, numbers):
    return f'{name}: {mean(numbers)}'
";

const DECIDES: &str = "\
import unittest
from calc.core import total


class TestTotal(unittest.TestCase):
    def test_total(self):
        marker = 'xyzzy plugh'
        self.assertEqual(total([1, 2, 3]), 6)
        self.assertEqual(total([4]), 4)
";

const OTHERS: &str = "\
import unittest
from calc.core import Counter


class TestCounter(unittest.TestCase):
    def test_up(self):
        self.assertEqual(Counter().up(), 1)
";

/// What stands in the file of the tests that decide, and nowhere else.
pub(crate) const MARKER: &str = "xyzzy plugh";

pub(crate) const RIGHT: &str = "\
--- a/calc/core.py
+++ b/calc/core.py
@@ -21,6 +21,6 @@
 def total(numbers):
     \"\"\"The sum of all numbers.\"\"\"
     result = 0
-    for number in numbers[1:]:
+    for number in numbers:
         result += number
     return result
";

pub(crate) const WRONG: &str = "\
--- a/calc/core.py
+++ b/calc/core.py
@@ -24,3 +24,3 @@
-    for number in numbers[1:]:
+    for number in numbers[2:]:
         result += number
     return result
";

pub(crate) fn files() -> Vec<(&'static str, &'static str)> {
    vec![
        ("calc/__init__.py", ""),
        ("calc/core.py", CORE),
        ("calc/report.py", REPORT),
        ("calc/latest.py", "NEWEST = 3\n"),
        ("tests/__init__.py", ""),
        ("tests/test_core.py", DECIDES),
        ("tests/test_counter.py", OTHERS),
    ]
}

pub(crate) fn task(name: &str) -> Task {
    Task {
        id: TaskId(name.to_owned()),
        public: Public {
            repo: "calc".to_owned(),
            base_commit: None,
            issue: Issue {
                title: "total leaves out the first number".to_owned(),
                body: "`total([1, 2, 3])` gives 5.".to_owned(),
                ..Issue::default()
            },
            framework: TestFramework::Unittest,
            max_steps: None,
        },
        place: TaskPlace::Folder("unused".into()),
        checks: Checks {
            fail_to_pass: vec!["tests.test_core.TestTotal.test_total".to_owned()],
            pass_to_pass: vec!["tests.test_counter.TestCounter.test_up".to_owned()],
        },
        facts: Facts {
            data_source: "test".to_owned(),
            family: Some("slice".to_owned()),
            ..Facts::default()
        },
        gold: Gold::default(),
    }
}

/// Tries the patches that it was given, in their order, and keeps the first that makes the tests pass.
#[derive(Debug, Default)]
pub(crate) struct Patches {
    pub(crate) left: Mutex<Vec<String>>,
    pub(crate) asked: Mutex<Vec<PatchRequest>>,
}

impl Patches {
    pub(crate) fn of(patches: &[&str]) -> Arc<Self> {
        let left = patches.iter().rev().map(|patch| (*patch).to_owned());
        Arc::new(Self {
            left: Mutex::new(left.collect()),
            asked: Mutex::default(),
        })
    }
}

#[async_trait]
impl Repairer for Patches {
    async fn repair(
        &self,
        task: &Task,
        request: &PatchRequest,
        workplace: &mut Workplace,
        _: &mut Cx,
    ) -> Result<RepairRecord, Fault> {
        self.asked.lock().unwrap().push(request.clone());
        let Some(text) = self.left.lock().unwrap().pop() else {
            return Ok(RepairRecord {
                error: Some("cgm-empty".to_owned()),
                message: "no patch is left".to_owned(),
                ..RepairRecord::default()
            });
        };
        let before = workplace.snapshot().await?;
        let patch = Patch::parse(text.as_bytes()).unwrap();
        workplace.apply(&patch).await?.unwrap();
        let tests = self.test(task, Selected::All, workplace).await?;
        let passed = tests.passed;
        if !passed {
            workplace.restore(&before).await?;
        }
        let feedback = Feedback {
            patch: text.clone(),
            outcome: "test-failed".to_owned(),
            detail: "the tests still fail".to_owned(),
        };
        Ok(RepairRecord {
            ok: passed,
            applied: passed,
            error: (!passed).then(|| "test-failed".to_owned()),
            message: if passed {
                "the tests pass"
            } else {
                "the tests fail"
            }
            .to_owned(),
            patch: text,
            changed_files: patch.paths().into_iter().map(String::from).collect(),
            lint_ok: true,
            candidates: 1,
            tests: Some(tests),
            test_runs: 1,
            feedback: if passed { Vec::new() } else { vec![feedback] },
            ..RepairRecord::default()
        })
    }

    async fn propose(
        &self,
        _: &Task,
        _: &PatchRequest,
        _: &mut Workplace,
        _: &mut Cx,
    ) -> Result<(RepairRecord, Option<Proposal>), Fault> {
        Err(Fault::grader("these patches are for whole repairs"))
    }

    async fn settle(
        &self,
        _: &Task,
        _: &PatchRequest,
        _: Proposal,
        _: &mut Workplace,
        _: &mut Cx,
    ) -> Result<RepairRecord, Fault> {
        Err(Fault::grader("these patches are for whole repairs"))
    }

    async fn test(
        &self,
        task: &Task,
        selected: Selected,
        workplace: &mut Workplace,
    ) -> Result<TestReport, Fault> {
        let fail = task.checks.fail_to_pass.clone();
        let pass = match selected {
            Selected::FailToPass => Vec::new(),
            Selected::All => task.checks.pass_to_pass.clone(),
        };
        let request = TestRequest {
            writes: [].into(),
            ids: [fail.clone(), pass.clone()].concat(),
            stop_at_failure: false,
            trace: false,
            wall: Duration::from_secs(20),
        };
        let run = workplace.run_tests(&[request]).await?.remove(0);
        let graded = grade(&run.statuses, &fail, &pass);
        let count = |ids: &[String]| Passed {
            passed: ids
                .iter()
                .filter(|id| run.statuses.get(*id) == Some(&TestStatus::Passed))
                .count(),
            total: ids.len(),
        };
        let failures = run.failures.values().map(|failure| TestFailure {
            kind: failure.kind.clone(),
            message: failure.message.clone(),
            frames: failure
                .frames
                .iter()
                .filter(|frame| !frame.path.starts_with("tests/"))
                .map(|frame| format!("{}:{} {}", frame.path, frame.line, frame.function))
                .collect(),
        });
        Ok(TestReport {
            fail_to_pass: count(&fail),
            pass_to_pass: count(&pass),
            passed: graded.resolved(),
            failures: failures.collect(),
            test_runs: 1,
        })
    }
}

pub(crate) fn chat() -> Chat {
    let options = BpeOptions {
        vocabulary: 261,
        special_tokens: Chat::builtin_special_tokens(),
    };
    Chat::builtin(Tokenizer::train([], &options).unwrap()).unwrap()
}

/// Says one reply after the other, and then nothing that is an action.
fn script(replies: &[String]) -> ScriptedPolicy {
    let (replies, next) = (replies.to_vec(), AtomicUsize::new(0));
    ScriptedPolicy::new(chat(), move |_| {
        let at = next.fetch_add(1, Ordering::Relaxed);
        Some(replies.get(at).cloned().unwrap_or_else(|| "…".to_owned()))
    })
}

/// Where episodes are played.
pub(crate) struct Stage {
    pub(crate) place: Place,
    pub(crate) config: RepairConfig,
    pub(crate) patches: Arc<Patches>,
    /// In the place of `patches`.
    pub(crate) repairer: Option<Arc<dyn Repairer>>,
    /// In the place of the planner whose replies are given.
    pub(crate) planner: Option<Arc<dyn MessagePolicy>>,
}

impl Stage {
    /// With a model as the planner; `None` where there are no walls.
    pub(crate) async fn new(patches: &[&str]) -> Option<Self> {
        Self::of(&files(), patches).await
    }

    pub(crate) async fn of(files: &[(&str, &str)], patches: &[&str]) -> Option<Self> {
        let place = Place::new(TestFramework::Unittest, files).await?;
        let mut config = RepairConfig {
            planner: PlannerConfig {
                kind: PlannerKind::Model,
                instructions: false,
                ..PlannerConfig::default()
            },
            ..RepairConfig::default()
        };
        // Nothing of the sort stands in the way of what a test does on purpose.
        config.environment.guards.repeats = 0;
        config.environment.guards.avoid_repeated_find = false;
        Some(Self {
            place,
            config,
            patches: Patches::of(patches),
            repairer: None,
            planner: None,
        })
    }

    pub(crate) async fn play(&self, replies: &[&str]) -> Notes {
        self.play_task(&task("one"), replies).await
    }

    pub(crate) async fn play_task(&self, task: &Task, replies: &[&str]) -> Notes {
        self.play_logged(task, replies).await.0
    }

    /// Second, the lines for logs.
    pub(crate) async fn play_logged(&self, task: &Task, replies: &[&str]) -> (Notes, Vec<LogLine>) {
        let replies: Vec<String> = replies.iter().map(|reply| (*reply).to_owned()).collect();
        let testbed = self.place.testbed.clone();
        let tokenizer = chat();
        let study = Repair::new(
            self.config.clone(),
            Arc::new(move |_: &Task| Ok(testbed.clone())),
            self.repairer.clone().unwrap_or(self.patches.clone()),
            Arc::new(move |text: &str| tokenizer.tokenizer().encode(text).unwrap().len()),
        );
        let (roles, sampling) = (Roles::default(), Sampling::greedy(100_000));
        let roles = match &self.planner {
            Some(planner) => roles.bind_messages(PLANNER, planner.clone(), sampling),
            None => roles.bind(PLANNER, Arc::new(script(&replies)), sampling),
        };
        let options = Options {
            max_fault_share: 1.0,
            ..Options::default()
        };
        let runner = Runner::new(Arc::new(study), roles, options);
        let tasks = [Arc::new(task.clone())];
        let mut lines = Vec::new();
        let note = |ended: Progress<'_>| lines.extend(ended.log.iter().cloned());
        let groups = runner.play(0, &tasks, 1, Seed(7), note).await.unwrap();
        let episode = &groups[0].episodes[0];
        match &episode.outcome {
            Outcome::Graded { .. } => (notes_of(episode).unwrap(), lines),
            other => panic!("{other:?}"),
        }
    }
}

/// A block of the text protocol.
pub(crate) fn block(name: &str, params: &[(&str, &str)]) -> String {
    let params = params
        .iter()
        .map(|(name, value)| format!("<param name=\"{name}\">{value}</param>"));
    format!("<function={name}>{}</function>", params.collect::<String>())
}

/// Every file below a folder with its content.
pub(crate) fn tree(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => {
                    let name = entry.path();
                    let name = name.strip_prefix(folder).unwrap().display().to_string();
                    found.push((name, fs::read(entry.path()).unwrap()));
                }
            }
        }
    }
    found.sort();
    found
}
