//! Every algorithm in a loop with the engine's own sampler: what is rewarded becomes frequent.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::sync::{Arc, mpsc};

use engine::{Engine, LearnerOptions, Model, ModelConfig, SampleRequest, Sampler, SamplerOptions};
use learn::{
    AlgorithmConfig, ClippedValueLoss, EngineTrainer, EngineValueTrainer, Loss, OptimizerConfig,
    Trainer, ValueConfig, ValueTrainer, rewards_of_groups, weigh,
};
use record::{
    Batch, Call, Completion, Episode, EpisodeId, Group, Outcome, Reward, Sampling, Seed, TaskId,
};

const TASKS: u32 = 6;
const MEMBERS: u32 = 4;
const TOKENS: usize = 4;
const STEPS: u64 = 14;

/// One policy in training, sampled from by the engine.
struct World {
    sampler: Sampler,
    trainer: EngineTrainer,
    values: EngineValueTrainer,
}

impl World {
    fn new() -> Self {
        let engine = Engine::new(1).unwrap();
        let model = Model::random(ModelConfig::qwen2(16, 24, 1, 2), Seed(5)).unwrap();
        let (model, options) = (Arc::new(model), LearnerOptions::default());
        Self {
            sampler: Sampler::start(&engine, SamplerOptions::default()).unwrap(),
            trainer: EngineTrainer::new(&engine, model.clone(), Some(model.clone()), options),
            values: EngineValueTrainer::new(&engine, model, options),
        }
    }

    fn play(&mut self, step: u64, greedy: bool) -> Vec<Group> {
        let published = self.trainer.publish().unwrap();
        self.sampler
            .publish("policy", published.weights, published.version);
        let members = MEMBERS + u32::from(greedy);
        let (sender, receiver) = mpsc::channel();
        for place in 0..TASKS * members {
            let (group, member, sender) = (place / members, place % members, sender.clone());
            let sampling = match member == MEMBERS {
                true => Sampling::greedy(TOKENS),
                false => Sampling::at(1.0, TOKENS),
            };
            self.sampler.submit(SampleRequest {
                model: "policy".to_owned(),
                prompt: vec![group, 15],
                sampling,
                seed: Seed(9).stream("sample", step * 1000 + u64::from(place)),
                done: Box::new(move |answer| sender.send((place, answer.unwrap())).unwrap()),
            });
        }
        let mut answers: Vec<(u32, Completion)> = receiver
            .into_iter()
            .take((TASKS * members) as usize)
            .collect();
        answers.sort_by_key(|(place, _)| *place);
        let episodes: Vec<Episode> = answers
            .into_iter()
            .map(|(place, completion)| episode(step, place / members, place % members, completion))
            .collect();
        let groups = episodes.chunks(members as usize);
        groups
            .map(|episodes| Group {
                task: episodes[0].task.clone(),
                episodes: episodes.to_vec(),
            })
            .collect()
    }

    /// Two updates on the halves of what was played, twice.
    fn learn(&mut self, groups: &[Group], config: &AlgorithmConfig) {
        let (mut batch, rewards, _) = rewards_of_groups(groups, &["policy"], config).unwrap();
        self.trainer.score_reference(&mut batch).unwrap();
        let mut weights = None;
        if let Some(correction) = &config.rollout_correction {
            let current = self.trainer.score(&batch).unwrap();
            weights = correction.apply(&mut batch, &current).0;
        }
        let said = match config.advantage.needs_values() {
            true => self.values.values(&batch).unwrap(),
            false => Vec::new(),
        };
        let wide = said
            .iter()
            .map(|row| row.iter().map(|&value| value.into()).collect());
        let wide: Vec<Vec<f64>> = wide.collect();
        let filled = rewards.fill(&mut batch, config, config.kl.coefficient, &wide);
        if let Some(weights) = weights {
            weigh(&mut batch, &weights, config.loss_mode);
        }
        let loss = Loss::Policy(Box::new(config.clone()));
        for _ in 0..2 {
            for rows in batch.data.chunks(batch.data.len().div_ceil(2).max(1)) {
                let part = Batch {
                    data: rows.to_vec(),
                };
                self.trainer.forward_backward(&part, &loss).unwrap();
                assert!(self.trainer.optim_step(&optimizer(), 1e-2).unwrap().applied);
            }
        }
        if config.advantage.needs_values() {
            let settings: ValueConfig = toml::from_str("optimizer = { lr = 1e-2 }").unwrap();
            let loss = ClippedValueLoss::new(&batch, &said, &filled.returns, &settings);
            self.values.forward_backward(&batch, &loss).unwrap();
            self.values.optim_step(&settings.optimizer, 1e-2).unwrap();
        }
    }
}

fn optimizer() -> OptimizerConfig {
    toml::from_str("lr = 1e-2").unwrap()
}

/// Even tokens are what is wanted.
fn reward(completion: &Completion) -> f64 {
    let even = completion.response.iter().filter(|token| *token % 2 == 0);
    even.count() as f64 / completion.response.len() as f64
}

fn episode(step: u64, group: u32, member: u32, completion: Completion) -> Episode {
    let reward = Reward::of("even", reward(&completion));
    Episode {
        id: EpisodeId {
            step,
            group,
            member,
        },
        task: TaskId(format!("task-{group}")),
        calls: vec![Call::new("policy", completion)],
        outcome: Outcome::Graded { reward },
        retries: 0,
        notes: serde_json::Value::Null,
    }
}

/// Mean rewards of the first and of the last three steps.
fn rise(settings: &str) -> (f64, f64) {
    let config: AlgorithmConfig = toml::from_str(settings).unwrap();
    config.check().unwrap();
    let mut world = World::new();
    let mut rewards = Vec::new();
    for step in 1..=STEPS {
        let groups = world.play(step, config.advantage.needs_greedy());
        let sampled = groups
            .iter()
            .flat_map(|group| &group.episodes[..MEMBERS as usize]);
        let paid: Vec<f64> = sampled
            .map(|episode| episode.outcome.reward().unwrap().total)
            .collect();
        rewards.push(paid.iter().sum::<f64>() / paid.len() as f64);
        world.learn(&groups, &config);
    }
    let mean = |rewards: &[f64]| rewards.iter().sum::<f64>() / rewards.len() as f64;
    (mean(&rewards[..3]), mean(&rewards[rewards.len() - 3..]))
}

#[track_caller]
fn all_rise(settings: &[&str]) {
    for settings in settings {
        let (first, last) = rise(settings);
        assert!(
            first < 0.75 && last > first + 0.15,
            "{settings}: {first:.3} to {last:.3}"
        );
    }
}

#[test]
fn by_every_advantage() {
    all_rise(&[
        "advantage = 'grpo'",
        "advantage = 'dr-grpo'\naggregation = 'seq-mean-token-sum-norm'",
        "advantage = 'grpo-passk'",
        "advantage = 'rloo'",
        "advantage = 'opo'",
        "advantage = 'gpg'",
        "advantage = 'reinforce-plus-plus'",
        "advantage = 'reinforce-plus-plus-baseline'",
        "advantage = 'remax'",
        "advantage = 'gae'\nlambda = 0.95",
    ]);
}

#[test]
fn by_every_loss() {
    all_rise(&[
        "clip_high = 0.28\ndual_clip = 3.0",
        "loss_mode = 'gspo'\nclip_low = 3e-2\nclip_high = 4e-2",
        "loss_mode = 'gmpo'\nclip_low = 0.4\nclip_high = 0.4",
        "loss_mode = 'cispo'",
        "loss_mode = 'sapo'",
        "loss_mode = 'gpg'",
        "loss_mode = 'clip-cov'\ncovariance = { ratio = 0.02, lower = 0.2 }",
        "loss_mode = 'kl-cov'\ncovariance = { ratio = 0.02 }",
    ]);
}

#[test]
fn under_every_aggregation_penalty_and_correction() {
    all_rise(&[
        "aggregation = 'token-mean'",
        "aggregation = 'seq-mean-token-sum'",
        "aggregation = 'seq-mean-token-sum-norm'\nloss_scale_factor = 4.0",
        "entropy_coefficient = 0.001",
        "zero_variance = 'drop'",
        "kl = { estimator = 'k1', placement = 'reward', coefficient = 0.01 }",
        "kl = { estimator = 'k2', coefficient = 0.01 }",
        "kl = { estimator = 'k3+', coefficient = 0.01 }",
        "kl = { estimator = 'abs', coefficient = 0.01 }",
        "rollout_correction = { rollout_is = { level = 'token' } }",
        "rollout_correction = { rollout_is = { level = 'sequence', batch_normalize = true } }",
        "rollout_correction = { rollout_rs = [{ by = 'seq-max-k3', threshold = 0.1 }] }",
    ]);
}

#[test]
fn a_strong_pull_keeps_the_policy_where_it_was() {
    for settings in [
        "kl = { estimator = 'k2', coefficient = 30.0 }",
        "kl = { estimator = 'k3', coefficient = 30.0 }",
        "kl = { estimator = 'k1+', coefficient = 30.0 }",
        "advantage = 'gae'\nkl = { estimator = 'k1', placement = 'reward', coefficient = 30.0 }",
    ] {
        let (first, last) = rise(settings);
        assert!(last < first + 0.15, "{settings}: {first:.3} to {last:.3}");
    }
}
