//! Models that compute in bf16: as deterministic as in f32, close to it, and exact through checkpoints.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::sync::{Arc, mpsc};

use engine::{
    AdamW, Dtype, Engine, Learner, LearnerOptions, Model, ModelConfig, RowScores, SampleRequest,
    Sampler, SamplerOptions, TokenLoss, TrainRow,
};
use record::{Sampling, Seed, WeightVersion};

const VOCABULARY: usize = 50;

fn model(dtype: Dtype) -> Arc<Model> {
    let config = ModelConfig {
        n_kv_heads: 2,
        initializer_range: 0.2,
        dtype,
        ..ModelConfig::qwen2(VOCABULARY, 40, 2, 4)
    };
    Arc::new(Model::random(config, Seed(1)).unwrap())
}

struct Likelihood;

impl TokenLoss for Likelihood {
    fn row(&self, _: usize, scores: &RowScores, d_logprobs: &mut [f32], _: &mut [f32]) -> f64 {
        d_logprobs.fill(-0.01);
        let logprobs = scores.logprobs.iter();
        logprobs.map(|&logprob| -0.01 * f64::from(logprob)).sum()
    }
}

fn tokens(row: usize, len: usize) -> Vec<u32> {
    let token = |at: usize| Seed(7).stream("token", (row * 1000 + at) as u64).0 as u32;
    (0..len).map(|at| token(at) % VOCABULARY as u32).collect()
}

fn with_rows<T>(work: impl FnOnce(&[TrainRow]) -> T) -> T {
    let rows: Vec<(Vec<u32>, Vec<bool>)> = [30, 3, 17, 44, 9, 26]
        .into_iter()
        .enumerate()
        .map(|(row, len)| (tokens(row, len), (0..len).map(|at| at > 0).collect()))
        .collect();
    let rows: Vec<TrainRow> = rows
        .iter()
        .map(|(tokens, mask)| TrainRow { tokens, mask })
        .collect();
    work(&rows)
}

fn train(learner: &mut Learner, steps: usize) -> Vec<f64> {
    let step = |_| {
        let report = with_rows(|rows| learner.forward_backward(rows, &Likelihood).unwrap());
        assert!(learner.optim_step(&AdamW::at(3e-3)).applied);
        report.loss
    };
    (0..steps).map(step).collect()
}

fn weight_bits(model: &Model) -> Vec<u32> {
    let tensors = model.tensors();
    tensors
        .flat_map(|(_, _, values)| values.iter().map(|value| value.to_bits()))
        .collect()
}

#[test]
fn threads_do_not_change_a_byte_and_training_learns() {
    let results = [1, 2, 4].map(|threads| {
        let engine = Engine::new(threads).unwrap();
        let options = LearnerOptions::default();
        let mut learner = Learner::new(&engine, model(Dtype::Bf16), options);
        let losses = train(&mut learner, 8);
        (losses, weight_bits(learner.model()))
    });
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
    let (losses, bits) = &results[0];
    assert!(losses[7] < 0.9 * losses[0], "{losses:?}");
    // Every weight is a bf16 number.
    assert!(bits.iter().all(|bits| bits & 0xffff == 0));
}

/// The f32 weights that are trained are kept beside the checkpoint, which is bf16.
#[test]
fn resuming_is_exact_to_the_bit_and_files_are_half_as_large() {
    let engine = Engine::new(2).unwrap();
    let options = LearnerOptions::default();
    let mut learner = Learner::new(&engine, model(Dtype::Bf16), options);
    train(&mut learner, 2);
    let directory = tempfile::tempdir().unwrap();
    learner.save(directory.path()).unwrap();
    let size = std::fs::metadata(directory.path().join("model.safetensors"));
    let parameters = learner.model().n_parameters() as u64;
    assert!((2 * parameters..2 * parameters + 8192).contains(&size.unwrap().len()));

    let mut resumed = Learner::load(&engine, directory.path(), options).unwrap();
    assert_eq!(resumed.model().config().dtype, Dtype::Bf16);
    assert_eq!(weight_bits(resumed.model()), weight_bits(learner.model()));
    assert_eq!(train(&mut resumed, 3), train(&mut learner, 3));
    assert_eq!(weight_bits(resumed.model()), weight_bits(learner.model()));
}

#[test]
fn recorded_logprobs_are_those_of_a_scoring_pass() {
    let engine = Engine::new(2).unwrap();
    let model = model(Dtype::Bf16);
    let sampler = Sampler::start(&engine, SamplerOptions::default()).unwrap();
    sampler.publish("model", Arc::clone(&model), WeightVersion(0));
    let (tell, told) = mpsc::channel();
    for row in 0..9 {
        let tell = tell.clone();
        sampler.submit(SampleRequest {
            model: "model".to_owned(),
            prompt: tokens(row, 5 + row),
            sampling: Sampling::at(1.0, 20),
            seed: Seed(row as u64),
            done: Box::new(move |answer| tell.send(answer.unwrap()).unwrap()),
        });
    }
    drop(tell);
    for completion in told {
        let tokens = [&completion.prompt[..], &completion.response[..]].concat();
        let mask: Vec<bool> = (0..tokens.len())
            .map(|at| at >= completion.prompt.len())
            .collect();
        let row = TrainRow {
            tokens: &tokens,
            mask: &mask,
        };
        let scores = engine.score(&model, &[row]).unwrap();
        assert_eq!(scores[0].logprobs, completion.logprobs);
    }
}

/// The gap that 16-bit products make, over equal weights.
#[test]
fn scores_and_gradients_are_close_to_those_in_f32() {
    let engine = Engine::new(2).unwrap();
    let half = model(Dtype::Bf16);
    let full = half.with_dtype(Dtype::F32);
    assert_eq!(weight_bits(&half), weight_bits(&full));
    let [half, full] = [half, Arc::new(full)].map(|model| {
        let scores = with_rows(|rows| engine.score(&model, rows).unwrap());
        let mut learner = Learner::new(&engine, model, LearnerOptions::default());
        with_rows(|rows| learner.forward_backward(rows, &Likelihood).unwrap());
        let gradients = learner.gradients();
        let gradients: Vec<f32> = gradients
            .flat_map(|(_, _, values)| values.to_vec())
            .collect();
        (scores, gradients)
    });
    let gaps: Vec<f32> = half
        .0
        .iter()
        .zip(&full.0)
        .flat_map(|(half, full)| half.logprobs.iter().zip(&full.logprobs))
        .map(|(half, full)| (half - full).abs())
        .collect();
    let mean = gaps.iter().sum::<f32>() / gaps.len() as f32;
    let largest = gaps.iter().copied().fold(0.0, f32::max);
    println!("log-prob gap to f32: mean {mean:.4}, largest {largest:.4}");
    assert!(largest > 0.0 && mean < 0.02 && largest < 0.1);
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let products = a.iter().zip(b);
        products.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let lengths = dot(&half.1, &half.1) * dot(&full.1, &full.1);
    let cosine = dot(&half.1, &full.1) / lengths.sqrt();
    assert!(cosine > 0.999, "cosine {cosine}");
}
