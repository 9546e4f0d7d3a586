//! The engine against transformers: logits, loss, gradients, greedy tokens of a checked-in case.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
};

use engine::{
    Engine, Learner, LearnerOptions, Model, RowScores, SampleRequest, Sampler, SamplerOptions,
    TokenLoss, TrainRow,
};
use record::{Sampling, Seed, WeightVersion};
use safetensors::SafeTensors;
use serde_json::Value;

fn case() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/000_qwen2_parity")
}

struct Expected {
    rows: Vec<Vec<u32>>,
    masks: Vec<Vec<bool>>,
    json: Value,
}

impl Expected {
    fn read() -> Self {
        let text = std::fs::read(case().join("expected.json")).unwrap();
        let json: Value = serde_json::from_slice(&text).unwrap();
        let rows: Vec<Vec<u32>> = serde_json::from_value(json["rows"].clone()).unwrap();
        let masked: Vec<usize> = serde_json::from_value(json["masked"].clone()).unwrap();
        let masks = rows.iter().zip(masked);
        let masks =
            masks.map(|(row, masked)| (0..row.len()).map(move |at| at + masked >= row.len()));
        Self {
            masks: masks.map(Iterator::collect).collect(),
            rows,
            json,
        }
    }
    fn rows(&self) -> Vec<TrainRow<'_>> {
        let rows = self.rows.iter().zip(&self.masks);
        rows.map(|(tokens, mask)| TrainRow { tokens, mask })
            .collect()
    }
    fn lists(&self, key: &str) -> Vec<Vec<f32>> {
        serde_json::from_value(self.json[key].clone()).unwrap()
    }
}

/// Mean negative log-likelihood of the masked tokens.
struct MeanLoss(usize);

impl TokenLoss for MeanLoss {
    fn row(&self, _: usize, scores: &RowScores, d_logprobs: &mut [f32], _: &mut [f32]) -> f64 {
        d_logprobs.fill(-1.0 / self.0 as f32);
        -scores
            .logprobs
            .iter()
            .map(|&logprob| f64::from(logprob))
            .sum::<f64>()
            / self.0 as f64
    }
}

/// Largest difference relative to the largest expected value.
fn distance(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let largest = expected
        .iter()
        .fold(0.0_f32, |top, value| top.max(value.abs()));
    found
        .iter()
        .zip(expected)
        .fold(0.0_f32, |top, (a, b)| top.max((a - b).abs()))
        / largest
}

#[test]
fn logprobs_loss_and_gradients_are_those_of_transformers() {
    let expected = Expected::read();
    let engine = Engine::new(2).unwrap();
    let model = Arc::new(Model::load(&case().join("model")).unwrap());
    let mut learner = Learner::new(&engine, model, LearnerOptions::default());
    let total = expected
        .masks
        .iter()
        .flatten()
        .filter(|&&masked| masked)
        .count();
    let report = learner
        .forward_backward(&expected.rows(), &MeanLoss(total))
        .unwrap();
    for (scores, logprobs) in report.scores.iter().zip(expected.lists("logprobs")) {
        assert!(distance(&scores.logprobs, &logprobs) < 1e-4);
    }
    let loss = expected.json["loss"].as_f64().unwrap();
    assert!(
        (report.loss / loss - 1.0).abs() < 1e-4,
        "{} is not {loss}",
        report.loss
    );
    let bytes = std::fs::read(case().join("gradients.safetensors")).unwrap();
    let gradients = SafeTensors::deserialize(&bytes).unwrap();
    let mut seen = 0;
    for (name, shape, found) in learner.gradients() {
        let view = gradients.tensor(name).unwrap();
        assert_eq!(view.shape(), shape, "{name}");
        let values = view.data().as_chunks::<4>().0;
        let values: Vec<f32> = values
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect();
        let distance = distance(found, &values);
        assert!(distance < 1e-4, "{name} is off by {distance}");
        seen += 1;
    }
    assert_eq!(seen, gradients.len());
}

#[test]
fn entropies_follow_from_the_logits_of_transformers() {
    let expected = Expected::read();
    let logits: Vec<Vec<Vec<f64>>> =
        serde_json::from_value(expected.json["logits"].clone()).unwrap();
    let model = Model::load(&case().join("model")).unwrap();
    let scores = Engine::new(1)
        .unwrap()
        .score(&model, &expected.rows())
        .unwrap();
    for (scores, logits) in scores.iter().zip(logits) {
        for (&entropy, logits) in scores.entropies.iter().zip(logits) {
            let total: f64 = logits.iter().map(|logit| logit.exp()).sum();
            let expected: f64 = logits
                .iter()
                .map(|logit| logit.exp() / total * (total.ln() - logit))
                .sum();
            assert!((f64::from(entropy) - expected).abs() < 1e-4 * expected);
        }
    }
}

#[test]
fn greedy_tokens_are_those_of_transformers() {
    let expected = Expected::read();
    let model = Arc::new(Model::load(&case().join("model")).unwrap());
    let sampler = Sampler::start(&Engine::new(1).unwrap(), SamplerOptions::default()).unwrap();
    sampler.publish("model", model, WeightVersion(0));
    let (sender, receiver) = mpsc::channel();
    sampler.submit(SampleRequest {
        model: "model".to_owned(),
        prompt: expected.rows[1].clone(),
        sampling: Sampling::greedy(20),
        seed: Seed(0),
        done: Box::new(move |answer| sender.send(answer).unwrap()),
    });
    let greedy: Vec<u32> = serde_json::from_value(expected.json["greedy"].clone()).unwrap();
    assert_eq!(receiver.recv().unwrap().unwrap().response, greedy);
}

#[test]
fn loading_and_saving_keep_every_byte() {
    let model = Model::load(&case().join("model")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    model.save(directory.path()).unwrap();
    let again = Model::load(directory.path()).unwrap();
    assert_eq!(model.config(), again.config());
    let tensors = |model: &Model| -> HashMap<String, Vec<u32>> {
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect();
        model
            .tensors()
            .map(|(name, _, values)| (name.to_owned(), bits(values)))
            .collect()
    };
    assert_eq!(tensors(&model), tensors(&again));
    assert_eq!(model.n_parameters(), 17_696);
}

/// Where the opt-in check with an installed transformers leaves its files.
fn saved() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("saved-for-transformers")
}

/// First half of the opt-in check: then run `generate.py` of the case on the printed directory.
#[test]
#[ignore = "needs an installed transformers between the two halves"]
fn live_1_save_for_transformers() {
    Model::load(&case().join("model"))
        .unwrap()
        .save(&saved())
        .unwrap();
    println!("{}", saved().display());
}

/// Second half: what transformers made of the directory that the engine saved.
#[test]
#[ignore = "needs an installed transformers between the two halves"]
fn live_2_transformers_agrees() {
    let text = std::fs::read(saved().join("scores.json")).unwrap();
    let scores: Vec<Vec<f32>> = serde_json::from_slice(&text).unwrap();
    for (scores, expected) in scores.iter().zip(Expected::read().lists("logprobs")) {
        assert!(distance(scores, &expected) < 1e-5);
    }
}
