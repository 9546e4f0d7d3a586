//! Damaged, lying and foreign checkpoints: every one is refused with the file and what is wrong in it, by
//! inspection, by import, by sampling and by training, before any of them does anything.

mod damage;
mod weights;
mod words;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use self::{
    damage::{Case, FILE, TEMPLATE, UP, adapter, header, json, number, sharded, whole},
    weights::{SHARDS, WEIGHTS},
    words::{ADAPTERS, CHATS, CONFIGS, TOKENIZERS},
};
use crate::{
    bad_input::{complaint, smoke},
    etude::{etude, stderr},
    runs::{contents, files},
};

/// What refuses a model: arguments with MODEL in them, and the exit code.
const COMMANDS: [(&[&str], i32); 4] = [
    (&["model", "inspect", "MODEL"], 1),
    (&["model", "import", "MODEL", "--to", "out"], 2),
    (&["sample", "MODEL", "--chat", "--prompt", "Hello"], 2),
    (
        &[
            "train",
            "SMOKE",
            "--run",
            "run",
            "--set",
            "critic.model=\"hf:MODEL\"",
        ],
        2,
    ),
];

fn run(directory: &Path, arguments: &[&str]) -> Output {
    let model = directory.join("model");
    let arguments = arguments.iter().map(|one| {
        one.replace("SMOKE", smoke().to_str().unwrap())
            .replace("MODEL", model.to_str().unwrap())
    });
    let mut command = etude(directory, arguments);
    command.current_dir(directory).output().unwrap()
}

fn refused(make: fn(&Path), cases: &[Case]) {
    let mut failures = Vec::new();
    for (name, damage, words) in cases {
        let directory = TempDir::new().unwrap();
        let at = directory.path().join("model");
        fs::create_dir(&at).unwrap();
        make(&at);
        damage(&at);
        let before = contents(directory.path());
        for (arguments, code) in COMMANDS {
            let output = run(directory.path(), arguments);
            let found = match code {
                // What is wrong is in the findings.
                1 => complaint(&output, 1, &["cannot be used"]).or_else(|| {
                    let text = String::from_utf8_lossy(&output.stdout);
                    let problems = text.split("\nproblems\n").nth(1).unwrap_or("");
                    let said = |word: &&&str| !problems.contains(**word);
                    let missing: Vec<&&str> = words.iter().filter(said).collect();
                    (!missing.is_empty()).then(|| format!("it does not say {missing:?}: {text}"))
                }),
                code => complaint(&output, code, words),
            };
            failures.extend(
                found.map(|found| format!("{name}, {}: {found}", arguments[..2].join(" "))),
            );
            if contents(directory.path()) != before {
                failures.push(format!(
                    "{name}, {}: something was written",
                    arguments[..2].join(" ")
                ));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn what_the_cases_begin_with_is_sound() {
    for make in [whole, sharded, adapter] {
        let directory = TempDir::new().unwrap();
        let at = directory.path().join("model");
        fs::create_dir(&at).unwrap();
        make(&at);
        for (arguments, _) in &COMMANDS[..3] {
            let output = run(directory.path(), arguments);
            assert!(output.status.success(), "{}", stderr(&output));
        }
    }
}

#[test]
fn damaged_and_lying_weights() {
    refused(whole, WEIGHTS);
}

#[test]
fn damaged_and_lying_shards() {
    refused(sharded, SHARDS);
}

#[test]
fn configs_of_other_models() {
    refused(whole, CONFIGS);
}

#[test]
fn tokenizers_of_other_models() {
    refused(whole, TOKENIZERS);
}

#[test]
fn chats_that_cannot_be_rendered() {
    refused(whole, CHATS);
}

#[test]
fn adapters_of_other_bases() {
    refused(adapter, ADAPTERS);
}

/// All that is wrong is told at once.
#[test]
fn inspection_lists_every_problem() {
    let directory = TempDir::new().unwrap();
    let at = directory.path().join("model");
    fs::create_dir(&at).unwrap();
    whole(&at);
    header(&at, |header| header[UP]["dtype"] = json!("I32"));
    number(&at, 1.0);
    json(&at, "config.json", |config| {
        config["num_hidden_layers"] = json!(3)
    });
    json(&at, "tokenizer.json", |json| {
        json["model"]["vocab"]["late"] = json!(64)
    });
    fs::write(at.join(TEMPLATE), "{% if %}").unwrap();
    let output = run(directory.path(), &["model", "inspect", "MODEL", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["usable"], false);
    let problems = found["problems"].as_array().unwrap();
    // A dtype, the twelve tensors of a layer, the vocabulary, the template.
    assert_eq!(problems.len(), 1 + 12 + 1 + 1, "{problems:#?}");
}

#[test]
fn prompts_longer_than_the_context() {
    let directory = TempDir::new().unwrap();
    let at = directory.path().join("model");
    fs::create_dir(&at).unwrap();
    whole(&at);
    json(&at, "config.json", |config| {
        config["max_position_embeddings"] = json!(16)
    });
    let before = contents(directory.path());
    let long = "Hello ".repeat(40);
    let sample = ["sample", "MODEL", "--chat", "--prompt", &long];
    let set = ["--set", "critic.max_tokens=8"];
    let train = [COMMANDS[3].0, &set].concat();
    for (arguments, words) in [
        (&sample[..], &["context", "16"][..]),
        (
            &train,
            &["critic.model", "a prompt of the critic takes", "is 16"],
        ),
    ] {
        let output = run(directory.path(), arguments);
        assert_eq!(complaint(&output, 2, words), None);
        assert!(contents(directory.path()) == before);
    }
    // Of new models it is known once their vocabulary is; nothing has been trained then.
    let sets = [
        "critic.model.context=40",
        "critic.max_tokens=8",
        "tasks.train=32",
    ];
    let mut arguments = vec!["train", "SMOKE", "--run", "run"];
    arguments.extend(sets.iter().flat_map(|set| ["--set", set]));
    let output = run(directory.path(), &arguments);
    let words = [
        "task ",
        "critic's prompt takes",
        "critic.model has room for fewer than 40",
        "no room",
    ];
    assert_eq!(complaint(&output, 2, &words), None);
    let written: Vec<PathBuf> = files(&directory.path().join("run"));
    assert!(
        !written.iter().any(|file| file.ends_with(FILE)),
        "{written:?}"
    );
}
