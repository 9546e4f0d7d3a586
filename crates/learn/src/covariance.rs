//! Which tokens a batch-wide covariance picks: those that drive the entropy down fastest.

use serde::{Deserialize, Serialize};

/// What `loss_mode = "clip-cov"` and `"kl-cov"` do with tokens whose advantage and log-prob vary
/// together (arXiv 2505.22617; spec of the critique study, section 10.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CovarianceConfig {
    /// The share of the batch's tokens that is picked, at least one token.
    pub ratio: f64,
    /// Clip-cov picks among tokens with a covariance above this …
    pub lower: f64,
    /// … and below this.
    pub upper: f64,
    /// Weight of `|log r|` of the tokens that kl-cov picks.
    pub kl_coefficient: f64,
}

impl Default for CovarianceConfig {
    fn default() -> Self {
        Self {
            ratio: 2e-4,
            lower: 1.0,
            upper: 5.0,
            kl_coefficient: 0.1,
        }
    }
}

/// `(A - mean A) (log p - mean log p)` of each trained token, with means over the whole batch.
pub fn covariances(advantages: &[Vec<f32>], logprobs: &[Vec<f32>]) -> Vec<Vec<f64>> {
    let mean = |rows: &[Vec<f32>]| {
        let count = rows.iter().map(Vec::len).sum::<usize>().max(1) as f64;
        rows.iter()
            .flatten()
            .map(|&value| f64::from(value))
            .sum::<f64>()
            / count
    };
    let (advantage, logprob) = (mean(advantages), mean(logprobs));
    let rows = advantages.iter().zip(logprobs);
    rows.map(|(advantages, logprobs)| {
        let tokens = advantages.iter().zip(logprobs);
        tokens
            .map(|(&a, &p)| (f64::from(a) - advantage) * (f64::from(p) - logprob))
            .collect()
    })
    .collect()
}

/// The tokens that clip-cov leaves without a loss: of those whose covariance is within the bounds and
/// that `clipped` does not hold already, as many as the ratio says, in an order that a hash of their
/// places gives.
pub(crate) fn clip_cov(
    config: &CovarianceConfig,
    covariances: &[Vec<f64>],
    clipped: impl Fn(usize, usize) -> bool,
) -> Vec<Vec<bool>> {
    let mut candidates: Vec<(usize, usize)> = places(covariances)
        .filter(|&(row, token)| {
            let covariance = covariances[row][token];
            covariance > config.lower && covariance < config.upper && !clipped(row, token)
        })
        .collect();
    candidates.sort_by_key(|&(row, token)| (scattered(row, token), row, token));
    candidates.truncate(count(config.ratio, covariances));
    picked(covariances, &candidates)
}

/// The tokens that kl-cov holds back: those with the greatest covariances.
pub(crate) fn kl_cov(config: &CovarianceConfig, covariances: &[Vec<f64>]) -> Vec<Vec<bool>> {
    let mut all: Vec<(usize, usize)> = places(covariances).collect();
    all.sort_by(|&(row, token), &(other_row, other_token)| {
        let (one, other) = (covariances[row][token], covariances[other_row][other_token]);
        other
            .total_cmp(&one)
            .then((row, token).cmp(&(other_row, other_token)))
    });
    all.truncate(count(config.ratio, covariances));
    picked(covariances, &all)
}

fn places(rows: &[Vec<f64>]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let rows = rows.iter().enumerate();
    rows.flat_map(|(row, tokens)| (0..tokens.len()).map(move |token| (row, token)))
}

fn count(ratio: f64, rows: &[Vec<f64>]) -> usize {
    let tokens = rows.iter().map(Vec::len).sum::<usize>();
    ((ratio * tokens as f64) as usize).max(1)
}

fn picked(rows: &[Vec<f64>], places: &[(usize, usize)]) -> Vec<Vec<bool>> {
    let mut picked: Vec<Vec<bool>> = rows.iter().map(|row| vec![false; row.len()]).collect();
    for &(row, token) in places {
        picked[row][token] = true;
    }
    picked
}

/// The finalizer of SplitMix64.
fn scattered(row: usize, token: usize) -> u64 {
    let mut z = ((row as u64) << 32 | token as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let found = covariances(
            &[vec![1.0, -1.0], vec![0.0]],
            &[vec![-1.0, -3.0], vec![-2.0]],
        );
        assert_eq!(found, [vec![1.0, 1.0], vec![0.0]]);
        let config = CovarianceConfig {
            ratio: 0.4,
            lower: 0.5,
            ..CovarianceConfig::default()
        };
        assert_eq!(kl_cov(&config, &found), [vec![true, false], vec![false]]);
        let free = clip_cov(&config, &found, |_, token| token == 0);
        assert_eq!(free, [vec![false, true], vec![false]]);
        let none = clip_cov(&CovarianceConfig::default(), &found, |_, _| false);
        assert_eq!(none, [vec![false, false], vec![false]]);
    }
}
