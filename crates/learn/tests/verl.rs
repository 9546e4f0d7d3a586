//! Losses, KL estimates and advantages equal those of verl's `core_algos` on random batches.
//!
//! The numbers were made with verl 0.9.1 by `cases/001_verl/make.py`. Where `ETUDE_TEST_CLIENTS` names a
//! Python that has verl and torch, new ones are made and compared as well.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a failed unwrap is a failed test"
)]

use std::{path::Path, process::Command};

use engine::{RowScores, TokenLoss};
use learn::{
    Advantage, Aggregation, AlgorithmConfig, KlConfig, KlEstimator, LossMode, PolicyLoss, Scored,
    advantages, weigh,
};
use record::{Batch, Datum};
use serde::Deserialize;

#[derive(Deserialize)]
struct Cases {
    losses: Vec<LossCase>,
    kl: Vec<KlCase>,
    advantages: Vec<AdvantageCase>,
}

#[derive(Deserialize)]
struct LossCase {
    loss_mode: LossMode,
    aggregation: Aggregation,
    old: Vec<Vec<f32>>,
    new: Vec<Vec<f32>>,
    advantages: Vec<Vec<f32>>,
    /// Of rollout correction.
    weights: Option<Vec<Vec<f64>>>,
    loss: f64,
    gradients: Vec<Vec<f32>>,
}

#[derive(Deserialize)]
struct KlCase {
    estimator: KlEstimator,
    new: Vec<Vec<f64>>,
    reference: Vec<Vec<f64>>,
    values: Vec<Vec<f64>>,
    gradients: Vec<Vec<f64>>,
}

#[derive(Deserialize)]
struct AdvantageCase {
    advantage: Advantage,
    groups: Vec<usize>,
    scores: Vec<f64>,
    lengths: Vec<usize>,
    advantages: Vec<f64>,
}

fn cases() -> Cases {
    serde_json::from_str(include_str!("cases/001_verl/cases.json")).unwrap()
}

fn datum(old: &[f32], advantages: &[f32]) -> Datum {
    let mut datum = Datum::supervised(&[0], &vec![1; old.len()]);
    datum.logprobs[1..].copy_from_slice(old);
    datum.advantages[1..].copy_from_slice(advantages);
    datum
}

#[test]
fn losses_and_their_gradients() {
    losses(cases().losses);
}

#[test]
fn kl_estimates_and_their_gradients() {
    kl(cases().kl);
}

#[test]
fn advantages_of_every_estimator() {
    estimators(cases().advantages);
}

#[test]
fn the_numbers_of_verl_itself() {
    let Some(python) = std::env::var_os("ETUDE_TEST_CLIENTS") else {
        eprintln!("skipped: ETUDE_TEST_CLIENTS names no Python with verl and torch");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/001_verl/make.py");
    for seed in ["101", "102", "103"] {
        let made = Command::new(&python)
            .arg(&script)
            .arg(seed)
            .output()
            .unwrap();
        let complaint = String::from_utf8_lossy(&made.stderr);
        if complaint.contains("ModuleNotFoundError") {
            eprintln!("skipped: {}", complaint.lines().last().unwrap());
            return;
        }
        assert!(made.status.success(), "{complaint}");
        let cases: Cases = serde_json::from_slice(&made.stdout).unwrap();
        losses(cases.losses);
        kl(cases.kl);
        estimators(cases.advantages);
    }
}

fn losses(cases: Vec<LossCase>) {
    assert!(cases.len() >= 42);
    for case in cases {
        let rows = case.old.iter().zip(&case.advantages);
        let mut batch = Batch {
            data: rows
                .map(|(old, advantages)| datum(old, advantages))
                .collect(),
        };
        if let Some(weights) = &case.weights {
            weigh(&mut batch, weights, case.loss_mode);
        }
        let config = AlgorithmConfig {
            loss_mode: case.loss_mode,
            clip_low: 0.2,
            clip_high: 0.28,
            dual_clip: Some(3.0),
            aggregation: case.aggregation,
            kl: KlConfig {
                coefficient: 0.0,
                ..KlConfig::default()
            },
            ..AlgorithmConfig::default()
        };
        let loss = PolicyLoss::new(&batch, &config);
        let name = format!("{:?} {:?}", case.loss_mode, case.aggregation);
        let mut total = 0.0;
        for (row, new) in case.new.iter().enumerate() {
            let scores = RowScores {
                logprobs: new.clone(),
                entropies: vec![0.0; new.len()],
            };
            let (mut found, mut unused) = (vec![0.0; new.len()], vec![0.0; new.len()]);
            total += loss.row(row, &scores, &mut found, &mut unused);
            for (found, expected) in found.iter().zip(&case.gradients[row]) {
                let close = (found - expected).abs() < 2e-6 + 2e-5 * expected.abs();
                assert!(close, "{name}: gradient {found}, not {expected}");
            }
        }
        let close = (total - case.loss).abs() < 2e-6 + 2e-5 * case.loss.abs();
        assert!(close, "{name}: loss {total}, not {}", case.loss);
    }
}

fn kl(cases: Vec<KlCase>) {
    assert!(cases.len() >= 7);
    for case in cases {
        let pairs = case
            .new
            .iter()
            .flatten()
            .zip(case.reference.iter().flatten());
        let expected = case
            .values
            .iter()
            .flatten()
            .zip(case.gradients.iter().flatten());
        for ((new, reference), (value, gradient)) in pairs.zip(expected) {
            let (found, slope) = case.estimator.estimate(new - reference);
            let name = format!("{:?} at {}", case.estimator, new - reference);
            assert!((found - value).abs() < 2e-6, "{name}: {found}, not {value}");
            assert!(
                (slope - gradient).abs() < 2e-6,
                "{name}: {slope}, not {gradient}"
            );
        }
    }
}

fn estimators(cases: Vec<AdvantageCase>) {
    assert!(cases.len() >= 16);
    for case in cases {
        let mut members = case
            .scores
            .iter()
            .zip(&case.lengths)
            .map(|(&reward, &length)| Some(Scored { reward, length }));
        let groups: Vec<Vec<_>> = case
            .groups
            .iter()
            .map(|&size| members.by_ref().take(size).collect())
            .collect();
        let found = advantages(&groups, case.advantage);
        let found: Vec<f64> = found.into_iter().flatten().flatten().collect();
        assert_eq!(found.len(), case.advantages.len());
        for (found, expected) in found.iter().zip(&case.advantages) {
            assert!(
                (found - expected).abs() < 1e-4,
                "{:?}: {found}, not {expected}",
                case.advantage
            );
        }
    }
}
