//! `etude data synthesize`: rows from a model behind an endpoint, before and after a kill, and from one here.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    bad_input::complaint,
    chat_server::ChatServer,
    etude::{assert_success, etude, package, wait_while_running},
};

/// Sums and differences, as a problem file has them.
fn problems(to: &Path, n: usize) {
    let mut lines = String::new();
    for number in 0..n {
        let case = |a: usize, b: usize| serde_json::json!({"input": {"stdin": format!("{a} {b}\n")}, "output": {"stdout": format!("{}\n", a + b + number)}});
        let row = serde_json::json!({
            "task_id": number,
            "problem": format!("Print the sum of two numbers and {number}."),
            "all_uts": serde_json::to_string(&[case(1, 2), case(2, 1), case(0, 5)]).unwrap(),
            "time_limit": 2.0,
        });
        lines += &(row.to_string() + "\n");
    }
    fs::write(to, lines).unwrap();
}

/// Columns of a pair (spec of the critique study, section 1.4).
const COLUMNS: [&str; 18] = [
    "task_id",
    "hash",
    "prev_hash",
    "node_type",
    "solution",
    "sanitized_solution",
    "success",
    "success_float",
    "problem",
    "prompter_type",
    "prompt",
    "selected_uts",
    "problem_id",
    "id",
    "data_source",
    "test_digest",
    "generator",
    "split",
];

const RIGHT: &str = "a, b = map(int, input().split())\nprint(a + b + NUMBER)";

/// Solves even problems, raises on some and forgets the number on the others; criticises by the hint, of which it
/// speaks where the number is 4; revises rightly whatever it is told.
fn model() -> ChatServer {
    ChatServer::start(|messages| {
        let asked = messages.last().unwrap()["content"].as_str().unwrap();
        let first = messages[1]["content"].as_str().unwrap();
        let number = first.split("two numbers and ").nth(1).unwrap();
        let number: usize = number.split('.').next().unwrap().parse().unwrap();
        let right = RIGHT.replace("NUMBER", &number.to_string());
        if asked.contains("<hint>") {
            let hint = asked.split("<hint>").last().unwrap();
            let passes = asked.contains("Every test passes");
            let told = if number == 4 {
                "The hint says so. "
            } else {
                ""
            };
            assert_eq!(passes, number.is_multiple_of(2), "{hint}");
            assert_eq!(
                asked.contains("ZeroDivisionError"),
                number % 4 == 3,
                "{asked}"
            );
            let judgment = if passes { "Correct" } else { "Incorrect" };
            return format!(
                "Analysis:\n{told}Yes.\n\nImprovement suggestions:\nNone.\n\nOverall judgment: {judgment}"
            );
        }
        let program = match (messages.len(), number % 4) {
            (4, _) | (_, 0 | 2) => right,
            (_, 3) => "print(1 / 0)".to_owned(),
            _ => right.replace(&format!(" + {number}"), ""),
        };
        format!("Here:\n```python\n{program}\n```")
    })
}

fn synthesize(scratch: &Path, file: &Path, out: &Path, arguments: &[&str]) -> Command {
    let mut command = etude(scratch, ["data", "synthesize", "--samples", "2", "--json"]);
    command.arg(file).args(["--out".as_ref(), out.as_os_str()]);
    command.args(arguments);
    command
}

fn rows(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn rows_are_the_same_when_the_command_was_killed_and_no_sample_is_asked_for_again() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    problems(&at("problems.jsonl"), 10);
    let server = model();
    let arguments = [
        "--model",
        &server.name,
        "--keep-failed",
        "--concurrency",
        "2",
    ];
    let command = |out: &str| {
        synthesize(
            directory.path(),
            &at("problems.jsonl"),
            &at(out),
            &arguments,
        )
    };
    let output = command("whole").output().unwrap();
    assert_success(&output);
    // A solution, a critique and a revision of each sample.
    assert_eq!(server.asked(), 3 * 20);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["counts"]["samples"], 20);
    assert_eq!(told["counts"]["without_verdict"], 0);
    let steps = told["counts"]["steps"].as_array().unwrap();
    let hint = steps
        .iter()
        .find(|step| step["step"] == "critique speaks of the hint");
    assert_eq!(hint.unwrap()["dropped"], 2);
    assert_eq!(told["counts"]["lessons"], 18);
    assert_eq!(told["counts"]["pairs"], 20);

    let lessons = rows(&at("whole/sft.jsonl"));
    assert_eq!(lessons.len(), 18);
    for lesson in &lessons {
        let asked = lesson["critic_instruction"].as_str().unwrap();
        assert!(
            !asked.contains("hint") && asked.contains("<answer>\n```python\n"),
            "{asked}"
        );
        let right = lesson["initial_success"].as_bool().unwrap();
        assert_eq!(lesson["judgment"] == "Correct", right, "{lesson}");
        assert_eq!(lesson["success"], true);
        assert_eq!(lesson["generator"], server.name.as_str());
    }
    let pairs: Vec<Value> = dataset::read(&at("whole/rl.parquet")).unwrap();
    let right = pairs.iter().filter(|pair| pair["success"] == 1.0);
    assert_eq!((pairs.len(), right.count()), (20, 10));
    for (number, pair) in pairs.iter().enumerate() {
        assert_eq!(pair["id"], format!("problems.jsonl/{number}"));
        assert_eq!(pair["prompt"][1]["role"], "user");
        for column in COLUMNS {
            assert!(pair.get(column).is_some(), "{column}: {pair}");
        }
    }
    // What came of the samples is a forest too, and makes the same pairs again.
    let nodes = rows(&at("whole/forest.jsonl"));
    assert_eq!(nodes.len(), 10 + 20 + 20);
    let mut again = etude(directory.path(), ["data", "pair", "--out", "again"]);
    again.current_dir(directory.path());
    again.args(["problems.jsonl", "--solutions", "whole/forest.jsonl"]);
    again.args(["--generator", &server.name]);
    assert_success(&again.output().unwrap());
    let again: Vec<Value> = dataset::read(&at("again/rl.parquet")).unwrap();
    assert_eq!(again, pairs);

    let before = server.asked();
    let mut child = command("killed")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(
        wait_while_running(&mut child, || server.asked() >= before + 24),
        "the command ended before the kill"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let killed_at = server.asked();
    let output = command("killed").output().unwrap();
    assert_success(&output);
    let again = server.asked() - killed_at;
    // Of the two samples on their way, what was said may be lost; of the others, nothing.
    let done = (killed_at - before) / 3;
    assert!(
        again <= 3 * (20 - done.saturating_sub(2)),
        "{again} after {done}"
    );
    for file in ["sft.jsonl", "rl.parquet", "forest.jsonl", "synthesis.json"] {
        let (here, there) = (
            fs::read(at("killed").join(file)),
            fs::read(at("whole").join(file)),
        );
        assert!(here.unwrap() == there.unwrap(), "{file} differs");
    }

    // Once more: nothing is asked. With other options: refused.
    let asked = server.asked();
    assert_success(&command("killed").output().unwrap());
    assert_eq!(server.asked(), asked);
    let output = command("killed").arg("--balance").output().unwrap();
    assert_eq!(complaint(&output, 2, &["other options", "--out"]), None);
    problems(&at("problems.jsonl"), 9);
    let output = command("killed").output().unwrap();
    let says = [
        "begun with other problems",
        "problems.jsonl has changed",
        "--out",
    ];
    assert_eq!(complaint(&output, 2, &says), None);
    // Files that ids could not tell apart.
    fs::copy(at("problems.jsonl"), at("problems.json")).unwrap();
    let output = command("other").arg(at("problems.json")).output().unwrap();
    assert_eq!(
        complaint(&output, 2, &["problems.jsonl", "their ending alone"]),
        None
    );
    // The folder is no run of a recipe.
    let resumed = etude(directory.path(), ["train", "--resume"])
        .arg(at("killed"))
        .output();
    assert_eq!(
        complaint(&resumed.unwrap(), 2, &["etude data synthesize"]),
        None
    );
    let output = synthesize(
        directory.path(),
        &at("problems.jsonl"),
        directory.path(),
        &arguments,
    )
    .output();
    let output = output.unwrap();
    assert_eq!(
        complaint(&output, 2, &["is not empty", "another directory"]),
        None
    );
    assert!(!String::from_utf8_lossy(&output.stderr).contains("--run"));
}

#[test]
fn a_dead_model_leaves_a_folder_to_go_on_with() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    problems(&at("problems.jsonl"), 6);
    let server = model();
    let arguments = ["--model", &server.name, "--concurrency", "1"];
    let command = || {
        synthesize(
            directory.path(),
            &at("problems.jsonl"),
            &at("out"),
            &arguments,
        )
    };
    server.die_after(9);
    let output = command().output().unwrap();
    let says = ["without a verdict", "the same command goes on"];
    assert_eq!(complaint(&output, 1, &says), None);
    assert!(!at("out/sft.jsonl").exists());
    server.come_back();
    let before = server.asked();
    assert_success(&command().output().unwrap());
    assert_eq!(server.asked() - before, 3 * (12 - 3));
    assert!(at("out/sft.jsonl").exists());
}

#[test]
fn a_refusal_is_a_fault_and_a_prompt_over_the_servers_context_is_left_out() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    problems(&at("problems.jsonl"), 2);
    let server = model();
    let arguments = ["--model", &server.name, "--concurrency", "1"];
    let command = || {
        synthesize(
            directory.path(),
            &at("problems.jsonl"),
            &at("out"),
            &arguments,
        )
    };
    server.refuse_after(4, 400, "the temperature must be 1");
    let output = command().output().unwrap();
    let says = ["without a verdict", "the temperature must be 1"];
    assert_eq!(complaint(&output, 1, &says), None);
    assert!(!at("out/sft.jsonl").exists());
    // The first sample came to its end; of the next its second prompt is too long, and of the others the first.
    let message =
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens";
    server.refuse_after(1, 400, message);
    let output = command().output().unwrap();
    assert_success(&output);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["counts"]["over_long"], 3);
    assert_eq!(told["counts"]["without_verdict"], 0);
    assert!(at("out/sft.jsonl").exists());
}

#[test]
fn a_model_here_writes_what_it_can() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    problems(&at("problems.jsonl"), 3);
    // The last is longer than the model's context, and is left out.
    let text = fs::read_to_string(at("problems.jsonl")).unwrap();
    let long = text.replace("numbers and 2.", &"numbers and 2. ".repeat(600));
    fs::write(at("problems.jsonl"), long).unwrap();
    let config = engine::ModelConfig {
        n_kv_heads: 1,
        context: 2048,
        ..engine::ModelConfig::qwen2(384, 32, 2, 2)
    };
    let model = engine::Model::random(config, record::Seed(1)).unwrap();
    model.save(&at("model")).unwrap();
    let chat = chat::Chat::load(&package("../../crates/chat/tests/fixtures/chat")).unwrap();
    chat.save(&at("model")).unwrap();
    let name = format!("hf:{}", at("model").display());
    let arguments = ["--model", &name, "--max-tokens", "16"];
    let output = synthesize(
        directory.path(),
        &at("problems.jsonl"),
        &at("out"),
        &arguments,
    )
    .output();
    let output = output.unwrap();
    assert_success(&output);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&told["counts"]["samples"], &told["counts"]["pairs"]),
        (&6.into(), &4.into())
    );
    assert_eq!(told["counts"]["lessons"], 0);
    assert_eq!(told["counts"]["over_long"], 2);
    assert_eq!(told["counts"]["without_verdict"], 0);
}

#[test]
fn what_is_no_model_or_no_problem_is_named() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(
        at("problems.jsonl"),
        "{\"task_id\": 1, \"problem\": \"x\"}\n",
    )
    .unwrap();
    let cases: [(&[&str], &[&str]); 3] = [
        (
            &["--model", "hf:nowhere"],
            &["problems.jsonl", "line 1", "all_uts"],
        ),
        (&["--model", "x", "--top-p", "2"], &["--top-p", "2"]),
        (
            &["--model", "x", "--temperature", "NaN"],
            &["--temperature"],
        ),
    ];
    for (arguments, says) in cases {
        let command = synthesize(
            directory.path(),
            &at("problems.jsonl"),
            &at("out"),
            arguments,
        )
        .output();
        assert_eq!(complaint(&command.unwrap(), 2, says), None, "{arguments:?}");
    }
    problems(&at("problems.jsonl"), 1);
    let arguments = ["--model", "gpt"];
    let output = synthesize(
        directory.path(),
        &at("problems.jsonl"),
        &at("out"),
        &arguments,
    )
    .output();
    assert_eq!(
        complaint(&output.unwrap(), 2, &["gpt", "hf:", "openai:"]),
        None
    );
    assert!(!at("out").exists());
}
