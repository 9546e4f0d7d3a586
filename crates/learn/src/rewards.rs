//! From what episodes were paid to what each of their tokens was worth.

use record::{Batch, Datum};

use crate::{
    Advantage, AlgorithmConfig, KlPlacement, LossMode, Scored, Singleton, advantages,
    gae::{gae, whiten},
};

/// What the rows of a batch were paid, from which [`Rewards::fill`] makes their advantages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rewards {
    /// Members of the groups that are trained on; those without a verdict are `None`.
    pub(crate) groups: Vec<Vec<Option<Scored>>>,
    /// The reward of each group's greedy episode, where one is played along.
    pub(crate) greedy: Vec<Option<f64>>,
    /// One a row of the batch, whose rows of one episode are neighbours and in their order.
    pub(crate) origins: Vec<Origin>,
    /// One a row: its step part, before its weight.
    pub(crate) steps: Vec<f64>,
}

/// The episode that a row came from: its group and its place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) group: usize,
    pub(crate) member: usize,
}

/// What [`Rewards::fill`] saw and found on the way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filled {
    /// The divergence from the reference: mean over rows of means over their tokens of the recipe's
    /// estimator, at the log-probs of sampling. `None` where the batch has no reference.
    pub kl: Option<f64>,
    /// What values are fitted to, one entry a trained token of each row; empty without values.
    pub returns: Vec<Vec<f64>>,
}

impl Rewards {
    /// Writes the advantages of the trained tokens of `batch`, whose reference log-probs are filled in
    /// if the recipe needs them. `kl_coefficient` weighs the penalty that is taken off the rewards
    /// where the recipe places it there; `values` are those of the trained tokens of each row, which
    /// [`Advantage::Gae`] needs.
    ///
    /// Of an episode with several calls, the tokens of all of them are one sequence, and its reward
    /// stands on the last. Estimators that compare episodes take the penalties off the episode's
    /// reward.
    ///
    /// # Panics
    /// When `batch` or `values` have other rows than those that the rewards were made with.
    pub fn fill(
        &self,
        batch: &mut Batch,
        config: &AlgorithmConfig,
        kl_coefficient: f64,
        values: &[Vec<f64>],
    ) -> Filled {
        assert_eq!(
            batch.data.len(),
            self.origins.len(),
            "the batch's own rewards"
        );
        let divergences: Vec<Vec<f64>> = batch
            .data
            .iter()
            .map(|datum| divergences(datum, config))
            .collect();
        let weight = match config.kl.placement {
            KlPlacement::Reward => kl_coefficient,
            KlPlacement::Loss => 0.0,
        };
        let penalties: Vec<Vec<f64>> = divergences
            .iter()
            .map(|row| row.iter().map(|divergence| weight * divergence).collect())
            .collect();
        let mut filled = Filled {
            kl: config
                .needs_reference()
                .then(|| mean_of_means(&divergences)),
            returns: Vec::new(),
        };
        let mut found = match config.advantage.is_by_token() {
            false => self.by_episode(config, &penalties),
            true => self.by_token(config, &penalties, values, &mut filled),
        };
        if let Some(step) = &config.step {
            for (row, part) in found.iter_mut().zip(&self.steps) {
                for advantage in row {
                    *advantage = step.weight_episode * *advantage + step.weight * part;
                }
            }
        }
        for (datum, advantages) in batch.data.iter_mut().zip(found) {
            let slots = datum.advantages.iter_mut().zip(&datum.mask);
            let slots = slots.filter(|(_, mask)| **mask).map(|(slot, _)| slot);
            for (slot, advantage) in slots.zip(advantages) {
                *slot = advantage as f32;
            }
        }
        filled
    }

    /// One value an episode, over the episodes of its group, and the same for all its rows: a long
    /// episode weighs no more in the baseline than a short one.
    fn by_episode(&self, config: &AlgorithmConfig, penalties: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let mut groups = self.groups.clone();
        for (origin, penalties) in self.origins.iter().zip(penalties) {
            if let Some(member) = &mut groups[origin.group][origin.member] {
                member.reward -= penalties.iter().sum::<f64>();
            }
        }
        let mut worth = advantages(&groups, config.advantage);
        if config.singleton() == Singleton::Zero {
            let alone = |group: &&mut Vec<Option<f64>>| group.iter().flatten().count() == 1;
            for advantage in worth.iter_mut().filter(alone).flatten().flatten() {
                *advantage = 0.0;
            }
        }
        let rows = self.origins.iter().zip(penalties);
        rows.map(|(origin, penalties)| {
            let advantage = worth[origin.group][origin.member].unwrap_or(0.0);
            vec![advantage; penalties.len()]
        })
        .collect()
    }

    fn by_token(
        &self,
        config: &AlgorithmConfig,
        penalties: &[Vec<f64>],
        values: &[Vec<f64>],
        filled: &mut Filled,
    ) -> Vec<Vec<f64>> {
        let mut found: Vec<Vec<f64>> = Vec::with_capacity(penalties.len());
        let mut first = 0;
        for rows in self.origins.chunk_by(|one, other| one == other) {
            let rows = first..first + rows.len();
            first = rows.end;
            let origin = self.origins[rows.start];
            let mut rewards: Vec<f64> = penalties[rows.clone()].concat();
            rewards.iter_mut().for_each(|reward| *reward = -*reward);
            let paid = self.groups[origin.group][origin.member];
            if let (Some(last), Some(paid)) = (rewards.last_mut(), paid) {
                *last += paid.reward;
            }
            let tokens = match config.advantage {
                Advantage::Gae => {
                    let values = values[rows.clone()].concat();
                    let found = gae(&rewards, &values, config.gamma, config.lambda);
                    filled
                        .returns
                        .extend(split(found.returns, &penalties[rows.clone()]));
                    found.advantages
                }
                Advantage::Remax => {
                    let baseline = self.greedy[origin.group].unwrap_or(0.0);
                    let mut to_come = to_come(&rewards, 1.0);
                    to_come.iter_mut().for_each(|value| *value -= baseline);
                    to_come
                }
                _ => to_come(&rewards, config.gamma),
            };
            found.extend(split(tokens, &penalties[rows]));
        }
        if config.advantage != Advantage::Remax {
            whiten(&mut found);
        }
        found
    }
}

/// Multiplies the advantages of the trained tokens by `weights`, one entry a row: the losses are linear
/// in them, up to their sign. A row of [`LossMode::Gmpo`], whose loss is one for the sequence, is weighed
/// by their geometric mean.
pub fn weigh(batch: &mut Batch, weights: &[Vec<f64>], mode: LossMode) {
    for (datum, weights) in batch.data.iter_mut().zip(weights) {
        let together = match mode {
            LossMode::Gmpo => vec![geometric_mean(weights); weights.len()],
            _ => weights.clone(),
        };
        let slots = datum.advantages.iter_mut().zip(&datum.mask);
        let slots = slots.filter(|(_, mask)| **mask).map(|(slot, _)| slot);
        for (slot, weight) in slots.zip(together) {
            *slot = (f64::from(*slot) * weight) as f32;
        }
    }
}

/// Of weights that may be 0: one such lowers it, and does not silence the sequence (as verl has it).
fn geometric_mean(weights: &[f64]) -> f64 {
    const LEAST: f64 = 1e-10;
    let logarithms = weights.iter().map(|weight| (weight + LEAST).ln());
    (logarithms.sum::<f64>() / weights.len().max(1) as f64).exp()
}

/// Discounted sums of the rewards from each token on.
fn to_come(rewards: &[f64], gamma: f64) -> Vec<f64> {
    gae(rewards, &vec![0.0; rewards.len()], gamma, 1.0).returns
}

/// The tokens of an episode, row by row again.
fn split(tokens: Vec<f64>, rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut tokens = tokens.into_iter();
    let rows = rows.iter();
    rows.map(|row| tokens.by_ref().take(row.len()).collect())
        .collect()
}

/// The estimate of each trained token; zeros where the recipe has no reference.
fn divergences(datum: &Datum, config: &AlgorithmConfig) -> Vec<f64> {
    let pairs = datum.logprobs.iter().zip(&datum.ref_logprobs);
    let trained = pairs.zip(&datum.mask).filter(|(_, mask)| **mask);
    trained
        .map(|((&old, &reference), _)| match config.needs_reference() {
            true => {
                config
                    .kl
                    .estimator
                    .estimate(f64::from(old) - f64::from(reference))
                    .0
            }
            false => 0.0,
        })
        .collect()
}

fn mean_of_means(rows: &[Vec<f64>]) -> f64 {
    let rows = || rows.iter().filter(|row| !row.is_empty());
    let means = rows().map(|row| row.iter().sum::<f64>() / row.len() as f64);
    means.sum::<f64>() / rows().count().max(1) as f64
}
