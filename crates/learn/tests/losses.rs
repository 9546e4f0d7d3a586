//! Losses against golden vectors, finite differences and each other.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use engine::{RowScores, TokenLoss};
use learn::{
    Aggregation, AlgorithmConfig, KlConfig, KlEstimator, Loss, LossMode, PolicyLoss,
    SupervisedLoss, metrics,
};
use proptest::prelude::*;
use record::{Batch, Datum};

/// A row of one prompt token and one trained token per entry: (old log-prob, reference, advantage).
fn datum(trained: &[(f32, f32, f32)]) -> Datum {
    let response = vec![1; trained.len()];
    let mut datum = Datum::supervised(&[0], &response);
    for (i, &(old, reference, advantage)) in trained.iter().enumerate() {
        datum.logprobs[i + 1] = old;
        datum.ref_logprobs[i + 1] = reference;
        datum.advantages[i + 1] = advantage;
    }
    datum
}

fn scores(logprobs: &[f32]) -> RowScores {
    RowScores {
        logprobs: logprobs.to_vec(),
        entropies: vec![0.7; logprobs.len()],
    }
}

/// Loss over all rows, with the coefficients of each.
fn evaluate(loss: &dyn TokenLoss, scores: &[RowScores]) -> (f64, Vec<Vec<f32>>, Vec<Vec<f32>>) {
    let (mut total, mut d_logprobs, mut d_entropies) = (0.0, Vec::new(), Vec::new());
    for (row, scores) in scores.iter().enumerate() {
        let mut by_logprob = vec![0.0; scores.logprobs.len()];
        let mut by_entropy = by_logprob.clone();
        total += loss.row(row, scores, &mut by_logprob, &mut by_entropy);
        d_logprobs.push(by_logprob);
        d_entropies.push(by_entropy);
    }
    (total, d_logprobs, d_entropies)
}

fn plain() -> AlgorithmConfig {
    let kl = KlConfig {
        coefficient: 0.0,
        ..KlConfig::default()
    };
    AlgorithmConfig {
        kl,
        ..AlgorithmConfig::default()
    }
}

#[test]
fn ppo_golden_vectors() {
    // Spec of the critique study, section 11: advantage, ratio, dual clip, loss, whether a gradient
    // flows.
    let cases = [
        (1.0, 1.5, None, -1.2, false),
        (1.0, 0.5, None, -0.5, true),
        (-1.0, 0.5, None, 0.8, false),
        (-1.0, 1.5, None, 1.5, true),
        (-1.0, 5.0, None, 5.0, true),
        (-1.0, 5.0, Some(3.0), 3.0, false),
        (1.0, 5.0, Some(3.0), -1.2, false),
        (-1.0, 2.9, Some(3.0), 2.9, true),
        (1.0, 1.0, None, -1.0, true),
    ];
    for (advantage, ratio, dual_clip, expected, flows) in cases {
        let old = -8.0_f32;
        let new = old + f32::ln(ratio);
        let batch = Batch {
            data: vec![datum(&[(old, 0.0, advantage)])],
        };
        let loss = PolicyLoss::new(
            &batch,
            &AlgorithmConfig {
                dual_clip,
                ..plain()
            },
        );
        let (total, d_logprobs, d_entropies) = evaluate(&loss, &[scores(&[new])]);
        assert!(
            (total - expected).abs() < 1e-5,
            "A {advantage}, r {ratio}: {total}"
        );
        assert_eq!(d_logprobs[0][0] != 0.0, flows, "A {advantage}, r {ratio}");
        assert_eq!(d_entropies[0][0], 0.0);
    }
}

#[test]
fn clipping_is_asymmetric() {
    let config = AlgorithmConfig {
        clip_low: 0.1,
        clip_high: 0.4,
        ..plain()
    };
    for (advantage, ratio, expected) in [(1.0_f32, 2.0_f32, -1.4), (-1.0, 0.2, 0.9)] {
        let batch = Batch {
            data: vec![datum(&[(-3.0, 0.0, advantage)])],
        };
        let loss = PolicyLoss::new(&batch, &config);
        let (total, ..) = evaluate(&loss, &[scores(&[-3.0 + ratio.ln()])]);
        assert!((total - expected).abs() < 1e-5, "{total}");
    }
}

#[test]
fn only_masked_tokens_count() {
    // A conversation: prompt, response, tool output, response.
    let mut row = datum(&[(-1.0, -1.0, 1.0); 5]);
    row.mask[3] = false;
    row.logprobs[3] = f32::NAN;
    row.advantages[3] = f32::NAN;
    row.ref_logprobs[3] = f32::NAN;
    let batch = Batch { data: vec![row] };
    let seen = scores(&[-1.0; 4]);
    let config = AlgorithmConfig::default();
    let (total, d_logprobs, _) = evaluate(
        &PolicyLoss::new(&batch, &config),
        std::slice::from_ref(&seen),
    );
    assert!((total + 1.0).abs() < 1e-9, "{total}");
    assert_eq!(d_logprobs[0], [-0.25; 4]);
    assert!(
        metrics::policy(&batch, &[seen], &config)
            .values()
            .all(|value| value.is_finite())
    );
}

#[test]
fn supervised_loss_is_the_mean_over_tokens_of_the_batch() {
    let batch = Batch {
        data: vec![datum(&[(0., 0., 0.); 3]), datum(&[(0., 0., 0.); 1])],
    };
    let seen = [scores(&[-1.0, -2.0, -3.0]), scores(&[-10.0])];
    let (total, d_logprobs, _) =
        evaluate(&SupervisedLoss::new(&batch, Aggregation::TokenMean), &seen);
    assert!((total - 4.0).abs() < 1e-12);
    assert!(d_logprobs.iter().flatten().all(|&d| d == -0.25));
    assert!((metrics::supervised(&batch, &seen)["sft/loss"] - 4.0).abs() < 1e-12);
}

#[test]
fn extreme_ratios_stay_finite() {
    for advantage in [1.0, -1.0] {
        for new in [-1000.0, 0.0] {
            let batch = Batch {
                data: vec![datum(&[(-500.0, -500.0, advantage)])],
            };
            let loss = Loss::Policy(Box::default()).over(&batch);
            let (total, d_logprobs, _) = evaluate(loss.as_ref(), &[scores(&[new])]);
            assert!(total.is_finite() && d_logprobs[0][0].is_finite());
        }
    }
}

#[test]
fn metrics_speak_of_the_loss() {
    let config = AlgorithmConfig {
        entropy_coefficient: 0.01,
        kl: KlConfig {
            estimator: KlEstimator::K3,
            coefficient: 0.5,
            ..KlConfig::default()
        },
        dual_clip: Some(3.0),
        aggregation: Aggregation::SeqMeanTokenMean,
        ..plain()
    };
    let batch = Batch {
        data: vec![
            datum(&[(-1., -1.5, 1.), (-2., -2., 1.)]),
            datum(&[(-4., -3., -1.)]),
        ],
    };
    let seen = [scores(&[-0.5, -2.0]), scores(&[-2.0])];
    let (total, ..) = evaluate(&PolicyLoss::new(&batch, &config), &seen);
    let found = metrics::policy(&batch, &seen, &config);
    let sum =
        found["actor/pg_loss"] + 0.5 * found["actor/kl_loss"] - 0.01 * found["actor/entropy_loss"];
    assert!((sum - total).abs() < 1e-9, "{sum} {total}");
    assert!((found["actor/pg_clipfrac"] - 1.0 / 3.0).abs() < 1e-12);
    assert!((found["actor/pg_clipfrac_lower"] - 1.0 / 3.0).abs() < 1e-12);
    assert!((found["actor/ppo_kl"] - (-0.5 - 2.0) / 3.0).abs() < 1e-6);
    assert!((found["training/logprob_gap_max"] - 2.0).abs() < 1e-6);
    assert!((found["critic/advantages/mean"] - 1.0 / 3.0).abs() < 1e-6);
}

fn aggregation() -> impl Strategy<Value = Aggregation> {
    prop_oneof![
        Just(Aggregation::TokenMean),
        Just(Aggregation::SeqMeanTokenSum),
        Just(Aggregation::SeqMeanTokenMean),
        Just(Aggregation::SeqMeanTokenSumNorm),
    ]
}

fn config() -> impl Strategy<Value = AlgorithmConfig> {
    let estimator = prop_oneof![
        Just(KlEstimator::K1),
        Just(KlEstimator::K2),
        Just(KlEstimator::K3)
    ];
    let dual_clip = proptest::option::of(1.5..4.0f64);
    (
        aggregation(),
        estimator,
        0.0..0.5f64,
        0.0..0.5f64,
        dual_clip,
    )
        .prop_map(
            |(aggregation, estimator, coefficient, entropy_coefficient, dual_clip)| {
                AlgorithmConfig {
                    kl: KlConfig {
                        estimator,
                        coefficient,
                        ..KlConfig::default()
                    },
                    entropy_coefficient,
                    dual_clip,
                    clip_low: 0.2,
                    clip_high: 0.3,
                    aggregation,
                    ..AlgorithmConfig::default()
                }
            },
        )
}

/// Rows of (old, reference, advantage, new) per token.
fn rows() -> impl Strategy<Value = Vec<Vec<(f32, f32, f32, f32)>>> {
    let token = (-4.0f32..-0.5, -0.8f32..0.8, -2.0f32..2.0, -0.8f32..0.8)
        .prop_map(|(old, reference, advantage, new)| (old, old + reference, advantage, old + new));
    proptest::collection::vec(proptest::collection::vec(token, 0..5), 1..5)
}

fn split(rows: &[Vec<(f32, f32, f32, f32)>]) -> (Batch, Vec<RowScores>) {
    let data = rows
        .iter()
        .map(|row| {
            datum(
                &row.iter()
                    .map(|&(o, r, a, _)| (o, r, a))
                    .collect::<Vec<_>>(),
            )
        })
        .collect();
    let seen = rows
        .iter()
        .map(|row| scores(&row.iter().map(|&(.., new)| new).collect::<Vec<_>>()))
        .collect();
    (Batch { data }, seen)
}

/// Compares every coefficient with finite differences: it must lie between the slopes on either side,
/// which differ by the curvature alone except at the kink of a clip. Returns how many log-probs are at
/// no kink.
fn check_gradients(loss: &dyn TokenLoss, seen: &[RowScores]) -> Result<usize, TestCaseError> {
    let (base, d_logprobs, d_entropies) = evaluate(loss, seen);
    let h = 1.0 / 1024.0;
    let mut smooth = 0;
    for row in 0..seen.len() {
        for i in 0..seen[row].logprobs.len() {
            let slope = |by_logprob: f32, by_entropy: f32| {
                let mut moved = seen.to_vec();
                moved[row].logprobs[i] += by_logprob;
                moved[row].entropies[i] += by_entropy;
                (evaluate(loss, &moved).0 - base) / f64::from(by_logprob + by_entropy)
            };
            let (below, above) = (slope(-h, 0.0), slope(h, 0.0));
            smooth += usize::from((below - above).abs() < 0.01);
            let expected = f64::from(d_logprobs[row][i]);
            let between = below.min(above) - 2e-3..below.max(above) + 2e-3;
            prop_assert!(
                between.contains(&expected),
                "log-prob: {expected} not in {between:?}"
            );
            let (found, expected) = (slope(0.0, h), f64::from(d_entropies[row][i]));
            prop_assert!(
                (found - expected).abs() < 1e-3,
                "entropy: {found}, not {expected}"
            );
        }
    }
    Ok(smooth)
}

#[test]
fn smooth_parts_are_compared() {
    let (batch, seen) = split(&[vec![(-1.0, -1.2, 0.5, -1.05), (-2.0, -2.0, -0.5, -1.9)]]);
    let config = AlgorithmConfig {
        entropy_coefficient: 0.1,
        ..AlgorithmConfig::default()
    };
    assert_eq!(
        check_gradients(&PolicyLoss::new(&batch, &config), &seen).unwrap(),
        2
    );
}

proptest! {
    #[test]
    fn gradients_equal_finite_differences(rows in rows(), config in config()) {
        let (batch, seen) = split(&rows);
        check_gradients(&PolicyLoss::new(&batch, &config), &seen)?;
        check_gradients(&SupervisedLoss::new(&batch, config.aggregation), &seen)?;
    }

    /// Rows may be given to the loss in any order and any number of times: a row's share depends on
    /// the whole batch and the row alone.
    #[test]
    fn the_order_of_rows_changes_nothing(rows in rows(), config in config()) {
        let (batch, seen) = split(&rows);
        let (mut turned, mut turned_seen) = (batch.clone(), seen.clone());
        turned.data.reverse();
        turned_seen.reverse();
        let (total, d_logprobs, _) = evaluate(&PolicyLoss::new(&batch, &config), &seen);
        let (again, mut d_again, _) = evaluate(&PolicyLoss::new(&turned, &config), &turned_seen);
        d_again.reverse();
        prop_assert!((total - again).abs() < 1e-9);
        prop_assert_eq!(d_logprobs, d_again);
    }

    /// On the policy that sampled, the gradient of the clipped loss is the plain policy gradient.
    #[test]
    fn on_policy_the_clip_is_without_effect(rows in rows()) {
        let on_policy: Vec<Vec<_>> = rows
            .iter()
            .map(|row| row.iter().map(|&(old, reference, advantage, _)| (old, reference, advantage, old)).collect())
            .collect();
        let (batch, seen) = split(&on_policy);
        let config = AlgorithmConfig { aggregation: Aggregation::TokenMean, ..plain() };
        let (_, d_logprobs, _) = evaluate(&PolicyLoss::new(&batch, &config), &seen);
        let tokens = on_policy.iter().map(Vec::len).sum::<usize>() as f32;
        for (row, found) in on_policy.iter().zip(d_logprobs) {
            for (&(_, _, advantage, _), found) in row.iter().zip(found) {
                prop_assert!((found + advantage / tokens).abs() < 1e-6);
            }
        }
    }

    /// On the policy that sampled, every objective has the gradient of the plain policy gradient,
    /// when all tokens of a sequence have its advantage.
    #[test]
    fn on_policy_all_objectives_agree(rows in rows(), advantage in -2.0f32..2.0) {
        let on_policy: Vec<Vec<_>> = rows
            .iter()
            .map(|row| row.iter().map(|&(old, reference, ..)| (old, reference, advantage, old)).collect())
            .collect();
        let (batch, seen) = split(&on_policy);
        let gradients = [LossMode::Gpg, LossMode::Vanilla, LossMode::Gspo, LossMode::Gmpo, LossMode::Cispo, LossMode::Sapo].map(|loss_mode| {
            let config = AlgorithmConfig { loss_mode, aggregation: Aggregation::SeqMeanTokenMean, ..plain() };
            evaluate(&PolicyLoss::new(&batch, &config), &seen).1.concat()
        });
        for other in &gradients[1..] {
            for (a, b) in gradients[0].iter().zip(other) {
                prop_assert!((a - b).abs() < 1e-6, "{gradients:?}");
            }
        }
    }
}
