//! `etude judge` on files of tasks and solutions.

use std::{
    fs,
    path::Path,
    process::{Output, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    etude::{etude, package, stderr, wait_until},
    processes::{descendants, signal, supervisor_of},
};

fn judge(arguments: &[&str]) -> Output {
    let scratch = TempDir::new().unwrap();
    let output = etude(scratch.path(), ["judge"]).args(arguments).output();
    output.unwrap()
}

fn case(file: &str) -> String {
    let path = package("tests/cases/judge").join(file);
    path.to_str().unwrap().to_owned()
}

fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn every_solution_has_a_line_and_the_last_one_sums_up() {
    let cache = TempDir::new().unwrap();
    let cache = cache.path().to_str().unwrap();
    let files = [case("tasks.jsonl"), case("solutions.jsonl")];
    let options = ["--json", "--scoring", "pass-rate", "--cache", cache];
    let arguments: Vec<&str> = files.iter().map(String::as_str).chain(options).collect();
    let output = judge(&arguments);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut found = lines(&output);
    let summary = found.pop().unwrap();
    let of = |key: &str| -> Vec<Value> { found.iter().map(|line| line[key].clone()).collect() };
    assert_eq!(
        of("passed"),
        [true, false, true, false, true, false].map(|passed| json!(passed))
    );
    assert_eq!(
        of("reward"),
        [1.0, 0.5, 1.0, 0.0, 1.0, 0.5].map(|reward| json!(reward))
    );
    assert_eq!(
        of("task_id"),
        [
            json!("double"),
            json!("double"),
            json!(7),
            json!(7),
            json!("echo"),
            json!("echo")
        ]
    );
    assert_eq!(
        (
            &summary["n_tasks"],
            &summary["n_solutions"],
            &summary["n_infra_errors"]
        ),
        (&json!(3), &json!(6), &json!(0))
    );
    assert_eq!(summary["pass@1"]["value"], 0.5);
    assert_eq!(
        summary["statuses"],
        json!({"error": 1, "passed": 3, "wrong": 2})
    );
    // Verdicts of the first run are on disk.
    let again = lines(&judge(&arguments)).pop().unwrap();
    assert_eq!(again["cache_hit_rate"], 1.0);
    assert_eq!(again["pass@1"], summary["pass@1"]);
    let text = judge(&arguments[..2]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("pass@1") && text.contains("50.0 %"), "{text}");
}

/// What cannot be judged is no failure.
#[test]
fn a_solution_without_a_verdict_counts_nowhere() {
    let folder = TempDir::new().unwrap();
    let solutions = folder.path().join("solutions.jsonl");
    let sleeps = "import os, time
def f(x):
    for _ in range(5): os.fork() or time.sleep(60)
    time.sleep(60)";
    let rows = [sleeps, "def f(x): return 2 * x"]
        .map(|solution| json!({"task_id": "double", "solution": solution}).to_string() + "\n");
    fs::write(&solutions, rows.concat()).unwrap();
    let arguments = [
        "judge",
        &case("tasks.jsonl"),
        solutions.to_str().unwrap(),
        "--json",
        "--workers=1",
        "--timeout=60",
    ];
    let judging = etude(folder.path(), arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut supervisor = None;
    wait_until("the first program runs", || {
        supervisor = supervisor_of(judging.id()).map(|found| found.id);
        // More than slot, interpreters and the first process of the run.
        supervisor.is_some_and(|supervisor| descendants(supervisor).len() >= 8)
    });
    signal("KILL", supervisor.unwrap());
    let output = judging.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let found = lines(&output);
    assert_eq!(found[0]["passed"], Value::Null);
    assert!(found[0]["error"].is_string(), "{}", found[0]);
    let summary = &found[2];
    assert_eq!(
        (&summary["n_infra_errors"], &summary["pass@1"]["value"]),
        (&json!(1), &json!(1.0))
    );
}

#[test]
fn wrong_files_are_refused_before_anything_runs() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (tasks, solutions) = (case("tasks.jsonl"), case("solutions.jsonl"));
    let twice = fs::read_to_string(&tasks).unwrap().repeat(2);
    let cases = [
        (write("empty", b""), solutions.clone(), "empty"),
        (
            folder.path().join("absent").to_str().unwrap().to_owned(),
            solutions.clone(),
            "absent",
        ),
        (
            write("broken", b"{\"task_id\": 1\n"),
            solutions.clone(),
            "line 1",
        ),
        (
            write("bytes", b"{\"task_id\": \"\xff\"}\n"),
            solutions.clone(),
            "line 1",
        ),
        (
            write("untested", b"{\"task_id\": \"double\"}\n"),
            solutions.clone(),
            "`test` is missing",
        ),
        (
            write("none", b"{\"task_id\": 1, \"test_list\": []}\n"),
            solutions.clone(),
            "1",
        ),
        (write("twice", twice.as_bytes()), solutions.clone(), "twice"),
        (
            tasks.clone(),
            write("unknown", b"{\"task_id\": \"other\", \"code\": \"\"}\n"),
            "no such task",
        ),
        (
            tasks.clone(),
            write("nothing", b"{\"task_id\": \"double\"}\n"),
            "completion",
        ),
        (
            tasks.clone(),
            write(
                "cobol",
                b"{\"task_id\": \"double\", \"code\": \"\", \"language\": \"cobol\"}\n",
            ),
            "cobol",
        ),
        (
            tasks.clone(),
            write(
                "bash",
                b"{\"task_id\": \"double\", \"code\": \"\", \"language\": \"bash\"}\n",
            ),
            "run Python programs, not bash",
        ),
    ];
    for (tasks, solutions, word) in cases {
        let output = judge(&[&tasks, &solutions]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{tasks} {solutions}: {errors}"
        );
        assert!(errors.contains(word), "{tasks} {solutions}: {errors}");
        assert!(output.stdout.is_empty() && Path::new(&tasks).parent().is_some());
    }
    let output = judge(&[&tasks, &solutions, "--scoring", "some"]);
    assert_eq!(output.status.code(), Some(2));
}
