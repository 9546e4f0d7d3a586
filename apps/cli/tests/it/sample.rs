//! `etude sample` on the checkpoint of a run.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::{etude::etude, runs::uninterrupted};

fn samples(arguments: &[&str]) -> Vec<Value> {
    let scratch = TempDir::new().unwrap();
    let model = uninterrupted().join("checkpoints/critic-rl");
    let output = etude(scratch.path(), ["sample".as_ref(), model.as_os_str()])
        .args(arguments)
        .arg("--json")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn list(sample: &Value, key: &str) -> usize {
    sample[key].as_array().unwrap().len()
}

#[test]
fn samples_carry_ids_and_logprobs_and_do_not_depend_on_their_number() {
    let prompt = ["--prompt", "def f(x):", "--max-tokens", "12", "--seed", "3"];
    let three = samples(&[&prompt[..], &["-n", "3"]].concat());
    assert_eq!(three.len(), 3);
    for (index, sample) in three.iter().enumerate() {
        assert_eq!(sample["index"], index);
        assert_eq!(list(sample, "response_ids"), list(sample, "logprobs"));
        assert!((1..=12).contains(&list(sample, "response_ids")));
        let longest = list(sample, "response_ids") == 12;
        assert!(sample["stop"] == "stop" || longest, "{sample}");
    }
    assert_ne!(three[0]["response_ids"], three[1]["response_ids"]);
    assert_eq!(samples(&prompt)[0], three[0]);
}

#[test]
fn a_chat_ends_by_itself_unless_told_to_go_on() {
    let prompt = ["--prompt", "hello", "--chat", "--temperature", "0"];
    let ends = &samples(&[&prompt[..], &["--max-tokens", "60"]].concat())[0];
    let raw = &samples(&[
        "--prompt",
        "hello",
        "--temperature",
        "0",
        "--max-tokens",
        "1",
    ])[0];
    assert!(
        list(ends, "prompt_ids") > list(raw, "prompt_ids"),
        "the template adds tokens"
    );
    let goes_on = &samples(&[&prompt[..], &["--max-tokens", "60", "--ignore-eos"]].concat())[0];
    assert_eq!(list(goes_on, "response_ids"), 60);
    assert_eq!(goes_on["stop"], "length");
}

#[test]
fn wrong_requests_exit_with_2_and_say_why() {
    let scratch = TempDir::new().unwrap();
    let model = uninterrupted().join("checkpoints/critic-rl");
    let model = model.to_str().unwrap();
    let empty = scratch.path().join("empty");
    fs::write(&empty, "").unwrap();
    let (long, empty) = ("x ".repeat(5000), empty.to_str().unwrap().to_owned());
    let cases: [(&[&str], &str); 6] = [
        (&["/no/such/model", "--prompt", "x"], "/no/such/model"),
        (&[model, "--prompt-file", "/no/such/file"], "/no/such/file"),
        (&[model, "--prompt-file", &empty], "empty"),
        (
            &[model, "--prompt", "x", "--temperature", "-1"],
            "temperature",
        ),
        (&[model, "--prompt", "x", "--top-p", "0"], "top_p"),
        (&[model, "--prompt", &long], "context"),
    ];
    for (arguments, word) in cases {
        let output = etude(scratch.path(), ["sample"])
            .args(arguments)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(word), "{errors}");
        assert!(output.stdout.is_empty());
    }
}
