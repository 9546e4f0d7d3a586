//! Wishes that cannot be fulfilled: one paragraph that names the thing, exit code 2, nothing done.

use std::{fs, process::Output};

use tempfile::TempDir;

use crate::{
    etude::{etude, package, stderr},
    runs::contents,
};

/// Settings of the smoke recipe, and what the error must say.
const RECIPES: &[(&str, &[&str], &[&str])] = &[
    (
        "an unknown key",
        &["rl.group_sze=4"],
        &["group_sze", "group_size"],
    ),
    (
        "an unknown table",
        &["rewards.form=\"all-pass\""],
        &["rewards", "reward"],
    ),
    (
        "an unknown study",
        &["study=critic"],
        &["study=critic", "did you mean `critique`"],
    ),
    (
        "a wrong type",
        &["rl.steps=\"many\""],
        &["rl.steps", "many"],
    ),
    (
        "an unknown choice",
        &["reward.form=\"some\""],
        &["reward.form", "some", "all-pass"],
    ),
    (
        "a setting without a value",
        &["rl.steps"],
        &["rl.steps", "="],
    ),
    (
        "heads that do not divide",
        &["critic.model.heads=3"],
        &["critic.model", "3", "32"],
    ),
    (
        "key heads that do not divide",
        &["reviser.model.kv_heads=3"],
        &["reviser.model", "3"],
    ),
    (
        "no layers",
        &["critic.model.layers=0"],
        &["critic.model", "layers"],
    ),
    (
        "a batch of more than all rows",
        &["sft.critic=[{rows=4, batch_rows=8, optimizer={lr=1e-3}, mix={}}]"],
        &["batch_rows = 8", "rows = 4"],
    ),
    ("a group of one", &["rl.group_size=1"], &["rl.group_size"]),
    (
        "no tasks a step",
        &["rl.tasks_per_step=0"],
        &["rl.tasks_per_step"],
    ),
    ("no tasks", &["tasks.train=0"], &["tasks.train"]),
    (
        "a share above one",
        &["tasks.share_right=1.5"],
        &["tasks.share_right", "1.5"],
    ),
    (
        "a vocabulary below the bytes",
        &["tokenizer.vocabulary=100"],
        &["vocabulary", "100", "261"],
    ),
    (
        "no room for a prompt",
        &["critic.max_tokens=384"],
        &["critic.max_tokens", "384"],
    ),
    (
        "a negative temperature",
        &["critic.temperature=-1.0"],
        &["critic.temperature", "-1"],
    ),
    (
        "a negative learning rate",
        &["rl.optimizer.lr=-0.1"],
        &["rl.optimizer", "-0.1"],
    ),
    ("no threads", &["threads=0"], &["threads"]),
    (
        "a mix of nothing",
        &["sft.critic=[{rows=8, batch_rows=8, optimizer={lr=1e-3}, mix={good=0.0}}]"],
        &["mix", "weight 0"],
    ),
    (
        "a negative weight",
        &["sft.critic=[{rows=8, batch_rows=8, optimizer={lr=1e-3}, mix={good=-1.0}}]"],
        &["`good`", "-1"],
    ),
    (
        "a missing file of tasks",
        &["tasks.train_file=\"nowhere.jsonl\""],
        &["nowhere.jsonl"],
    ),
    (
        "a fault share above one",
        &["rollout.max_fault_share=2.0"],
        &["rollout.max_fault_share", "2"],
    ),
    (
        "a deadline of nothing",
        &["rollout.deadline_s=0.0"],
        &["rollout.deadline_s"],
    ),
    ("no steps", &["rl.steps=0"], &["rl.steps"]),
    (
        "no memory",
        &["sandbox.memory_mb=0"],
        &["sandbox.memory_mb"],
    ),
    (
        "no CPU time",
        &["sandbox.cpu_s=-1.0"],
        &["sandbox.cpu_s", "-1"],
    ),
];

#[test]
fn bad_recipes() {
    let directory = TempDir::new().unwrap();
    let recipe = smoke();
    let mut failures = Vec::new();
    for (name, sets, words) in RECIPES {
        let run = directory.path().join("run");
        let mut arguments = vec![
            "train",
            recipe.to_str().unwrap(),
            "--run",
            run.to_str().unwrap(),
        ];
        arguments.extend(sets.iter().flat_map(|set| ["--set", set]));
        let output = etude(directory.path(), arguments).output().unwrap();
        failures.extend(complaint(&output, 2, words).map(|found| format!("{name}: {found}")));
        if !contents(directory.path()).is_empty() || run.exists() {
            failures.push(format!("{name}: something was written"));
            fs::remove_dir_all(&run).unwrap();
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Files of tasks, and what the error must say beside the file's name.
const TASKS: &[(&str, &str, &[&str])] = &[
    ("not JSON", "{\"id\": \"a\", \n", &["line 1"]),
    (
        "an unknown field",
        "{\"id\": \"a\", \"publik\": 1}\n",
        &["line 1", "publik"],
    ),
    (
        "a missing field",
        "{\"id\": \"a\"}\n",
        &["line 1", "public"],
    ),
    (
        "a field of another type",
        "{\"id\": 7}\n",
        &["line 1", "id"],
    ),
    ("no rows", "", &["no rows"]),
];

#[test]
fn bad_files_of_tasks() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("tasks.jsonl");
    let mut failures = Vec::new();
    for (name, content, words) in TASKS {
        fs::write(&file, content).unwrap();
        let before = contents(directory.path());
        let run = directory.path().join("run");
        let set = format!("tasks.train_file={:?}", file.to_str().unwrap());
        let recipe = smoke();
        let arguments = [
            "train",
            recipe.to_str().unwrap(),
            "--set",
            &set,
            "--run",
            run.to_str().unwrap(),
        ];
        let output = etude(directory.path(), arguments).output().unwrap();
        let found =
            complaint(&output, 2, words).or_else(|| complaint(&output, 2, &["tasks.jsonl"]));
        failures.extend(found.map(|found| format!("{name}: {found}")));
        if contents(directory.path()) != before {
            failures.push(format!("{name}: something was written"));
            let _ = fs::remove_dir_all(&run);
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Command lines over a directory `here` with a file and nothing else, and what the error must say.
const COMMANDS: &[(&str, &[&str], &[&str])] = &[
    (
        "a missing recipe",
        &["train", "nowhere.toml"],
        &["nowhere.toml"],
    ),
    (
        "a recipe that is no TOML",
        &["train", "here/file"],
        &["here/file"],
    ),
    ("a directory as recipe", &["train", "here"], &["here"]),
    (
        "a recipe that is not checked out",
        &["plan", "nowhere.toml"],
        &["nowhere.toml"],
    ),
    (
        "an occupied directory",
        &["train", "SMOKE", "--run", "here"],
        &["here", "not empty"],
    ),
    (
        "a file as run",
        &["train", "SMOKE", "--run", "here/file"],
        &["here/file"],
    ),
    (
        "going on with nothing",
        &["train", "--resume", "nowhere"],
        &["nowhere", "no run"],
    ),
    (
        "going on with no run",
        &["train", "--resume", "here"],
        &["here", "no run"],
    ),
    ("a report of nothing", &["report", "nowhere"], &["nowhere"]),
    ("a report of no run", &["report", "here"], &["here"]),
    ("an evaluation of no run", &["eval", "here"], &["here"]),
];

#[test]
fn bad_commands() {
    let directory = TempDir::new().unwrap();
    fs::create_dir(directory.path().join("here")).unwrap();
    fs::write(directory.path().join("here/file"), "mine").unwrap();
    let before = contents(directory.path());
    let mut failures = Vec::new();
    for (name, arguments, words) in COMMANDS {
        let recipe = smoke();
        let arguments = arguments.iter().map(|one| {
            if *one == "SMOKE" {
                recipe.to_str().unwrap()
            } else {
                *one
            }
        });
        let output = etude(directory.path(), arguments)
            .current_dir(directory.path())
            .output()
            .unwrap();
        failures.extend(complaint(&output, 2, words).map(|found| format!("{name}: {found}")));
        if contents(directory.path()) != before {
            failures.push(format!("{name}: something was written"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What is wrong with how a command failed; `None` when all is as it should be.
pub(crate) fn complaint(output: &Output, code: i32, words: &[&str]) -> Option<String> {
    let said = stderr(output);
    if output.status.code() != Some(code) {
        return Some(format!(
            "{} instead of exit code {code}: {said}",
            output.status
        ));
    }
    if said.contains("panicked") || said.contains("backtrace") {
        return Some(format!("it panicked: {said}"));
    }
    let error = said.find("etude: ").map_or("", |at| &said[at..]);
    if error.is_empty() || error.contains("\n\n") {
        return Some(format!("not one paragraph: {said}"));
    }
    let missing: Vec<&&str> = words
        .iter()
        .filter(|word| !error.contains(**word))
        .collect();
    (!missing.is_empty()).then(|| format!("it does not say {missing:?}: {error}"))
}

pub(crate) fn smoke() -> std::path::PathBuf {
    package("../../recipes/critique/smoke.toml")
}
