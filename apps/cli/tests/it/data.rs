//! `etude data`: datasets to tasks, files of tasks looked over, and what is said of bad rows.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    etude::{assert_says, assert_success, etude, package, stderr},
    runs::uninterrupted,
};

/// A file that the study's adapters are tested with.
fn case(name: &str) -> String {
    package("../../studies/recall/tests/cases/adapters")
        .join(name)
        .display()
        .to_string()
}

fn data<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Output {
    let all = ["data"].into_iter().chain(arguments);
    etude(&std::env::temp_dir(), all).output().unwrap()
}

fn prepare(out: &Path, arguments: &[&str]) -> Output {
    let out = out.display().to_string();
    data(
        ["prepare", "recall", "--out", &out]
            .into_iter()
            .chain(arguments.iter().copied()),
    )
}

fn told(output: &Output) -> Value {
    assert_success(output);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn tasks(file: PathBuf) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn datasets_become_tasks_divided_by_document_the_same_every_time() {
    let folder = TempDir::new().unwrap();
    let out = |name: &str| folder.path().join(name);
    let nested = case("041_locomo_nested/rows.json");
    let flat = case("042_locomo_flat/rows.json");
    let files = [nested.as_str(), flat.as_str()];
    let told_to = |more: &[&'static str]| {
        let own = ["--format", "locomo", "--json"];
        [&own[..], more, &files[..]].concat()
    };
    let arguments = told_to(&["--eval", "0.5"]);
    let prepared = told(&prepare(&out("once"), &arguments));
    assert_eq!(prepared["counts"]["questions"], 8);
    assert_eq!(prepared["train"]["tasks"], 1);
    assert_eq!(prepared["eval"]["tasks"], 1);
    assert_eq!(prepared["rejected"], serde_json::json!([]));
    let [train, eval] = ["train.jsonl", "eval.jsonl"].map(|name| tasks(out("once").join(name)));
    assert_eq!(
        prepared["train"]["by_metric"],
        serde_json::json!({"locomo": 1})
    );
    // Under another name it is the same dataset: it is scored, and cut, as before.
    let renamed = told(&prepare(
        &out("renamed"),
        &told_to(&["--source", "foo", "--eval", "0"]),
    ));
    assert_eq!(
        renamed["train"]["by_metric"],
        serde_json::json!({"locomo": 2})
    );
    let named = tasks(out("renamed").join("train.jsonl")).remove(0);
    assert_eq!(named["facts"]["metric"], "locomo");
    assert_eq!(named["facts"]["data_source"], "foo");
    let documents = |tasks: &[Value]| -> BTreeSet<String> {
        tasks
            .iter()
            .map(|task| task["facts"]["document"].to_string())
            .collect()
    };
    assert!(documents(&train).is_disjoint(&documents(&eval)));

    told(&prepare(&out("again"), &arguments));
    for name in ["train.jsonl", "eval.jsonl"] {
        let read = |folder: &str| fs::read(out(folder).join(name)).unwrap();
        assert_eq!(read("once"), read("again"));
    }

    // One episode a question, all of them to train on.
    let output = prepare(
        &out("once"),
        &told_to(&["--eval", "0", "--granularity", "qa"]),
    );
    let said = stderr(&output);
    assert!(
        said.contains("train.jsonl: replaced what an earlier preparation wrote")
            && said.contains("eval.jsonl: removed, for no document is left for it"),
        "{said}"
    );
    let questions = told(&output);
    for (key, name) in [("replaced", "train.jsonl"), ("removed", "eval.jsonl")] {
        assert_eq!(questions[key], serde_json::json!([out("once").join(name)]));
    }
    assert_eq!(prepared["replaced"], serde_json::json!([]));
    assert_eq!(questions["train"]["tasks"], 8);
    assert!(
        !out("once").join("eval.jsonl").exists(),
        "that of before is gone"
    );
    let ids: BTreeSet<String> = tasks(out("once").join("train.jsonl"))
        .iter()
        .map(|task| task["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), 8);
    assert!(ids.contains("locomo/train/conv-1-q0"), "{ids:?}");
    // The flat file does not name its samples; both files are called `rows`.
    assert!(ids.contains("locomo/train/rows.2-1-q1"), "{ids:?}");

    let checked = data([
        "check",
        &out("again").join("train.jsonl").display().to_string(),
        &out("again").join("eval.jsonl").display().to_string(),
        "--json",
    ]);
    let checked = told(&checked);
    assert_eq!(checked["files"][0]["study"], "recall");
    assert_eq!(checked["files"][0]["tasks"], 1);
    assert_eq!(checked["files"][1]["bad_rows"], 0);
    let missing = data(["check", "/no/such.jsonl"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("cannot read /no/such.jsonl"));
}

#[test]
fn bad_rows_fail_the_command_or_are_left_out_and_said() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out");
    let file = case("044_locomo_malformed/rows.json");
    let arguments = ["--format", "locomo", "--eval", "0", &file];
    let refused = prepare(&out, &arguments);
    assert_eq!(refused.status.code(), Some(2));
    let said = stderr(&refused);
    assert!(
        said.contains(&format!(
            "{file}, row 1, field `qa[3].answer`: missing answer\n"
        )),
        "{said}"
    );
    assert!(
        said.contains("etude: 9 rows were rejected and nothing was written"),
        "{said}"
    );
    assert!(!out.exists());

    let prepared = told(&prepare(
        &out,
        &[&arguments[..], &["--skip-rejected", "--json"]].concat(),
    ));
    assert_eq!(prepared["counts"]["rejected rows"], 9);
    assert_eq!(prepared["rejected"].as_array().unwrap().len(), 9);
    assert_eq!(prepared["train"]["questions"], 6);
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    let folder = TempDir::new().unwrap();
    let file = case("081_dialogue/rows.jsonl");
    let empty = folder.path().join("empty.json");
    fs::write(&empty, "[]").unwrap();
    let empty = empty.display().to_string();
    for (arguments, expected) in [
        (
            vec!["--format", "loco", &file],
            "possible values: dialogue, verl, qa, memalpha",
        ),
        (
            vec!["--format", "dialogue", "--eval", "2", &file],
            "expected a number from 0 to 1",
        ),
        (
            vec!["--format", "dialogue", "--split", "a/b", &file],
            "expected a name without `/`",
        ),
        (vec!["--format", "locomo", &empty], "empty.json has no rows"),
        (
            vec!["--format", "dialogue", "/no/such.jsonl"],
            "cannot read /no/such.jsonl",
        ),
        (
            vec!["--format", "dialogue", "--tokenizer", "/no/such", &file],
            "/no/such",
        ),
        (
            vec!["--format", "dialogue", &file, &file],
            "two files have a sample with the id `made/train/d0`",
        ),
    ] {
        let output = prepare(&folder.path().join("out"), &arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = stderr(&output);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

/// A package with three tests, of which one fails.
fn package_with_tests(folder: &Path) {
    let tests = "import unittest\n\nfrom shapes import area\n\n\nclass AreaTest(unittest.TestCase):\n    \
                 def test_area(self):\n        self.assertEqual(area(2, 3), 6)\n\n    \
                 def test_broken(self):\n        self.fail('always')\n\n    \
                 def test_called(self):\n        self.assertTrue(area)\n";
    fs::create_dir_all(folder).unwrap();
    let area = "def area(width, height):\n    return width * height\n";
    fs::write(folder.join("shapes.py"), area).unwrap();
    fs::write(folder.join("test_shapes.py"), tests).unwrap();
}

#[test]
fn bugs_are_planted_where_there_are_tests_and_what_is_left_out_is_named() {
    let scratch = TempDir::new().unwrap();
    let at = |name: &str| scratch.path().join(name);
    package_with_tests(&at("shapes"));
    fs::create_dir_all(at("empty")).unwrap();
    let mutate = |path: &str, out: &str, more: &[&str]| {
        let arguments = ["data", "mutate", path, "--count", "1", "--out", out];
        let mut command = etude(scratch.path(), arguments);
        command.args(more).current_dir(scratch.path());
        command.output().unwrap()
    };
    assert_says(
        &mutate("shapes", "empty", &[]),
        2,
        &["--out empty is a folder", "empty/tasks.jsonl"],
    );
    assert_says(
        &mutate("shapes", "new/", &[]),
        2,
        &["--out new/ is a folder"],
    );
    let refused = mutate("empty", "new/deep/tasks.jsonl", &[]);
    assert_says(&refused, 2, &["no tests were found in empty"]);
    assert!(!at("new").exists());

    fs::write(at("tasks.jsonl"), "old\n").unwrap();
    let made = mutate("shapes", "tasks.jsonl", &["--json"]);
    let said = stderr(&made);
    if said.contains("walls") || said.contains("none was found") {
        println!("skipped: {said}");
        return;
    }
    let told = told(&made);
    let broken = "test_shapes.AreaTest.test_broken";
    assert_eq!(told["left_out"][0]["test"], broken, "{told}");
    for part in [
        "note: tasks.jsonl is there already",
        "left out: test_shapes.AreaTest.test_broken: it fails",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let task = &tasks(at("tasks.jsonl"))[0];
    assert_eq!(task["checks"]["pass_to_pass"].as_array().unwrap().len(), 1);
}

#[test]
fn faults_of_tasks_are_found() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out");
    told(&prepare(
        &out,
        &[
            "--format",
            "dialogue",
            "--eval",
            "0",
            "--json",
            &case("081_dialogue/rows.jsonl"),
        ],
    ));
    let good = tasks(out.join("train.jsonl")).remove(0);
    let with = |pointer: &str, value: Value| {
        let mut task = good.clone();
        *task.pointer_mut(pointer).unwrap() = value;
        task["id"] = pointer.into();
        task
    };
    // Of one row, everything that is wrong.
    let mut many = with("/gold/answers", serde_json::json!({}));
    many["id"] = "many".into();
    many["facts"]["questions"] = serde_json::json!({});
    many["public"]["turns"][0]["utterances"] = Value::Array(Vec::new());
    let twice = folder.path().join("many.jsonl");
    fs::write(&twice, format!("{many}\n")).unwrap();
    let checked = data(["check", &twice.display().to_string()]);
    let said = stderr(&checked);
    for part in [
        "field `public.turns[0].utterances`: empty turn",
        "field `facts.questions`: target turn 1 has none",
        "field `gold.answers`: target turn 1 has none",
        "etude: 1 row is bad",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let rows = [
        (good.clone(), None),
        (
            good.clone(),
            Some("field `id`: `made/train/d0` is the id of FILE, line 1 too"),
        ),
        (
            with("/public/turns/1/turn_id", 2.into()),
            Some("field `public.turns[2].turn_id`: turn 2 is there twice"),
        ),
        (
            with("/public/turns/0/utterances", Value::Array(Vec::new())),
            Some("field `public.turns[0].utterances`: empty turn"),
        ),
        (
            with("/gold/answers/1/answers", Value::Array(Vec::new())),
            Some("field `gold.answers.1.answers`: missing answer"),
        ),
        (
            with("/gold/answers", serde_json::json!({})),
            Some("field `gold.answers`: target turn 1 has none"),
        ),
        (
            with("/facts/questions", serde_json::json!({})),
            Some("field `facts.questions`: target turn 1 has none"),
        ),
        (
            with("/public/turns", Value::Array(Vec::new())),
            Some("field `public.turns`: no target turn"),
        ),
        (
            with("/public", serde_json::json!({})),
            Some("field `public`: no task of a study"),
        ),
    ];
    let file = folder.path().join("bad.jsonl");
    let text: String = rows.iter().map(|(row, _)| format!("{row}\n")).collect();
    fs::write(&file, text).unwrap();
    let shown = file.display().to_string();
    let checked = data(["check", &shown]);
    assert_eq!(checked.status.code(), Some(1));
    let said = stderr(&checked).replace(&shown, "FILE");
    for (index, (_, expected)) in rows.iter().enumerate() {
        let place = format!("FILE, line {}, ", index + 1);
        match expected {
            Some(expected) => assert!(said.contains(&format!("{place}{expected}")), "{said}"),
            None => assert!(!said.contains(&place), "{said}"),
        }
    }
    assert!(said.ends_with("etude: 8 rows are bad\n"), "{said}");
}

#[test]
fn rows_of_a_step_are_exported_for_others() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("batch").display().to_string();
    let run = uninterrupted().display().to_string();
    let export = |more: &[&str]| {
        let arguments = ["export-batch", &run, "--out", &out];
        data(arguments.iter().chain(more).copied())
    };
    let told = told(&export(&[
        "--step",
        "2",
        "--rows-divisible-by",
        "5",
        "--json",
    ]));
    let rows = told["rows"].as_u64().unwrap();
    let padding = told["padding_rows"].as_u64().unwrap();
    assert!(rows > 0 && (rows + padding).is_multiple_of(5), "{told}");
    assert_eq!(told["roles"], serde_json::json!(["critic"]));
    let side: Value =
        serde_json::from_slice(&fs::read(Path::new(&out).join("batch.json")).unwrap()).unwrap();
    let keys = side["non_tensors"]["row_key"].as_array().unwrap();
    assert_eq!(keys.len() as u64, rows + padding);
    assert_eq!(
        keys.iter().filter(|key| key.is_null()).count() as u64,
        padding
    );
    let events = side["meta_info"]["step_meta"].as_array().unwrap();
    // The reviser's calls are events too, without rows.
    assert!(events.iter().any(|event| event["agent_role"] == "reviser"));
    assert_eq!(events.len() as u64, told["events"].as_u64().unwrap());
    let tensors = fs::read(Path::new(&out).join("batch.safetensors")).unwrap();
    let length = u64::from_le_bytes(tensors[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&tensors[8..8 + length]).unwrap();
    assert_eq!(header["prompts"]["dtype"], "I64");
    assert_eq!(header["input_ids"]["shape"], told["shape"]);

    let nothing = export(&["--step", "2", "--rows-divisible-by", "0"]);
    assert_eq!(nothing.status.code(), Some(2));
    let missing = export(&["--step", "9999"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("step 9999 is not in the run, which has "));
    let other = export(&["--step", "2", "--policy", "answer"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(stderr(&other).contains("the run trains no policy `answer`, but critic"));
}
