//! Datasets of issues to tasks, and predictions to verdicts, by the binary.

use std::{
    fs,
    os::unix::fs::{MetadataExt, chown, symlink},
    path::Path,
};

use serde_json::{Value, json};

use crate::etude::{assert_says, etude};

const AREA: &str = "def area(width, height):\n    return width + height\n";
const TESTS: &str = "import unittest\n\nfrom shapes import area\n\n\nclass AreaTest(unittest.TestCase):\n    def test_square(self):\n        self.assertEqual(area(2, 2), 4)\n\n    def test_area(self):\n        self.assertEqual(area(2, 3), 6)\n";

fn patch(expression: &str) -> String {
    format!(
        "--- a/shapes.py\n+++ b/shapes.py\n@@ -1,2 +1,2 @@\n def area(width, height):\n-    return width + height\n+    {expression}\n"
    )
}

/// A task in a folder whose tests are not in it.
fn task(id: &str, folder: &Path) -> Value {
    json!({
        "id": format!("own/test/{id}"),
        "public": {"repo": "shapes", "issue": {"id": id, "title": "area adds", "body": ""}, "framework": "unittest"},
        "place": {"folder": folder},
        "checks": {"fail_to_pass": ["tests.test_shapes.AreaTest.test_area"], "pass_to_pass": ["tests.test_shapes.AreaTest.test_square"]},
        "gold": {"patch": patch("return width * height"), "test_files": {"tests/__init__.py": "", "tests/test_shapes.py": TESTS}}
    })
}

fn write_lines(path: &Path, rows: &[Value]) {
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    fs::write(path, lines).unwrap();
}

#[test]
fn predictions_for_tasks_in_folders_are_graded() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    fs::create_dir(at("shapes")).unwrap();
    fs::write(at("shapes/shapes.py"), AREA).unwrap();
    let tasks = ["right", "wrong", "empty", "misfit", "forged", "left"];
    write_lines(&at("tasks.jsonl"), &tasks.map(|id| task(id, &at("shapes"))));
    let prediction = |id: &str, patch: Option<String>| json!({"instance_id": id, "model_name_or_path": "a/model", "model_patch": patch});
    let forged = "--- /dev/null\n+++ b/tests/test_shapes.py\n@@ -0,0 +1,5 @@\n+import unittest\n+class AreaTest(unittest.TestCase):\n+    def test_area(self): pass\n+    def test_square(self): pass\n+\n";
    write_lines(
        &at("predictions.jsonl"),
        &[
            prediction("right", Some(patch("return height * width"))),
            prediction("wrong", Some(patch("return 6"))),
            prediction("empty", None),
            prediction(
                "misfit",
                Some(patch("return 6").replace("def area", "def volume")),
            ),
            prediction("forged", Some(forged.to_owned())),
        ],
    );
    let grade_again = |predictions: &str, more: &[&str]| {
        let arguments =
            "--tasks tasks.jsonl --run-id r --out made/graded --timeout 60 --json".split(' ');
        etude(
            scratch.path(),
            ["grade", predictions].into_iter().chain(arguments),
        )
        .args(more)
        .current_dir(scratch.path())
        .output()
        .unwrap()
    };
    let grade = |predictions: &str| grade_again(predictions, &[]);
    let output = grade("predictions.jsonl");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("none was found") || said.contains("walls") {
        println!("skipped: {said}");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("misfit: error: the patch does not apply"),
        "{said}"
    );
    let broke = "wrong: unresolved: 1 of 1 pass-to-pass tests broke: tests.test_shapes.AreaTest.test_square";
    assert!(said.contains(broke), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["resolved_ids"], json!(["right"]), "{report}\n{said}");
    assert_eq!(report["unresolved_ids"], json!(["forged", "wrong"]));
    assert_eq!(report["empty_patch_ids"], json!(["empty"]));
    assert_eq!(report["incomplete_ids"], json!(["left"]));
    assert_eq!(report["error_ids"], json!(["misfit"]));
    assert_eq!(report["schema_version"], 2);
    let kept: Value =
        serde_json::from_slice(&fs::read(at("made/graded/a__model.r.json")).unwrap()).unwrap();
    assert_eq!(kept, report);
    let logs = at("made/graded/logs/run_evaluation/r/a__model");
    let one: Value =
        serde_json::from_slice(&fs::read(logs.join("wrong/report.json")).unwrap()).unwrap();
    assert_eq!(one["wrong"]["resolution"], "RESOLVED_NO");
    let tests = &one["wrong"]["tests_status"];
    assert_eq!(
        tests["FAIL_TO_PASS"]["success"],
        json!(["tests.test_shapes.AreaTest.test_area"])
    );
    assert_eq!(
        tests["PASS_TO_PASS"]["failure"],
        json!(["tests.test_shapes.AreaTest.test_square"])
    );
    let log = fs::read_to_string(logs.join("misfit/run_instance.log")).unwrap();
    assert!(log.contains("Patch Apply Failed"), "{log}");
    assert_eq!(
        fs::read_to_string(at("shapes/shapes.py")).unwrap(),
        AREA,
        "the checkout is as it was"
    );

    // From its logs alone the same comes.
    for id in ["right", "wrong", "forged"] {
        fs::remove_file(logs.join(id).join("report.json")).unwrap();
    }
    let output = grade_again("predictions.jsonl", &["--regrade"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let again: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(again, report);
    let log = fs::read_to_string(logs.join("wrong/test_output.txt")).unwrap();
    assert!(
        log.contains("PASSED tests.test_shapes.AreaTest.test_area"),
        "{log}"
    );
    assert!(
        log.contains("FAILED tests.test_shapes.AreaTest.test_square"),
        "{log}"
    );
    let again: Value =
        serde_json::from_slice(&fs::read(logs.join("wrong/report.json")).unwrap()).unwrap();
    assert_eq!(again, one);

    let gold = grade("gold");
    let report: Value = serde_json::from_slice(&gold.stdout).unwrap();
    assert_eq!(report["resolved_instances"], 6, "{report}");
    assert_eq!(gold.status.code(), Some(0));

    // Sessions have a folder of the user's own, and one that is not is refused.
    let made = fs::read_dir(scratch.path()).unwrap();
    let mut made = made.map(|entry| entry.unwrap().path());
    let is_own = |path: &std::path::PathBuf| path.to_string_lossy().contains("etude-sessions-");
    let own = made.find(is_own).unwrap();
    assert_eq!(fs::metadata(&own).unwrap().mode() & 0o777, 0o700);
    fs::remove_dir_all(&own).unwrap();
    symlink(at("shapes"), &own).unwrap();
    assert_says(
        &grade("gold"),
        2,
        &["etude-sessions-", "is no folder", "TMPDIR"],
    );
    fs::remove_file(&own).unwrap();
    fs::create_dir(&own).unwrap();
    // Where these tests may give it to somebody else.
    if chown(&own, Some(12_345), None).is_ok() {
        assert_says(&grade("gold"), 2, &["belongs to user 12345", "TMPDIR"]);
    }
}

#[test]
fn logs_of_swe_bench_are_graded_again_without_a_container() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    let row = json!({
        "instance_id": "a__b-1", "repo": "pytest-dev/pytest", "base_commit": "c", "problem_statement": "it fails",
        "patch": "p", "test_patch": "", "FAIL_TO_PASS": "[\"t.py::a\", \"t.py::c\"]", "PASS_TO_PASS": "[\"t.py::b\"]", "version": "1"
    });
    write_lines(&at("rows.jsonl"), &[row]);
    let logs = at("logs/run_evaluation/run/gold/a__b-1");
    fs::create_dir_all(&logs).unwrap();
    let log = ">>>>> Start Test Output\nPASSED t.py::a\nPASSED t.py::c\nSKIPPED t.py::b\n>>>>> End Test Output\n";
    fs::write(logs.join("test_output.txt"), log).unwrap();
    let output = etude(
        scratch.path(),
        [
            "grade",
            "gold",
            "--tasks",
            "rows.jsonl",
            "--format",
            "swe-bench",
            "--regrade",
            "--json",
        ],
    )
    .current_dir(scratch.path())
    .output()
    .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["resolved_ids"], json!(["a__b-1"]));
    let one = fs::read_to_string(logs.join("report.json")).unwrap();
    assert!(one.contains("\"patch_is_None\": false"), "{one}");
    // What is not resolved says why where it is seen.
    for (log, why) in [
        (
            ">>>>> Start Test Output\nPASSED t.py::a\nFAILED t.py::c\nPASSED t.py::b\n>>>>> End Test Output\n",
            "unresolved (partial): 1 of 2 fail-to-pass tests did not pass: t.py::c",
        ),
        (
            ">>>>> Start Test Output\nFAILED t.py::a\nFAILED t.py::b\n>>>>> End Test Output\n",
            "unresolved: 2 of 2 fail-to-pass tests did not pass, first t.py::a; 1 of 1 pass-to-pass tests broke: t.py::b",
        ),
        (
            "PASSED t.py::a\n",
            "unresolved: the log lacks `>>>>> Start Test Output`",
        ),
        (
            ">>>>> Tests Timed Out\n",
            "unresolved: the log says `>>>>> Tests Timed Out`",
        ),
        (
            "curl: Could not resolve host: a\n",
            "unresolved; the environment may have failed: the log lacks `>>>>> Start Test Output` or \
             `>>>>> End Test Output` (network_unreachable)",
        ),
    ] {
        fs::write(logs.join("test_output.txt"), log).unwrap();
        let arguments = "grade gold --tasks rows.jsonl --format swe-bench --regrade --json";
        let output = etude(scratch.path(), arguments.split(' '))
            .current_dir(scratch.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(&format!("a__b-1: {why}")), "{said}");
        let one = fs::read_to_string(logs.join("report.json")).unwrap();
        let is_partial = one.contains("\"resolution\": \"RESOLVED_PARTIAL\"");
        assert_eq!(is_partial, why.contains("(partial)"), "{one}");
    }
}

/// Logs as SWE-smith's own harness leaves them: of the files of the tests that had to begin to pass.
#[test]
fn logs_of_swe_smith_are_graded_again() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    let row = |id: &str, path: &str, fails: &str, passes: &[&str]| {
        json!({
            "instance_id": id, "repo": "swesmith/x", "image_name": "swebench/swesmith.x86_64.x", "problem_statement": "it fails",
            "patch": format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n"), "FAIL_TO_PASS": [fails], "PASS_TO_PASS": passes
        })
    };
    let web = "test_a (web.test.ATest.test_a)";
    write_lines(
        &at("rows.jsonl"),
        &[
            row(
                "x__x.1.a",
                "x.py",
                "tests/t.py::a",
                &["tests/t.py::b", "tests/far.py::c"],
            ),
            row("x__x.1.b", "x.py", "tests/t.py::a", &["tests/t.py::b"]),
            row("tornadoweb__tornado.1.a", "tornado/web.py", web, &[]),
            row("x__y.1.a", "y.go", "TestA", &["TestB/sub"]),
        ],
    );
    for (id, tests) in [
        (
            "x__x.1.a",
            "tests/t.py::a PASSED [ 50%]\ntests/t.py::b PASSED [100%]",
        ),
        ("x__x.1.b", "tests/t.py::a PASSED [ 50%]"),
        (
            "tornadoweb__tornado.1.a",
            "test_a (web.test.ATest.test_a) ... ok",
        ),
        (
            "x__y.1.a",
            "--- PASS: TestA (0.00s)\n    --- PASS: TestB/sub (0.00s)",
        ),
    ] {
        let logs = at("logs/run_evaluation/run/gold").join(id);
        fs::create_dir_all(&logs).unwrap();
        let log = format!("+ : '>>>>> Start Test Output'\n{tests}\n+ : '>>>>> End Test Output'\n");
        fs::write(logs.join("test_output.txt"), log).unwrap();
    }
    let arguments = "grade gold --tasks rows.jsonl --format r2e-gym --regrade --json";
    let output = etude(scratch.path(), arguments.split(' '))
        .current_dir(scratch.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let resolved = ["tornadoweb__tornado.1.a", "x__x.1.a", "x__y.1.a"];
    assert_eq!(report["resolved_ids"], json!(resolved));
    assert_eq!(report["unresolved_ids"], json!(["x__x.1.b"]));
}

/// A folder of Harbor's is read, and where no engine of containers answers it says so and what to do.
#[test]
fn harbors_tasks_are_checked() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    for (path, text) in [
        ("tasks/one/task.toml", "[task]\nname = \"made/one\"\n"),
        ("tasks/one/instruction.md", "Make it.\n"),
        (
            "tasks/one/environment/Dockerfile",
            "FROM busybox\nWORKDIR /app\n",
        ),
        (
            "tasks/one/tests/test.sh",
            "echo 1 > /logs/verifier/reward.txt\n",
        ),
        ("tasks/one/solution/solve.sh", "true\n"),
        ("tasks/two/task.toml", "[task]\nname = \"made/two\"\n"),
        ("tasks/zero/instruction.md", "Make it.\n"),
    ] {
        fs::create_dir_all(at(path).parent().unwrap()).unwrap();
        fs::write(at(path), text).unwrap();
    }
    let check = |arguments: &str| {
        let output = etude(scratch.path(), arguments.split(' '))
            .current_dir(scratch.path())
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let (code, _, said) = check("data check tasks");
    assert_eq!(code, Some(1), "{said}");
    for lacks in [
        "tasks/two, row 2, the row: no task of Harbor's, for it lacks instruction.md and tests/test.sh",
        "tasks/zero, row 3, the row: no task of Harbor's, for it lacks task.toml and tests/test.sh",
    ] {
        assert!(said.contains(lacks), "{said}");
    }
    // What its image is built from is found from any folder.
    let (code, _, said) = check("data prepare repair --format harbor tasks/one --out made");
    assert_eq!(code, Some(0), "{said}");
    let made: Value = serde_json::from_slice(&fs::read(at("made/test.jsonl")).unwrap()).unwrap();
    let environment = made["facts"]["metadata"]["environment"].as_str().unwrap();
    assert!(Path::new(environment).is_absolute(), "{environment}");
    assert!(Path::new(environment).join("Dockerfile").is_file());
    let (code, told, said) = check("data check tasks/one --no-run --json");
    assert_eq!(code, Some(0), "{said}");
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["files"][0]["tasks"], 1);
    assert_eq!(told["files"][0]["counts"]["tasks of Harbor"], 1);
    let (code, _, said) = check("data check tasks/one --engine unix:///nowhere/engine.sock");
    assert_ne!(code, Some(0), "{said}");
    assert!(said.contains("/nowhere/engine.sock"), "{said}");
}

#[test]
fn datasets_become_tasks_rows_and_a_registered_file() {
    let scratch = tempfile::tempdir().unwrap();
    let row = |id: &str| {
        json!({
            "instance_id": id, "repo": "sympy/sympy", "base_commit": "c", "problem_statement": "title\nbody",
            "patch": "p", "test_patch": "", "FAIL_TO_PASS": ["a"], "PASS_TO_PASS": "[]", "version": "1"
        })
    };
    let file = scratch.path().join("rows.jsonl");
    let run = |arguments: &[&str]| {
        let output = etude(scratch.path(), arguments)
            .current_dir(scratch.path())
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let prepare = [
        "data",
        "prepare",
        "repair",
        "--format",
        "swe-bench",
        "rows.jsonl",
        "--out",
        "made",
        "--graph-planner",
        "--json",
    ];
    let mut bad = row("b__c-2");
    bad["FAIL_TO_PASS"] = json!("no list");
    write_lines(&file, &[row("b__c-1"), bad]);
    let (code, _, said) = run(&prepare);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("rows.jsonl, line 2, field `FAIL_TO_PASS`"),
        "{said}"
    );
    assert!(!scratch.path().join("made").exists());
    assert!(said.contains("1 row was rejected"), "{said}");
    // What the rows are instead, or that there are none.
    for (rows, says) in [
        (
            &[json!({"question": "a", "answer": "b"})][..],
            "a row of swe-bench has instance_id, repo, base_commit, FAIL_TO_PASS; the first row has question, answer",
        ),
        (
            &[json!({"repo_name": "a", "docker_image": "b", "expected_output_json": "{}"})],
            "the columns are those of --format r2e-gym",
        ),
        (&[], "rows.jsonl"),
    ] {
        write_lines(&file, rows);
        let (code, _, said) = run(&prepare);
        assert_eq!(code, Some(2));
        assert!(said.contains(says), "{said}");
    }

    write_lines(&file, &[row("b__c-1"), row("b__c-2")]);
    let (code, out, said) = run(&["data", "check", "rows.jsonl"]);
    assert_eq!(code, Some(1));
    assert!(out.contains("2 rows of swe-bench, 2 bad rows"), "{out}");
    let command = "etude data prepare repair --format swe-bench rows.jsonl --out DIR";
    assert!(said.contains(command), "{said}");
    let (code, out, said) = run(&prepare);
    assert_eq!(code, Some(0), "{said}");
    let prepared: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(prepared["tasks"], 2);
    let images = fs::read_to_string(scratch.path().join("made/docker_images_test.txt")).unwrap();
    assert_eq!(
        images,
        "sweb.eval.x86_64.b__c-1:latest\nsweb.eval.x86_64.b__c-2:latest\n"
    );
    assert!(
        scratch
            .path()
            .join("made/graph_planner/instances/b__c-2.json")
            .exists()
    );

    let (code, out, said) = run(&[
        "data",
        "prepare",
        "repair",
        "--format",
        "graph-planner",
        "made/graph_planner/test.jsonl",
        "--out",
        "again",
        "--json",
    ]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["tasks"], 2);

    let (code, out, said) = run(&[
        "data",
        "register",
        "made/test.jsonl",
        "--split",
        "test",
        "--out",
        "registered",
        "--json",
    ]);
    assert_eq!(code, Some(0), "{said}");
    let registered: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(registered["rows"], 2);
    let folder = scratch.path().join("registered/graph_planner_repoenv");
    assert!(folder.join("val_verl.parquet").exists());
    assert_eq!(fs::read_dir(folder.join("instances")).unwrap().count(), 2);
}

#[test]
fn patches_of_a_file_are_read_and_what_is_wrong_is_said() {
    let scratch = tempfile::tempdir().unwrap();
    let validate = || {
        etude(
            scratch.path(),
            ["validate", "patches", "--file", "patches.jsonl", "--json"],
        )
        .current_dir(scratch.path())
        .output()
        .unwrap()
    };
    let edits = json!({"edits": [{"path": "a.py", "start": 1, "end": 1, "new_text": "x\n"}]});
    let good = [
        json!({"instance_id": "a", "model_patch": patch("return 1")}),
        json!({"patch": edits}),
        edits,
        json!({"instance_id": "b", "model_patch": null}),
    ];
    write_lines(&scratch.path().join("patches.jsonl"), &good);
    let output = validate();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&said["valid"], &said["empty"]), (&json!(3), &json!(1)));
    let bad = [
        json!({"instance_id": "c", "model_patch": "I would change line 3."}),
        json!({"instance_id": "d", "patch": {"edits": [{"path": "../a.py", "start": 1, "end": 1, "new_text": "x\n"}]}}),
    ];
    let edits = |ranges: &[(u32, u32)]| -> Value {
        let edits = ranges.iter();
        let edits = edits.map(
            |(start, end)| json!({"path": "a.py", "start": start, "end": end, "new_text": "x\n"}),
        );
        json!({"id": "e", "edits": edits.collect::<Vec<_>>()})
    };
    let lines = [
        bad[0].to_string(),
        bad[1].to_string(),
        "no JSON".to_owned(),
        json!({"id": "f"}).to_string(),
        edits(&[(0, 1)]).to_string(),
        edits(&[(3, 1)]).to_string(),
        edits(&[(1, 2), (7, 6), (2, 3)]).to_string(),
        json!({"patch": patch("return 1").replace("-1,2 +1,2", "-1,3 +1,9")}).to_string(),
        // What inserts, twice at one place.
        edits(&[(3, 2), (3, 2), (3, 3)]).to_string(),
    ];
    fs::write(scratch.path().join("patches.jsonl"), lines.join("\n")).unwrap();
    let output = validate();
    assert_eq!(output.status.code(), Some(1));
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&said["patches"], &said["valid"]), (&json!(9), &json!(1)));
    let invalid = said["invalid"].as_array().unwrap();
    let expected = [
        ("line 1", "invalid-unified-diff", "there is no change"),
        ("line 2", "path-missing", "../a.py"),
        ("line 3", "invalid-row", "not JSON"),
        ("line 4", "invalid-row", "`model_patch`: missing"),
        ("line 5", "range-invalid", "edit 1: lines count from 1"),
        ("line 6", "range-invalid", "the end 1 is before the start 3"),
        (
            "line 7",
            "range-invalid",
            "hunks 1 and 3 change the same lines",
        ),
        (
            "line 8",
            "range-invalid",
            "it has 2 lines of the old file and 2 of the new one",
        ),
    ];
    assert_eq!(invalid.len(), expected.len(), "{said}");
    for (found, (place, code, message)) in invalid.iter().zip(expected) {
        assert_eq!(
            (&found["place"], &found["code"]),
            (&json!(place), &json!(code))
        );
        assert!(found["message"].to_string().contains(message), "{found}");
    }
    assert_eq!(invalid[0]["id"], "c");
}

/// SWE-bench's own way, with a jail in a container's place: the patch is tried with one tool after the other,
/// the row's script runs, and its log is graded.
#[test]
fn a_script_and_its_log_decide_for_rows_of_swe_bench() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    fs::create_dir(at("shapes")).unwrap();
    let source = format!("# one\n# two\n# three\n{AREA}# four\n");
    fs::write(at("shapes/shapes.py"), &source).unwrap();
    fs::write(at("shapes/test_shapes.py"), TESTS).unwrap();
    let git = "cd shapes && git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm one";
    let made = std::process::Command::new("sh")
        .args(["-c", git])
        .current_dir(scratch.path())
        .status();
    if !made.is_ok_and(|status| status.success()) {
        println!("skipped: git is not installed");
        return;
    }
    let script = "#!/bin/bash\nset -uxo pipefail\ncd /testbed\n: '>>>>> Start Test Output'\npython3 -B -m unittest -v test_shapes\n: '>>>>> End Test Output'\n";
    let mut row = task("a", &at("shapes"));
    row["public"]["issue"]["id"] = json!("shapes__shapes-1");
    row["public"]["base_commit"] = json!("HEAD");
    row["checks"] = json!({"fail_to_pass": ["test_area (test_shapes.AreaTest.test_area)"], "pass_to_pass": ["test_square (test_shapes.AreaTest.test_square)"]});
    row["gold"] = json!({"patch": "", "grader": {"swe_bench": {"eval_script": script, "log_parser": "parse_log_django"}}});
    write_lines(&at("tasks.jsonl"), &[row]);
    let change = |context: &str, expression: &str| {
        format!(
            "diff --git a/shapes.py b/shapes.py\n--- a/shapes.py\n+++ b/shapes.py\n@@ -1,6 +1,6 @@\n {context}\n # two\n # three\n def area(width, height):\n-    return width + height\n+    return {expression}\n # four\n"
        )
    };
    let grade = |run: &str, patch: String| {
        let row = json!({"instance_id": "shapes__shapes-1", "model_name_or_path": "m", "model_patch": patch});
        write_lines(&at("predictions.jsonl"), &[row]);
        let output = etude(
            scratch.path(),
            [
                "grade",
                "predictions.jsonl",
                "--tasks",
                "tasks.jsonl",
                "--run-id",
                run,
                "--timeout",
                "60",
                "--json",
            ],
        )
        .current_dir(scratch.path())
        .output()
        .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let report = serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default();
        let folder = at("logs/run_evaluation")
            .join(run)
            .join("m/shapes__shapes-1");
        let log = fs::read_to_string(folder.join("run_instance.log")).unwrap_or_default();
        let tests = fs::read_to_string(folder.join("test_output.txt")).unwrap_or_default();
        (report, format!("{said}\n{log}\n{tests}"))
    };
    let (report, said) = grade("right", change("# one", "width * height"));
    if said.contains("walls") || said.contains("none was found") {
        println!("skipped: {said}");
        return;
    }
    assert_eq!(report["resolved_instances"], 1, "{said}");
    assert!(said.contains(">>>>> Test Exit Code: 0"), "{said}");
    let (report, said) = grade("wrong", change("# one", "6"));
    assert_eq!(report["unresolved_instances"], 1, "{said}");
    // Its context is not the file's: only the last of the tools takes it.
    let (report, said) = grade("fuzzy", change("# another line", "width * height"));
    assert!(
        said.contains("failed to apply the patch with: git apply --verbose --reject"),
        "{said}"
    );
    assert_eq!(report["resolved_instances"], 1, "{said}");
    // It prints what a right program would, and ends the run before the tests say anything.
    let forged = change("# one", "width + height").replace(
        " # one\n",
        "+import os, sys\n+for name in ('test_area', 'test_square'):\n+    print(name + ' (test_shapes.AreaTest.' + name + ') ... ok', flush=True)\n+os._exit(3)\n # one\n",
    );
    let (report, said) = grade(
        "forged",
        forged.replace("@@ -1,6 +1,6 @@", "@@ -1,6 +1,10 @@"),
    );
    assert_eq!(report["unresolved_instances"], 1, "{said}");
}
