//! Predictions for rows of SWE-bench, graded in containers of a real engine.

#[path = "../../../../crates/session/tests/engine/mod.rs"]
mod engine;

use std::{fs, path::Path, sync::Arc, time::Duration};

use engine::{IMAGE, TestEngine};
use record::TaskId;
use repair::{
    Checks, Facts, Gold, Issue, Place, Public, Task, TestFramework,
    evaluation::{Evaluated, evaluate, evaluate_gold},
    grading::{Grader, HarborGrader, LogParser, SweBenchGrader},
    workplace::Testbed,
};
use sandbox::Limits;
use serde_json::json;
use session::{
    Image,
    docker::{DockerBackend, DockerConfig},
    lease::{Leases, TIME_TO_LIVE},
};

/// What runs the "tests" of a work tree that has one file.
const SCRIPT: &str = "\
#!/bin/bash
: '>>>>> Start Test Output'
cat answer.txt
grep -q 42 answer.txt && echo 'PASSED t.py::answer' || echo 'FAILED t.py::answer - no'
test -s answer.txt && echo 'PASSED t.py::kept'
grep -q 42 answer.txt
: '>>>>> End Test Output'
";

fn task() -> Task {
    let ids = |ids: &[&str]| ids.iter().map(|&id| id.to_owned()).collect();
    Task {
        id: TaskId("swe-bench/test/a__b-1".to_owned()),
        public: Public {
            repo: "a/b".to_owned(),
            base_commit: Some("HEAD".to_owned()),
            issue: Issue {
                id: Some("a__b-1".to_owned()),
                ..Issue::default()
            },
            framework: TestFramework::Pytest,
            max_steps: None,
        },
        place: Place::Image {
            name: IMAGE.to_owned(),
            work_tree: "/testbed".to_owned(),
        },
        checks: Checks {
            fail_to_pass: ids(&["t.py::answer"]),
            pass_to_pass: ids(&["t.py::kept"]),
        },
        facts: Facts::default(),
        gold: Gold {
            grader: Some(Grader::SweBench(Box::new(SweBenchGrader {
                eval_script: Some(SCRIPT.to_owned()),
                log_parser: Some(LogParser::Pytest),
                ..SweBenchGrader::default()
            }))),
            ..Gold::default()
        },
    }
}

/// Containers with a work tree of one file.
async fn testbed(engine: &TestEngine, folder: &Path) -> Testbed {
    fs::write(folder.join("answer.txt"), "41\n").unwrap();
    let leases = Leases::open(engine.folder().join("leases"), TIME_TO_LIVE).unwrap();
    let backend = DockerBackend::connect(DockerConfig::new(engine.address(), leases));
    Testbed {
        backend: Arc::new(backend.await.unwrap()),
        image: Image {
            checkout: Some(folder.to_owned()),
            ..Image::container(IMAGE)
        },
        framework: TestFramework::Pytest,
        python: "python".to_owned(),
        limits: Limits {
            wall: Duration::from_secs(60),
            cpu: Duration::from_secs(60),
            address_space: false,
            ..Limits::SMALL
        },
        test_limit: None,
        with_plugins: false,
        slots: 1,
    }
}

fn patch(to: &str) -> String {
    format!("--- a/answer.txt\n+++ b/answer.txt\n@@ -1 +1 @@\n-41\n+{to}\n")
}

#[tokio::test]
async fn harbors_tasks_are_graded_by_the_reward_that_their_script_writes() {
    let Some(engine) = TestEngine::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let testbed = testbed(&engine, folder.path()).await;
    let graded = async |script: &str, to: &str| {
        let settings = json!({"verifier": {"timeout_sec": 20.0, "env": {"WANTED": "42"}}});
        let grader = HarborGrader {
            settings: settings.as_object().unwrap().clone(),
            ..HarborGrader::default()
        };
        let mut task = task();
        task.gold = Gold {
            test_files: [
                ("tests/test.sh".to_owned(), script.to_owned()),
                (
                    "tests/deep/print.sh".to_owned(),
                    "cat answer.txt\n".to_owned(),
                ),
            ]
            .into(),
            grader: Some(Grader::Harbor(Box::new(grader))),
            ..Gold::default()
        };
        evaluate(&task, &patch(to), &testbed).await.unwrap()
    };
    let resolved = |found: &Evaluated| found.report.as_ref().map(|report| report.resolved);
    let script = "echo 'a line of the tests'\n\
        if [ \"$(sh /tests/deep/print.sh)\" = \"$WANTED\" ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n";
    let found = graded(script, "42").await;
    assert_eq!(resolved(&found), Some(true), "{found:?}");
    assert!(
        found.test_output.contains("a line of the tests"),
        "{found:?}"
    );
    assert!(found.run_log.contains("reward: 1"), "{}", found.run_log);
    let found = graded(script, "43").await;
    assert_eq!(resolved(&found), Some(false), "{found:?}");
    let part = "echo '{\"reward\": 0.5}' > /logs/verifier/reward.json\n";
    assert_eq!(resolved(&graded(part, "42").await), Some(false));
    for (script, why) in [
        ("echo 1\n", "left no reward"),
        ("echo passed > /logs/verifier/reward.txt\n", "no number"),
    ] {
        let found = graded(script, "42").await;
        assert_eq!(found.report, None, "{found:?}");
        assert!(found.run_log.contains(why), "{}", found.run_log);
    }
    assert!(engine.containers().is_empty());
}

#[tokio::test]
async fn harbors_solutions_are_run_and_tested() {
    let Some(engine) = TestEngine::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let testbed = testbed(&engine, folder.path()).await;
    let solved = async |solve: Option<&str>| {
        let settings =
            json!({"solution": {"env": {"ANSWER": "42"}}, "agent": {"timeout_sec": 5.0}});
        let solution = solve.map(|text| ("solution/solve.sh".to_owned(), text.to_owned()));
        let grader = HarborGrader {
            settings: settings.as_object().unwrap().clone(),
            solution: solution.into_iter().collect(),
        };
        let script =
            "if grep -q 42 answer.txt; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n";
        let mut task = task();
        task.gold = Gold {
            test_files: [("tests/test.sh".to_owned(), script.to_owned())].into(),
            grader: Some(Grader::Harbor(Box::new(grader))),
            ..Gold::default()
        };
        evaluate_gold(&task, &testbed).await.unwrap()
    };
    let resolved = |found: &Evaluated| found.report.as_ref().map(|report| report.resolved);
    let found = solved(Some("echo \"$ANSWER\" > answer.txt\nexit 3\n")).await;
    assert_eq!(resolved(&found), Some(true), "{found:?}");
    let found = solved(Some("echo so it goes\n")).await;
    assert_eq!(resolved(&found), Some(false), "{found:?}");
    assert!(found.run_log.contains("so it goes"), "{}", found.run_log);
    for (solve, why) in [
        (Some("sleep 60\n"), "solve.sh timed out after 5 seconds"),
        (None, "has no solution/solve.sh"),
    ] {
        let found = solved(solve).await;
        assert_eq!(found.report, None, "{found:?}");
        assert!(found.run_log.contains(why), "{}", found.run_log);
    }
    assert!(engine.containers().is_empty());
}

#[tokio::test]
async fn patches_are_graded_in_containers_that_are_gone_afterwards() {
    let Some(engine) = TestEngine::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let testbed = testbed(&engine, folder.path()).await;
    let right = evaluate(&task(), &patch("42"), &testbed).await.unwrap();
    let report = right.report.clone().unwrap_or_else(|| panic!("{right:?}"));
    assert!(report.resolved, "{right:?}");
    let wrong = evaluate(&task(), &patch("43"), &testbed).await.unwrap();
    let report = wrong.report.clone().unwrap();
    assert!(
        report.patch_successfully_applied && !report.resolved,
        "{wrong:?}"
    );
    assert_eq!(
        report.tests_status.unwrap().pass_to_pass.success,
        ["t.py::kept"]
    );
    let misfit = evaluate(&task(), &patch("42").replace("41", "40"), &testbed)
        .await
        .unwrap();
    assert_eq!(misfit.report, None);
    assert!(misfit.run_log.contains("Patch Apply Failed"), "{misfit:?}");
    assert!(engine.containers().is_empty());
}
