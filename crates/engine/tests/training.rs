//! Training: same bytes on any number of threads, exact resume, and it learns.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::sync::Arc;

use engine::{
    AdamW, Dtype, Engine, Family, Learner, LearnerOptions, Model, ModelConfig, RowError, RowScores,
    TokenLoss, TrainRow,
};
use proptest::prelude::*;
use record::Seed;

const VOCABULARY: usize = 50;

fn model() -> Arc<Model> {
    let config = ModelConfig {
        n_kv_heads: 2,
        ..ModelConfig::qwen2(VOCABULARY, 40, 2, 4)
    };
    Arc::new(Model::random(config, Seed(1)).unwrap())
}

/// Mean negative log-likelihood per token, and a little entropy.
struct Likelihood;

impl TokenLoss for Likelihood {
    fn row(
        &self,
        _: usize,
        scores: &RowScores,
        d_logprobs: &mut [f32],
        d_entropies: &mut [f32],
    ) -> f64 {
        d_logprobs.fill(-0.01);
        d_entropies.fill(-1e-4);
        let nll: f64 = scores
            .logprobs
            .iter()
            .map(|&logprob| -0.01 * f64::from(logprob))
            .sum();
        nll - 1e-4
            * scores
                .entropies
                .iter()
                .map(|&entropy| f64::from(entropy))
                .sum::<f64>()
    }
}

#[derive(Clone)]
struct Rows(Vec<(Vec<u32>, Vec<bool>)>);

impl Rows {
    fn new(lengths: &[usize], seed: u64) -> Self {
        let draw = |stream: &str, row: usize, at: usize| {
            Seed(seed).stream(stream, (row * 1000 + at) as u64).0
        };
        let row = |(row, &len): (usize, &usize)| {
            let tokens = (0..len).map(|at| (draw("token", row, at) % VOCABULARY as u64) as u32);
            let mask = (0..len).map(|at| at > 0 && draw("mask", row, at) % 3 > 0);
            (tokens.collect(), mask.collect())
        };
        Self(lengths.iter().enumerate().map(row).collect())
    }
    fn rows(&self) -> Vec<TrainRow<'_>> {
        self.0
            .iter()
            .map(|(tokens, mask)| TrainRow { tokens, mask })
            .collect()
    }
}

fn weight_bits(learner: &Learner) -> Vec<u32> {
    learner
        .model()
        .tensors()
        .flat_map(|(_, _, values)| values.iter().map(|v| v.to_bits()))
        .collect()
}

fn train(learner: &mut Learner, steps: std::ops::Range<u64>) -> Vec<f64> {
    steps
        .map(|step| {
            let mut loss = 0.0;
            for part in 0..2 {
                let rows = Rows::new(&[30, 3, 17, 44, 9, 1, 26], 2 * step + part);
                loss += learner
                    .forward_backward(&rows.rows(), &Likelihood)
                    .unwrap()
                    .loss;
            }
            let adam = AdamW {
                weight_decay: 0.1,
                ..AdamW::at(3e-3)
            };
            assert!(learner.optim_step(&adam).applied);
            loss
        })
        .collect()
}

#[test]
fn threads_do_not_change_a_byte() {
    let results: Vec<_> = [1, 2, 4]
        .into_iter()
        .map(|threads| {
            let engine = Engine::new(threads).unwrap();
            let mut learner = Learner::new(&engine, model(), LearnerOptions::default());
            let losses = train(&mut learner, 0..4);
            (losses, weight_bits(&learner))
        })
        .collect();
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
}

#[test]
fn resuming_is_exact_to_the_bit() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::new(2).unwrap();
    let mut straight = Learner::new(&engine, model(), LearnerOptions::default());
    train(&mut straight, 0..3);
    straight.save(directory.path()).unwrap();
    let mut resumed = Learner::load(&engine, directory.path(), LearnerOptions::default()).unwrap();
    assert_eq!(resumed.step(), 3);
    assert_eq!(train(&mut straight, 3..6), train(&mut resumed, 3..6));
    assert_eq!(weight_bits(&straight), weight_bits(&resumed));
}

#[test]
fn it_learns_a_small_corpus_by_heart() {
    let engine = Engine::new(2).unwrap();
    let mut learner = Learner::new(&engine, model(), LearnerOptions::default());
    let rows = Rows::new(&[20, 25, 15, 30], 7);
    let mut losses = Vec::new();
    for _ in 0..120 {
        losses.push(
            learner
                .forward_backward(&rows.rows(), &Likelihood)
                .unwrap()
                .loss,
        );
        learner.optim_step(&AdamW::at(1e-2));
    }
    let (first, last) = (losses[0], losses[119]);
    assert!(last < 0.1 * first, "loss went from {first} to {last}");
}

#[test]
fn published_weights_never_change_and_are_shared_until_they_must() {
    let engine = Engine::new(1).unwrap();
    let mut learner = Learner::new(&engine, model(), LearnerOptions::default());
    train(&mut learner, 0..1);
    let published = learner.publish();
    let again = learner.publish();
    assert!(Arc::ptr_eq(&published, &again));
    let before: Vec<f32> = published
        .tensors()
        .flat_map(|(_, _, v)| v.to_vec())
        .collect();
    train(&mut learner, 1..2);
    let after: Vec<f32> = published
        .tensors()
        .flat_map(|(_, _, v)| v.to_vec())
        .collect();
    assert_eq!(before, after);
    assert!(!Arc::ptr_eq(&published, &learner.publish()));
}

struct NotANumber;

impl TokenLoss for NotANumber {
    fn row(&self, _: usize, _: &RowScores, d_logprobs: &mut [f32], _: &mut [f32]) -> f64 {
        d_logprobs.fill(f32::NAN);
        f64::NAN
    }
}

#[test]
fn a_gradient_that_is_not_finite_skips_the_step() {
    let engine = Engine::new(2).unwrap();
    let mut learner = Learner::new(&engine, model(), LearnerOptions::default());
    let before = weight_bits(&learner);
    let rows = Rows::new(&[20, 25], 7);
    learner.forward_backward(&rows.rows(), &NotANumber).unwrap();
    let report = learner.optim_step(&AdamW::at(1e-2));
    assert!(!report.applied && !report.grad_norm.is_finite() && report.step == 0);
    assert_eq!(before, weight_bits(&learner));
    train(&mut learner, 0..1);
    assert_ne!(before, weight_bits(&learner));
}

#[test]
fn the_gradient_norm_is_clipped() {
    let engine = Engine::new(1).unwrap();
    let rows = Rows::new(&[20, 25], 7);
    let run = |max_grad_norm| {
        let mut learner = Learner::new(&engine, model(), LearnerOptions::default());
        learner.forward_backward(&rows.rows(), &Likelihood).unwrap();
        // A large epsilon makes the update proportional to the gradient.
        let adam = AdamW {
            epsilon: 1e6,
            max_grad_norm,
            ..AdamW::at(1e6)
        };
        let report = learner.optim_step(&adam);
        let start = model();
        let pairs = learner.model().tensors().zip(start.tensors());
        let values = pairs.flat_map(|((_, _, new), (_, _, old))| new.iter().zip(old));
        let squares: f64 = values.map(|(a, b)| f64::from(a - b).powi(2)).sum();
        (report.grad_norm, squares.sqrt())
    };
    let (norm, free) = run(f64::INFINITY);
    let (same_norm, clipped) = run(norm / 4.0);
    assert_eq!(norm, same_norm);
    assert!(
        (clipped / free - 0.25).abs() < 0.01,
        "{clipped} is not a quarter of {free}"
    );
}

#[test]
fn rows_out_of_order_are_refused_and_add_nothing() {
    let engine = Engine::new(1).unwrap();
    let mut learner = Learner::new(&engine, model(), LearnerOptions::default());
    let long = vec![0; 3000];
    let mask = vec![false; 3000];
    let cases = [
        (
            TrainRow {
                tokens: &[1, 2],
                mask: &[false],
            },
            "mask of 1",
        ),
        (
            TrainRow {
                tokens: &[1, 2],
                mask: &[true, true],
            },
            "mask[0]",
        ),
        (
            TrainRow {
                tokens: &[1, 50],
                mask: &[false, true],
            },
            "token 50 at position 1",
        ),
        (
            TrainRow {
                tokens: &long,
                mask: &mask,
            },
            "more than the context of 2048",
        ),
    ];
    for (row, expected) in cases {
        let good = TrainRow {
            tokens: &[1, 2],
            mask: &[false, true],
        };
        let error: RowError = learner
            .forward_backward(&[good, row], &Likelihood)
            .unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("row 1") && message.contains(expected),
            "{message}"
        );
    }
    assert_eq!(learner.optim_step(&AdamW::at(1e-2)).grad_norm, 0.0);
}

#[test]
fn samples_of_one_prompt_share_it_without_changing_scores_or_gradients() {
    // Three prompts with four samples each, and rows between them that share nothing.
    let mut rows = Rows::new(&[30, 31, 45, 33, 12, 70, 66, 80, 71, 9, 50, 41, 42, 40], 11);
    for (first, prompt) in [(0, 25), (5, 60), (10, 33)] {
        let shared = rows.0[first].0[..prompt].to_vec();
        for (tokens, mask) in &mut rows.0[first..first + 4] {
            tokens[..prompt].copy_from_slice(&shared);
            mask[..prompt].fill(false);
            mask[prompt..].fill(true);
        }
    }
    let engine = Engine::new(2).unwrap();
    let mut together = Learner::new(&engine, model(), LearnerOptions::default());
    let report = together
        .forward_backward(&rows.rows(), &Likelihood)
        .unwrap();
    assert_eq!(engine.score(&model(), &rows.rows()).unwrap(), report.scores);
    let mut one_by_one = Learner::new(&engine, model(), LearnerOptions::default());
    for (row, scores) in rows.rows().into_iter().zip(&report.scores) {
        let alone = one_by_one.forward_backward(&[row], &Likelihood).unwrap();
        assert_eq!(&alone.scores[0], scores);
    }
    let gradients = |learner: &mut Learner| -> Vec<f32> {
        learner
            .gradients()
            .flat_map(|(_, _, values)| values.to_vec())
            .collect()
    };
    let (together, one_by_one) = (gradients(&mut together), gradients(&mut one_by_one));
    let largest = one_by_one
        .iter()
        .fold(0.0_f32, |top, value| top.max(value.abs()));
    for (a, b) in together.iter().zip(&one_by_one) {
        assert!((a - b).abs() < 2e-6 * largest.max(0.1), "{a} and {b}");
    }
}

#[test]
fn gradient_checkpointing_changes_no_byte() {
    let config = ModelConfig {
        n_kv_heads: 2,
        ..ModelConfig::qwen2(VOCABULARY, 40, 3, 4)
    };
    let normed_heads = ModelConfig {
        family: Family::Qwen3,
        ..config.clone()
    };
    let half = ModelConfig {
        dtype: Dtype::Bf16,
        ..config.clone()
    };
    for config in [config, normed_heads, half] {
        let model = Arc::new(Model::random(config, Seed(1)).unwrap());
        let engine = Engine::new(2).unwrap();
        let trained = |gradient_checkpointing| {
            let options = LearnerOptions {
                gradient_checkpointing,
                ..LearnerOptions::default()
            };
            let mut learner = Learner::new(&engine, Arc::clone(&model), options);
            let losses = train(&mut learner, 0..3);
            (losses, weight_bits(&learner))
        };
        assert!(trained(false) == trained(true));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_row_alone_equals_the_row_in_a_batch(
        lengths in prop::collection::vec(0_usize..90, 1..12), seed in 0_u64..1000,
    ) {
        let engine = Engine::new(2).unwrap();
        let model = model();
        let rows = Rows::new(&lengths, seed);
        let together = engine.score(&model, &rows.rows()).unwrap();
        prop_assert_eq!(together.len(), lengths.len());
        for (row, together) in rows.rows().into_iter().zip(&together) {
            let alone = engine.score(&model, &[row]).unwrap();
            prop_assert_eq!(&alone[0], together);
        }
        let mut learner = Learner::new(&engine, Arc::clone(&model), LearnerOptions::default());
        let trained = learner.forward_backward(&rows.rows(), &Likelihood).unwrap();
        prop_assert_eq!(&trained.scores, &together);
    }

    #[test]
    fn division_of_the_work_changes_gradients_by_rounding_only(
        lengths in prop::collection::vec(1_usize..60, 1..9), budget in 1_usize..200,
        lanes in 1_usize..6,
    ) {
        let engine = Engine::new(2).unwrap();
        let rows = Rows::new(&lengths, 3);
        let gradients = |options| {
            let mut learner = Learner::new(&engine, model(), options);
            learner.forward_backward(&rows.rows(), &Likelihood).unwrap();
            learner.gradients().flat_map(|(_, _, values)| values.to_vec()).collect::<Vec<f32>>()
        };
        let usual = gradients(LearnerOptions::default());
        let other = gradients(LearnerOptions { micro_batch_tokens: budget, lanes, ..LearnerOptions::default() });
        for (a, b) in usual.iter().zip(&other) {
            prop_assert!((a - b).abs() < 1e-6, "{} and {}", a, b);
        }
    }
}
