//! Other families, stretched contexts, shards and half precision: against transformers.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
};

use engine::{
    Engine, Family, Model, RopeScaling, SampleRequest, Sampler, SamplerOptions, TrainRow,
};
use record::{Sampling, Seed, WeightVersion};
use serde::Deserialize;

#[derive(Deserialize)]
struct Expected {
    row: Vec<u32>,
    logprobs: Vec<f32>,
    /// Tokens of the row that the greedy response follows.
    prompt: usize,
    greedy: Vec<u32>,
}

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cases/001_families")
        .join(name)
}

fn expected(name: &str) -> Expected {
    serde_json::from_slice(&fs::read(case(name).join("expected.json")).unwrap()).unwrap()
}

fn logprobs(model: &Model, row: &[u32]) -> Vec<f32> {
    let mut mask = vec![true; row.len()];
    mask[0] = false;
    let rows = [TrainRow {
        tokens: row,
        mask: &mask,
    }];
    let scores = Engine::new(1).unwrap().score(model, &rows).unwrap();
    scores[0].logprobs.clone()
}

fn greedy(model: &Arc<Model>, prompt: &[u32], n: usize) -> Vec<u32> {
    let sampler = Sampler::start(&Engine::new(1).unwrap(), SamplerOptions::default()).unwrap();
    sampler.publish("model", model.clone(), WeightVersion(0));
    let (tell, told) = mpsc::channel();
    sampler.submit(SampleRequest {
        model: "model".to_owned(),
        prompt: prompt.to_vec(),
        sampling: Sampling::greedy(n),
        seed: Seed(0),
        done: Box::new(move |answer| tell.send(answer).unwrap()),
    });
    told.recv().unwrap().unwrap().response
}

#[test]
fn logprobs_and_greedy_tokens_are_those_of_transformers() {
    for name in ["llama3", "linear", "yarn", "qwen3"] {
        let expected = expected(name);
        let model = Arc::new(Model::load(&case(name)).unwrap());
        for (found, expected) in logprobs(&model, &expected.row)
            .iter()
            .zip(&expected.logprobs)
        {
            assert!(
                (found - expected).abs() < 2e-4,
                "{name}: {found}, not {expected}"
            );
        }
        let prompt = &expected.row[..expected.prompt];
        assert_eq!(greedy(&model, prompt, 20), expected.greedy, "{name}");
    }
}

#[test]
fn a_model_is_the_same_after_it_was_saved() {
    for (name, family) in [
        ("llama3", Family::Llama),
        ("linear", Family::Llama),
        ("yarn", Family::Mistral),
        ("qwen3", Family::Qwen3),
    ] {
        let model = Model::load(&case(name)).unwrap();
        assert_eq!(model.config().family, family);
        let stretched = model.config().rope_scaling != RopeScaling::None;
        assert_eq!(stretched, family != Family::Qwen3);
        let directory = tempfile::tempdir().unwrap();
        model.save(directory.path()).unwrap();
        let again = Model::load(directory.path()).unwrap();
        assert_eq!(again.config(), model.config(), "{name}");
        let row = expected(name).row;
        assert_eq!(logprobs(&again, &row), logprobs(&model, &row), "{name}");
    }
}

/// A copy of the sharded case that can be damaged.
fn shards() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for file in fs::read_dir(case("llama3")).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), directory.path().join(file.file_name())).unwrap();
    }
    directory
}

#[test]
fn damaged_shards_are_refused_with_the_file() {
    let refusal = |directory: &tempfile::TempDir| {
        let refused = Model::load(directory.path()).unwrap_err();
        refused.to_string()
    };
    let shard = "model-00002-of-00006.safetensors";

    let directory = shards();
    fs::remove_file(directory.path().join(shard)).unwrap();
    assert!(refusal(&directory).contains(shard));

    let directory = shards();
    let bytes = fs::read(directory.path().join(shard)).unwrap();
    fs::write(directory.path().join(shard), &bytes[..bytes.len() - 3]).unwrap();
    let refused = refusal(&directory);
    assert!(
        refused.contains(shard) && refused.contains("truncated"),
        "{refused}"
    );

    let directory = shards();
    let index = directory.path().join("model.safetensors.index.json");
    let text = fs::read_to_string(&index).unwrap();
    let outside = text.replace(shard, &format!("../{shard}"));
    fs::write(&index, outside).unwrap();
    let refused = refusal(&directory);
    assert!(
        refused.contains("index.json") && refused.contains("beside"),
        "{refused}"
    );

    let directory = shards();
    let missing = text.replacen(shard, "model-00001-of-00006.safetensors", 100);
    fs::write(
        directory.path().join("model.safetensors.index.json"),
        missing,
    )
    .unwrap();
    let refused = refusal(&directory);
    assert!(
        refused.contains("model-00001") && refused.contains("missing"),
        "{refused}"
    );
}
