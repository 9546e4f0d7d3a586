//! What an episode's reward is worth beside those of its group.

use serde::{Deserialize, Serialize};

/// How rewards become advantages. `s` is the reward of an episode, `l` its trained tokens, `μ` the
/// mean and `σ` the sample standard deviation (divisor n - 1) of its group's `n` rewards. Every
/// trained token of an episode gets the episode's advantage. Exact semantics: spec of the critique
/// study, section 10.1; names as verl's `adv_estimator`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advantage {
    /// `(s - μ) / (σ + 1e-6)`; alone in its group, `s` (DeepSeekMath, arXiv 2402.03300).
    Grpo,
    /// `s - μ`; alone, `s` (Dr. GRPO, arXiv 2503.20783).
    DrGrpo,
    /// Only the best of a group: `(s - second best) / (σ + 1e-6)`; the others and those alone, 0
    /// (pass@k training, arXiv 2503.19595).
    GrpoPassk,
    /// `s` less the mean of the others; alone, `s` (RLOO, arXiv 2402.14740).
    Rloo,
    /// `s - Σ l s / Σ l` over the group: the baseline of least variance when long responses have
    /// large gradients; alone, `s` (OPO, arXiv 2505.23585).
    Opo,
    /// `α (s - μ)`, where `α` is the episodes of the batch over those with a reward other than 0;
    /// alone, `α s` (GPG, arXiv 2504.02546).
    Gpg,
    /// The discounted rewards to come, whitened over the trained tokens of the batch (REINFORCE++,
    /// arXiv 2501.03262).
    ReinforcePlusPlus,
    /// `s - μ`, whitened over the trained tokens of the batch; alone, `s` before that.
    ReinforcePlusPlusBaseline,
    /// The rewards to come less the reward of a greedy episode of the same task, which is played along
    /// (ReMax, arXiv 2310.10505).
    Remax,
    /// By a value function, token by token, whitened over the batch (GAE, arXiv 1506.02438): PPO.
    Gae,
}

impl Advantage {
    /// Whether each token of an episode may have another advantage.
    pub fn is_by_token(self) -> bool {
        matches!(self, Self::ReinforcePlusPlus | Self::Remax | Self::Gae)
    }

    /// Whether a greedy episode is played along with each group.
    pub fn needs_greedy(self) -> bool {
        self == Self::Remax
    }

    /// Whether a value function is trained beside the policy.
    pub fn needs_values(self) -> bool {
        self == Self::Gae
    }
}

/// An episode with a reward, as far as advantages see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// Finite.
    pub reward: f64,
    /// Trained tokens.
    pub length: usize,
}

const EPSILON: f64 = 1e-6;
const WHITENING_EPSILON: f64 = 1e-8;

/// Advantages of the members of the groups of one batch, in their order. Members without a reward are
/// left out of the statistics and get none.
///
/// A group whose rewards are all equal gets zeros exactly from the estimators that compare within
/// groups alone. Of the estimators that go token by token ([`Advantage::is_by_token`]) this is what
/// their first token would have with a reward at the end, no discount, no greedy episode and no values.
pub fn advantages(groups: &[Vec<Option<Scored>>], advantage: Advantage) -> Vec<Vec<Option<f64>>> {
    let mut found: Vec<Vec<Option<f64>>> = groups
        .iter()
        .map(|group| of_group(group, advantage))
        .collect();
    match advantage {
        Advantage::Gpg => {
            let scored = || groups.iter().flatten().flatten();
            let telling = scored().filter(|member| member.reward != 0.0).count();
            let scale = scored().count() as f64 / telling.max(1) as f64;
            found
                .iter_mut()
                .flatten()
                .flatten()
                .for_each(|advantage| *advantage *= scale);
        }
        Advantage::ReinforcePlusPlus | Advantage::ReinforcePlusPlusBaseline | Advantage::Gae => {
            whiten(&mut found, groups);
        }
        Advantage::Grpo
        | Advantage::DrGrpo
        | Advantage::GrpoPassk
        | Advantage::Rloo
        | Advantage::Remax
        | Advantage::Opo => {}
    }
    found
}

/// What can be said within one group.
fn of_group(group: &[Option<Scored>], advantage: Advantage) -> Vec<Option<f64>> {
    let rewards: Vec<Option<f64>> = group
        .iter()
        .map(|member| member.map(|member| member.reward))
        .collect();
    let of_rewards = |of: &dyn Fn(f64) -> f64| -> Vec<Option<f64>> {
        rewards.iter().map(|reward| reward.map(of)).collect()
    };
    if advantage.is_by_token() {
        return rewards;
    }
    if is_uniform(&rewards) {
        return of_rewards(&|_| 0.0);
    }
    // Sorted, so that the sums do not depend on the order of the members.
    let mut sorted: Vec<Scored> = group.iter().flatten().copied().collect();
    sorted.sort_unstable_by(|a, b| a.reward.total_cmp(&b.reward).then(a.length.cmp(&b.length)));
    if sorted.len() < 2 {
        return of_rewards(&|reward| match advantage {
            Advantage::Grpo => reward / (1.0 + EPSILON),
            Advantage::GrpoPassk => 0.0,
            _ => reward,
        });
    }
    let n = sorted.len() as f64;
    let mean = sorted.iter().map(|member| member.reward).sum::<f64>() / n;
    let squares: f64 = sorted
        .iter()
        .map(|member| (member.reward - mean).powi(2))
        .sum();
    let deviation = (squares / (n - 1.0)).sqrt() + EPSILON;
    match advantage {
        Advantage::Grpo => of_rewards(&|reward| (reward - mean) / deviation),
        Advantage::Rloo => of_rewards(&|reward| (reward - mean) * n / (n - 1.0)),
        Advantage::Opo => {
            let tokens: f64 = sorted.iter().map(|member| member.length as f64).sum();
            let weighted: f64 = sorted
                .iter()
                .map(|member| member.length as f64 * member.reward)
                .sum();
            let baseline = if tokens > 0.0 {
                weighted / tokens
            } else {
                mean
            };
            of_rewards(&|reward| reward - baseline)
        }
        Advantage::GrpoPassk => {
            let [.., second, best] = &sorted[..] else {
                return of_rewards(&|_| 0.0);
            };
            let lead = (best.reward - second.reward) / deviation;
            let best = best.reward;
            of_rewards(&|reward| if reward == best { lead } else { 0.0 })
        }
        Advantage::DrGrpo
        | Advantage::Gpg
        | Advantage::ReinforcePlusPlus
        | Advantage::Remax
        | Advantage::Gae
        | Advantage::ReinforcePlusPlusBaseline => of_rewards(&|reward| reward - mean),
    }
}

/// Mean 0 and variance 1 (divisor n - 1) over trained tokens. A batch of fewer than two tokens is
/// left as it is.
fn whiten(advantages: &mut [Vec<Option<f64>>], groups: &[Vec<Option<Scored>>]) {
    let mut weighted: Vec<(f64, f64)> = advantages
        .iter()
        .flatten()
        .zip(groups.iter().flatten())
        .filter_map(|(advantage, member)| Some(((*advantage)?, (*member)?.length as f64)))
        .collect();
    weighted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let tokens: f64 = weighted.iter().map(|(_, length)| length).sum();
    if tokens < 2.0 {
        return;
    }
    let mean = weighted.iter().map(|(a, length)| a * length).sum::<f64>() / tokens;
    let squares: f64 = weighted
        .iter()
        .map(|(a, length)| (a - mean).powi(2) * length)
        .sum();
    let deviation = (squares / (tokens - 1.0) + WHITENING_EPSILON).sqrt();
    for advantage in advantages.iter_mut().flatten().flatten() {
        *advantage = (*advantage - mean) / deviation;
    }
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
        of_rewards(&rewards, advantage)
            .into_iter()
            .flatten()
            .collect()
    }

    /// Of one group, the only one of its batch, whose members are all as long.
    fn of_rewards(rewards: &[Option<f64>], advantage: Advantage) -> Vec<Option<f64>> {
        let scored = |reward: &Option<f64>| reward.map(|reward| Scored { reward, length: 10 });
        let group = rewards.iter().map(scored).collect();
        advantages(&[group], advantage).remove(0)
    }

    #[test]
    fn the_best_baseline_weighs_by_length() {
        // Spec of the critique study, section 11: the baseline is 0.1.
        let member = |(&reward, &length)| Some(Scored { reward, length });
        let group = [1., 0., 0., 0.]
            .iter()
            .zip(&[10, 20, 30, 40])
            .map(member)
            .collect();
        let found = advantages(&[group], Advantage::Opo).remove(0);
        let expected = [0.9, -0.1, -0.1, -0.1];
        for (found, expected) in found.into_iter().flatten().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found}");
        }
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
        let whole = of_rewards(&[Some(1.0), Some(0.0), Some(0.25)], Advantage::Grpo);
        let holed = of_rewards(
            &[None, Some(1.0), None, Some(0.0), Some(0.25)],
            Advantage::Grpo,
        );
        assert_eq!(holed[0], None);
        assert_eq!(holed[2], None);
        assert_eq!([holed[1], holed[3], holed[4]], whole[..]);
        assert_eq!(of_rewards(&[None, None], Advantage::Grpo), [None, None]);
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
