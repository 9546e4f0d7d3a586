//! How the losses of tokens become the loss of a batch.

use std::collections::BTreeMap;

use record::EpisodeId;
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
    /// Mean over episodes of the mean of the losses of all tokens of all their sequences: every episode
    /// weighs the same, whatever its calls and tokens.
    PerEpisodeMean,
}

impl Aggregation {
    /// As recipes have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TokenMean => "token-mean",
            Self::SeqMeanTokenSum => "seq-mean-token-sum",
            Self::SeqMeanTokenMean => "seq-mean-token-mean",
            Self::SeqMeanTokenSumNorm => "seq-mean-token-sum-norm",
            Self::PerEpisodeMean => "per-episode-mean",
        }
    }

    /// The weight of a token of each row, such that the batch's loss is the sum over all trained
    /// tokens of weight times token loss. Computed from the whole batch, so that micro-batches change
    /// nothing.
    ///
    /// `lengths` are the trained tokens per row; `factor` is the divisor of
    /// [`Aggregation::SeqMeanTokenSumNorm`], by default the greatest length. `episodes` says which
    /// rows are of one episode: rows of equal entries. Only [`Aggregation::PerEpisodeMean`] looks at it,
    /// and `None` is an episode of its own.
    ///
    /// # Panics
    /// When `episodes` is not as long as `lengths`.
    pub fn weights(
        self,
        lengths: &[usize],
        episodes: &[Option<EpisodeId>],
        factor: Option<f64>,
    ) -> Vec<f64> {
        assert_eq!(lengths.len(), episodes.len(), "an episode a row");
        let tokens = lengths.iter().sum::<usize>() as f64;
        let sequences = lengths.iter().filter(|&&length| length > 0).count() as f64;
        let longest = lengths.iter().max().map_or(0.0, |&length| length as f64);
        let (wholes, count) = match self {
            Self::PerEpisodeMean => whole_episodes(lengths, episodes),
            _ => (Vec::new(), 0.0),
        };
        let weight = |row: usize, length: usize| match self {
            Self::TokenMean => 1.0 / tokens,
            Self::SeqMeanTokenSum => 1.0 / sequences,
            Self::SeqMeanTokenMean => 1.0 / (sequences * length as f64),
            Self::SeqMeanTokenSumNorm => 1.0 / (sequences * factor.unwrap_or(longest)),
            Self::PerEpisodeMean => 1.0 / (count * wholes[row]),
        };
        let rows = lengths.iter().enumerate();
        rows.map(|(row, &length)| match length {
            0 => 0.0,
            _ => weight(row, length),
        })
        .collect()
    }
}

/// The trained tokens of each row's episode, and how many episodes have any.
fn whole_episodes(lengths: &[usize], episodes: &[Option<EpisodeId>]) -> (Vec<f64>, f64) {
    let mut tokens: BTreeMap<EpisodeId, usize> = BTreeMap::new();
    let mut loners = 0;
    let rows = || lengths.iter().zip(episodes);
    for (&length, episode) in rows().filter(|(length, _)| **length > 0) {
        match episode {
            Some(episode) => *tokens.entry(*episode).or_default() += length,
            None => loners += 1,
        }
    }
    let whole = |(&length, episode): (&usize, &Option<EpisodeId>)| {
        let sum = episode.and_then(|episode| tokens.get(&episode));
        sum.copied().unwrap_or(length) as f64
    };
    let count = (tokens.len() + loners) as f64;
    (rows().map(whole).collect(), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_episode_weighs_the_same() {
        // Token losses 1, 2, 3 and 10 and none of one episode, 5 of another, 7 of no episode.
        let losses: [&[f64]; 5] = [&[1., 2., 3.], &[5.], &[10.], &[], &[7., 7.]];
        let episode = |member| {
            Some(EpisodeId {
                step: 1,
                group: 0,
                member,
            })
        };
        let episodes = [episode(0), episode(1), episode(0), episode(0), None];
        let weights =
            Aggregation::PerEpisodeMean.weights(&losses.map(<[f64]>::len), &episodes, None);
        let total: f64 = losses
            .iter()
            .zip(&weights)
            .map(|(row, w)| w * row.iter().sum::<f64>())
            .sum();
        assert!((total - (4.0 + 5.0 + 7.0) / 3.0).abs() < 1e-12, "{total}");
    }

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
            let weights = mode.weights(&lengths, &[None; 3], factor);
            let total: f64 = losses
                .iter()
                .zip(&weights)
                .map(|(row, w)| w * row.iter().sum::<f64>())
                .sum();
            assert!((total - expected).abs() < 1e-12, "{mode:?}: {total}");
            assert!(weights.iter().all(|weight| weight.is_finite()));
        }
        for mode in [
            Aggregation::TokenMean,
            Aggregation::SeqMeanTokenMean,
            Aggregation::PerEpisodeMean,
        ] {
            assert_eq!(mode.weights(&[0, 0], &[None, None], None), [0.0, 0.0]);
        }
    }
}
