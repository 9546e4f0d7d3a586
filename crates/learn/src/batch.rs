//! From graded groups to training rows.

use record::{Batch, Call, Datum, Episode, EpisodeId, Group, Outcome};

use crate::{AlgorithmConfig, BatchError, Rewards, Scored, is_uniform, rewards::Origin};

/// Where the members of the groups went. Every member is counted once as graded or as one of the
/// faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchStats {
    pub groups: usize,
    /// Groups of two or more graded members: those that can have a variance.
    pub comparable_groups: usize,
    /// Comparable groups whose rewards are all equal.
    pub zero_variance_groups: usize,
    pub graded: usize,
    pub infra_faults: usize,
    pub grader_faults: usize,
    pub timeouts: usize,
    /// Graded members of zero-variance groups that were dropped, and those whose whole group but
    /// them ended without a verdict.
    pub dropped: usize,
    /// Training rows, one per call of the trained role.
    pub rows: usize,
    /// Tokens that carry loss.
    pub trained_tokens: usize,
}

impl BatchStats {
    /// Share of the comparable groups that teach nothing; 0 when there are none.
    pub fn zero_variance_share(&self) -> f64 {
        self.zero_variance_groups as f64 / self.comparable_groups.max(1) as f64
    }
}

/// As [`rewards_of_groups`], with advantages that need neither a reference nor values.
///
/// # Errors
/// As [`rewards_of_groups`].
pub fn batch_of_groups(
    groups: &[Group],
    role: &str,
    config: &AlgorithmConfig,
) -> Result<(Batch, BatchStats), BatchError> {
    let (mut batch, rewards, stats) = rewards_of_groups(groups, role, config)?;
    rewards.fill(&mut batch, config, 0.0, &[]);
    Ok((batch, stats))
}

/// The training rows of `role`: one for each of its calls in a graded episode, in the order of
/// groups, members and calls, and what they were paid. The tokens are those that were sampled, and the
/// mask is true for the response. Advantages are zeros, to be filled by [`Rewards::fill`], and so are
/// reference log-probs, to be filled by [`crate::Trainer::score_reference`].
///
/// Where a greedy episode is played along, it is the last of its group and not trained on.
///
/// # Errors
/// Rewards and log-probs that are not finite, responses without log-probs, empty prompts; each names
/// the episode.
pub fn rewards_of_groups(
    groups: &[Group],
    role: &str,
    config: &AlgorithmConfig,
) -> Result<(Batch, Rewards, BatchStats), BatchError> {
    let mut stats = BatchStats::default();
    let (mut batch, mut rewards) = (Batch::default(), Rewards::default());
    for group in groups {
        stats.groups += 1;
        for episode in &group.episodes {
            *count_of(&mut stats, &episode.outcome) += 1;
        }
        let (sampled, greedy) = match group.episodes.split_last() {
            Some((greedy, sampled)) if config.advantage.needs_greedy() => (sampled, Some(greedy)),
            _ => (group.episodes.as_slice(), None),
        };
        let paid = sampled
            .iter()
            .map(reward_of)
            .collect::<Result<Vec<Option<f64>>, _>>()?;
        let baseline = greedy.map(reward_of).transpose()?.flatten();
        let graded = paid.iter().flatten().count();
        let uniform = is_uniform(&paid);
        stats.comparable_groups += usize::from(graded > 1);
        stats.zero_variance_groups += usize::from(uniform);
        // The others ended without a verdict: nothing is left to compare this one with.
        let alone = graded == 1 && sampled.len() > 1 && !config.advantage.is_by_token();
        let without_baseline = config.advantage.needs_greedy() && baseline.is_none();
        if uniform && config.zero_variance.drops() || alone || without_baseline {
            stats.dropped += graded;
            continue;
        }
        let mut members = Vec::with_capacity(sampled.len());
        for (member, (episode, paid)) in sampled.iter().zip(paid).enumerate() {
            let calls = || episode.calls_of(role);
            let length = calls().map(|call| call.completion.response.len()).sum();
            members.push(paid.map(|reward| Scored { reward, length }));
            if paid.is_none() {
                continue;
            }
            for (index, call) in episode.calls.iter().enumerate() {
                if call.role != role {
                    continue;
                }
                check_call(episode, index, call)?;
                if !call.completion.response.is_empty() {
                    batch.data.push(datum(episode.id, index, call));
                    let group = rewards.groups.len();
                    rewards.origins.push(Origin { group, member });
                }
            }
        }
        rewards.groups.push(members);
        rewards.greedy.push(baseline);
    }
    stats.rows = batch.data.len();
    stats.trained_tokens = batch.data.iter().map(Datum::n_trained).sum();
    Ok((batch, rewards, stats))
}

/// Whether advantages tell the members of a group apart: two or more have a verdict, and their rewards
/// are not all equal.
pub fn tells_apart(group: &Group, config: &AlgorithmConfig) -> bool {
    let sampled = match group.episodes.split_last() {
        Some((_, sampled)) if config.advantage.needs_greedy() => sampled,
        _ => &group.episodes,
    };
    let rewards: Vec<Option<f64>> = sampled
        .iter()
        .map(|episode| episode.outcome.reward().map(|reward| reward.total))
        .collect();
    rewards.iter().flatten().count() > 1 && !is_uniform(&rewards)
}

fn reward_of(episode: &Episode) -> Result<Option<f64>, BatchError> {
    match episode.outcome.reward().map(|reward| reward.total) {
        Some(reward) if !reward.is_finite() => Err(BatchError::RewardNotFinite {
            episode: episode.id,
            task: episode.task.clone(),
            reward,
        }),
        reward => Ok(reward),
    }
}

fn count_of<'a>(stats: &'a mut BatchStats, outcome: &Outcome) -> &'a mut usize {
    match outcome {
        Outcome::Graded { .. } => &mut stats.graded,
        Outcome::InfraFault { .. } => &mut stats.infra_faults,
        Outcome::GraderFault { .. } => &mut stats.grader_faults,
        Outcome::Timeout { .. } => &mut stats.timeouts,
    }
}

fn check_call(episode: &Episode, index: usize, call: &Call) -> Result<(), BatchError> {
    let completion = &call.completion;
    let (tokens, logprobs) = (completion.response.len(), completion.logprobs.len());
    let (task, role) = (episode.task.clone(), call.role.clone());
    if tokens != logprobs {
        let (episode, call) = (episode.id, index);
        return Err(BatchError::LogprobsMissing {
            episode,
            task,
            role,
            call,
            tokens,
            logprobs,
        });
    }
    if let Some(&logprob) = completion
        .logprobs
        .iter()
        .find(|logprob| !logprob.is_finite())
    {
        let (episode, call) = (episode.id, index);
        return Err(BatchError::LogprobNotFinite {
            episode,
            task,
            role,
            call,
            logprob,
        });
    }
    if completion.prompt.is_empty() && tokens > 0 {
        return Err(BatchError::EmptyPrompt {
            episode: episode.id,
            task,
            role,
            call: index,
        });
    }
    Ok(())
}

fn datum(episode: EpisodeId, step: usize, call: &Call) -> Datum {
    let completion = &call.completion;
    let mut datum = Datum::supervised(&completion.prompt, &completion.response);
    let start = completion.prompt.len();
    datum.episode = Some(episode);
    datum.step = Some(step as u32);
    datum.logprobs[start..].copy_from_slice(&completion.logprobs);
    datum
}
