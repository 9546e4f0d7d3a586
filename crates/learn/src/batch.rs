//! From graded groups to training rows.

use record::{Batch, Call, Datum, Episode, EpisodeId, Group, Outcome};

use crate::{AlgorithmConfig, BatchError, Scored, ZeroVariance, advantages, is_uniform};

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

/// The training rows of `role`: one for each of its calls in a graded episode, in the order of
/// groups, members and calls. The tokens are those that were sampled, the mask is true for the
/// response, and the advantage of the episode stands on each of its tokens. Reference log-probs are
/// zeros, to be filled by [`crate::Trainer::score_reference`].
///
/// # Errors
/// Rewards and log-probs that are not finite, responses without log-probs, empty prompts; each names
/// the episode.
pub fn batch_of_groups(
    groups: &[Group],
    role: &str,
    config: &AlgorithmConfig,
) -> Result<(Batch, BatchStats), BatchError> {
    let mut stats = BatchStats::default();
    let (mut kept, mut scored) = (Vec::new(), Vec::new());
    for group in groups {
        stats.groups += 1;
        let rewards = group
            .episodes
            .iter()
            .map(reward_of)
            .collect::<Result<Vec<Option<f64>>, _>>()?;
        for episode in &group.episodes {
            *count_of(&mut stats, &episode.outcome) += 1;
        }
        let graded = rewards.iter().flatten().count();
        let uniform = is_uniform(&rewards);
        stats.comparable_groups += usize::from(graded > 1);
        stats.zero_variance_groups += usize::from(uniform);
        if uniform && config.zero_variance == ZeroVariance::Drop {
            stats.dropped += graded;
            continue;
        }
        if graded == 1 && group.episodes.len() > 1 {
            // The others ended without a verdict: nothing is left to compare this one with.
            stats.dropped += 1;
            continue;
        }
        let members = group.episodes.iter().zip(rewards).map(|(episode, reward)| {
            let length = episode
                .calls_of(role)
                .map(|call| call.completion.response.len())
                .sum();
            reward.map(|reward| Scored { reward, length })
        });
        scored.push(members.collect());
        kept.push(group);
    }
    let mut batch = Batch::default();
    let worth = advantages(&scored, config.advantage);
    let members = kept.iter().flat_map(|group| &group.episodes);
    for (episode, advantage) in members.zip(worth.into_iter().flatten()) {
        let Some(advantage) = advantage else { continue };
        for (index, call) in episode.calls_of(role).enumerate() {
            check_call(episode, index, call)?;
            if !call.completion.response.is_empty() {
                batch.data.push(datum(episode.id, call, advantage));
            }
        }
    }
    stats.rows = batch.data.len();
    stats.trained_tokens = batch.data.iter().map(Datum::n_trained).sum();
    Ok((batch, stats))
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

fn datum(episode: EpisodeId, call: &Call, advantage: f64) -> Datum {
    let completion = &call.completion;
    let mut datum = Datum::supervised(&completion.prompt, &completion.response);
    let start = completion.prompt.len();
    datum.episode = Some(episode);
    datum.logprobs[start..].copy_from_slice(&completion.logprobs);
    datum.advantages[start..].fill(advantage as f32);
    datum
}
