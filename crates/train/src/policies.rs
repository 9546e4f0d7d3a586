//! The policies that a loop trains, each from the same episodes.

use std::path::{Path, PathBuf};

use chat::Chat;
use journal::{Metrics, Step};
use learn::{
    AlgorithmConfig, BatchStats, OptimizerConfig, Published, Singleton, Trainer, ValueTrainer,
    ZeroVariance, metrics, tells_apart,
};
use record::Group;
use rollout::Tally;

use crate::{
    ReinforceConfig, TrainError,
    metrics::sampled_tokens,
    policy_update::{Update, Updated},
    supervised::save_whole,
    value,
};

/// Weights in training, the roles that they answer for, and how they are updated.
pub struct TrainedPolicy<'a, T: Trainer> {
    /// Names its metrics and its folder in checkpoints where there are several policies; a file name.
    pub name: &'a str,
    /// All their calls are rows of its batch; none of them is another policy's.
    pub roles: &'a [&'a str],
    /// Saved with every checkpoint, so that each is a whole Hugging Face directory.
    pub chat: &'a Chat,
    /// Holds the weights to start from and the reference.
    pub trainer: &'a mut T,
    pub algorithm: &'a AlgorithmConfig,
    pub optimizer: &'a OptimizerConfig,
    /// The value function of [`ReinforceConfig::value`], where its advantages need one.
    pub values: Option<&'a mut (dyn ValueTrainer + 'static)>,
    /// Hands weights to the policy that the roles are played with.
    pub publish: Box<dyn FnMut(Published<T::Weights>) + 'a>,
}

/// Optimizer steps in a row that may be skipped for a gradient that is not finite.
const MAX_SKIPPED: u64 = 3;

/// The policies of a run and what moves with them from step to step.
pub(crate) struct Policies<'p, 'a, T: Trainer> {
    config: &'p ReinforceConfig,
    phase: &'p str,
    policies: &'p mut [TrainedPolicy<'a, T>],
    states: Vec<State>,
}

#[derive(Clone, Copy)]
struct State {
    kl_coefficient: f64,
    /// Steps in a row that were skipped.
    skipped: u64,
}

impl<'p, 'a, T: Trainer> Policies<'p, 'a, T> {
    pub(crate) fn new(
        config: &'p ReinforceConfig,
        phase: &'p str,
        policies: &'p mut [TrainedPolicy<'a, T>],
    ) -> Result<Self, TrainError> {
        check(policies)?;
        let state = |policy: &TrainedPolicy<'a, T>| State {
            kl_coefficient: policy.algorithm.kl.coefficient,
            skipped: 0,
        };
        let states = policies.iter().map(state).collect();
        Ok(Self {
            config,
            phase,
            policies,
            states,
        })
    }

    /// Whether a step plays more tasks in place of groups that teach nothing.
    pub(crate) fn resample(&self) -> bool {
        let mut policies = self.policies.iter();
        policies.any(|policy| policy.algorithm.zero_variance == ZeroVariance::Resample)
    }

    /// Groups that teach some policy something.
    pub(crate) fn telling(&self, groups: &[Group]) -> Result<usize, TrainError> {
        let mut count = 0;
        for group in groups {
            for policy in self.policies.iter() {
                if tells_apart(group, policy.roles, policy.algorithm)? {
                    count += 1;
                    break;
                }
            }
        }
        Ok(count)
    }

    /// Moves what moves from step to step as a committed step did.
    pub(crate) fn follow(&mut self, metrics: &Metrics) {
        let several = self.policies.len() > 1;
        for (policy, state) in self.policies.iter().zip(&mut self.states) {
            let own = |name: &str| metrics.get(&prefixed(several, policy.name, name)).copied();
            let controller = &policy.algorithm.kl.controller;
            let graded = metrics.get("rollout/graded");
            if let (Some(kl), Some(graded)) = (own("actor/kl"), graded) {
                state.kl_coefficient = controller.next(state.kl_coefficient, kl, *graded as usize);
            }
            state.skipped = match own("actor/skipped_steps") {
                Some(0.0) => 0,
                _ => state.skipped + 1,
            };
        }
    }

    /// Every policy's updates on the groups of a step. The metrics are functions of the groups and the
    /// weights alone, so a step done again has the same.
    pub(crate) fn update(&mut self, step: u64, groups: &[Group]) -> Result<Step, TrainError> {
        let several = self.policies.len() > 1;
        let mut done = Step {
            phase: self.phase.to_owned(),
            step,
            tokens: sampled_tokens(groups),
            metrics: Metrics::new(),
            timings: Metrics::new(),
            episodes: None,
        };
        let resampled = self
            .resample()
            .then(|| groups.len().saturating_sub(self.config.tasks_per_step));
        let mut spent = Updated::default();
        for (policy, state) in self.policies.iter_mut().zip(&self.states) {
            let update = Update {
                config: self.config,
                phase: self.phase,
                step,
                groups,
                kl_coefficient: state.kl_coefficient,
            };
            let updated = update.of(policy)?;
            if done.metrics.is_empty() {
                done.metrics = played(groups, policy.algorithm, &updated.stats);
            }
            let named = updated.metrics.iter();
            let named = named.map(|(name, value)| (prefixed(several, policy.name, name), *value));
            done.metrics.extend(named);
            spent.add(&updated);
        }
        if let Some(more) = resampled {
            let name = "rollout/resampled_groups".to_owned();
            done.metrics.insert(name, more as f64);
        }
        done.tokens += spent.trained_tokens;
        done.timings = spent.timings(self.config.value.is_some());
        self.follow(&done.metrics);
        match self.states.iter().map(|state| state.skipped).max() {
            Some(skipped) if skipped >= MAX_SKIPPED => Err(TrainError::Diverged {
                phase: self.phase.to_owned(),
                step,
                skipped,
            }),
            _ => Ok(done),
        }
    }

    pub(crate) fn publish(&mut self) -> Result<(), TrainError> {
        for policy in self.policies.iter_mut() {
            (policy.publish)(policy.trainer.publish()?);
        }
        Ok(())
    }

    pub(crate) fn save(&mut self, checkpoint: &Path) -> Result<(), TrainError> {
        let several = self.policies.len() > 1;
        for policy in self.policies.iter_mut() {
            let directory = folder(several, checkpoint, policy.name);
            save_whole(policy.trainer, policy.chat, &directory)?;
            if let Some(values) = policy.values.as_deref_mut() {
                values.save(&directory.join(value::DIRECTORY))?;
            }
        }
        Ok(())
    }

    pub(crate) fn load(&mut self, checkpoint: &Path) -> Result<(), TrainError> {
        let several = self.policies.len() > 1;
        for policy in self.policies.iter_mut() {
            let directory = folder(several, checkpoint, policy.name);
            policy.trainer.load(&directory)?;
            if let Some(values) = policy.values.as_deref_mut() {
                values.load(&directory.join(value::DIRECTORY))?;
            }
        }
        Ok(())
    }
}

/// What a step's groups were, whatever is learnt from them.
fn played(groups: &[Group], algorithm: &AlgorithmConfig, stats: &BatchStats) -> Metrics {
    let mut measured: Metrics = metrics::episodes(groups, stats);
    let retries = Tally::of(groups).retries as f64;
    measured.insert("rollout/retries".to_owned(), retries);
    if algorithm.singleton() != Singleton::Keep || algorithm.step.is_some() {
        measured.extend(metrics::group_sizes(stats));
    }
    measured
}

/// The folder of a policy in a checkpoint: the checkpoint itself where there is one policy.
fn folder(several: bool, checkpoint: &Path, name: &str) -> PathBuf {
    match several {
        true => checkpoint.join(name),
        false => checkpoint.to_owned(),
    }
}

fn prefixed(several: bool, policy: &str, metric: &str) -> String {
    match several {
        true => format!("{policy}/{metric}"),
        false => metric.to_owned(),
    }
}

fn check<T: Trainer>(policies: &[TrainedPolicy<'_, T>]) -> Result<(), TrainError> {
    if policies.is_empty() {
        return Err(TrainError::NoPolicies);
    }
    for (index, policy) in policies.iter().enumerate() {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        let taken = policies[..index]
            .iter()
            .any(|other| other.name == policy.name);
        if policies.len() > 1
            && (policy.name.is_empty() || !policy.name.chars().all(plain) || taken)
        {
            return Err(TrainError::PolicyName {
                name: policy.name.to_owned(),
            });
        }
        for (place, role) in policy.roles.iter().enumerate() {
            let others = policies[..index].iter().flat_map(|other| other.roles);
            if others
                .chain(&policy.roles[..place])
                .any(|other| other == role)
            {
                return Err(TrainError::RoleTrainedTwice {
                    role: (*role).to_owned(),
                });
            }
        }
    }
    Ok(())
}
