//! The clipped policy-gradient loss with KL and entropy terms.

use engine::{RowScores, TokenLoss};
use record::{Batch, Datum};

use crate::{Aggregation, AlgorithmConfig};

/// PPO-clip (arXiv 1707.06347, equation 7) with asymmetric and dual clipping (arXiv 2503.14476;
/// arXiv 1912.09729), plus `kl.coefficient` times the KL estimate to the reference, minus
/// `entropy_coefficient` times the entropy. Exact semantics: spec of the critique study, sections
/// 10.2 to 10.4.
#[derive(Clone, Debug)]
pub struct PolicyLoss {
    config: AlgorithmConfig,
    rows: Vec<Row>,
    weights: Vec<f64>,
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
    pub(crate) policy: f64,
    pub(crate) d_policy: f64,
    pub(crate) kl: f64,
    pub(crate) d_kl: f64,
    /// The old log-prob less the new one.
    pub(crate) old_minus_new: f64,
    /// The clipped form of the loss is the larger.
    pub(crate) clipped: bool,
    /// The dual clip bounds the loss.
    pub(crate) clipped_lower: bool,
}

/// `log(new / old)` is clamped to this before it is exponentiated.
const LOG_RATIO_LIMIT: f64 = 20.0;

impl PolicyLoss {
    /// The loss of exactly `batch`: its divisors count all of its rows, whatever the micro-batching.
    pub fn new(batch: &Batch, config: &AlgorithmConfig) -> Self {
        Self {
            config: config.clone(),
            rows: batch.data.iter().map(Row::of).collect(),
            weights: weights(batch, config.aggregation, config.loss_scale_factor),
        }
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
        let (kl, entropy) = (self.config.kl.coefficient, self.config.entropy_coefficient);
        let mut loss = 0.0;
        for (i, &logprob) in scores.logprobs.iter().enumerate() {
            let terms = data.terms(&self.config, i, logprob);
            loss += terms.policy + kl * terms.kl - entropy * f64::from(scores.entropies[i]);
            d_logprobs[i] = (weight * (terms.d_policy + kl * terms.d_kl)) as f32;
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

    /// The terms of trained token `i` at `logprob`. Without a KL coefficient the reference is not
    /// looked at.
    pub(crate) fn terms(&self, config: &AlgorithmConfig, i: usize, logprob: f32) -> TokenTerms {
        let logprob = f64::from(logprob);
        let mut terms = clipped_surrogate(
            config,
            logprob - f64::from(self.old[i]),
            self.advantages[i].into(),
        );
        if config.needs_reference() {
            let d = logprob - f64::from(self.reference[i]);
            (terms.kl, terms.d_kl) = config.kl.estimator.estimate(d);
        }
        terms
    }
}

fn clipped_surrogate(config: &AlgorithmConfig, log_ratio: f64, advantage: f64) -> TokenTerms {
    let clamped = log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT);
    let ratio = clamped.exp();
    let d_ratio = if clamped == log_ratio { ratio } else { 0.0 };
    let plain = -advantage * ratio;
    let within = ratio.clamp(1.0 - config.clip_low, 1.0 + config.clip_high);
    let bounded = -advantage * within;
    let clipped = bounded > plain;
    let mut terms = TokenTerms {
        policy: if clipped { bounded } else { plain },
        d_policy: if clipped { 0.0 } else { -advantage * d_ratio },
        old_minus_new: -clamped,
        clipped,
        ..TokenTerms::default()
    };
    if let Some(bound) = config.dual_clip.map(|bound| -advantage * bound)
        && advantage < 0.0
        && terms.policy > bound
    {
        terms.policy = bound;
        terms.d_policy = 0.0;
        terms.clipped_lower = true;
    }
    terms
}

pub(crate) fn lengths(batch: &Batch) -> Vec<usize> {
    batch.data.iter().map(Datum::n_trained).collect()
}

fn weights(batch: &Batch, aggregation: Aggregation, factor: Option<f64>) -> Vec<f64> {
    aggregation.weights(&lengths(batch), factor)
}
