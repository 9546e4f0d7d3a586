//! Problems of datasets, from their files to rows that train: `etude data prepare`, `check` and `pair`.

use std::{fs, path::Path, process::Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::etude::{assert_success, etude, package, stderr};

/// Rows of a dataset that the study is tested with.
fn rows(case: &str) -> String {
    let cases = package("../../studies/critique/tests/cases/data");
    cases.join(case).join("rows.jsonl").display().to_string()
}

fn data(folder: &Path, arguments: &[&str]) -> Output {
    let all = ["data"].iter().chain(arguments);
    etude(&std::env::temp_dir(), all)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn told(output: &Output) -> Value {
    assert_success(output);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn dropped(told: &Value, step: &str) -> Value {
    let steps = told["steps"].as_array().unwrap();
    let found = steps.iter().find(|found| found["step"] == step);
    found.unwrap_or(&Value::Null).clone()
}

#[test]
fn taco_is_written_three_times_and_every_step_is_counted() {
    let folder = TempDir::new().unwrap();
    let (io, function) = (rows("001_taco_stdio"), rows("002_taco_function"));
    let arguments = ["prepare", "taco", &io, &function, "--to", "out", "--json"];
    let found = told(&data(folder.path(), &arguments));
    assert_eq!(found["rows_in"], 9);
    assert_eq!(found["rows_out"], 6);
    assert_eq!(dropped(&found, "no tests")["dropped"], 3);
    assert_eq!(
        dropped(&found, "too few tokens")["not_applied"],
        "no tokenizer given"
    );
    let out = folder.path().join("out");
    let manifest: Value =
        serde_json::from_slice(&fs::read(out.join("taco_train.manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest, found);
    let all = lines(&out.join("taco_train.jsonl"));
    let asserts = lines(&out.join("taco_train_assert.jsonl"));
    let io = lines(&out.join("taco_train_io.jsonl"));
    assert_eq!((all.len(), asserts.len(), io.len()), (6, 5, 1));
    assert!(asserts.iter().all(|row| row["fn_name"].is_string()));
    assert!(io.iter().all(|row| row["fn_name"].is_null()));
    // Names count the rows of all files.
    let names: Vec<&Value> = all.iter().map(|row| &row["task_id"]).collect();
    assert_eq!(
        names,
        [0, 4, 5, 6, 7, 8]
            .map(|n| json!(n))
            .iter()
            .collect::<Vec<_>>()
    );
    // What was prepared may be held out, and nothing is left.
    let again = [
        "prepare",
        "taco",
        &function,
        "--out",
        "x",
        "--held-out",
        "out/taco_train.jsonl",
    ];
    let output = data(folder.path(), &again);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("no row is left"),
        "{}",
        stderr(&output)
    );
    assert!(
        fs::read_dir(folder.path().join("x"))
            .unwrap()
            .next()
            .is_none()
    );
}

#[test]
fn problems_are_checked_by_their_own_programs_and_paired() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let source = rows("004_codecontests");
    told(&data(
        path,
        &["prepare", "codecontests", &source, "--out", "p", "--json"],
    ));
    let problems = path.join("p/codecontests_test.jsonl");
    let checked = told(&data(
        path,
        &["check", "p/codecontests_test.jsonl", "--json"],
    ));
    let solved = &checked["files"][0]["solutions"];
    assert_eq!(
        (&solved["solved"], &solved["without_solution"]),
        (&json!(1), &json!(1))
    );
    // A problem whose tests are wrong is found, by name and place, and left out.
    let text = fs::read_to_string(&problems).unwrap();
    let (first, second) = text.split_once('\n').unwrap();
    let mut wrong: Value = serde_json::from_str(first).unwrap();
    wrong["task_id"] = json!("wrong");
    wrong["all_uts"] = json!(r#"[{"input": {"stdin": "1\n"}, "output": {"stdout": "5\n"}}]"#);
    fs::write(
        path.join("three.jsonl"),
        format!("{first}\n{wrong}\n{second}"),
    )
    .unwrap();
    let output = data(path, &["check", "three.jsonl"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("three.jsonl, line 2, problem `wrong`: its own solution does not pass: wrong (0 of 1 tests)"), "{said}");
    let kept = told(&data(
        path,
        &["check", "three.jsonl", "--to", "good.jsonl", "--json"],
    ));
    assert_eq!(kept["files"][0]["solutions"]["kept"]["rows"], 2);
    assert_eq!(fs::read_to_string(path.join("good.jsonl")).unwrap(), text);
    let strict = [
        "check",
        "three.jsonl",
        "--to",
        "solved.jsonl",
        "--require-solution",
        "--json",
    ];
    told(&data(path, &strict));
    assert_eq!(lines(&path.join("solved.jsonl")).len(), 1);

    let pair = ["pair", "good.jsonl", "--own", "--out", "pairs", "--json"];
    let paired = told(&data(path, &pair));
    assert_eq!(
        (&paired["pairs"], &paired["passing"], &paired["judged"]),
        (&json!(4), &json!(2), &json!(4))
    );
    let checked = told(&data(path, &["check", "pairs/rl.parquet", "--json"]));
    assert_eq!(checked["files"][0]["counts"]["right programs"], 2);
    assert_eq!(checked["files"][0]["counts"]["wrong programs"], 2);
}

#[test]
fn forests_become_pairs_and_lessons() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let function = rows("002_taco_function");
    told(&data(
        path,
        &["prepare", "taco", &function, "--out", "p", "--json"],
    ));
    let node = |hash: &str, kind: &str, prev: &str, solution: &str, more: Value| {
        let mut node = json!({"task_id": 0, "hash": hash, "prev_hash": prev, "node_type": kind, "solution": solution});
        node.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        node.to_string()
    };
    let right = "```python\ndef add(a, b):\n    return a + b\n```";
    let wrong = "```python\ndef add(a, b):\n    return a - b\n```";
    let critique = |text: &str| json!({"critique": format!("{text}\nOverall judgment: Incorrect"), "success": 1});
    let forest = [
        node("r", "root", "", "", json!({})),
        node("a", "generation", "r", wrong, json!({})),
        node("b", "generation", "r", right, json!({"success": 1.0})),
        node(
            "c",
            "critique_revision",
            "a",
            right,
            critique("Add instead."),
        ),
        node(
            "d",
            "critique_revision",
            "a",
            right,
            critique("As the hint says, add."),
        ),
        node("e", "critique_revision", "b", wrong, critique("Subtract.")),
    ];
    fs::write(path.join("forest.jsonl"), forest.join("\n")).unwrap();
    let arguments = [
        "pair",
        "p/taco_train.jsonl",
        "--solutions",
        "forest.jsonl",
        "--generator",
        "small",
        "--out",
        "o",
        "--json",
    ];
    let paired = told(&data(path, &arguments));
    assert_eq!(
        (&paired["pairs"], &paired["passing"], &paired["judged"]),
        (&json!(2), &json!(1), &json!(1))
    );
    assert_eq!(
        (&paired["critiques"], &paired["lessons"]),
        (&json!(3), &json!(1))
    );
    assert_eq!(
        dropped(&paired, "critique speaks of the hint")["dropped"],
        1
    );
    assert_eq!(dropped(&paired, "problem seen before")["dropped"], 1);
    let [lesson] = &lines(&path.join("o/sft.jsonl"))[..] else {
        unreachable!("one problem has one row");
    };
    assert_eq!(lesson["judgment"], "Incorrect");
    assert_eq!(
        (&lesson["initial_success"], &lesson["success"]),
        (&json!(false), &json!(true))
    );
    let asked = lesson["critic_instruction"].as_str().unwrap();
    assert!(
        asked.contains("return a - b") && asked.contains("sum of a and b"),
        "{asked}"
    );
    // Nodes of evaluations name the dataset too.
    let full = forest
        .join("\n")
        .replace("\"task_id\":0", "\"task_id\":\"taco/0\"");
    fs::write(path.join("full.jsonl"), full).unwrap();
    let of_full = [
        "pair",
        "p/taco_train.jsonl",
        "--solutions",
        "full.jsonl",
        "--generator",
        "small",
    ];
    let again = told(&data(
        path,
        &[&of_full[..], &["--out", "o2", "--json"]].concat(),
    ));
    assert_eq!((&again["pairs"], &again["lessons"]), (&json!(2), &json!(1)));
    assert_eq!(lines(&path.join("o2/sft.jsonl")).len(), 1);
    // Rows of an earlier command do not stay, where this one has none.
    let firsts = format!("{}\n{}\n", forest[1], forest[2]);
    fs::write(path.join("firsts.jsonl"), firsts).unwrap();
    let of_firsts = [
        "pair",
        "p/taco_train.jsonl",
        "--solutions",
        "firsts.jsonl",
        "--out",
        "o",
    ];
    assert_success(&data(path, &of_firsts));
    assert!(path.join("o/rl.parquet").exists() && !path.join("o/sft.jsonl").exists());
    // What chooses critiques is a mistake without them, and a failure where it leaves none.
    let output = data(path, &[&of_firsts[..], &["--balance"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("--balance chooses critiques"),
        "{}",
        stderr(&output)
    );
    let failing =
        forest[..3].join("\n") + "\n" + &forest[5].replace("\"success\":1", "\"success\":0");
    fs::write(path.join("failing.jsonl"), failing).unwrap();
    let of_failing = [
        "pair",
        "p/taco_train.jsonl",
        "--solutions",
        "failing.jsonl",
        "--out",
        "o3",
    ];
    let output = data(path, &[&of_failing[..], &["--only-successful"]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("of 1 critique none is left"),
        "{}",
        stderr(&output)
    );
    for (change, field, message) in [
        (
            ("\"task_id\":0", "\"task_id\":99"),
            "task_id",
            "no problem file has a problem `99`",
        ),
        (
            ("\"prev_hash\":\"b\"", "\"prev_hash\":\"z\""),
            "prev_hash",
            "no program has the hash `z`",
        ),
    ] {
        let bad = forest.join("\n").replace(change.0, change.1);
        fs::write(path.join("bad.jsonl"), bad).unwrap();
        let bad = [
            "pair",
            "p/taco_train.jsonl",
            "--solutions",
            "bad.jsonl",
            "--out",
            "bad",
        ];
        let output = data(path, &bad);
        assert_eq!(output.status.code(), Some(2));
        let said = stderr(&output);
        assert!(
            said.contains("bad.jsonl, line") && said.contains(message),
            "{said}"
        );
        assert!(said.contains(&format!("field `{field}`")), "{said}");
    }
}

#[test]
fn several_problem_files_are_paired_and_supervised_problems_can_be_kept_out() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let (contests, taco) = (rows("004_codecontests"), rows("002_taco_function"));
    told(&data(
        path,
        &["prepare", "codecontests", &contests, "--out", "p", "--json"],
    ));
    told(&data(
        path,
        &["prepare", "taco", &taco, "--out", "p", "--json"],
    ));
    let files = ["p/codecontests_test.jsonl", "p/taco_train.jsonl"];
    let pair = |out: &str, more: &[&str]| {
        let fixed = ["pair", files[0], files[1], "--own", "--json", "--out", out];
        data(path, &[&fixed, more].concat())
    };
    let ids = |out: &str| -> Vec<String> {
        let rows: Vec<Value> = dataset::read(&path.join(out).join("rl.parquet")).unwrap();
        assert!(rows.iter().all(|row| row["data_source"].is_string()));
        let name = |row: &Value| row["hash"].as_str().unwrap().to_owned();
        let source = |row: &Value| row["data_source"].as_str().unwrap().to_owned();
        let id = |row: &Value| row["task_id"].to_string().replace('"', "");
        rows.iter()
            .map(|row| format!("{}/{}/{}", source(row), id(row), name(row).len()))
            .collect()
    };
    assert_eq!(told(&pair("all", &[]))["pairs"], 8);
    let all = ids("all");
    let taco_of_all = all.iter().filter(|id| id.starts_with("taco/")).count();
    assert!((1..8).contains(&taco_of_all), "{all:?}");
    let checked = told(&data(path, &["check", "all/rl.parquet", "--json"]));
    assert_eq!(checked["files"][0]["counts"]["right programs"], 6);

    // A problem with supervised rows, and one of its name in the other dataset.
    let supervised =
        json!({"critic_instruction": "?", "critique": "!", "task_id": 0, "data_source": "taco"});
    fs::write(path.join("sft.jsonl"), format!("{supervised}\n")).unwrap();
    let made = told(&pair("kept", &["--leave-out", "sft.jsonl"]));
    let left = made["pairs_left_out"].as_u64().unwrap();
    assert!(left > 0);
    let kept = ids("kept");
    assert_eq!(kept.len() as u64, 8 - left);
    assert!(!kept.iter().any(|id| id.starts_with("taco/0/")));

    // Every problem is on one side, whatever the file it comes in.
    let half = told(&pair("half", &["--sft-share", "0.5", "--seed", "3"]));
    let again = told(&pair("again", &["--sft-share", "0.5", "--seed", "3"]));
    assert_eq!(half["pairs"], again["pairs"]);
    assert_eq!(
        half["pairs"].as_u64().unwrap() + half["pairs_left_out"].as_u64().unwrap(),
        8
    );
    assert_eq!(told(&pair("none", &["--sft-share", "1.0"]))["pairs"], 0);

    // The same name in two files needs a source, and two files of one name have no ids.
    fs::copy(path.join(files[1]), path.join("p/other.jsonl")).unwrap();
    let row = json!({"task_id": 0, "solution": "x = 1"});
    fs::write(path.join("solutions.jsonl"), format!("{row}\n")).unwrap();
    let twice = [
        "pair",
        files[1],
        "p/other.jsonl",
        "--solutions",
        "solutions.jsonl",
        "--out",
        "x",
    ];
    let output = data(path, &twice);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("`0` is a problem of taco_train.jsonl and of other.jsonl"),
        "{}",
        stderr(&output)
    );
    let output = data(path, &["pair", files[1], files[1], "--own", "--out", "x"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("two of the files"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn bad_rows_are_named_and_nothing_is_written() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    for (dataset, row, field, message) in [
        ("taco", json!({"input_output": "{}"}), "question", "missing"),
        (
            "taco",
            json!({"question": "q", "input_output": "{\"inputs\": [\"1\"], \"outputs\": []}"}),
            "input_output.outputs",
            "0 entries, but `inputs` has 1",
        ),
        (
            "taco",
            json!({"question": "q", "input_output": "{\"inputs\": [1}"}),
            "input_output",
            "in its JSON text",
        ),
        (
            "apps",
            json!({"question": "q", "input_output": {"inputs": ["1"], "outputs": [5]}}),
            "input_output.outputs[0]",
            "a list of lines",
        ),
        (
            "taco",
            json!({"question": "q", "solutions": [1], "input_output": "{\"inputs\": [\"1\"], \"outputs\": [\"1\"]}"}),
            "solutions[0]",
            "expected a string",
        ),
        (
            "codecontests",
            json!({"description": "d", "public_tests": {"input": ["1"], "output": []}}),
            "public_tests.output",
            "0 entries",
        ),
        (
            "codecontests",
            json!({"description": "d", "private_tests": 5}),
            "private_tests",
            "expected {input",
        ),
        (
            "livecodebench",
            json!({"question_content": "q", "public_test_cases": "[{]"}),
            "public_test_cases",
            "is not JSON",
        ),
        (
            "livecodebench",
            json!({"question_content": "q", "private_test_cases": "gASVBQAAAAAAAABdlEsBYS4="}),
            "private_test_cases",
            "is not compressed by zlib",
        ),
        (
            "livecodebench",
            json!({"question_content": "q", "metadata": "{"}),
            "metadata",
            "is not JSON",
        ),
        (
            "livecodebench",
            json!({"question_content": "q", "question_id": 1, "contest_date": "yesterday"}),
            "contest_date",
            "`yesterday` is no date",
        ),
        (
            "taco",
            json!({"question": "q", "input_output": "[1,2]"}),
            "input_output",
            "expected an object",
        ),
        (
            "taco",
            json!({"question": "q", "time_limit": "soon"}),
            "time_limit",
            "`soon` has no number",
        ),
        (
            "taco",
            json!({"question": "q", "time_limit": "-3 seconds"}),
            "time_limit",
            "-3 seconds",
        ),
        (
            "livecodebench",
            json!({"question_content": "q", "public_test_cases": [{"input": "1", "output": "1", "testtype": "functional"}]}),
            "metadata.func_name",
            "missing",
        ),
        (
            "mbppplus",
            json!({"task_id": 1, "test": "assert f()"}),
            "prompt",
            "missing",
        ),
    ] {
        fs::write(path.join("rows.jsonl"), format!("{row}\n")).unwrap();
        let output = data(path, &["prepare", dataset, "rows.jsonl", "--out", "out"]);
        assert_eq!(output.status.code(), Some(2), "{row}");
        let said = stderr(&output);
        assert!(
            said.contains(&format!("rows.jsonl, line 1, field `{field}`")),
            "{said}"
        );
        assert!(said.contains(message), "{said}");
        assert!(fs::read_dir(path.join("out")).unwrap().next().is_none());
    }
    let good = json!({"task_id": 1, "prompt": "p", "test": "assert f()"});
    let bad = json!({"task_id": 1, "prompt": "p", "test": "assert f()"});
    fs::write(path.join("rows.jsonl"), format!("{good}\n{bad}\n")).unwrap();
    let skipping = [
        "prepare",
        "mbppplus",
        "rows.jsonl",
        "--out",
        "out",
        "--skip-rejected",
        "--json",
    ];
    let output = data(path, &skipping);
    let found = told(&output);
    assert_eq!(dropped(&found, "bad rows")["dropped"], 1);
    assert!(stderr(&output).contains("`1` is there twice"));
}

/// What can be known before programs run is told before programs run.
#[test]
fn mistakes_are_told_before_anything_is_judged() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let function = rows("002_taco_function");
    let prepared = ["prepare", "taco", &function, "--out", "p"];
    assert_success(&data(path, &prepared));
    let problems = "p/taco_train.jsonl";
    for (arguments, code, says) in [
        (&["check", problems, "--memory", "1"][..], 2, "--memory"),
        (
            &["check", problems, "--to", "p/taco_train.jsonl/x.jsonl"],
            2,
            "cannot make the folder",
        ),
        (
            &["pair", problems, "--own", "--out", "/proc/z"],
            2,
            "cannot make the folder",
        ),
        (
            &[
                "pair",
                problems,
                "--own",
                "--out",
                "o",
                "--tokenizer",
                "/nosuch",
            ],
            2,
            "/nosuch",
        ),
        (
            &["pair", problems, "--own", "--out", "o", "--max-tokens", "5"],
            2,
            "--tokenizer",
        ),
        (
            &[
                "prepare",
                "taco",
                &function,
                "--out",
                "x",
                "--min-tokens",
                "5",
            ],
            2,
            "--tokenizer",
        ),
    ] {
        let output = data(path, arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
        assert!(!said.contains("judged"), "{arguments:?}: {said}");
    }
    // Folders are made, and no file is left where no problem is.
    let good = ["check", problems, "--to", "new/folder/good.jsonl"];
    let output = data(path, &good);
    assert_success(&output);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("5 problems of critique, 0 bad rows"),
        "{text}"
    );
    let rows = lines(&path.join("new/folder/good.jsonl"));
    let mut without = rows[0].clone();
    without["solutions"] = json!([]);
    fs::write(path.join("without.jsonl"), format!("{without}\n")).unwrap();
    let strict = [
        "check",
        "without.jsonl",
        "--require-solution",
        "--to",
        "none.jsonl",
    ];
    let output = data(path, &strict);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("none of 1 problem is good"),
        "{}",
        stderr(&output)
    );
    assert!(fs::read_dir(path).unwrap().all(|entry| {
        !entry
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with("none")
    }));
    // Tests that no program could pass as it is asked for.
    let mut odd = rows[0].clone();
    odd["prompter_type"] = json!("code_contests");
    fs::write(path.join("odd.jsonl"), format!("{odd}\n")).unwrap();
    let output = data(path, &["check", "odd.jsonl"]);
    assert!(
        stderr(&output).contains("field `prompter_type`"),
        "{}",
        stderr(&output)
    );
    // Rows of datasets are neither problems nor tasks.
    let raw = critique::data::read_tasks(function.as_ref(), 1)
        .unwrap_err()
        .to_string();
    assert!(
        raw.contains("etude data prepare") && raw.contains("etude data pair"),
        "{raw}"
    );
    let problem = critique::data::read_tasks(&path.join(problems), 1)
        .unwrap_err()
        .to_string();
    assert!(problem.contains("etude data pair"), "{problem}");
}
