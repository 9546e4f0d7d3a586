//! The engine as a trainer: a tiny model learns, stops, goes on.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::sync::Arc;

use engine::{Engine, LearnerOptions, Model, ModelConfig};
use learn::{
    AlgorithmConfig, EngineTrainer, KlConfig, Loss, OptimizerConfig, TrainError, Trainer, metrics,
};
use record::{Batch, Datum, Seed, WeightVersion};

fn model() -> Arc<Model> {
    Arc::new(Model::random(ModelConfig::qwen2(24, 32, 2, 2), Seed(3)).unwrap())
}

fn trainer(reference: Option<Arc<Model>>, micro_batch_tokens: usize) -> EngineTrainer {
    let engine = Engine::new(2).unwrap();
    let options = LearnerOptions {
        micro_batch_tokens,
        ..LearnerOptions::default()
    };
    EngineTrainer::new(&engine, model(), reference, options)
}

fn optimizer() -> OptimizerConfig {
    toml::from_str("lr = 1e-2\ngrad_clip = 1.0").unwrap()
}

/// Rows of different lengths: count up from a start.
fn counting() -> Batch {
    let row = |start: u32, n: u32| {
        let response: Vec<u32> = (1..=n).map(|i| (start + i) % 24).collect();
        Datum::supervised(&[start, start], &response)
    };
    Batch {
        data: vec![row(0, 9), row(5, 3), row(11, 6), row(2, 1), row(17, 4)],
    }
}

/// The counting rows as if the model had sampled them: some good, some bad.
fn sampled(trainer: &mut EngineTrainer) -> Batch {
    let mut batch = counting();
    trainer.score_reference(&mut batch).unwrap();
    for (i, datum) in batch.data.iter_mut().enumerate() {
        datum.logprobs = datum.ref_logprobs.clone();
        datum.advantages.fill(if i % 2 == 0 { 1.0 } else { -1.0 });
    }
    batch
}

#[test]
fn supervised_training_learns() {
    let mut trainer = trainer(None, 64);
    let batch = counting();
    let mut losses = Vec::new();
    for _ in 0..60 {
        let pass = trainer
            .forward_backward(&batch, &Loss::supervised())
            .unwrap();
        let seen = metrics::supervised(&batch, &pass.scores)["sft/loss"];
        assert!((pass.loss - seen).abs() < 1e-6);
        losses.push(pass.loss);
        let step = trainer.optim_step(&optimizer(), 1e-2).unwrap();
        assert!(step.applied && step.grad_norm > 0.0);
    }
    assert!((losses[0] - f64::ln(24.0)).abs() < 0.2, "{}", losses[0]);
    assert!(losses[59] < 0.1, "{}", losses[59]);
    assert_eq!(trainer.version(), WeightVersion(60));
}

#[test]
fn micro_batches_change_the_result_by_rounding_alone() {
    let reference = Some(model());
    let config = AlgorithmConfig {
        entropy_coefficient: 0.01,
        ..AlgorithmConfig::default()
    };
    let [small, large] = [4, 4096].map(|tokens| {
        let mut trainer = trainer(reference.clone(), tokens);
        let batch = sampled(&mut trainer);
        let pass = trainer
            .forward_backward(&batch, &Loss::Policy(Box::new(config.clone())))
            .unwrap();
        (pass, trainer.optim_step(&optimizer(), 0.0).unwrap())
    });
    assert!((small.0.loss - large.0.loss).abs() < 1e-6);
    assert!((small.1.grad_norm / large.1.grad_norm - 1.0).abs() < 1e-4);
}

#[test]
fn the_policy_moves_towards_what_was_rewarded() {
    let mut trainer = trainer(Some(model()), 64);
    let batch = sampled(&mut trainer);
    let kl = KlConfig {
        coefficient: 0.01,
        ..KlConfig::default()
    };
    let config = AlgorithmConfig {
        kl,
        ..AlgorithmConfig::default()
    };
    let loss = Loss::Policy(Box::new(config.clone()));
    let sum = |scores: &[engine::RowScores], parity: usize| -> f32 {
        scores
            .iter()
            .skip(parity)
            .step_by(2)
            .flat_map(|row| &row.logprobs)
            .sum()
    };

    let first = trainer.forward_backward(&batch, &loss).unwrap();
    let seen = metrics::policy(&batch, &first.scores, &config);
    // The first pass is on policy, and the policy is still the reference.
    assert!(seen["training/logprob_gap_max"] < 1e-4);
    assert!(seen["actor/kl_loss"].abs() < 1e-6);
    assert_eq!(seen["actor/pg_clipfrac"], 0.0);
    for _ in 0..4 {
        trainer.optim_step(&optimizer(), 1e-3).unwrap();
        trainer.forward_backward(&batch, &loss).unwrap();
    }
    let last = trainer.forward_backward(&batch, &loss).unwrap();
    assert!(sum(&last.scores, 0) > sum(&first.scores, 0) + 0.1);
    assert!(sum(&last.scores, 1) < sum(&first.scores, 1) - 0.1);
    assert!(last.loss < first.loss);
    assert!(metrics::policy(&batch, &last.scores, &config)["actor/kl_loss"] > 0.0);
}

#[test]
fn a_loaded_trainer_goes_on_with_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let batch = counting();
    let step = |trainer: &mut EngineTrainer| {
        let pass = trainer
            .forward_backward(&batch, &Loss::supervised())
            .unwrap();
        trainer.optim_step(&optimizer(), 3e-3).unwrap();
        pass
    };
    let mut whole = trainer(None, 64);
    for _ in 0..3 {
        step(&mut whole);
    }
    whole.save(directory.path()).unwrap();
    let mut resumed = trainer(None, 64);
    resumed.load(directory.path()).unwrap();
    assert_eq!(resumed.version(), WeightVersion(3));
    for _ in 0..3 {
        assert_eq!(step(&mut whole), step(&mut resumed));
    }
    let weights = |trainer: &EngineTrainer| -> Vec<u32> {
        trainer
            .model()
            .tensors()
            .flat_map(|(.., values)| values)
            .map(|v| v.to_bits())
            .collect()
    };
    assert_eq!(weights(&whole), weights(&resumed));

    let larger = Model::random(ModelConfig::qwen2(24, 64, 2, 2), Seed(3)).unwrap();
    let engine = Engine::new(1).unwrap();
    let mut other = EngineTrainer::new(&engine, Arc::new(larger), None, LearnerOptions::default());
    let error = other.load(directory.path()).unwrap_err();
    assert!(matches!(error, TrainError::AnotherShape { .. }), "{error}");
    assert_eq!(other.version(), WeightVersion(0));
}

#[test]
fn published_weights_stay_as_they_are() {
    let mut trainer = trainer(None, 64);
    let published = trainer.publish().unwrap();
    let before: Vec<f32> = published
        .weights
        .tensors()
        .flat_map(|(.., v)| v.to_vec())
        .collect();
    trainer
        .forward_backward(&counting(), &Loss::supervised())
        .unwrap();
    trainer.optim_step(&optimizer(), 1e-2).unwrap();
    let after: Vec<f32> = published
        .weights
        .tensors()
        .flat_map(|(.., v)| v.to_vec())
        .collect();
    assert_eq!(before, after);
    let next = trainer.publish().unwrap();
    assert_eq!(
        (published.version, next.version),
        (WeightVersion(0), WeightVersion(1))
    );
}

#[test]
fn wrong_requests_are_refused() {
    let mut trainer = trainer(None, 64);
    let refused = trainer.forward_backward(&Batch::default(), &Loss::supervised());
    assert!(matches!(refused, Err(TrainError::EmptyBatch)));
    let unscored = trainer.score_reference(&mut counting());
    assert!(matches!(unscored, Err(TrainError::NoReference)));
    let foreign = Batch {
        data: vec![Datum::supervised(&[1], &[99])],
    };
    let refused = trainer.forward_backward(&foreign, &Loss::supervised());
    assert!(matches!(refused, Err(TrainError::Row(_))));
}
