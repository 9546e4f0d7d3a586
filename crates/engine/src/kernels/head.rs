//! From a row of logits to the log-probability of one token and the entropy, and back.

use super::math::{exp, max, vectorised};

/// What is kept of one row of logits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LogitScore {
    /// `log softmax(logits)[target]`
    pub(crate) logprob: f32,
    /// `-Σ p log p`
    pub(crate) entropy: f32,
    /// `log Σ e^logit`
    pub(crate) log_sum: f32,
}

pub(crate) fn score(logits: &[f32], target: usize) -> LogitScore {
    let (top, total, weighted) = vectorised(
        #[inline(always)]
        || {
            let top = max(logits);
            let (mut totals, mut weighted) = ([0.0_f32; 16], [0.0_f32; 16]);
            let (blocks, rest) = logits.as_chunks::<16>();
            for block in blocks {
                for lane in 0..16 {
                    let below = block[lane] - top;
                    let mass = exp(below);
                    totals[lane] += mass;
                    weighted[lane] += mass * below;
                }
            }
            let (mut total, mut mean) = (totals.iter().sum::<f32>(), weighted.iter().sum::<f32>());
            for logit in rest {
                let mass = exp(logit - top);
                total += mass;
                mean += mass * (logit - top);
            }
            (top, total, mean)
        },
    );
    let log_total = total.ln();
    LogitScore {
        logprob: logits[target] - top - log_total,
        entropy: log_total - weighted / total,
        log_sum: top + log_total,
    }
}

/// Turns a row of logits into the gradient of a loss whose derivatives by log-probability and by
/// entropy are given: `∂logprob/∂z_j = [j = target] - p_j`, `∂H/∂z_j = -p_j (log p_j + H)`.
pub(crate) fn gradient(
    logits: &mut [f32],
    target: usize,
    score: LogitScore,
    d_logprob: f32,
    d_entropy: f32,
) {
    vectorised(
        #[inline(always)]
        || {
            let base = d_logprob + d_entropy * score.entropy;
            for logit in logits.iter_mut() {
                let logprob = *logit - score.log_sum;
                *logit = -exp(logprob) * (base + d_entropy * logprob);
            }
        },
    );
    logits[target] += d_logprob;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_gradient, noise};

    #[test]
    fn gradient_agrees_with_finite_differences() {
        let logits = noise(45, 1);
        let loss = |logits: &[f32]| {
            let score = score(logits, 17);
            f64::from(0.7 * score.logprob - 1.3 * score.entropy)
        };
        let mut found = logits.clone();
        gradient(&mut found, 17, score(&logits, 17), 0.7, -1.3);
        assert_gradient(&logits, &found, loss);
    }

    #[test]
    fn uniform_and_peaked_rows() {
        let even = score(&[3.0; 20], 4);
        assert!((even.logprob + 20_f32.ln()).abs() < 1e-6);
        assert!((even.entropy - 20_f32.ln()).abs() < 1e-6);
        let mut peaked = [0.0; 20];
        peaked[3] = 1000.0;
        let peaked = score(&peaked, 3);
        assert_eq!((peaked.logprob, peaked.log_sum), (0.0, 1000.0));
        assert!(peaked.entropy.abs() < 1e-6);
    }
}
