//! What is done about samplers whose log-probs are not those of the policy in training: another
//! precision, another engine, weights of a few steps ago.
//!
//! Names and semantics are those of verl's `algorithm.rollout_correction` (spec of the critique study,
//! section 10.6). `ρ` is the probability of a token under the policy that is trained over that under
//! the one that sampled it.

use std::collections::BTreeMap;

use record::Batch;
use serde::{Deserialize, Serialize};

use crate::{ConfigError, config::require};

/// Weights and rejections by `ρ`. Where it is absent from a recipe, the sampler's log-probs are taken
/// as those of the policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RolloutCorrection {
    /// Weighs each token's loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_is: Option<ImportanceSampling>,
    /// What leaves the batch; a token goes when any of these says so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rollout_rs: Vec<Rejection>,
}

/// Importance weights, truncated above; with a lower bound, weights outside of both are 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportanceSampling {
    pub level: Level,
    #[serde(default = "two")]
    pub threshold: f64,
    /// IcePop (arXiv 2510.18855): weights below this, and above `threshold`, are 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold_lower: Option<f64>,
    /// Divides the weights by their mean.
    #[serde(default)]
    pub batch_normalize: bool,
}

fn two() -> f64 {
    2.0
}

/// Of what `ρ` is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Each token's: biased, of low variance (truncated importance sampling).
    Token,
    /// The product over the sequence: unbiased, of high variance.
    Sequence,
}

/// A bound on a measure of how far the two policies are apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rejection {
    pub by: Measure,
    /// Of `k1`, the greatest ratio of sampler to policy; of the others, the greatest value.
    pub threshold: f64,
    /// Of `k1`, the least ratio; by default one over `threshold`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold_lower: Option<f64>,
}

/// `k1` is `-log ρ`, `k2` is `(log ρ)² / 2`, `k3` is `ρ - 1 - log ρ`; of a token, or the sum, mean or
/// greatest over a sequence, which then stays or goes as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    TokenK1,
    TokenK2,
    TokenK3,
    SeqSumK1,
    SeqSumK2,
    SeqSumK3,
    SeqMeanK1,
    SeqMeanK2,
    SeqMeanK3,
    SeqMaxK2,
    SeqMaxK3,
}

/// `log ρ` is clamped to this.
const LIMIT: f64 = 20.0;

impl ImportanceSampling {
    /// The weight of each token. `log_ratios` are `log ρ` of the trained tokens of each row.
    pub fn weights(&self, log_ratios: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let held = |log_ratio: f64| {
            let ratio = log_ratio.clamp(-LIMIT, LIMIT).exp();
            match self.threshold_lower {
                None => ratio.min(self.threshold),
                Some(lower) if (lower..=self.threshold).contains(&ratio) => ratio,
                Some(_) => 0.0,
            }
        };
        let mut weights: Vec<Vec<f64>> = log_ratios
            .iter()
            .map(|row| match self.level {
                Level::Token => row.iter().map(|&log_ratio| held(log_ratio)).collect(),
                Level::Sequence => vec![held(row.iter().sum()); row.len()],
            })
            .collect();
        if self.batch_normalize {
            let mean = match self.level {
                Level::Token => mean(weights.iter().flatten().copied()),
                Level::Sequence => mean(weights.iter().filter_map(|row| row.first().copied())),
            };
            if mean > 1e-8 {
                weights
                    .iter_mut()
                    .flatten()
                    .for_each(|weight| *weight /= mean);
            }
        }
        weights
    }
}

impl Measure {
    fn has_lower(self) -> bool {
        matches!(self, Self::TokenK1 | Self::SeqSumK1 | Self::SeqMeanK1)
    }
}

impl Rejection {
    /// Whether each token of a row stays.
    pub fn keeps(&self, log_ratios: &[f64]) -> Vec<bool> {
        use Measure::{
            SeqMaxK2, SeqMaxK3, SeqMeanK1, SeqMeanK2, SeqMeanK3, SeqSumK1, SeqSumK2, SeqSumK3,
            TokenK1, TokenK2, TokenK3,
        };
        let measure = |log_ratio: f64| {
            let log_ratio = log_ratio.clamp(-LIMIT, LIMIT);
            match self.by {
                TokenK1 | SeqSumK1 | SeqMeanK1 => -log_ratio,
                TokenK2 | SeqSumK2 | SeqMeanK2 | SeqMaxK2 => log_ratio * log_ratio / 2.0,
                TokenK3 | SeqSumK3 | SeqMeanK3 | SeqMaxK3 => log_ratio.exp() - 1.0 - log_ratio,
            }
        };
        let within = |value: f64| match self.by {
            by if by.has_lower() => {
                let lower = self.threshold_lower.unwrap_or(1.0 / self.threshold);
                (lower.ln()..=self.threshold.ln()).contains(&value)
            }
            _ => value <= self.threshold,
        };
        let values = || log_ratios.iter().map(|&log_ratio| measure(log_ratio));
        let whole = match self.by {
            TokenK1 | TokenK2 | TokenK3 => return values().map(within).collect(),
            SeqSumK1 | SeqSumK2 | SeqSumK3 => values().sum(),
            SeqMeanK1 | SeqMeanK2 | SeqMeanK3 => mean(values()),
            SeqMaxK2 | SeqMaxK3 => values().fold(0.0, f64::max),
        };
        vec![within(whole); log_ratios.len()]
    }
}

impl RolloutCorrection {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let bounds = self
            .rollout_is
            .iter()
            .map(|it| (it.threshold, it.threshold_lower));
        let rejections = self
            .rollout_rs
            .iter()
            .map(|it| (it.threshold, it.threshold_lower));
        for rejection in &self.rollout_rs {
            require(
                "rollout_correction.threshold_lower",
                rejection.threshold_lower.unwrap_or_default(),
                "absent: of the rejections only those by k1 have a lower bound",
                rejection.by.has_lower() || rejection.threshold_lower.is_none(),
            )?;
        }
        for (threshold, lower) in bounds.chain(rejections) {
            let positive = |value: f64| value > 0.0 && value.is_finite();
            let key = "rollout_correction.threshold";
            require(key, threshold, "more than 0", positive(threshold))?;
            if let Some(lower) = lower {
                let key = "rollout_correction.threshold_lower";
                let fits = positive(lower) && lower <= threshold;
                require(key, lower, "more than 0 and at most `threshold`", fits)?;
            }
        }
        Ok(())
    }

    /// Makes `current`, the log-probs of the trained tokens under the policy, those that the batch's
    /// ratios start from, and takes out of the mask what is rejected. The weights of the tokens that
    /// stay, where they have any, and how far the two policies were apart.
    pub fn apply(
        &self,
        batch: &mut Batch,
        current: &[Vec<f32>],
    ) -> (Option<Vec<Vec<f64>>>, BTreeMap<String, f64>) {
        let rows = batch.data.iter().zip(current);
        let log_ratios: Vec<Vec<f64>> = rows
            .map(|(datum, current)| {
                let sampled = datum.logprobs.iter().zip(&datum.mask);
                let sampled = sampled
                    .filter(|(_, mask)| **mask)
                    .map(|(logprob, _)| *logprob);
                let pairs = current.iter().zip(sampled);
                pairs
                    .map(|(&new, old)| f64::from(new) - f64::from(old))
                    .collect()
            })
            .collect();
        let keeps = self.keeps(&log_ratios);
        let mut weights = self.rollout_is.as_ref().map(|it| it.weights(&log_ratios));
        let told = metrics(&log_ratios, weights.as_deref(), &keeps);
        for ((datum, current), keeps) in batch.data.iter_mut().zip(current).zip(&keeps) {
            let slots = datum.logprobs.iter_mut().zip(&mut datum.mask);
            let slots = slots.filter(|(_, mask)| **mask);
            for ((slot, mask), (&new, &keep)) in slots.zip(current.iter().zip(keeps)) {
                *slot = new;
                *mask = keep;
            }
        }
        for (row, keeps) in weights.iter_mut().flatten().zip(&keeps) {
            let mut keeps = keeps.iter();
            row.retain(|_| keeps.next().copied().unwrap_or(true));
        }
        (weights, told)
    }

    /// Whether each token stays, by all rejections.
    pub fn keeps(&self, log_ratios: &[Vec<f64>]) -> Vec<Vec<bool>> {
        let row = |row: &Vec<f64>| {
            let mut keeps = vec![true; row.len()];
            for rejection in &self.rollout_rs {
                let kept = rejection.keeps(row);
                keeps
                    .iter_mut()
                    .zip(kept)
                    .for_each(|(all, one)| *all &= one);
            }
            keeps
        };
        log_ratios.iter().map(row).collect()
    }
}

/// How far sampler and policy are apart, under verl's names: `rollout_corr/{kl, k3_kl, chi2_token,
/// chi2_seq, log_ppl_diff, rollout_is_mean, rollout_is_max, rollout_is_min,
/// rollout_is_eff_sample_size, rollout_rs_masked_fraction}`.
pub fn metrics(
    log_ratios: &[Vec<f64>],
    weights: Option<&[Vec<f64>]>,
    keeps: &[Vec<bool>],
) -> BTreeMap<String, f64> {
    let tokens = || {
        log_ratios
            .iter()
            .flatten()
            .map(|ratio| ratio.clamp(-LIMIT, LIMIT))
    };
    let sequences = || log_ratios.iter().filter(|row| !row.is_empty());
    let sums = sequences().map(|row| row.iter().sum::<f64>().clamp(-LIMIT, LIMIT));
    let mut found = BTreeMap::from([
        ("kl", mean(tokens().map(|log_ratio| -log_ratio))),
        (
            "k3_kl",
            mean(tokens().map(|log_ratio| log_ratio.exp() - log_ratio - 1.0)),
        ),
        (
            "chi2_token",
            mean(tokens().map(|log_ratio| (2.0 * log_ratio).exp())) - 1.0,
        ),
        ("chi2_seq", mean(sums.map(|sum| (2.0 * sum).exp())) - 1.0),
        (
            "log_ppl_diff",
            mean(sequences().map(|row| -mean(row.iter().copied()))),
        ),
        ("rollout_rs_masked_fraction", {
            mean(
                keeps
                    .iter()
                    .flatten()
                    .map(|&keep| f64::from(u8::from(!keep))),
            )
        }),
    ]);
    if let Some(weights) = weights {
        let all = || weights.iter().flatten().copied();
        let (average, squares) = (mean(all()), mean(all().map(|weight| weight * weight)));
        let effective = if squares > 0.0 {
            average * average / squares
        } else {
            0.0
        };
        found.extend([
            ("rollout_is_mean", average),
            ("rollout_is_max", all().fold(f64::NEG_INFINITY, f64::max)),
            ("rollout_is_min", all().fold(f64::INFINITY, f64::min)),
            ("rollout_is_eff_sample_size", effective),
        ]);
    }
    found
        .into_iter()
        .filter(|(_, value)| value.is_finite())
        .map(|(name, value)| (format!("rollout_corr/{name}"), value))
        .collect()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0.0, 0.0), |(n, sum), value| (n + 1.0, sum + value));
    if count > 0.0 { sum / count } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampling(level: Level) -> ImportanceSampling {
        ImportanceSampling {
            level,
            threshold: 2.0,
            threshold_lower: None,
            batch_normalize: false,
        }
    }

    #[test]
    fn by_hand() {
        let rows = [vec![0.0, 3.0f64.ln()], vec![0.5f64.ln(), 0.5f64.ln()]];
        let near = |found: &[Vec<f64>], expected: [[f64; 2]; 2]| {
            let pairs = found.iter().flatten().zip(expected.iter().flatten());
            pairs.for_each(|(a, b)| assert!((a - b).abs() < 1e-12, "{found:?}"));
        };
        near(
            &sampling(Level::Token).weights(&rows),
            [[1.0, 2.0], [0.5, 0.5]],
        );
        near(
            &sampling(Level::Sequence).weights(&rows),
            [[2.0, 2.0], [0.25, 0.25]],
        );
        let icepop = ImportanceSampling {
            threshold_lower: Some(0.6),
            ..sampling(Level::Token)
        };
        near(&icepop.weights(&rows), [[1.0, 0.0], [0.0, 0.0]]);
        let normal = ImportanceSampling {
            batch_normalize: true,
            ..sampling(Level::Token)
        };
        near(&normal.weights(&rows), [[1.0, 2.0], [0.5, 0.5]]);

        let keeps = |by, threshold| {
            let rejection = Rejection {
                by,
                threshold,
                threshold_lower: None,
            };
            rows.each_ref().map(|row| rejection.keeps(row))
        };
        // Ratios of sampler to policy: 1, 1/3 | 2, 2.
        assert_eq!(keeps(Measure::TokenK1, 2.5), [[true, false], [true, true]]);
        assert_eq!(
            keeps(Measure::SeqSumK1, 3.5),
            [[true, true], [false, false]]
        );
        assert_eq!(
            keeps(Measure::SeqMeanK1, 1.9),
            [[true, true], [false, false]]
        );
        // k2: 0, 0.603 | 0.240, 0.240.
        assert_eq!(
            keeps(Measure::SeqMaxK2, 0.5),
            [[false, false], [true, true]]
        );
        assert_eq!(
            keeps(Measure::SeqSumK2, 0.5),
            [[false, false], [true, true]]
        );
        let told = metrics(&rows, Some(&sampling(Level::Token).weights(&rows)), &[]);
        assert!((told["rollout_corr/rollout_is_mean"] - 1.0).abs() < 1e-12);
        assert!((told["rollout_corr/rollout_is_eff_sample_size"] - 1.0 / 1.375).abs() < 1e-12);
    }
}
