//! One token from a row of logits.

use rand_chacha::{ChaCha8Rng, rand_core::Rng};
use record::{Sampling, TokenId};

use crate::kernels::{head, math};

/// Working memory, kept between draws.
#[derive(Debug, Default)]
pub(crate) struct DrawScratch {
    weights: Vec<f32>,
    order: Vec<TokenId>,
}

/// Draws a token and returns it with its log-probability at temperature 1 over the whole
/// vocabulary; `None` where the logits are not finite.
///
/// Greedy takes the largest logit (lowest id on ties) and draws nothing from `rng`; otherwise one
/// number is drawn per token.
pub(crate) fn draw(
    logits: &[f32],
    sampling: &Sampling,
    rng: &mut ChaCha8Rng,
    scratch: &mut DrawScratch,
) -> Option<(TokenId, f32)> {
    let token = if sampling.temperature == 0.0 {
        arg_max(logits)
    } else {
        let uniform = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        sample(logits, sampling, uniform, scratch)
    };
    let logprob = head::score(logits, token).logprob;
    logprob.is_finite().then_some((token as TokenId, logprob))
}

fn arg_max(logits: &[f32]) -> usize {
    let top = math::vectorised(
        #[inline(always)]
        || math::max(logits),
    );
    logits.iter().position(|&logit| logit == top).unwrap_or(0)
}

/// The token at which the running sum of probabilities, in order of id, passes `uniform`.
fn sample(logits: &[f32], sampling: &Sampling, uniform: f64, scratch: &mut DrawScratch) -> usize {
    let DrawScratch { weights, order } = scratch;
    weights.clear();
    weights.extend_from_slice(logits);
    let inverse = 1.0 / sampling.temperature;
    let total = math::vectorised(
        #[inline(always)]
        || {
            let top = math::max(weights);
            for weight in weights.iter_mut() {
                *weight = (*weight - top) * inverse;
            }
            math::exp_sum(weights, 0.0)
        },
    );
    let total = if sampling.top_p < 1.0 {
        keep_nucleus(weights, order, total * sampling.top_p)
    } else {
        f64::from(total)
    };
    pass_through(weights, uniform * total)
}

/// Zeroes all but the smallest set of largest weights that reaches `mass` (lowest id first among
/// equals) and returns what the set sums to.
fn keep_nucleus(weights: &mut [f32], order: &mut Vec<TokenId>, mass: f32) -> f64 {
    order.clear();
    order.extend(0..weights.len() as TokenId);
    order.sort_unstable_by(|&a, &b| {
        weights[b as usize]
            .total_cmp(&weights[a as usize])
            .then(a.cmp(&b))
    });
    let mut kept = 0.0_f64;
    let needed = order.iter().take_while(|&&id| {
        let missing = kept < f64::from(mass);
        kept += if missing {
            f64::from(weights[id as usize])
        } else {
            0.0
        };
        missing
    });
    let needed = needed.count().max(1);
    for &id in &order[needed..] {
        weights[id as usize] = 0.0;
    }
    kept
}

/// First index at which the running sum exceeds `target`; the last index with any weight where
/// rounding leaves the whole sum below it.
fn pass_through(weights: &[f32], target: f64) -> usize {
    let mut passed = 0.0_f64;
    for (block_index, block) in weights.chunks(16).enumerate() {
        let block_sum = f64::from(block.iter().sum::<f32>());
        if passed + block_sum > target {
            for (index, &weight) in block.iter().enumerate() {
                passed += f64::from(weight);
                if passed > target {
                    return block_index * 16 + index;
                }
            }
        } else {
            passed += block_sum;
        }
    }
    weights
        .iter()
        .rposition(|&weight| weight > 0.0)
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Seed;

    fn frequencies(sampling: &Sampling) -> [f64; 4] {
        let logits = [0.1_f32, 0.4, 0.2, 0.3].map(f32::ln);
        let mut rng = Seed(5).rng();
        let mut counts = [0.0; 4];
        let mut scratch = DrawScratch::default();
        for _ in 0..20_000 {
            let (token, logprob) = draw(&logits, sampling, &mut rng, &mut scratch).unwrap();
            assert!((logprob - logits[token as usize]).abs() < 1e-6);
            counts[token as usize] += 1.0 / 20_000.0;
        }
        counts
    }

    fn assert_close(found: [f64; 4], expected: [f64; 4]) {
        let close = found
            .iter()
            .zip(expected)
            .all(|(a, b)| (a - b).abs() < 0.015);
        assert!(close, "{found:?} is not {expected:?}");
    }

    #[test]
    fn frequencies_follow_temperature_and_nucleus() {
        assert_close(frequencies(&Sampling::at(1.0, 1)), [0.1, 0.4, 0.2, 0.3]);
        let squares = [0.01, 0.16, 0.04, 0.09].map(|square| square / 0.3);
        assert_close(frequencies(&Sampling::at(0.5, 1)), squares);
        let nucleus = Sampling {
            top_p: 0.65,
            ..Sampling::at(1.0, 1)
        };
        assert_close(frequencies(&nucleus), [0.0, 4.0 / 7.0, 0.0, 3.0 / 7.0]);
        let narrow = Sampling {
            top_p: 1e-6,
            ..Sampling::at(1.0, 1)
        };
        assert_close(frequencies(&narrow), [0.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn greedy_takes_the_lowest_of_equals_and_bad_logits_are_noticed() {
        let mut scratch = DrawScratch::default();
        let greedy = Sampling::greedy(1);
        let mut take = |logits: &[f32]| draw(logits, &greedy, &mut Seed(1).rng(), &mut scratch);
        assert_eq!(take(&[0.0, 2.0, 2.0, 1.0]).map(|(token, _)| token), Some(1));
        assert_eq!(take(&[0.0, f32::NAN, 2.0]), None);
        assert_eq!(take(&[f32::INFINITY, 0.0]), None);
    }
}
