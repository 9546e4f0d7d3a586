//! Numbers worked out by hand or by an independent program, one for each formula (spec of the critique
//! study, section 11).

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use engine::{RowScores, TokenLoss};
use learn::{
    Advantage, AlgorithmConfig, KlConfig, KlController, KlEstimator, PolicyLoss, Scored,
    advantages,
    balance::partitions,
    gae::{gae, whiten},
};
use record::{Batch, Datum};

#[track_caller]
fn near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() < 5e-7, "{found:?}, not {expected:?}");
    }
}

#[test]
fn advantages_of_groups() {
    let of = |advantage, rewards: &[f64], lengths: &[usize]| -> Vec<f64> {
        let members = rewards.iter().zip(lengths);
        let group = members.map(|(&reward, &length)| Some(Scored { reward, length }));
        let found = advantages(&[group.collect()], advantage);
        found.into_iter().flatten().flatten().collect()
    };
    let two = 0.8660239;
    near(
        &of(Advantage::Grpo, &[1.0, 0.0, 0.0, 1.0], &[1; 4]),
        &[two, -two, -two, two],
    );
    let one = [1.0, 0.0, 0.0, 0.0];
    let other = -0.4999990;
    near(
        &of(Advantage::Grpo, &one, &[1; 4]),
        &[1.4999970, other, other, other],
    );
    near(&of(Advantage::Grpo, &[1.0; 4], &[1; 4]), &[0.0; 4]);
    let third = -1.0 / 3.0;
    near(
        &of(Advantage::Rloo, &one, &[1; 4]),
        &[1.0, third, third, third],
    );
    near(
        &of(Advantage::Opo, &one, &[10, 20, 30, 40]),
        &[0.9, -0.1, -0.1, -0.1],
    );
}

#[test]
fn advantages_by_values() {
    let found = gae(&[0.0, 0.0, 1.0], &[0.5, 0.4, 0.3], 1.0, 0.95);
    near(&found.advantages, &[0.43675, 0.565, 0.7]);
    near(&found.returns, &[0.93675, 0.965, 1.0]);
    let mut whitened = [found.advantages];
    whiten(&mut whitened);
    near(&whitened[0], &[-0.9913441, -0.0170921, 1.0084362]);
}

#[test]
fn divergences_and_their_controller() {
    let at = |estimator: KlEstimator, d| estimator.estimate(d).0;
    near(
        &[0.5, -0.5].map(|d| at(KlEstimator::K2, d)),
        &[0.125, 0.125],
    );
    near(
        &[0.5, -0.5].map(|d| at(KlEstimator::K3, d)),
        &[0.1065307, 0.1487213],
    );
    let adaptive = KlController::Adaptive {
        target: 0.1,
        horizon: 10_000.0,
    };
    let next = adaptive.next(0.001, 0.2, 1024);
    assert!((next - 0.00102048).abs() < 1e-12, "{next}");
}

#[test]
fn clipped_losses() {
    let loss = |advantage: f32, ratio: f32, dual_clip| {
        let mut datum = Datum::supervised(&[0], &[1]);
        datum.logprobs[1] = -1.0;
        datum.advantages[1] = advantage;
        let batch = Batch { data: vec![datum] };
        let kl = KlConfig {
            coefficient: 0.0,
            ..KlConfig::default()
        };
        let config = AlgorithmConfig {
            dual_clip,
            kl,
            ..AlgorithmConfig::default()
        };
        let scores = RowScores {
            logprobs: vec![ratio.ln() - 1.0],
            entropies: vec![0.0],
        };
        PolicyLoss::new(&batch, &config).row(0, &scores, &mut [0.0], &mut [0.0])
    };
    near(&[loss(1.0, 1.5, None), loss(1.0, 0.5, None)], &[-1.2, -0.5]);
    let wrong = [0.5, 1.5, 5.0].map(|ratio| loss(-1.0, ratio, None));
    for (found, expected) in wrong.into_iter().zip([0.8, 1.5, 5.0]) {
        assert!((found - expected).abs() < 1e-5, "{found}, not {expected}");
    }
    assert!((loss(-1.0, 5.0, Some(3.0)) - 3.0).abs() < 1e-6);
}

#[test]
fn balanced_parts() {
    let costs = [5, 9, 1, 7, 3, 8, 2, 6];
    assert_eq!(
        partitions(&costs, 2, true),
        [vec![0, 5, 6, 7], vec![1, 2, 3, 4]]
    );
    assert_eq!(
        partitions(&costs, 4, true),
        [[0, 7], [1, 2], [3, 4], [5, 6]]
    );
    assert_eq!(
        partitions(&[4, 5, 6, 7, 8], 2, false),
        [vec![0, 1, 3], vec![2, 4]]
    );
}
