//! Rows of problems and programs as tasks: every kind of tests is judged, within the row's own time limit.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use critique::{Prompter, Purpose, Task, data::read_tasks};
use dataset::Rows;
use judge::VerdictStatus;

use crate::stage::{all, judge, play};

fn rows() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/pairs/rows.jsonl")
}

/// A right program for a task of the file.
fn right(task: &Task) -> &'static str {
    match task.id.0.as_str() {
        "taco_train.jsonl/0" => "print(2 * int(input()))",
        "taco_train.jsonl/1" => "def twice(n):\n    return n + n",
        "mbpp.jsonl/0" => "def largest(items):\n    return max(items)",
        "lcb.jsonl/0" => {
            "class Solution:\n    def shifted(self, items, k):\n        return [i + k for i in items]"
        }
        "lcb.jsonl/1" => "print(len(input().split()))",
        other => unreachable!("no task {other}"),
    }
}

#[test]
fn rows_of_every_kind_are_tasks() {
    let tasks = read_tasks(&rows(), 10).unwrap();
    let prompters: Vec<Prompter> = tasks.iter().map(|task| task.public.prompter).collect();
    assert_eq!(
        prompters,
        [
            Prompter::CodeContests,
            Prompter::MbppPlus,
            Prompter::MbppPlus,
            Prompter::LiveCodeBench,
            Prompter::LiveCodeBench,
        ]
    );
    let first = &tasks[0];
    assert_eq!(first.public.program, "print(int(input()) + 3)");
    assert_eq!(first.facts.data_source.as_deref(), Some("taco"));
    assert_eq!(first.facts.difficulty.as_deref(), Some("EASY"));
    assert_eq!(first.facts.function, "taco/0");
    assert!(!first.facts.initially_right && tasks[1].facts.initially_right);
    assert_eq!(tasks[3].facts.difficulty.as_deref(), Some("easy"));
    // Tasks as a run keeps them are the same tasks.
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("tasks.jsonl");
    let mut writer = dataset::JsonlWriter::create(&kept).unwrap();
    for task in &tasks {
        writer.write(task).unwrap();
    }
    writer.finish().unwrap();
    let again = read_tasks(&kept, 10).unwrap();
    let text = |tasks: &[Task]| serde_json::to_string(tasks).unwrap();
    assert_eq!(text(&again), text(&tasks));
    // So are those of a Parquet file; what a text and a list cannot share a column with is one of each.
    let rows: Vec<_> = Rows::open(&rows())
        .unwrap()
        .map(|row| row.unwrap().object().unwrap())
        .filter(|row| row["selected_uts"].is_string() && !row["success"].is_boolean())
        .collect();
    let parquet = folder.path().join("rows.parquet");
    dataset::write_parquet(&parquet, &rows, &[]).unwrap();
    let of_parquet = read_tasks(&parquet, 10).unwrap();
    let same: Vec<Task> = tasks
        .into_iter()
        .filter(|task| of_parquet.iter().any(|other| other.id == task.id))
        .collect();
    assert_eq!(of_parquet.len(), 3);
    assert_eq!(text(&of_parquet), text(&same));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_tests_pays() {
    let judge = judge();
    let tasks = read_tasks(&rows(), 10).unwrap();
    let critiques = || all(&tasks, |_| "Overall judgment: Incorrect".to_owned());
    let fenced = |program: &str| format!("```python\n{program}\n```");
    let answers = all(&tasks, |task| fenced(right(task)));
    let unchanged = all(&tasks, |task| fenced(&task.public.program));
    for (revisions, passing) in [(answers, [1.0; 5]), (unchanged, [0.0; 5])] {
        let played = play(&judge, Purpose::Training, &tasks, critiques(), revisions).await;
        for ((episode, notes), passing) in played.iter().zip(passing) {
            // Twice of a list is right for `2 * n` as well.
            let passing = if episode.task.0 == "taco_train.jsonl/1" {
                1.0
            } else {
                passing
            };
            assert_eq!(
                episode.outcome.reward().unwrap().total,
                passing,
                "{notes:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_has_its_own_time_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tasks.jsonl");
    let row = |id: &str, seconds: &str| {
        format!(
            "{{\"id\": \"{id}\", \"problem\": \"p\", \"sanitized_solution\": \"print(1)\", \"success\": 0, \
             \"time_limit\": {seconds}, \"selected_uts\": [\"assert f() == 1\"], \"prompter_type\": \"mbppplus\"}}\n"
        )
    };
    fs::write(&path, row("short", "\"0.1 seconds\"") + &row("long", "20")).unwrap();
    let tasks = read_tasks(&path, 10).unwrap();
    // The judge itself has half a second of processor time for a run.
    let program = "import time\n\ndef f():\n    begun = time.process_time()\n    \
                   while time.process_time() < begun + 0.7:\n        pass\n    return 1";
    let judge = judge();
    let played = play(
        &judge,
        Purpose::Training,
        &tasks,
        all(&tasks, |_| "Overall judgment: Incorrect".to_owned()),
        all(&tasks, |_| program.to_owned()),
    )
    .await;
    let verdict = |index: usize| played[index].1.verdict.as_ref().unwrap();
    assert_eq!(verdict(0).status, VerdictStatus::CpuTimeout);
    assert_eq!(verdict(1).status, VerdictStatus::Passed);
    assert_ne!(verdict(0).key, verdict(1).key, "limits are part of the key");
    let longer = judge.within_cpu(Duration::from_secs(20));
    assert_eq!(
        longer.key(program, &judge::Tests::asserts(["assert f() == 1"])),
        verdict(1).key
    );
}

#[test]
fn bad_rows_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.jsonl");
    let whole = r#"{"id": "a", "problem": "p", "sanitized_solution": "x = 1", "success": 1, "selected_uts": ["assert x == 1"], "prompter_type": "mbppplus"}"#;
    let with = |from: &str, to: &str| whole.replace(from, to);
    for (row, field, message) in [
        (with("\"id\": \"a\", ", ""), "id", "missing"),
        (with("\"problem\": \"p\"", "\"problem\": \" \""), "problem", "empty"),
        (with("\"problem\": \"p\"", "\"problem\": 5"), "problem", "expected a text, found a number"),
        (with("x = 1", " "), "sanitized_solution", "the program is empty"),
        (with("\"sanitized_solution\"", "\"other\""), "sanitized_solution", "etude data pair"),
        (with("\"success\": 1, ", ""), "success", "missing"),
        (with("\"success\": 1", "\"success\": 0.5"), "success", "0 or 1"),
        (with("mbppplus", "magic"), "prompter_type", "unknown variant"),
        (with("[\"assert x == 1\"]", "[]"), "selected_uts", "no tests"),
        (with("\"selected_uts\"", "\"other\""), "all_uts", "no tests"),
        (with("\"success\"", "\"time_limit\": -1, \"success\""), "time_limit", "-1 seconds"),
        (with("\"success\"", "\"time_limit\": [1], \"success\""), "time_limit", "found a list"),
        (format!("{whole}\n{whole}"), "id", "that of line 1 too"),
        ("{\"id\": ".to_owned(), "", "not JSON: it ends too early"),
        (
            r#"{"id": "a", "public": {"statement": "s", "program": "p"}, "facts": {"initially_right": true, "family": "f", "function": "g"}, "gold": {"tests": {"kind": "asserts", "asserts": ["assert f()"]}, "time_limit_s": 0}}"#.to_owned(),
            "gold.time_limit_s",
            "0 seconds",
        ),
    ] {
        fs::write(&path, &row).unwrap();
        let error = read_tasks(&path, 10).unwrap_err().to_string();
        let line = if row.contains('\n') { "line 2" } else { "line 1" };
        assert!(error.contains("bad.jsonl") && error.contains(line), "{error}");
        assert!(field.is_empty() || error.contains(&format!("`{field}`")), "{field}: {error}");
        assert!(error.contains(message), "{message}: {error}");
    }
}
