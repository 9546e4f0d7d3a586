//! The clipped policy-gradient loss with KL and entropy terms.

use engine::{RowScores, TokenLoss};
use record::{Batch, Datum, EpisodeId};

use crate::{AlgorithmConfig, loss_mode::TokenObjective};

/// The objective of the recipe's [`LossMode`](crate::LossMode), by default PPO-clip (arXiv 1707.06347,
/// equation 7) with asymmetric and dual clipping (arXiv 2503.14476; arXiv 1912.09729), plus `kl.coefficient` times the KL estimate to the reference, minus
/// `entropy_coefficient` times the entropy. Exact semantics: spec of the critique study, sections
/// 10.2 to 10.4.
#[derive(Clone, Debug)]
pub struct PolicyLoss {
    config: AlgorithmConfig,
    rows: Vec<Row>,
    weights: Vec<f64>,
    picked: Vec<Vec<bool>>,
}

/// What a row's trained tokens were sampled with, in order of position.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) old: Vec<f32>,
    pub(crate) reference: Vec<f32>,
    pub(crate) advantages: Vec<f32>,
}

/// One token's terms and the derivative of each by the token's log-prob.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TokenTerms {
    pub(crate) policy: TokenObjective,
    pub(crate) kl: f64,
    pub(crate) d_kl: f64,
    /// The old log-prob less the new one.
    pub(crate) old_minus_new: f64,
}

impl PolicyLoss {
    /// The loss of exactly `batch`: its divisors count all of its rows, whatever the micro-batching.
    /// Where the mode picks tokens by their covariance, the recorded log-probs stand for those of the
    /// weights that are updated, as they do in the first update on a batch.
    pub fn new(batch: &Batch, config: &AlgorithmConfig) -> Self {
        let recorded: Vec<Vec<f32>> = batch.data.iter().map(|datum| Row::of(datum).old).collect();
        Self::at(batch, config, &recorded)
    }

    /// As [`Self::new`], with the log-probs of the trained tokens under the weights that are updated,
    /// one entry a row.
    pub fn at(batch: &Batch, config: &AlgorithmConfig, current: &[Vec<f32>]) -> Self {
        let rows: Vec<Row> = batch.data.iter().map(Row::of).collect();
        let old: Vec<&[f32]> = rows.iter().map(|row| row.old.as_slice()).collect();
        let advantages: Vec<Vec<f32>> = rows.iter().map(|row| row.advantages.clone()).collect();
        let picked = config.loss_mode.picked(config, &old, current, &advantages);
        Self {
            config: config.clone(),
            weights: weights(batch, config),
            rows,
            picked,
        }
    }

    fn picked(&self, row: usize) -> &[bool] {
        self.picked.get(row).map_or(&[], Vec::as_slice)
    }

    /// The terms of every trained token at `scores`, one entry per row.
    pub(crate) fn terms(&self, scores: &[RowScores]) -> Vec<Vec<TokenTerms>> {
        let rows = self.rows.iter().zip(scores).enumerate();
        rows.map(|(index, (row, scores))| {
            let terms = row.terms(&self.config, &scores.logprobs, self.picked(index));
            terms.collect()
        })
        .collect()
    }
}

impl TokenLoss for PolicyLoss {
    fn row(
        &self,
        row: usize,
        scores: &RowScores,
        d_logprobs: &mut [f32],
        d_entropies: &mut [f32],
    ) -> f64 {
        let (data, weight) = (&self.rows[row], self.weights[row]);
        let (kl, entropy) = (
            self.config.kl_loss_coefficient(),
            self.config.entropy_coefficient,
        );
        let mut loss = 0.0;
        for (i, terms) in data
            .terms(&self.config, &scores.logprobs, self.picked(row))
            .enumerate()
        {
            loss += terms.policy.value + kl * terms.kl - entropy * f64::from(scores.entropies[i]);
            d_logprobs[i] = (weight * (terms.policy.derivative + kl * terms.d_kl)) as f32;
            d_entropies[i] = (-weight * entropy) as f32;
        }
        weight * loss
    }
}

impl Row {
    pub(crate) fn of(datum: &Datum) -> Self {
        let masked = |values: &[f32]| -> Vec<f32> {
            values
                .iter()
                .zip(&datum.mask)
                .filter(|(_, mask)| **mask)
                .map(|(v, _)| *v)
                .collect()
        };
        Self {
            old: masked(&datum.logprobs),
            reference: masked(&datum.ref_logprobs),
            advantages: masked(&datum.advantages),
        }
    }

    /// The terms of the trained tokens at `logprobs`. Without a KL coefficient the reference is not
    /// looked at.
    pub(crate) fn terms(
        &self,
        config: &AlgorithmConfig,
        logprobs: &[f32],
        picked: &[bool],
    ) -> impl Iterator<Item = TokenTerms> {
        let objectives =
            config
                .loss_mode
                .tokens(config, &self.old, logprobs, &self.advantages, picked);
        let (needs_reference, estimator) = (config.has_kl_loss(), config.kl.estimator);
        objectives.into_iter().enumerate().map(move |(i, policy)| {
            let logprob = f64::from(logprobs[i]);
            let (kl, d_kl) = if needs_reference {
                estimator.estimate(logprob - f64::from(self.reference[i]))
            } else {
                (0.0, 0.0)
            };
            TokenTerms {
                policy,
                kl,
                d_kl,
                old_minus_new: f64::from(self.old[i]) - logprob,
            }
        })
    }
}

pub(crate) fn lengths(batch: &Batch) -> Vec<usize> {
    batch.data.iter().map(Datum::n_trained).collect()
}

pub(crate) fn episodes_of(batch: &Batch) -> Vec<Option<EpisodeId>> {
    batch.data.iter().map(|datum| datum.episode).collect()
}

pub(crate) fn weights(batch: &Batch, config: &AlgorithmConfig) -> Vec<f64> {
    let aggregation = config.loss_mode.aggregation(config.aggregation);
    aggregation.weights(
        &lengths(batch),
        &episodes_of(batch),
        config.loss_scale_factor,
    )
}
