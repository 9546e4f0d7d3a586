//! How the losses of tokens become the loss of a batch.

use serde::{Deserialize, Serialize};

/// Named as in verl's `loss_agg_mode` (spec of the critique study, section 10.3). Sequences without a
/// trained token count nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregation {
    /// Mean over all trained tokens of the batch: long sequences weigh more.
    TokenMean,
    /// Mean over sequences of the sum of their token losses.
    SeqMeanTokenSum,
    /// Mean over sequences of the mean of their token losses: every sequence weighs the same.
    SeqMeanTokenMean,
    /// Mean over sequences of the sum of their token losses over one constant: no length changes any
    /// weight (Dr. GRPO, arXiv 2503.20783).
    SeqMeanTokenSumNorm,
}

impl Aggregation {
    /// As recipes have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TokenMean => "token-mean",
            Self::SeqMeanTokenSum => "seq-mean-token-sum",
            Self::SeqMeanTokenMean => "seq-mean-token-mean",
            Self::SeqMeanTokenSumNorm => "seq-mean-token-sum-norm",
        }
    }

    /// The weight of a token of each row, such that the batch's loss is the sum over all trained
    /// tokens of weight times token loss. Computed from the whole batch, so that micro-batches change
    /// nothing.
    ///
    /// `lengths` are the trained tokens per row; `factor` is the divisor of
    /// [`Aggregation::SeqMeanTokenSumNorm`], by default the greatest length.
    pub fn weights(self, lengths: &[usize], factor: Option<f64>) -> Vec<f64> {
        let tokens = lengths.iter().sum::<usize>() as f64;
        let sequences = lengths.iter().filter(|&&length| length > 0).count() as f64;
        let longest = lengths.iter().max().map_or(0.0, |&length| length as f64);
        let weight = |length: usize| match self {
            Self::TokenMean => 1.0 / tokens,
            Self::SeqMeanTokenSum => 1.0 / sequences,
            Self::SeqMeanTokenMean => 1.0 / (sequences * length as f64),
            Self::SeqMeanTokenSumNorm => 1.0 / (sequences * factor.unwrap_or(longest)),
        };
        lengths
            .iter()
            .map(|&length| if length == 0 { 0.0 } else { weight(length) })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_is_its_name() {
        // Token losses 1, 2, 3 | 10 | (none).
        let losses: [&[f64]; 3] = [&[1., 2., 3.], &[10.], &[]];
        let lengths = losses.map(<[f64]>::len);
        let cases = [
            (Aggregation::TokenMean, None, 16. / 4.),
            (Aggregation::SeqMeanTokenSum, None, (6. + 10.) / 2.),
            (Aggregation::SeqMeanTokenMean, None, (2. + 10.) / 2.),
            (Aggregation::SeqMeanTokenSumNorm, None, 16. / 6.),
            (Aggregation::SeqMeanTokenSumNorm, Some(768.), 8. / 768.),
        ];
        for (mode, factor, expected) in cases {
            let weights = mode.weights(&lengths, factor);
            let total: f64 = losses
                .iter()
                .zip(&weights)
                .map(|(row, w)| w * row.iter().sum::<f64>())
                .sum();
            assert!((total - expected).abs() < 1e-12, "{mode:?}: {total}");
            assert!(weights.iter().all(|weight| weight.is_finite()));
        }
        for mode in [Aggregation::TokenMean, Aggregation::SeqMeanTokenMean] {
            assert_eq!(mode.weights(&[0, 0], None), [0.0, 0.0]);
        }
    }
}
