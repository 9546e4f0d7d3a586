//! `etude sample` on the checkpoint of a run.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    etude::{assert_success, etude},
    runs::uninterrupted,
};

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
fn text_is_streamed_as_json_has_it_sample_by_sample() {
    let scratch = TempDir::new().unwrap();
    let model = uninterrupted().join("checkpoints/critic-rl");
    let prompt = ["--prompt", "def f(x):", "--max-tokens", "40", "-n", "3"];
    let output = etude(scratch.path(), ["sample".as_ref(), model.as_os_str()])
        .args(prompt)
        .output()
        .unwrap();
    assert_success(&output);
    let mut expected = String::new();
    for (index, sample) in samples(&prompt).iter().enumerate() {
        let text = sample["text"].as_str().unwrap();
        let end = if text.ends_with('\n') { "" } else { "\n" };
        expected += &format!("--- sample {index}\n{text}{end}");
    }
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn a_stop_string_ends_the_response_with_the_token_that_completes_it() {
    let prompt = ["--prompt", "def f(x):", "--max-tokens", "40", "--seed", "2"];
    let prompt = [&prompt[..], &["--ignore-eos"]].concat();
    let whole = &samples(&prompt)[0];
    let text = whole["text"].as_str().unwrap();
    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let stop = &text[places[places.len() / 2]..places[places.len() / 2 + 2]];
    let cut = &samples(&[&prompt[..], &["--stop", "never said", "--stop", stop]].concat())[0];
    assert_eq!(cut["stop"], "stop");
    assert_eq!(cut["text"], text[..text.find(stop).unwrap()]);
    let len = list(cut, "response_ids");
    for key in ["response_ids", "logprobs"] {
        let expected = &whole[key].as_array().unwrap()[..len];
        assert_eq!(cut[key].as_array().unwrap(), expected, "{key}");
    }
}

#[test]
fn settings_reach_the_sampler() {
    let with = |more: &[&str]| {
        let prompt = ["--prompt", "def f(x):", "--max-tokens", "12"];
        samples(&[&prompt[..], more].concat()).remove(0)
    };
    let greedy = with(&["--temperature", "0"]);
    for one in [["--top-k", "1"], ["--min-p", "1"], ["--top-p", "1e-9"]] {
        assert_eq!(
            with(&one)["response_ids"],
            greedy["response_ids"],
            "{one:?}"
        );
    }
    let first = greedy["response_ids"][0].as_u64().unwrap();
    let banned = with(&[
        "--temperature",
        "0",
        "--logit-bias",
        &format!("{first}=-1e9"),
    ]);
    assert_ne!(banned["response_ids"][0], first);
    let all = with(&["--ignore-eos", "--presence-penalty", "100"]);
    let mut ids: Vec<u64> = serde_json::from_value(all["response_ids"].clone()).unwrap();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 12);
    let told = with(&["--top-k", "3", "--top-logprobs", "2", "--prompt-logprobs"]);
    let (prompt, response) = (list(&told, "prompt_ids"), list(&told, "response_ids"));
    assert_eq!(list(&told, "prompt_logprobs"), prompt - 1);
    assert_eq!(list(&told, "top_logprobs"), response);
    assert_eq!(list(&told, "sampled_logprobs"), response);
    assert!(greedy.get("top_logprobs").is_none() && greedy.get("prompt_logprobs").is_none());
}

#[test]
fn wrong_requests_exit_with_2_and_say_why() {
    let scratch = TempDir::new().unwrap();
    let model = uninterrupted().join("checkpoints/critic-rl");
    let model = model.to_str().unwrap();
    let empty = scratch.path().join("empty");
    fs::write(&empty, "").unwrap();
    let (long, empty) = ("x ".repeat(5000), empty.to_str().unwrap().to_owned());
    let long_file = scratch.path().join("long");
    fs::write(&long_file, &long).unwrap();
    let long_file = long_file.to_str().unwrap().to_owned();
    let directory = scratch.path().to_str().unwrap().to_owned();
    let cases: [(&[&str], &str); 15] = [
        (&["/no/such/model", "--prompt", "x"], "/no/such/model"),
        (&[model, "--prompt-file", "/no/such/file"], "/no/such/file"),
        (&[model, "--prompt-file", &empty], &empty),
        (
            &[model, "--prompt", "x", "--temperature", "-1"],
            "--temperature",
        ),
        (&[model, "--prompt", "x", "--top-p", "0"], "--top-p"),
        (&[model, "--prompt", "x", "--min-p", "2"], "--min-p"),
        (&[model, "--prompt", "x", "--stop", ""], "--stop"),
        (
            &[model, "--prompt", "x", "--repetition-penalty", "0"],
            "--repetition-penalty",
        ),
        (
            &[model, "--prompt", "x", "--logit-bias", "99999=1"],
            "99999",
        ),
        (
            &[model, "--prompt", "x", "--logit-bias", "7"],
            "--logit-bias",
        ),
        (&[model, "--prompt", "x", "--top-logprobs", "3"], "--json"),
        (&[model, "--prompt", ""], "--prompt"),
        (&[model, "--prompt-file", &directory], &directory),
        (&[model, "--prompt", &long], "context"),
        (&[model, "--prompt-file", &long_file], &long_file),
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
