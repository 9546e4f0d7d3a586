//! Models whose layers see the most recent tokens alone: against transformers, in training and decoding.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
};

use engine::{
    Engine, Learner, LearnerOptions, Model, RowScores, SampleRequest, Sampler, SamplerOptions,
    SlidingWindow, TokenLoss, TrainRow,
};
use record::{Completion, Sampling, Seed, WeightVersion};
use safetensors::SafeTensors;
use serde::Deserialize;

const NAMES: [&str; 3] = ["mistral", "qwen2", "qwen3"];

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
        .join("tests/cases/003_sliding_window")
        .join(name)
}

fn expected(name: &str) -> Expected {
    serde_json::from_slice(&fs::read(case(name).join("expected.json")).unwrap()).unwrap()
}

/// Mean log-probability.
struct MeanLogprob;

impl TokenLoss for MeanLogprob {
    fn row(&self, _: usize, scores: &RowScores, d_logprobs: &mut [f32], _: &mut [f32]) -> f64 {
        d_logprobs.fill(1.0 / scores.logprobs.len() as f32);
        0.0
    }
}

fn sample(model: &Arc<Model>, prompt: &[u32], sampling: Sampling) -> Completion {
    let sampler = Sampler::start(&Engine::new(1).unwrap(), SamplerOptions::default()).unwrap();
    sampler.publish("model", model.clone(), WeightVersion(0));
    let (tell, told) = mpsc::channel();
    sampler.submit(SampleRequest {
        model: "model".to_owned(),
        prompt: prompt.to_vec(),
        sampling,
        seed: Seed(0),
        done: Box::new(move |answer| tell.send(answer).unwrap()),
    });
    told.recv().unwrap().unwrap()
}

#[test]
fn logprobs_and_gradients_are_those_of_transformers() {
    for name in NAMES {
        let expected = expected(name);
        let mut mask = vec![true; expected.row.len()];
        mask[0] = false;
        let row = TrainRow {
            tokens: &expected.row,
            mask: &mask,
        };
        let engine = Engine::new(1).unwrap();
        let model = Arc::new(Model::load(&case(name)).unwrap());
        let mut learner = Learner::new(&engine, model, LearnerOptions::default());
        let report = learner.forward_backward(&[row], &MeanLogprob).unwrap();
        for (found, expected) in report.scores[0].logprobs.iter().zip(&expected.logprobs) {
            assert!(
                (found - expected).abs() < 2e-4,
                "{name}: {found}, not {expected}"
            );
        }
        let bytes = fs::read(case(name).join("gradients.safetensors")).unwrap();
        let gradients = SafeTensors::deserialize(&bytes).unwrap();
        for (tensor, _, found) in learner.gradients() {
            let expected = gradients.tensor(tensor).unwrap();
            let expected: Vec<f32> = expected
                .data()
                .as_chunks::<4>()
                .0
                .iter()
                .copied()
                .map(f32::from_le_bytes)
                .collect();
            let largest = expected.iter().fold(0.0_f32, |top, x| top.max(x.abs()));
            for (found, expected) in found.iter().zip(&expected) {
                let error = (found - expected).abs() / largest;
                assert!(error < 2e-4, "{name}, {tensor}: {found}, not {expected}");
            }
        }
    }
}

#[test]
fn greedy_tokens_are_those_of_transformers() {
    for name in NAMES {
        let expected = expected(name);
        let model = Arc::new(Model::load(&case(name)).unwrap());
        let sampling = Sampling::greedy(expected.greedy.len());
        let completion = sample(&model, &expected.row[..expected.prompt], sampling);
        assert_eq!(completion.response, expected.greedy, "{name}");
    }
}

#[test]
fn what_is_decoded_is_scored_the_same_to_the_bit() {
    for name in NAMES {
        let expected = expected(name);
        let model = Arc::new(Model::load(&case(name)).unwrap());
        let completion = sample(&model, &expected.row[..7], Sampling::at(1.0, 110));
        let tokens = [&completion.prompt[..], &completion.response].concat();
        let mask: Vec<bool> = (0..tokens.len()).map(|at| at >= 7).collect();
        let rows = [TrainRow {
            tokens: &tokens,
            mask: &mask,
        }];
        let scores = Engine::new(1).unwrap().score(&model, &rows).unwrap();
        assert_eq!(scores[0].logprobs, completion.logprobs, "{name}");
    }
}

#[test]
fn windows_survive_saving() {
    let window = |tokens, layers: &[bool]| SlidingWindow {
        tokens,
        layers: layers.to_vec(),
    };
    let expected = [
        window(12, &[true, true]),
        window(40, &[false, true, true]),
        window(2, &[true, false, true]),
    ];
    for (name, expected) in NAMES.into_iter().zip(expected) {
        let model = Model::load(&case(name)).unwrap();
        assert_eq!(model.config().sliding_window, Some(expected), "{name}");
        let directory = tempfile::tempdir().unwrap();
        model.save(directory.path()).unwrap();
        let again = Model::load(directory.path()).unwrap();
        assert_eq!(again.config(), model.config(), "{name}");
    }
}
