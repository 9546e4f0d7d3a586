//! Repairs from outside: a recipe that only evaluates, one issue of one repository, and what is left behind.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::etude::{assert_success, etude, package, stderr};

const RECIPE: &str = "../../recipes/repair/smoke.toml";

/// Every file below a folder.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.clone(), fs::read(path).unwrap());
            }
        }
    }
    files
}

fn summary(run: &Path) -> Value {
    serde_json::from_slice(&fs::read(run.join("summary.json")).unwrap()).unwrap()
}

/// The verdicts of a run's only evaluation, by task: `predictions.jsonl` in its order.
fn predictions(run: &Path) -> Vec<Value> {
    let text = fs::read_to_string(run.join("predictions.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The lines of a log of one kind.
fn lines(run: &Path, log: &str, kind: &str) -> Vec<Value> {
    let text = fs::read_to_string(run.join("logs").join(log)).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.filter(|line: &Value| line["kind"] == kind).collect()
}

/// A package of two functions, one of them wrong, with unittest tests.
pub(crate) fn broken(folder: &Path) {
    let files = [
        ("shop/__init__.py", ""),
        (
            "shop/price.py",
            "def total(prices):\n    amount = 0\n    for price in prices:\n        amount -= price\n    return amount\n\n\n\
             def cheapest(prices):\n    return min(prices)\n",
        ),
        ("tests/__init__.py", ""),
        (
            "tests/test_price.py",
            "import unittest\n\nfrom shop.price import cheapest, total\n\n\nclass TestPrice(unittest.TestCase):\n    \
             def test_total(self):\n        self.assertEqual(total([1, 2, 3]), 6)\n\n    \
             def test_nothing(self):\n        self.assertEqual(total([]), 0)\n\n    \
             def test_cheapest(self):\n        self.assertEqual(cheapest([3, 1]), 1)\n",
        ),
    ];
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn a_recipe_that_only_evaluates_repairs_what_it_can() {
    let directory = TempDir::new().unwrap();
    let (recipe, run) = (package(RECIPE), directory.path().join("run"));
    let arguments = [
        "eval".as_ref(),
        recipe.as_os_str(),
        "--run".as_ref(),
        run.as_os_str(),
    ];
    let output = etude(directory.path(), arguments).output().unwrap();
    assert_success(&output);
    let summary = summary(&run);
    let evaluation = &summary["evaluations"][0];
    assert_eq!(
        (&evaluation["name"], &evaluation["n_tasks"]),
        (&"eval".into(), &8.into())
    );
    let value = |name: &str| evaluation["metrics"][name]["value"].as_f64().unwrap();
    assert!(
        value("resolved") > 0.0 && value("candidates") <= 40.0,
        "{evaluation}"
    );
    assert_eq!(value("false_resolved"), 0.0);
    // Of its tasks some are resolved as they were meant to be, and none is that is not resolved.
    assert!(0.0 < value("same_as_gold") && value("same_as_gold") <= value("resolved"));
    let patches = predictions(&run);
    let named = |one: &Value| one["model_name_or_path"] == "rules+search";
    assert!(patches.iter().all(named), "{patches:?}");
    let patched = patches
        .iter()
        .filter(|one| one["model_patch"] != "")
        .count();
    assert_eq!(patched as f64, 8.0 * value("resolved"));
    // A line a step, an episode and a run of tests.
    let count = |log: &str, kind: &str| lines(&run, log, kind).len() as f64;
    assert_eq!(count("events.jsonl", "planner_step"), 8.0 * value("steps"));
    assert_eq!(count("events.jsonl", "episode_ended"), 8.0);
    assert_eq!(
        count("test_runs.jsonl", "test_run"),
        8.0 * value("test_runs")
    );
    let mut candidates: Vec<Value> = lines(&run, "test_runs.jsonl", "test_run");
    candidates.retain(|line| line["candidate"].is_object());
    let named = |line: &Value| format!("{} {}", line["task_id"], line["candidate"]["number"]);
    let named: BTreeSet<String> = candidates.iter().map(named).collect();
    assert_eq!(named.len() as f64, 8.0 * value("candidates"));
    // How long it took is told apart from what does not change.
    assert!(evaluation["metrics"]["seconds"].is_null());
    let timings = evaluation["timings"].as_object().unwrap();
    assert!(timings["seconds"]["value"].as_f64().unwrap() > 0.0);
    assert!(timings.keys().any(|name| name.starts_with("seconds/repo/")));
    let said = String::from_utf8_lossy(&output.stdout);
    for heading in ["by package", "by kind of bug", "test runs", "time in all"] {
        assert!(said.contains(heading), "{heading}: {said}");
    }
    let report = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(report.contains("By package") && report.contains("The patch that was kept"));
    assert!(report.contains("What ended episodes") && report.contains("time in all"));
}

#[test]
fn episodes_that_run_out_of_time_have_failed_and_are_no_faults() {
    let directory = TempDir::new().unwrap();
    let (recipe, run) = (package(RECIPE), directory.path().join("run"));
    let evaluate = |arguments: &[&str]| {
        let first = [
            "eval".as_ref(),
            recipe.as_os_str(),
            "--run".as_ref(),
            run.as_os_str(),
        ];
        let mut command = etude(directory.path(), first);
        command
            .args(["--limit", "2", "--trajectory-timeout"])
            .args(arguments);
        command.output().unwrap()
    };
    let output = evaluate(&["1801"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("raise rollout.deadline_s"),
        "{}",
        stderr(&output)
    );
    let output = evaluate(&["0.001", "--timeout-penalty", "0.25"]);
    assert_success(&output);
    let evaluation = &summary(&run)["evaluations"][0];
    let value = |name: &str| evaluation["metrics"][name]["value"].as_f64();
    assert_eq!(
        (value("resolved"), value("ended/timeout")),
        (Some(0.0), Some(1.0))
    );
    assert_eq!(value("reward/timeout"), Some(-0.25));
    assert_eq!(value("no_verdict_rate"), None);
    let ended = lines(&run, "events.jsonl", "planner_ended");
    assert!(
        ended.iter().all(|line| line["ended_by"] == "timeout"),
        "{ended:?}"
    );
}

#[test]
fn a_killed_evaluation_plays_no_finished_task_again_and_ends_the_same() {
    let directory = TempDir::new().unwrap();
    let recipe = package(RECIPE);
    let run = |name: &str, concurrency: &str| {
        let run = directory.path().join(name);
        let mut command = etude(
            directory.path(),
            [
                "eval".as_ref(),
                recipe.as_os_str(),
                "--run".as_ref(),
                run.as_os_str(),
            ],
        );
        command.args(["--set", "tasks.limit=4", "--set", concurrency]);
        (run, command)
    };
    let (whole, mut command) = run("whole", "rollout.concurrency=4");
    assert_success(&command.output().unwrap());
    let (cut, mut command) = run("cut", "rollout.concurrency=1");
    let mut child = command
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let kept = cut.join("episodes/evaluations/eval.kept");
    let begun = Instant::now();
    // A line for the file, and one for the first episode.
    while fs::read(&kept).map_or(0, |bytes| {
        bytes.iter().filter(|byte| **byte == b'\n').count()
    }) < 2
    {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "no episode was kept"
        );
        assert!(
            child.try_wait().unwrap().is_none(),
            "it ended before it could be killed"
        );
        sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let resumed = etude(
        directory.path(),
        ["eval".as_ref(), "--resume".as_ref(), cut.as_os_str()],
    );
    let output = { resumed }.output().unwrap();
    assert_success(&output);
    assert!(
        stderr(&output).contains("played before"),
        "{}",
        stderr(&output)
    );
    assert!(!kept.exists());
    assert_eq!(predictions(&cut), predictions(&whole));
    let metrics = |run: &Path| summary(run)["evaluations"][0]["metrics"].clone();
    assert_eq!(metrics(&cut), metrics(&whole));
    // Of the episodes before the kill too, each once: in the order in which they ended, so sorted by task here, and
    // those of a task in the order in which they were made.
    let logged = |run: &Path, log: &str, kind: &str| -> Vec<Value> {
        let mut lines = lines(run, log, kind);
        for line in &mut lines {
            for name in ["ts", "run_id", "duration_sec", "stdout"] {
                line.as_object_mut().unwrap().remove(name);
            }
            // It may have addresses of objects.
            if let Some(candidate) = line["candidate"].as_object_mut() {
                candidate.remove("said");
            }
        }
        lines.sort_by_key(|line| line["task_id"].to_string());
        lines
    };
    for (log, kind) in [
        ("test_runs.jsonl", "test_run"),
        ("events.jsonl", "planner_step"),
        ("events.jsonl", "planner_ended"),
        ("events.jsonl", "episode_ended"),
    ] {
        let (ours, theirs) = (logged(&cut, log, kind), logged(&whole, log, kind));
        assert_eq!(ours.len(), theirs.len(), "{kind}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, theirs);
        }
    }
}

#[test]
fn an_issue_is_repaired_and_the_repository_is_changed_by_request_alone() {
    let directory = TempDir::new().unwrap();
    let repository = directory.path().join("shop");
    broken(&repository);
    let before = tree(&repository);
    let arguments = [
        "repair",
        "--repo",
        repository.to_str().unwrap(),
        "--issue",
        "the total of prices is wrong",
    ];
    let output = etude(directory.path(), arguments).output().unwrap();
    assert_success(&output);
    let patch = String::from_utf8_lossy(&output.stdout);
    assert!(
        patch.contains("-        amount -= price\n+        amount += price"),
        "{patch}"
    );
    assert!(
        stderr(&output).contains("is as it was"),
        "{}",
        stderr(&output)
    );
    assert_eq!(tree(&repository), before);

    let mut command = etude(directory.path(), arguments);
    let output = command.args(["--apply", "--json"]).output().unwrap();
    assert_success(&output);
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&said["resolved"], &said["applied"]),
        (&true.into(), &true.into())
    );
    let after = tree(&repository);
    let changed: Vec<_> = after
        .iter()
        .filter(|(path, text)| before.get(*path) != Some(text))
        .collect();
    let [(path, text)] = changed.as_slice() else {
        panic!("{changed:?}");
    };
    assert!(path.ends_with("shop/price.py") && after.len() == before.len());
    assert!(String::from_utf8_lossy(text).contains("amount += price"));

    // Nothing fails any more.
    let output = etude(directory.path(), arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("fails, so nothing can tell a repair"),
        "{}",
        stderr(&output)
    );
}

/// A function and its test, each below what `broken` has written, with the mistake of that mended.
fn with_function(shop: &Path, function: &str, test: &str) {
    let price = shop.join("shop/price.py");
    let source = fs::read_to_string(&price).unwrap();
    let source = source.replace("amount -= price", "amount += price");
    fs::write(&price, format!("{source}{function}")).unwrap();
    let tests = shop.join("tests/test_price.py");
    let known = fs::read_to_string(&tests).unwrap();
    fs::write(&tests, format!("{known}{test}")).unwrap();
}

const ENDLESS: &str = "

def first_above(prices, limit):
    place = 0
    while prices[place] <= limit:
        place += 0
    return place
";

const TEST_OF_ENDLESS: &str = "
    def test_first_above(self):
        from shop.price import first_above
        self.assertEqual(first_above([1, 5, 9], 4), 1)
        self.assertEqual(first_above([1, 5, 9], 6), 2)
";

#[test]
fn a_loop_that_never_ends_is_repaired() {
    let directory = TempDir::new().unwrap();
    let shop = directory.path().join("shop");
    broken(&shop);
    with_function(&shop, ENDLESS, TEST_OF_ENDLESS);
    let shop = shop.to_str().unwrap();
    let arguments = ["repair", "--repo", shop, "--issue", "first_above hangs"];
    let mut command = etude(directory.path(), arguments);
    command.args(["--single-test-timeout", "1"]);
    let output = command.output().unwrap();
    assert_success(&output);
    let said = stderr(&output);
    assert!(said.contains("test_first_above: Timeout"), "{said}");
    let patch = String::from_utf8_lossy(&output.stdout);
    assert!(
        patch.contains("-        place += 0\n+        place += 1"),
        "{patch}"
    );
}

#[test]
fn tests_that_do_not_pass_here_are_a_fault_and_no_failed_repair() {
    let directory = TempDir::new().unwrap();
    let shop = directory.path().join("shop");
    broken(&shop);
    with_function(&shop, "", "");
    let tasks = directory.path().join("tasks.jsonl");
    let mutate = ["data", "mutate", shop.to_str().unwrap(), "--count", "1"];
    let mut command = etude(directory.path(), mutate);
    let output = command.arg("--out").arg(&tasks).output().unwrap();
    assert_success(&output);
    assert!(
        stderr(&output).contains("--set tasks.eval="),
        "{}",
        stderr(&output)
    );
    let mut task: Value = serde_json::from_str(&fs::read_to_string(&tasks).unwrap()).unwrap();
    let kept = task["checks"]["pass_to_pass"].as_array_mut().unwrap();
    kept.extend((0..4).map(|number| format!("tests.test_price.TestPrice.test_{number}").into()));
    fs::write(&tasks, format!("{task}\n")).unwrap();
    let recipe = package(RECIPE);
    let arguments = [
        "eval",
        recipe.to_str().unwrap(),
        "--set",
        &format!("tasks.eval={}", tasks.display()),
    ];
    let output = etude(directory.path(), arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("of its 6 pass-to-pass tests pass before anything is changed"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_repaired_is_asked_wrongly() {
    let directory = TempDir::new().unwrap();
    let shop = directory.path().join("shop");
    broken(&shop);
    let shop = shop.to_str().unwrap();
    let empty = directory.path().join("empty.jsonl");
    fs::write(&empty, "").unwrap();
    let empty = format!("tasks.eval={}", empty.display());
    let recipe = package(RECIPE);
    let recipe = recipe.to_str().unwrap();
    let trains = package("../../recipes/recall/smoke.toml");
    let untested = directory.path().join("untested");
    fs::create_dir(&untested).unwrap();
    fs::write(untested.join("a.py"), "def a():\n    return 1\n").unwrap();
    let untested = untested.to_str().unwrap();
    let no_run = directory.path().join("empty.jsonl");
    let cases: [(&[&str], &str); 12] = [
        (
            &["eval", "--resume", no_run.to_str().unwrap()],
            "holds no run",
        ),
        (
            &[
                "repair",
                "--repo",
                shop,
                "--issue",
                "x",
                "--api-key-env",
                "KEY",
            ],
            "--api-key-env",
        ),
        (
            &[
                "repair",
                "--repo",
                untested,
                "--issue",
                "a is wrong",
                "--framework",
                "unittest",
            ],
            "no tests were found",
        ),
        (
            &["repair", "--repo", shop, "--issue", "missing-issue.md"],
            "there is no file missing-issue.md",
        ),
        (
            &[
                "repair",
                "--repo",
                shop,
                "--issue",
                "x",
                "--python",
                "/no/python",
            ],
            "/no/python: there is no such program",
        ),
        (
            &["repair", "--repo", "nowhere", "--issue", "x"],
            "nowhere is no folder",
        ),
        (
            &["repair", "--repo", shop, "--issue", " "],
            "the issue is empty",
        ),
        (
            &[
                "repair", "--repo", shop, "--issue", "x", "--test", "tests.no",
            ],
            "there is no such test",
        ),
        (
            &["repair", "--repo", shop, "--issue", "x", "--model", "gpt"],
            "write openai:http://HOST:PORT/v1#MODEL",
        ),
        (&["eval", recipe, "--set", &empty], "empty.jsonl"),
        (
            &["eval", recipe, "--set", "planner.kind=model"],
            "no policy plays it",
        ),
        (
            &["eval", trains.to_str().unwrap()],
            "trains before it evaluates",
        ),
    ];
    for (arguments, says) in cases {
        let output = etude(directory.path(), arguments).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(says),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
}
