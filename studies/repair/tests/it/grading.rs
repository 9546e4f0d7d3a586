//! Predictions for tasks of SWE-smith, graded in a jail.

use std::{path::Path, process::Command};

use record::TaskId;
use repair::{
    Checks, Facts, Gold, Issue, Place as TaskPlace, Public, Task, TestFramework,
    evaluation::{Evaluated, evaluate},
    grading::{Grader, LogParser, SmithProfile},
};

use crate::place::Place;

const RIGHT: &str =
    "def first(items):\n    return items[0]\n\n\ndef last(items):\n    return items[-1]\n";

const TESTS: &str = "\
from ends import first, last


def test_first():
    assert first([3, 4]) == 3


def test_last():
    assert last([3, 4]) == 4
";

/// Plants the bug.
const BUG: &str = "\
--- a/ends.py
+++ b/ends.py
@@ -1,5 +1,5 @@
 def first(items):
-    return items[0]
+    return items[1]


 def last(items):
";

const GOLD: &str = "\
--- a/ends.py
+++ b/ends.py
@@ -1,3 +1,3 @@
 def first(items):
-    return items[1]
+    return items[0]

";

/// Fits the sources without the bug alone.
const OF_OTHER_SOURCES: &str = "\
--- a/ends.py
+++ b/ends.py
@@ -1,3 +1,4 @@
 def first(items):
+    # The first of them.
     return items[0]

";

fn task(place: TaskPlace, gold: Gold) -> Task {
    Task {
        id: TaskId("made/ends".to_owned()),
        public: Public {
            repo: "ends".to_owned(),
            base_commit: None,
            issue: Issue::default(),
            framework: TestFramework::Pytest,
            max_steps: None,
        },
        place,
        checks: Checks {
            fail_to_pass: vec!["tests/test_ends.py::test_first".to_owned()],
            pass_to_pass: vec!["tests/test_ends.py::test_last".to_owned()],
        },
        facts: Facts::default(),
        gold,
    }
}

fn committed(checkout: &Path) {
    for arguments in [
        &["init", "-q"][..],
        &["add", "-A"],
        &[
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-qm",
            "all",
        ],
    ] {
        let mut git = Command::new("git");
        git.current_dir(checkout).args(arguments);
        assert!(git.status().unwrap().success());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swe_smiths_bugs_are_planted_and_every_named_test_must_pass() {
    let filled = |checkout: &Path| {
        std::fs::create_dir(checkout.join("tests")).unwrap();
        std::fs::write(checkout.join("ends.py"), RIGHT).unwrap();
        std::fs::write(checkout.join("conftest.py"), "").unwrap();
        std::fs::write(checkout.join("tests/test_ends.py"), TESTS).unwrap();
        committed(checkout);
    };
    let Some(place) = Place::fill(TestFramework::Pytest, filled).await else {
        return;
    };
    let image = TaskPlace::PatchedImage {
        name: "jyangballin/swesmith.x86_64.ends".to_owned(),
        work_tree: "/testbed".to_owned(),
        patch: BUG.to_owned(),
    };
    let gold = Gold {
        grader: Some(Grader::SweSmith),
        ..Gold::default()
    };
    let task = task(image, gold);
    let graded = async |patch: &str| evaluate(&task, patch, &place.testbed).await.unwrap();
    let resolved = |found: &Evaluated| found.report.as_ref().map(|report| report.resolved);

    let found = graded(GOLD).await;
    assert_eq!(resolved(&found), Some(true), "{found:?}");
    let status = found.report.unwrap().tests_status.unwrap();
    assert_eq!(status.fail_to_pass.success, task.checks.fail_to_pass);
    assert_eq!(status.pass_to_pass.success, task.checks.pass_to_pass);

    let comment = GOLD.replace("+    return items[0]", "+    return items[1]  # so");
    let found = graded(&comment).await;
    assert_eq!(resolved(&found), Some(false), "{found:?}");
    let status = found.report.unwrap().tests_status.unwrap();
    assert_eq!(status.fail_to_pass.failure, task.checks.fail_to_pass);
    assert_eq!(status.pass_to_pass.success, task.checks.pass_to_pass);

    // An attempt that fails must not leave the sources without their bug.
    let found = graded(OF_OTHER_SOURCES).await;
    assert_ne!(resolved(&found), Some(true), "{found:?}");

    let profile = SmithProfile {
        test_cmd: format!(
            "{} -m pytest --color=no --tb=no -p no:cacheprovider --verbose",
            place.testbed.python
        ),
        log_parser: LogParser::PytestVerbose,
    };
    let by_log = Task {
        gold: Gold {
            grader: Some(Grader::SweSmithLog(profile)),
            ..Gold::default()
        },
        ..task.clone()
    };
    let forged = "--- a/ends.py\n+++ b/ends.py\n@@ -3,3 +3,4 @@\n \n \n def last(items):\n+    assert items != [3, 4]\n\
                  --- a/tests/test_ends.py\n+++ b/tests/test_ends.py\n@@ -2,4 +2,4 @@\n \n \n def test_first():\n\
                  -    assert first([3, 4]) == 3\n+    assert True\n\
                  --- /dev/null\n+++ b/tests/conftest.py\n@@ -0,0 +1 @@\n+raise SystemExit(0)\n";
    for (patch, expected) in [(GOLD, true), (&comment, false), (forged, false)] {
        let found = evaluate(&by_log, patch, &place.testbed).await.unwrap();
        assert_eq!(resolved(&found), Some(expected), "{patch}{found:?}");
        assert!(
            found.test_output.contains("tests/test_ends.py::test_first"),
            "{found:?}"
        );
    }
    let found = evaluate(&by_log, forged, &place.testbed).await.unwrap();
    let status = found.report.unwrap().tests_status.unwrap();
    assert_eq!(status.fail_to_pass.failure, task.checks.fail_to_pass);
    assert_eq!(status.pass_to_pass.failure, task.checks.pass_to_pass);

    // A test that is skipped is none that passes.
    let skips = "--- a/ends.py\n+++ b/ends.py\n@@ -1,2 +1,5 @@\n+import pytest\n+pytest.skip('no', allow_module_level=True)\n+\n \
                 def first(items):\n     return items[1]\n";
    let found = graded(skips).await;
    assert_ne!(resolved(&found), Some(true), "{found:?}");
}
