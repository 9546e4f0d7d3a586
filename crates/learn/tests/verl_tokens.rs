//! What goes token by token or over a whole batch equals verl's: advantages by values and by rewards to
//! come, value losses, losses by covariance, losses with their entropy and KL terms, KL controllers,
//! rollout correction, balanced partitions.
//!
//! The numbers were made with verl 0.9.1 by `cases/002_verl/make.py`. Where `ETUDE_TEST_CLIENTS` names a
//! Python that has verl and torch, new ones are made and compared as well.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a failed unwrap is a failed test"
)]

use std::{collections::BTreeMap, path::Path, process::Command};

use engine::{RowScores, TokenLoss};
use learn::{
    Advantage, Aggregation, AlgorithmConfig, CovarianceConfig, KlConfig, KlController, KlEstimator,
    KlPlacement, LossMode, PolicyLoss,
    balance::partitions,
    gae::{gae, value_loss, whiten},
    rewards_of_groups,
    rollout_correction::{self, ImportanceSampling, Rejection},
};
use record::{
    Batch, Call, Completion, Datum, Episode, EpisodeId, Group, Outcome, Reward, Sampling,
    StopReason, TaskId, WeightVersion,
};
use serde::Deserialize;

type Rows = Vec<Vec<f64>>;

#[derive(Deserialize)]
struct Cases {
    by_token: Vec<ByToken>,
    values: Vec<Values>,
    covariance_losses: Vec<LossCase>,
    controllers: Vec<Controller>,
    corrections: Corrections,
    balanced: Vec<Balanced>,
    over_observations: Vec<ByValues>,
    whole_losses: Vec<WholeLoss>,
}

#[derive(Deserialize)]
struct WholeLoss {
    aggregation: Aggregation,
    estimator: KlEstimator,
    entropy_coefficient: f64,
    kl_coefficient: f64,
    old: Vec<Vec<f32>>,
    new: Vec<Vec<f32>>,
    reference: Vec<Vec<f32>>,
    entropies: Vec<Vec<f32>>,
    advantages: Vec<Vec<f32>>,
    loss: f64,
    gradients: Rows,
    by_entropy: Rows,
}

#[derive(Deserialize)]
struct ByValues {
    gamma: f64,
    lambda: f64,
    rewards: Rows,
    values: Rows,
    gae: Rows,
    returns: Rows,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct ByToken {
    gamma: f64,
    lambda: f64,
    rewards: Rows,
    values: Rows,
    gae: Rows,
    returns: Rows,
    reinforce_plus_plus: Rows,
    greedy: Vec<f64>,
    remax: Rows,
}

#[derive(Deserialize)]
struct Values {
    clip: f64,
    old: Rows,
    new: Rows,
    returns: Rows,
    loss: f64,
    clipfrac: f64,
    gradients: Rows,
}

#[derive(Deserialize)]
struct LossCase {
    loss_mode: LossMode,
    aggregation: Aggregation,
    ratio: f64,
    old: Vec<Vec<f32>>,
    new: Vec<Vec<f32>>,
    advantages: Vec<Vec<f32>>,
    loss: f64,
    gradients: Rows,
}

#[derive(Deserialize)]
struct Controller {
    kl: f64,
    episodes: usize,
    coefficient: f64,
}

#[derive(Deserialize)]
struct Corrections {
    log_ratios: Rows,
    weights: Vec<WeightsCase>,
    masks: Vec<MaskCase>,
    metrics: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
struct Balanced {
    costs: Vec<u64>,
    equal_sizes: bool,
    parts: Vec<Vec<usize>>,
}

#[derive(Deserialize)]
struct WeightsCase {
    level: rollout_correction::Level,
    threshold: f64,
    threshold_lower: Option<f64>,
    batch_normalize: bool,
    weights: Rows,
    effective: Option<f64>,
}

#[derive(Deserialize)]
struct MaskCase {
    by: rollout_correction::Measure,
    threshold: f64,
    keeps: Vec<Vec<bool>>,
}

#[test]
fn the_numbers_of_the_fixture() {
    let cases: Cases = serde_json::from_str(include_str!("cases/002_verl/cases.json")).unwrap();
    compare(&cases);
}

#[test]
fn the_numbers_of_verl_itself() {
    let Some(python) = std::env::var_os("ETUDE_TEST_CLIENTS") else {
        eprintln!("skipped: ETUDE_TEST_CLIENTS names no Python with verl and torch");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/002_verl/make.py");
    for seed in ["101", "102"] {
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
        compare(&serde_json::from_slice(&made.stdout).unwrap());
    }
}

fn compare(cases: &Cases) {
    cases.by_token.iter().for_each(advantages);
    cases.over_observations.iter().for_each(by_values);
    cases.values.iter().for_each(value_losses);
    cases.covariance_losses.iter().for_each(covariance_losses);
    for case in &cases.controllers {
        let controller: KlController = toml::from_str("type = 'adaptive'").unwrap();
        let found = controller.next(0.001, case.kl, case.episodes);
        assert!((found - case.coefficient).abs() < 1e-15, "at {}", case.kl);
    }
    corrections(&cases.corrections);
    assert_eq!(cases.whole_losses.len(), 16);
    cases.whole_losses.iter().for_each(whole_loss);
    assert!(cases.balanced.len() >= 5);
    for case in &cases.balanced {
        let found = partitions(&case.costs, case.parts.len(), case.equal_sizes);
        assert_eq!(found, case.parts, "{:?}", case.costs);
    }
}

#[track_caller]
fn near(what: &str, found: &Rows, expected: &Rows, tolerance: f64) {
    let lengths = |rows: &Rows| rows.iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(lengths(found), lengths(expected), "{what}");
    for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
        let difference = (found - expected).abs();
        assert!(
            difference <= tolerance * (1.0 + expected.abs()),
            "{what}: {found}, not {expected}"
        );
    }
}

fn by_values(case: &ByValues) {
    let rows = case.rewards.iter().zip(&case.values);
    let found: Vec<_> = rows
        .map(|(rewards, values)| gae(rewards, values, case.gamma, case.lambda))
        .collect();
    let returns: Rows = found.iter().map(|row| row.returns.clone()).collect();
    near("returns", &returns, &case.returns, 1e-5);
    let mut whitened: Rows = found.into_iter().map(|row| row.advantages).collect();
    whiten(&mut whitened);
    near("gae", &whitened, &case.gae, 1e-4);
}

fn advantages(case: &ByToken) {
    by_values(&ByValues {
        gamma: case.gamma,
        lambda: case.lambda,
        rewards: case.rewards.clone(),
        values: case.values.clone(),
        gae: case.gae.clone(),
        returns: case.returns.clone(),
    });
    for advantage in [
        Advantage::Gae,
        Advantage::ReinforcePlusPlus,
        Advantage::Remax,
    ] {
        let expected = match advantage {
            Advantage::Gae => &case.gae,
            Advantage::Remax => &case.remax,
            _ => &case.reinforce_plus_plus,
        };
        near(
            &format!("{advantage:?}"),
            &filled(case, advantage),
            expected,
            1e-4,
        );
    }
}

/// The same rewards by the way that a step goes: each row is an episode, whose tokens have the
/// penalties of the k1 estimator to a reference of log-prob 0.
fn filled(case: &ByToken, advantage: Advantage) -> Rows {
    let config = AlgorithmConfig {
        advantage,
        gamma: case.gamma,
        lambda: case.lambda,
        kl: KlConfig {
            estimator: KlEstimator::K1,
            placement: KlPlacement::Reward,
            coefficient: 1.0,
            ..KlConfig::default()
        },
        ..AlgorithmConfig::default()
    };
    let groups: Vec<Group> = (0..)
        .zip(&case.rewards)
        .zip(&case.greedy)
        .map(|((group, rewards), &greedy)| {
            let task = TaskId(format!("task-{group}"));
            // The reward is what the last token has beyond its penalty.
            let penalties: Vec<f32> = rewards.iter().map(|reward| -(*reward as f32)).collect();
            let mut members = vec![(penalties, 0.0)];
            if advantage.needs_greedy() {
                members.push((vec![0.0], greedy));
            }
            let episodes = (0..)
                .zip(members)
                .map(|(member, (logprobs, total))| Episode {
                    id: EpisodeId {
                        step: 1,
                        group,
                        member,
                    },
                    task: task.clone(),
                    calls: vec![Call::new(
                        "critic",
                        Completion {
                            prompt: vec![1],
                            response: vec![2; logprobs.len()],
                            logprobs,
                            sampled_logprobs: Vec::new(),
                            top_logprobs: Vec::new(),
                            prompt_logprobs: Vec::new(),
                            stop: StopReason::Stop,
                            sampling: Sampling::at(1.0, 8),
                            weights: WeightVersion(0),
                        },
                    )],
                    outcome: Outcome::Graded {
                        reward: Reward::of("pass", total),
                    },
                    retries: 0,
                    notes: serde_json::Value::Null,
                });
            Group {
                task: task.clone(),
                episodes: episodes.collect(),
            }
        })
        .collect();
    let (mut batch, rewards, _) = rewards_of_groups(&groups, &["critic"], &config).unwrap();
    rewards.fill(&mut batch, &config, 1.0, &case.values);
    let rows = batch.data.iter();
    rows.map(|datum| {
        datum.advantages[1..]
            .iter()
            .map(|&value| value.into())
            .collect()
    })
    .collect()
}

fn value_losses(case: &Values) {
    let tokens = case.new.iter().map(Vec::len).sum::<usize>() as f64;
    let (mut total, mut held) = (0.0, 0.0);
    let mut gradients = Rows::new();
    for ((new, old), returns) in case.new.iter().zip(&case.old).zip(&case.returns) {
        let mut row = Vec::new();
        for ((&new, &old), &target) in new.iter().zip(old).zip(returns) {
            let (loss, slope, clipped) = value_loss(new, old, target, case.clip);
            total += loss / tokens;
            held += f64::from(u8::from(clipped)) / tokens;
            row.push(slope / tokens);
        }
        gradients.push(row);
    }
    assert!(
        (total - case.loss).abs() < 1e-5,
        "{total}, not {}",
        case.loss
    );
    assert!((held - case.clipfrac).abs() < 1e-6);
    near("value gradients", &gradients, &case.gradients, 1e-5);
}

fn covariance_losses(case: &LossCase) {
    let rows = case.old.iter().zip(&case.advantages);
    let batch = Batch {
        data: rows
            .map(|(old, advantages)| {
                let mut datum = Datum::supervised(&[0], &vec![1; old.len()]);
                datum.logprobs[1..].copy_from_slice(old);
                datum.advantages[1..].copy_from_slice(advantages);
                datum
            })
            .collect(),
    };
    let config = AlgorithmConfig {
        loss_mode: case.loss_mode,
        clip_low: 0.2,
        clip_high: 0.28,
        aggregation: case.aggregation,
        covariance: CovarianceConfig {
            ratio: case.ratio,
            lower: 0.2,
            upper: 0.9,
            kl_coefficient: 0.3,
        },
        kl: KlConfig {
            coefficient: 0.0,
            ..KlConfig::default()
        },
        ..AlgorithmConfig::default()
    };
    let loss = PolicyLoss::at(&batch, &config, &case.new);
    let mut total = 0.0;
    let mut gradients = Rows::new();
    for (row, new) in case.new.iter().enumerate() {
        let scores = RowScores {
            logprobs: new.clone(),
            entropies: vec![0.0; new.len()],
        };
        let (mut slopes, mut entropies) = (vec![0.0; new.len()], vec![0.0; new.len()]);
        total += loss.row(row, &scores, &mut slopes, &mut entropies);
        gradients.push(slopes.into_iter().map(f64::from).collect());
    }
    let name = format!(
        "{:?}, {:?}, {}",
        case.loss_mode, case.aggregation, case.ratio
    );
    assert!(
        (total - case.loss).abs() < 1e-5,
        "{name}: {total}, not {}",
        case.loss
    );
    near(&name, &gradients, &case.gradients, 1e-5);
}

fn whole_loss(case: &WholeLoss) {
    let mut batch = Batch::default();
    for (row, old) in case.old.iter().enumerate() {
        let mut datum = Datum::supervised(&[0], &vec![1; old.len()]);
        datum.logprobs[1..].copy_from_slice(old);
        datum.ref_logprobs[1..].copy_from_slice(&case.reference[row]);
        datum.advantages[1..].copy_from_slice(&case.advantages[row]);
        batch.data.push(datum);
    }
    let config = AlgorithmConfig {
        aggregation: case.aggregation,
        entropy_coefficient: case.entropy_coefficient,
        kl: KlConfig {
            estimator: case.estimator,
            coefficient: case.kl_coefficient,
            ..KlConfig::default()
        },
        ..AlgorithmConfig::default()
    };
    let loss = PolicyLoss::new(&batch, &config);
    let name = format!("{:?}, {:?}", case.aggregation, case.estimator);
    let (mut total, mut gradients, mut by_entropy) = (0.0, Rows::new(), Rows::new());
    for (row, (new, entropies)) in case.new.iter().zip(&case.entropies).enumerate() {
        let scores = RowScores {
            logprobs: new.clone(),
            entropies: entropies.clone(),
        };
        let (mut slopes, mut of_entropies) = (vec![0.0; new.len()], vec![0.0; new.len()]);
        total += loss.row(row, &scores, &mut slopes, &mut of_entropies);
        let wide = |row: Vec<f32>| row.into_iter().map(f64::from).collect();
        gradients.push(wide(slopes));
        by_entropy.push(wide(of_entropies));
    }
    let close = (total - case.loss).abs() < 1e-5 * (1.0 + case.loss.abs());
    assert!(close, "{name}: {total}, not {}", case.loss);
    near(&name, &gradients, &case.gradients, 1e-5);
    near(&name, &by_entropy, &case.by_entropy, 1e-5);
}

fn corrections(cases: &Corrections) {
    for case in &cases.weights {
        let sampling = ImportanceSampling {
            level: case.level,
            threshold: case.threshold,
            threshold_lower: case.threshold_lower,
            batch_normalize: case.batch_normalize,
        };
        let found = sampling.weights(&cases.log_ratios);
        near("importance weights", &found, &case.weights, 1e-5);
        if let Some(effective) = case.effective {
            let told = rollout_correction::metrics(&cases.log_ratios, Some(&found), &[]);
            let found = told["rollout_corr/rollout_is_eff_sample_size"];
            assert!((found - effective).abs() < 1e-5, "{found}, not {effective}");
        }
    }
    for case in &cases.masks {
        let rejection = Rejection {
            by: case.by,
            threshold: case.threshold,
            threshold_lower: None,
        };
        let rows = cases.log_ratios.iter();
        let found: Vec<Vec<bool>> = rows.map(|row| rejection.keeps(row)).collect();
        assert_eq!(found, case.keeps, "{:?}", case.by);
    }
    let told = rollout_correction::metrics(&cases.log_ratios, None, &[]);
    for (name, expected) in &cases.metrics {
        let found = told[&format!("rollout_corr/{name}")];
        assert!(
            (found - expected).abs() < 1e-4 * (1.0 + expected.abs()),
            "{name}: {found}, not {expected}"
        );
    }
}
