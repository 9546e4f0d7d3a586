//! `etude chat` with a checkpoint of a run, its input a pipe.

use std::{
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    etude::{assert_success, etude, stderr},
    processes::signal,
    runs::{copy, uninterrupted},
};

fn model() -> PathBuf {
    uninterrupted().join("checkpoints/critic-rl")
}

/// A copy of the model, with a file of it changed.
fn edited(to: &Path, file: &str, edit: impl FnOnce(Value) -> Value) -> PathBuf {
    copy(&model(), to);
    let path = to.join(file);
    let before: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    fs::write(&path, edit(before).to_string()).unwrap();
    to.to_owned()
}

fn set(key: &str, value: impl Into<Value>) -> impl FnOnce(Value) -> Value {
    move |mut json| {
        json[key] = value.into();
        json
    }
}

fn chat(model: &Path, said: &str, arguments: &[&str]) -> Output {
    let scratch = TempDir::new().unwrap();
    let mut child = etude(scratch.path(), ["chat".as_ref(), model.as_os_str()])
        .args(["--max-tokens", "25"])
        .args(arguments)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that was asked wrongly ends without reading.
    let _ = child.stdin.take().unwrap().write_all(said.as_bytes());
    child.wait_with_output().unwrap()
}

fn answers(model: &Path, said: &str, arguments: &[&str]) -> Vec<Value> {
    let output = chat(model, said, &[arguments, &["--json"]].concat());
    assert_success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn ids(answer: &Value, key: &str) -> Vec<u64> {
    serde_json::from_value(answer[key].clone()).unwrap()
}

#[test]
fn each_line_is_answered_in_the_light_of_those_before() {
    let said = "hello\n\nand again\n/reset\nhello\n//quit\n/quit\nnever said\n";
    let greedy = ["--temperature", "0"];
    let answers = answers(&model(), said, &greedy);
    assert_eq!(answers.len(), 4);
    let prompts: Vec<Vec<u64>> = answers
        .iter()
        .map(|answer| ids(answer, "prompt_ids"))
        .collect();
    assert!(prompts[1].starts_with(&prompts[0]) && prompts[3].starts_with(&prompts[2]));
    assert_eq!(answers[2]["prompt_ids"], answers[0]["prompt_ids"]);
    assert_eq!(answers[2]["response_ids"], answers[0]["response_ids"]);
    // One token opens and one closes each of the two turns.
    let added = prompts[1].len() - prompts[0].len() - ids(&answers[0], "response_ids").len();
    assert!(added >= 3, "{prompts:?}");

    let output = chat(&model(), said, &greedy);
    assert_success(&output);
    let text: Vec<String> = answers
        .iter()
        .map(|answer| answer["text"].as_str().unwrap())
        .map(|text| format!("{text}{}", if text.ends_with('\n') { "" } else { "\n" }))
        .collect();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), text.concat());

    let scratch = TempDir::new().unwrap();
    let sample = etude(
        scratch.path(),
        ["sample".as_ref(), model().as_os_str(), "--chat".as_ref()],
    )
    .args(["--prompt", "hello", "--max-tokens", "25"])
    .args(greedy)
    .output()
    .unwrap();
    assert_eq!(String::from_utf8(sample.stdout).unwrap(), text[0]);
}

#[test]
fn the_same_seed_says_the_same() {
    let said = "one\ntwo\n";
    let seven = answers(&model(), said, &["--seed", "7"]);
    assert_eq!(answers(&model(), said, &["--seed", "7"]), seven);
    assert_ne!(answers(&model(), said, &["--seed", "8"]), seven);
    let system = answers(&model(), said, &["--seed", "7", "--system", "be kind"]);
    assert!(ids(&system[0], "prompt_ids").len() > ids(&seven[0], "prompt_ids").len());
}

#[test]
fn settings_that_are_not_given_are_those_of_the_model() {
    let scratch = TempDir::new().unwrap();
    let to = scratch.path().join("model");
    let greedy = edited(&to, "generation_config.json", set("do_sample", false));
    let expected = answers(&model(), "hello\n", &["--temperature", "0"]);
    assert_eq!(answers(&greedy, "hello\n", &[]), expected);
    let sampled = answers(&greedy, "hello\n", &["--temperature", "1"]);
    assert_eq!(sampled, answers(&model(), "hello\n", &[]));
}

#[test]
fn what_cannot_be_is_said_before_the_weights_are_read() {
    let scratch = TempDir::new().unwrap();
    let place = |name: &str| scratch.path().join(name);
    let untemplated = edited(
        &place("untemplated"),
        "tokenizer_config.json",
        set("chat_template", Value::Null),
    );
    let refusing = "{% for m in messages %}{% if m.role == 'system' %}\
                    {{ raise_exception('no system here') }}{% endif %}{{ m.content }}{% endfor %}";
    let refusing = edited(
        &place("refusing"),
        "tokenizer_config.json",
        set("chat_template", refusing),
    );
    let unbelievable = edited(
        &place("unbelievable"),
        "generation_config.json",
        set("temperature", "warm"),
    );
    for without_weights in [&untemplated, &refusing, &unbelievable] {
        fs::remove_file(without_weights.join("model.safetensors")).unwrap();
    }
    let long = "x ".repeat(5000);
    let cases: [(&Path, &[&str], &[&str]); 6] = [
        (Path::new("/no/such/model"), &[], &["/no/such/model"]),
        (
            &untemplated,
            &[],
            &[untemplated.to_str().unwrap(), "chat template"],
        ),
        (&refusing, &["--system", "x"], &["no system here"]),
        (&unbelievable, &[], &["generation_config.json"]),
        (&model(), &["--system", &long], &["context"]),
        (&model(), &["--top-p", "2"], &["--top-p"]),
    ];
    for (model, arguments, words) in cases {
        let output = chat(model, "hello\n", arguments);
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        for word in words {
            assert!(errors.contains(word), "{word} in {errors}");
        }
        assert!(output.stdout.is_empty());
    }
    let output = chat(&model(), &long, &[]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("context"));
}

#[test]
fn ctrl_c_ends_an_answer_where_it_is() {
    let scratch = TempDir::new().unwrap();
    let to = scratch.path().join("model");
    // An answer of minutes.
    let model = edited(&to, "config.json", set("max_position_embeddings", 500_000));
    let mut child = etude(scratch.path(), ["chat".as_ref(), model.as_os_str()])
        .args(["--ignore-eos", "--max-tokens", "400000"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = child.stdin.take().unwrap();
    said.write_all(b"hello\nnever answered\n").unwrap();
    let mut first = [0; 20];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    signal("INT", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("stopped"));
    assert!(output.stdout.ends_with(b"\n"));
    assert!(String::from_utf8([&first[..], &output.stdout].concat()).is_ok());
    drop(said);
}
