//! One token from a row of logits.

use std::collections::BTreeMap;

use rand_chacha::{ChaCha8Rng, rand_core::Rng};
use record::{Sampling, TokenId};

use crate::{
    kernels::{head, math},
    truncate::{keep_likely, keep_nucleus, keep_top},
};

/// Working memory, kept between draws.
#[derive(Debug, Default)]
pub(crate) struct DrawScratch {
    weights: Vec<f32>,
    pub(crate) order: Vec<TokenId>,
}

/// A token with its log-probabilities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Drawn {
    pub(crate) token: TokenId,
    /// At temperature 1 over the whole vocabulary.
    pub(crate) logprob: f32,
    /// Under the distribution that was drawn from; 0 for greedy.
    pub(crate) sampled_logprob: f32,
}

/// How often each token was said; only those of which penalties ask.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Times in the response; 0 for tokens of the prompt alone.
    counts: BTreeMap<TokenId, u32>,
}

impl History {
    /// Before the first response token.
    pub(crate) fn of_prompt(prompt: &[TokenId], sampling: &Sampling) -> Self {
        let counts = match sampling.repetition_penalty != 1.0 {
            true => prompt.iter().map(|&token| (token, 0)).collect(),
            false => BTreeMap::new(),
        };
        Self { counts }
    }

    pub(crate) fn push(&mut self, token: TokenId, sampling: &Sampling) {
        if sampling.has_penalties() {
            *self.counts.entry(token).or_default() += 1;
        }
    }

    /// Bias, then penalties.
    fn change(&self, logits: &mut [f32], sampling: &Sampling) {
        for (&token, bias) in &sampling.logit_bias {
            logits[token as usize] += bias;
        }
        for (&token, &count) in &self.counts {
            let logit = &mut logits[token as usize];
            *logit = match *logit < 0.0 {
                true => *logit * sampling.repetition_penalty,
                false => *logit / sampling.repetition_penalty,
            };
            *logit -= sampling.frequency_penalty * count as f32;
            *logit -= sampling.presence_penalty * f32::from(u8::from(count > 0));
        }
    }
}

/// Draws a token; `None` where the logits are not finite.
///
/// Greedy takes the largest logit (lowest id on ties) and draws nothing from `rng`; otherwise one
/// number is drawn per token.
pub(crate) fn draw(
    logits: &[f32],
    sampling: &Sampling,
    history: &History,
    rng: &mut ChaCha8Rng,
    scratch: &mut DrawScratch,
) -> Option<Drawn> {
    let (token, weight) = if sampling.temperature == 0.0 {
        let token = if sampling.changes_logits() {
            scratch.weights.clear();
            scratch.weights.extend_from_slice(logits);
            history.change(&mut scratch.weights, sampling);
            arg_max(&scratch.weights)
        } else {
            arg_max(logits)
        };
        (token, 1.0)
    } else {
        let uniform = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        sample(logits, sampling, history, uniform, scratch)
    };
    let logprob = head::score(logits, token).logprob;
    logprob.is_finite().then_some(Drawn {
        token: token as TokenId,
        logprob,
        sampled_logprob: match sampling.is_plain() {
            true => logprob,
            false => weight.ln() as f32,
        },
    })
}

/// The `count` most probable tokens with their log-probabilities at temperature 1, most probable first,
/// lowest id first among equals.
pub(crate) fn top_logprobs(
    logits: &[f32],
    count: usize,
    order: &mut Vec<TokenId>,
) -> Vec<(TokenId, f32)> {
    let count = count.min(logits.len());
    if count == 0 {
        return Vec::new();
    }
    let by_logit = |a: &TokenId, b: &TokenId| {
        let (a, b) = (*a, *b);
        logits[b as usize]
            .total_cmp(&logits[a as usize])
            .then(a.cmp(&b))
    };
    order.clear();
    order.extend(0..logits.len() as TokenId);
    if count < order.len() {
        order.select_nth_unstable_by(count, by_logit);
    }
    let top = &mut order[..count];
    top.sort_unstable_by(by_logit);
    top.iter()
        .map(|&token| (token, head::score(logits, token as usize).logprob))
        .collect()
}

fn arg_max(logits: &[f32]) -> usize {
    let top = math::vectorised(
        #[inline(always)]
        || math::max(logits),
    );
    logits.iter().position(|&logit| logit == top).unwrap_or(0)
}

/// The token at which the running sum of probabilities, in order of id, passes `uniform`, and its
/// probability.
fn sample(
    logits: &[f32],
    sampling: &Sampling,
    history: &History,
    uniform: f64,
    scratch: &mut DrawScratch,
) -> (usize, f64) {
    let total = shape(logits, sampling, history, scratch);
    let weights = &scratch.weights;
    let token = pass_through(weights, uniform * total);
    (token, f64::from(weights[token]) / total)
}

/// Leaves what is drawn from in `scratch.weights`, unnormalised, and returns its sum.
fn shape(logits: &[f32], sampling: &Sampling, history: &History, scratch: &mut DrawScratch) -> f64 {
    let DrawScratch { weights, order } = scratch;
    weights.clear();
    weights.extend_from_slice(logits);
    history.change(weights, sampling);
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
    let mut total = f64::from(total);
    if (1..weights.len()).contains(&sampling.top_k) {
        total = keep_top(weights, order, sampling.top_k);
    }
    if sampling.top_p < 1.0 {
        total = keep_nucleus(weights, order, total as f32 * sampling.top_p);
    }
    if sampling.min_p > 0.0 {
        total = keep_likely(weights, sampling.min_p);
    }
    total
}

/// First index at which the running sum exceeds `target`; the largest weight where rounding leaves the
/// whole sum below it.
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
    arg_max(weights)
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
            let Drawn { token, logprob, .. } = draw(
                &logits,
                sampling,
                &History::default(),
                &mut rng,
                &mut scratch,
            )
            .unwrap();
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
        let mut take = |logits: &[f32]| {
            let mut rng = Seed(1).rng();
            draw(logits, &greedy, &History::default(), &mut rng, &mut scratch)
        };
        assert_eq!(
            take(&[0.0, 2.0, 2.0, 1.0]).map(|drawn| drawn.token),
            Some(1)
        );
        assert_eq!(take(&[0.0, f32::NAN, 2.0]), None);
        assert_eq!(take(&[f32::INFINITY, 0.0]), None);
    }

    fn probabilities(
        logits: &[f32],
        sampling: &Sampling,
        prompt: &[TokenId],
        said: &[TokenId],
    ) -> Vec<f64> {
        let mut history = History::of_prompt(prompt, sampling);
        said.iter().for_each(|&token| history.push(token, sampling));
        let mut scratch = DrawScratch::default();
        let total = shape(logits, sampling, &history, &mut scratch);
        let weights = scratch.weights.iter();
        weights.map(|&weight| f64::from(weight) / total).collect()
    }

    #[derive(serde::Deserialize)]
    struct Case {
        sampling: Sampling,
        logits: Vec<f32>,
        prompt: Vec<TokenId>,
        response: Vec<TokenId>,
        probabilities: Vec<f64>,
    }

    #[test]
    fn distributions_are_those_of_the_logits_processors_of_transformers() {
        let text = include_str!("../tests/cases/004_logits_processors/expected.json");
        let cases: Vec<Case> = serde_json::from_str(text).unwrap();
        assert_eq!(cases.len(), 15);
        for case in cases {
            let found = probabilities(&case.logits, &case.sampling, &case.prompt, &case.response);
            for (found, expected) in found.iter().zip(&case.probabilities) {
                let sampling = &case.sampling;
                assert!(
                    (found - expected).abs() < 1e-6,
                    "{found}, not {expected}: {sampling:?}"
                );
                assert!((*found > 1e-30) == (*expected > 1e-30), "{sampling:?}");
            }
        }
    }

    #[test]
    fn penalties_and_bias_by_hand() {
        let logits = [2.0, -1.0, 0.5, 0.0, 1.0];
        let expected = |changed: [f64; 5]| {
            let total: f64 = changed.iter().map(|logit| logit.exp()).sum();
            changed.map(|logit| logit.exp() / total)
        };
        let check = |sampling: Sampling, changed: [f64; 5]| {
            // Token 0 is in the prompt alone, 1 twice and 2 once in the response.
            let found = probabilities(&logits, &sampling, &[0, 2], &[1, 2, 1]);
            for (found, expected) in found.iter().zip(expected(changed)) {
                assert!(
                    (found - expected).abs() < 1e-6,
                    "{sampling:?}: {found}, not {expected}"
                );
            }
        };
        let plain = Sampling::at(1.0, 1);
        let presence = Sampling {
            presence_penalty: 0.5,
            ..plain.clone()
        };
        check(presence, [2.0, -1.5, 0.0, 0.0, 1.0]);
        let frequency = Sampling {
            frequency_penalty: 0.5,
            ..plain.clone()
        };
        check(frequency, [2.0, -2.0, 0.0, 0.0, 1.0]);
        let repetition = Sampling {
            repetition_penalty: 2.0,
            ..plain.clone()
        };
        check(repetition, [1.0, -2.0, 0.25, 0.0, 1.0]);
        // Bias comes first, so a token may change the side of zero before the penalty.
        let all = Sampling {
            logit_bias: [(1, 2.0), (3, -1.0)].into(),
            repetition_penalty: 2.0,
            frequency_penalty: 0.25,
            presence_penalty: -0.5,
            temperature: 0.5,
            ..plain
        };
        check(
            all,
            [
                2.0,
                2.0 * (0.5 - 0.5 + 0.5),
                2.0 * (0.25 - 0.25 + 0.5),
                -2.0,
                2.0,
            ],
        );
    }

    #[test]
    fn greedy_minds_bias_and_penalties() {
        let mut scratch = DrawScratch::default();
        let mut take = |sampling: &Sampling| {
            let history = History::of_prompt(&[1], sampling);
            let mut rng = Seed(1).rng();
            let logits = [0.5, 2.0, 1.5];
            draw(&logits, sampling, &history, &mut rng, &mut scratch).unwrap()
        };
        let greedy = Sampling::greedy(1);
        assert_eq!(
            (take(&greedy).token, take(&greedy).sampled_logprob),
            (1, 0.0)
        );
        let biased = Sampling {
            logit_bias: [(0, 9.0)].into(),
            ..greedy.clone()
        };
        assert_eq!(take(&biased).token, 0);
        let penalised = Sampling {
            repetition_penalty: 2.0,
            ..greedy
        };
        let drawn = take(&penalised);
        assert_eq!(drawn.token, 2);
        let raw = -((0.5_f32 - 1.5).exp() + (2.0_f32 - 1.5).exp() + 1.0).ln();
        assert!((drawn.logprob - raw).abs() < 1e-6);
    }

    #[test]
    fn the_logprob_as_sampled_is_that_of_what_is_left() {
        let logits = [0.1_f32, 0.4, 0.2, 0.3].map(f32::ln);
        let sampling = Sampling {
            top_k: 2,
            ..Sampling::at(1.0, 1)
        };
        let mut rng = Seed(5).rng();
        let mut scratch = DrawScratch::default();
        for _ in 0..50 {
            let drawn = draw(
                &logits,
                &sampling,
                &History::default(),
                &mut rng,
                &mut scratch,
            )
            .unwrap();
            let expected: f32 = if drawn.token == 1 {
                4.0 / 7.0
            } else {
                3.0 / 7.0
            };
            assert!((drawn.sampled_logprob - expected.ln()).abs() < 1e-6);
            assert!((drawn.logprob - logits[drawn.token as usize]).abs() < 1e-6);
        }
        let top = top_logprobs(&logits, 3, &mut Vec::new());
        let tokens: Vec<TokenId> = top.iter().map(|(token, _)| *token).collect();
        assert_eq!(tokens, [1, 3, 2]);
        assert!(
            top.iter()
                .all(|(token, logprob)| (logprob - logits[*token as usize]).abs() < 1e-6)
        );
    }
}
