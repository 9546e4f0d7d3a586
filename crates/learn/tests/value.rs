//! The value function: its loss has its own gradients, and it learns what a batch is worth.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::sync::Arc;

use engine::{Engine, LearnerOptions, Model, ModelConfig, ValueLoss};
use learn::{
    Aggregation, ClippedValueLoss, EngineValueTrainer, TrainError, ValueConfig, ValueTrainer,
    gae::gae, metrics,
};
use proptest::prelude::*;
use record::{Batch, Datum, Seed};

fn config() -> ValueConfig {
    toml::from_str("optimizer = { lr = 1e-2 }").unwrap()
}

fn batch(lengths: &[usize]) -> Batch {
    let row = |(row, &n): (usize, &usize)| {
        let response: Vec<u32> = (0..n).map(|at| ((3 * row + at) % 24) as u32).collect();
        Datum::supervised(&[row as u32, 1], &response)
    };
    Batch {
        data: lengths.iter().enumerate().map(row).collect(),
    }
}

fn trainer() -> EngineValueTrainer {
    let engine = Engine::new(2).unwrap();
    let model = Model::random(ModelConfig::qwen2(24, 32, 2, 2), Seed(3)).unwrap();
    EngineValueTrainer::new(&engine, Arc::new(model), LearnerOptions::default())
}

#[test]
fn settings_read_as_documented() {
    let found = config();
    assert_eq!((found.clip, found.epochs, found.mini_batches), (0.5, 1, 1));
    assert_eq!(
        (found.aggregation, found.head_start),
        (Aggregation::TokenMean, 0)
    );
    assert_eq!(found.check(), Ok(()));
    let again: ValueConfig = toml::from_str(&toml::to_string(&found).unwrap()).unwrap();
    assert_eq!(again, found);
    for (text, key) in [
        ("clip = 0.0", "clip"),
        ("epochs = 0", "epochs"),
        ("mini_batches = 0", "mini_batches"),
    ] {
        let text = format!("optimizer = {{ lr = 1e-2 }}\n{text}");
        let wrong: ValueConfig = toml::from_str(&text).unwrap();
        assert_eq!(wrong.check().unwrap_err().key, key);
    }
    assert!(toml::from_str::<ValueConfig>("optimizer = { lr = 1 }\ncliprange = 1").is_err());
}

#[test]
fn it_learns_who_is_paid() {
    // Even rows are paid at their end: without a discount every token of theirs is worth 1.
    let lengths = [4, 7, 1, 5];
    let batch = batch(&lengths);
    let mut trainer = trainer();
    let mut explained = Vec::new();
    for _ in 0..60 {
        let values = trainer.values(&batch).unwrap();
        let mut returns = Vec::new();
        for (row, values) in values.iter().enumerate() {
            let mut rewards = vec![0.0; values.len()];
            *rewards.last_mut().unwrap() = if row % 2 == 0 { 1.0 } else { 0.0 };
            let values: Vec<f64> = values.iter().map(|&value| value.into()).collect();
            returns.push(gae(&rewards, &values, 1.0, 1.0).returns);
        }
        let wide: Vec<Vec<f64>> = values
            .iter()
            .map(|row| row.iter().map(|&value| value.into()).collect())
            .collect();
        explained.push(metrics::values(&wide, &returns)["critic/vf_explained_var"]);
        let loss = ClippedValueLoss::new(&batch, &values, &returns, &config());
        let pass = trainer.forward_backward(&batch, &loss).unwrap();
        // The first update of a step sees the values that it began with.
        assert_eq!(pass.values, values);
        let squares = wide.iter().flatten().zip(returns.iter().flatten());
        let expected: f64 = squares.map(|(v, r)| (v - r).powi(2) / 2.0).sum::<f64>() / 17.0;
        assert!((pass.loss - expected).abs() < 1e-9);
        assert_eq!(loss.clip_fraction(&pass.values), 0.0);
        let step = trainer.optim_step(&config().optimizer, 1e-2).unwrap();
        let told = metrics::value_update(&pass, 0.0, 1e-2, step);
        assert_eq!(told["critic/skipped_steps"], 0.0);
        assert!(told["critic/grad_norm"] > 0.0);
    }
    assert!(explained[0].abs() < 1e-12, "a new head knows nothing");
    assert!(explained[59] > 0.9, "{explained:?}");
}

#[test]
fn what_cannot_be_trained_is_refused() {
    let mut trainer = trainer();
    let mut empty = batch(&[2]);
    empty.data[0].mask.fill(false);
    let loss = ClippedValueLoss::new(&empty, &[vec![]], &[vec![]], &config());
    let refused = trainer.forward_backward(&empty, &loss);
    assert!(matches!(refused, Err(TrainError::EmptyBatch)));
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::new(1).unwrap();
    let other = Model::random(ModelConfig::qwen2(24, 16, 1, 2), Seed(3)).unwrap();
    EngineValueTrainer::new(&engine, Arc::new(other), LearnerOptions::default())
        .save(directory.path())
        .unwrap();
    let refused = trainer.load(directory.path());
    assert!(matches!(refused, Err(TrainError::AnotherShape { .. })));
}

proptest! {
    #[test]
    fn gradients_of_the_loss_are_its_own(
        tokens in prop::collection::vec((-2.0f32..2.0, -2.0f32..2.0, -2.0f64..2.0), 1..12),
        mode in prop::sample::select(vec![
            Aggregation::TokenMean, Aggregation::SeqMeanTokenMean, Aggregation::SeqMeanTokenSum,
        ]),
    ) {
        let batch = batch(&[tokens.len(), 3]);
        let old = [tokens.iter().map(|token| token.1).collect(), vec![0.0; 3]];
        let returns = [tokens.iter().map(|token| token.2).collect(), vec![0.0; 3]];
        let config = ValueConfig { aggregation: mode, ..config() };
        let loss = ClippedValueLoss::new(&batch, &old, &returns, &config);
        let values: Vec<f32> = tokens.iter().map(|token| token.0).collect();
        let at = |values: &[f32]| loss.row(0, values, &mut vec![0.0; values.len()]);
        let mut slopes = vec![0.0; values.len()];
        loss.row(0, &values, &mut slopes);
        for token in 0..values.len() {
            let moved = |by: f32| {
                let mut values = values.clone();
                values[token] += by;
                (f64::from(values[token]), at(&values))
            };
            let ((low, below), (high, above), middle) = (moved(-1e-2), moved(1e-2), at(&values));
            // Not across a kink, where the two halves differ.
            let [left, right] = [(middle - below), (above - middle)]
                .map(|difference| difference / (high - low) * 2.0);
            if (left - right).abs() > 0.02 {
                continue;
            }
            let quotient = (above - below) / (high - low);
            prop_assert!((quotient - f64::from(slopes[token])).abs() < 0.02);
        }
    }
}
