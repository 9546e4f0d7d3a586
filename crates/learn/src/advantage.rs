//! What an episode's reward is worth beside those of its group.

use serde::{Deserialize, Serialize};

/// How rewards of one group become advantages. `s` is the reward, `μ` the mean and `σ` the sample
/// standard deviation (divisor n - 1) of the group's `n` rewards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advantage {
    /// `(s - μ) / (σ + 1e-6)`; alone in its group, `s` (DeepSeekMath, arXiv 2402.03300; spec of the
    /// critique study, section 10.1).
    Grpo,
    /// `s - μ`; alone, `s` (Dr. GRPO, arXiv 2503.20783).
    DrGrpo,
    /// `s` less the mean of the others; alone, `s` (RLOO, arXiv 2402.14740).
    Rloo,
}

const EPSILON: f64 = 1e-6;

/// Advantages of the members of one group, in member order. Members without a reward are left out of
/// the statistics and get none. Rewards must be finite.
///
/// A group whose rewards are all equal gets zeros exactly.
pub fn advantages(rewards: &[Option<f64>], advantage: Advantage) -> Vec<Option<f64>> {
    let graded: Vec<f64> = rewards.iter().flatten().copied().collect();
    let n = graded.len() as f64;
    if is_uniform(rewards) {
        return rewards.iter().map(|reward| reward.map(|_| 0.0)).collect();
    }
    // Sorted, so that the sums do not depend on the order of the members.
    let mut sorted = graded;
    sorted.sort_unstable_by(f64::total_cmp);
    let alone = sorted.len() < 2;
    let mean = if alone {
        0.0
    } else {
        sorted.iter().sum::<f64>() / n
    };
    let scale = match advantage {
        Advantage::Grpo => {
            let squares: f64 = sorted.iter().map(|reward| (reward - mean).powi(2)).sum();
            let deviation = if alone {
                1.0
            } else {
                (squares / (n - 1.0)).sqrt()
            };
            1.0 / (deviation + EPSILON)
        }
        Advantage::DrGrpo => 1.0,
        Advantage::Rloo if alone => 1.0,
        Advantage::Rloo => n / (n - 1.0),
    };
    rewards
        .iter()
        .map(|reward| reward.map(|reward| (reward - mean) * scale))
        .collect()
}

/// True when at least two members have a reward and all rewards are equal: the group teaches nothing.
pub fn is_uniform(rewards: &[Option<f64>]) -> bool {
    let graded: Vec<f64> = rewards.iter().flatten().copied().collect();
    graded.len() > 1 && graded.iter().all(|reward| *reward == graded[0])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(rewards: &[f64], advantage: Advantage) -> Vec<f64> {
        let rewards: Vec<Option<f64>> = rewards.iter().copied().map(Some).collect();
        advantages(&rewards, advantage)
            .into_iter()
            .flatten()
            .collect()
    }

    #[test]
    fn golden_vectors() {
        // Spec of the critique study, section 11.
        let cases: [(Advantage, &[f64], &[f64]); 8] = [
            (
                Advantage::Grpo,
                &[1., 0., 0., 1.],
                &[0.8660239, -0.8660239, -0.8660239, 0.8660239],
            ),
            (
                Advantage::Grpo,
                &[1., 0., 0., 0.],
                &[1.4999970, -0.4999990, -0.4999990, -0.4999990],
            ),
            (Advantage::Grpo, &[0.1, 0.1, 0.1], &[0.0, 0.0, 0.0]),
            (Advantage::Grpo, &[0.5], &[0.4999995]),
            (
                Advantage::DrGrpo,
                &[1., 0., 0., 0.],
                &[0.75, -0.25, -0.25, -0.25],
            ),
            (Advantage::DrGrpo, &[2.0], &[2.0]),
            (
                Advantage::Rloo,
                &[1., 0., 0., 0.],
                &[1.0, -1. / 3., -1. / 3., -1. / 3.],
            ),
            (Advantage::Rloo, &[0.3], &[0.3]),
        ];
        for (advantage, rewards, expected) in cases {
            let found = of(rewards, advantage);
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                assert!(
                    (found - expected).abs() < 5e-8,
                    "{advantage:?} {rewards:?}: {found}"
                );
            }
        }
        assert!(
            of(&[0.1; 3], Advantage::Grpo).iter().all(|a| *a == 0.0),
            "exactly zero"
        );
    }

    #[test]
    fn members_without_a_reward_change_nothing() {
        let whole = advantages(&[Some(1.0), Some(0.0), Some(0.25)], Advantage::Grpo);
        let holed = advantages(
            &[None, Some(1.0), None, Some(0.0), Some(0.25)],
            Advantage::Grpo,
        );
        assert_eq!(holed[0], None);
        assert_eq!(holed[2], None);
        assert_eq!([holed[1], holed[3], holed[4]], whole[..]);
        assert_eq!(advantages(&[None, None], Advantage::Grpo), [None, None]);
        assert!(!is_uniform(&[Some(1.0), None]));
        assert!(is_uniform(&[Some(1.0), None, Some(1.0)]));
    }

    proptest! {
        #[test]
        fn advantages_are_centred_ordered_and_blind_to_member_order(
            rewards in proptest::collection::vec(-10.0f64..10.0, 2..9),
            rotation in 0usize..8,
        ) {
            for advantage in [Advantage::Grpo, Advantage::DrGrpo, Advantage::Rloo] {
                let found = of(&rewards, advantage);
                prop_assert!(found.iter().sum::<f64>().abs() < 1e-9);
                for (i, a) in rewards.iter().enumerate() {
                    for (j, b) in rewards.iter().enumerate() {
                        if a > b {
                            prop_assert!(found[i] > found[j]);
                        }
                    }
                }
                let mut rotated = rewards.clone();
                rotated.rotate_left(rotation % rewards.len());
                let mut expected = found.clone();
                expected.rotate_left(rotation % rewards.len());
                prop_assert_eq!(of(&rotated, advantage), expected);
            }
        }

        #[test]
        fn grpo_does_not_see_the_scale_of_rewards(
            rewards in proptest::collection::vec(0i32..4, 2..9),
            shift in -5.0f64..5.0,
        ) {
            let small: Vec<f64> = rewards.iter().map(|&r| f64::from(r)).collect();
            let large: Vec<f64> = small.iter().map(|r| 8.0 * r + shift).collect();
            for (a, b) in of(&small, Advantage::Grpo).iter().zip(of(&large, Advantage::Grpo)) {
                prop_assert!((a - b).abs() < 1e-4);
            }
        }
    }
}
