//! Advantages from a value function, token by token, and what the value function is fitted to.

/// What [`gae`] finds for the tokens of one row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimated {
    /// `A_t`, before whitening.
    pub advantages: Vec<f64>,
    /// `A_t + V_t`: what values are fitted to.
    pub returns: Vec<f64>,
}

/// Generalized advantage estimation (arXiv 1506.02438, equation 16) over the trained tokens of one
/// row: `δ_t = r_t + γ V_{t+1} - V_t` and `A_t = δ_t + γ λ A_{t+1}`, with nothing after the last token.
///
/// `rewards` and `values` have one entry a trained token: `V_t` is the value of what stands before
/// token `t`. Tokens that were not sampled have no entry, so values and advantages pass over them
/// unchanged (spec of the critique study, section 10.1).
///
/// # Panics
/// When the lengths differ.
pub fn gae(rewards: &[f64], values: &[f64], gamma: f64, lambda: f64) -> Estimated {
    assert_eq!(rewards.len(), values.len(), "a value for each reward");
    let mut advantages = vec![0.0; rewards.len()];
    let (mut value_after, mut advantage_after) = (0.0, 0.0);
    for t in (0..rewards.len()).rev() {
        let delta = rewards[t] + gamma * value_after - values[t];
        advantage_after = delta + gamma * lambda * advantage_after;
        advantages[t] = advantage_after;
        value_after = values[t];
    }
    let returns = advantages.iter().zip(values).map(|(a, v)| a + v).collect();
    Estimated {
        advantages,
        returns,
    }
}

/// Subtracts the mean over all tokens of the batch and divides by `sqrt(variance + 1e-8)`, where the
/// variance has the divisor `n - 1`. Fewer than two tokens are left as they are.
pub fn whiten(rows: &mut [Vec<f64>]) {
    const EPSILON: f64 = 1e-8;
    let count = rows.iter().map(Vec::len).sum::<usize>();
    if count < 2 {
        return;
    }
    let all = || rows.iter().flatten();
    let mean = all().sum::<f64>() / count as f64;
    let squares: f64 = all().map(|value| (value - mean).powi(2)).sum();
    let scale = (squares / (count - 1) as f64 + EPSILON).sqrt().recip();
    for value in rows.iter_mut().flatten() {
        *value = (*value - mean) * scale;
    }
}

/// The clipped loss of one value (PPO, arXiv 1707.06347; OpenAI baselines' clipping of values) and its
/// derivative by the value: `max((v - R)², (clip(v, v_old ± range) - R)²) / 2`. Third, whether the clip
/// holds.
pub fn value_loss(value: f64, old: f64, target: f64, range: f64) -> (f64, f64, bool) {
    let clipped = value.clamp(old - range, old + range);
    let (plain, bounded) = ((value - target).powi(2), (clipped - target).powi(2));
    match bounded > plain {
        // Where the clip holds, the value moves nothing.
        true => (
            bounded / 2.0,
            if clipped == value {
                value - target
            } else {
                0.0
            },
            true,
        ),
        false => (plain / 2.0, value - target, false),
    }
}

/// The share of the variance of returns that values explain: 1 is all of it, 0 no more than a constant
/// would. 0 where returns do not vary.
pub fn explained_variance<'a>(pairs: impl Iterator<Item = (&'a f64, &'a f64)> + Clone) -> f64 {
    let variance = |values: &mut dyn Iterator<Item = f64>| {
        let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for value in values {
            n += 1.0;
            sum += value;
            squares += value * value;
        }
        if n == 0.0 {
            0.0
        } else {
            squares / n - (sum / n) * (sum / n)
        }
    };
    let of_returns = variance(&mut pairs.clone().map(|(_, target)| *target));
    let of_errors = variance(&mut pairs.map(|(value, target)| target - value));
    if of_returns > 0.0 {
        1.0 - of_errors / of_returns
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        // γ = 0.5, λ = 0.5: δ = (0.5·2 - 1, 0.5·4 - 2, 1 - 4) = (0, 0, -3).
        let found = gae(&[0.0, 0.0, 1.0], &[1.0, 2.0, 4.0], 0.5, 0.5);
        assert_eq!(found.advantages, [-3.0 / 16.0, -3.0 / 4.0, -3.0]);
        assert_eq!(found.returns, [13.0 / 16.0, 5.0 / 4.0, 1.0]);
        assert_eq!(value_loss(1.0, 1.0, 0.0, 0.5), (0.5, 1.0, false));
        // Clipped at 1.5, which is further from the target than 2.
        assert_eq!(value_loss(2.0, 1.0, 3.0, 0.5), (1.125, 0.0, true));
        assert_eq!(value_loss(2.0, 1.0, 0.0, 0.5), (2.0, 2.0, false));
        let (values, returns) = ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]);
        assert_eq!(explained_variance(values.iter().zip(&returns)), 1.0);
        assert_eq!(
            explained_variance([0.0, 0.0, 0.0].iter().zip(&returns)),
            0.0
        );
        assert_eq!(
            explained_variance(returns.iter().zip(&[1.0, 1.0, 1.0])),
            0.0
        );
    }

    proptest! {
        #[test]
        fn without_bootstrapping_returns_are_the_rewards_to_come(
            pairs in prop::collection::vec((-2.0f64..2.0, -2.0f64..2.0), 0..20),
        ) {
            let (rewards, values): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let found = gae(&rewards, &values, 1.0, 1.0);
            for (t, found) in found.returns.iter().enumerate() {
                let to_come: f64 = rewards[t..].iter().sum();
                prop_assert!((found - to_come).abs() < 1e-9);
            }
            // λ = 0: one step.
            let found = gae(&rewards, &values, 0.9, 0.0);
            for (t, found) in found.returns.iter().enumerate() {
                let next = values.get(t + 1).copied().unwrap_or(0.0);
                prop_assert!((found - rewards[t] - 0.9 * next).abs() < 1e-9);
            }
        }

        #[test]
        fn whitened_rows_have_mean_0_and_variance_1(
            mut rows in prop::collection::vec(prop::collection::vec(-5.0f64..5.0, 0..8), 1..6),
        ) {
            let count = rows.iter().map(Vec::len).sum::<usize>() as f64;
            let before: Vec<f64> = rows.iter().flatten().copied().collect();
            let spread = before.iter().fold(0.0f64, |most, v| most.max((v - before[0]).abs()));
            prop_assume!(count >= 2.0 && spread > 0.1);
            whiten(&mut rows);
            let mean = rows.iter().flatten().sum::<f64>() / count;
            let squares: f64 = rows.iter().flatten().map(|v| v * v).sum();
            prop_assert!(mean.abs() < 1e-9);
            prop_assert!((squares / (count - 1.0) - 1.0).abs() < 1e-4);
        }

        #[test]
        fn derivatives_of_the_value_loss_are_its_own(
            value in -2.0f64..2.0, old in -2.0f64..2.0, target in -2.0f64..2.0,
        ) {
            let (h, range) = (1e-6, 0.5);
            let at = |v: f64| value_loss(v, old, target, range);
            let ((below, slope_below, _), (above, slope_above, _)) = (at(value - h), at(value + h));
            // Not across a kink.
            prop_assume!((slope_below - slope_above).abs() < 1e-4);
            let (_, slope, _) = at(value);
            prop_assert!(((above - below) / (2.0 * h) - slope).abs() < 1e-4);
        }
    }
}
