//! From graded groups to training rows.

use std::collections::BTreeMap;

use record::{Batch, Call, Datum, Episode, EpisodeId, Group, Outcome};

use crate::{
    AlgorithmConfig, BatchError, Rewards, Scored, Singleton, StepStats, StepValue, is_uniform,
    rewards::Origin, step_advantage::Cells, step_advantages,
};

/// Where the members of the groups went. Every member is counted once as graded or as one of the
/// faults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchStats {
    pub groups: usize,
    /// Groups of two or more graded members: those that can have a variance.
    pub comparable_groups: usize,
    /// Comparable groups whose rewards are all equal.
    pub zero_variance_groups: usize,
    /// Groups of one graded member, which nothing is compared with.
    pub singleton_groups: usize,
    /// Groups by how many of their members were graded.
    pub group_sizes: BTreeMap<usize, usize>,
    pub graded: usize,
    pub infra_faults: usize,
    pub grader_faults: usize,
    pub timeouts: usize,
    /// Graded members of zero-variance groups that were dropped, and those whose whole group but
    /// them ended without a verdict.
    pub dropped: usize,
    /// Training rows, one per call of a trained role.
    pub rows: usize,
    /// Tokens that carry loss.
    pub trained_tokens: usize,
    /// What the steps were worth, where the recipe has a step part.
    pub steps: Option<StepStats>,
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
    roles: &[&str],
    config: &AlgorithmConfig,
) -> Result<(Batch, BatchStats), BatchError> {
    let (mut batch, rewards, stats) = rewards_of_groups(groups, roles, config)?;
    rewards.fill(&mut batch, config, 0.0, &[]);
    Ok((batch, stats))
}

/// The training rows of `roles`, which share one policy: one for each of their calls in a graded episode,
/// in the order of groups, members and calls, and what they were paid. The tokens are those that were
/// sampled, and the mask is true for the response. Advantages are zeros, to be filled by
/// [`Rewards::fill`], and so are reference log-probs, to be filled by
/// [`crate::Trainer::score_reference`].
///
/// Where a greedy episode is played along, it is the last of its group and not trained on.
///
/// # Errors
/// Rewards and log-probs that are not finite, responses without log-probs, empty prompts; each names
/// the episode.
pub fn rewards_of_groups(
    groups: &[Group],
    roles: &[&str],
    config: &AlgorithmConfig,
) -> Result<(Batch, Rewards, BatchStats), BatchError> {
    let mut stats = BatchStats::default();
    let (mut batch, mut rewards) = (Batch::default(), Rewards::default());
    let mut steps = StepStats::default();
    for group in groups {
        stats.groups += 1;
        for episode in &group.episodes {
            *count_of(&mut stats, &episode.outcome) += 1;
        }
        let Paid {
            sampled,
            members,
            baseline,
        } = Paid::of(group, config)?;
        let graded = members.iter().flatten().count();
        let uniform = is_uniform(&members);
        stats.comparable_groups += usize::from(graded > 1);
        stats.zero_variance_groups += usize::from(uniform);
        stats.singleton_groups += usize::from(graded == 1);
        *stats.group_sizes.entry(graded).or_default() += 1;
        // The others ended without a verdict: nothing is left to compare this one with.
        let alone = graded == 1
            && sampled.len() > 1
            && !config.advantage.is_by_token()
            && config.singleton() == Singleton::Keep;
        let without_baseline = config.advantage.needs_greedy() && baseline.is_none();
        let (parts, of_steps) = steps_of(sampled, &members, roles, config)?;
        let silent = uniform && parts.iter().all(|part| *part == 0.0);
        if silent && config.zero_variance.drops() || alone || without_baseline {
            stats.dropped += graded;
            continue;
        }
        let mut parts = parts.into_iter();
        steps.extend(of_steps);
        let mut scored = Vec::with_capacity(sampled.len());
        for (member, (episode, paid)) in sampled.iter().zip(members).enumerate() {
            let length = trained(episode, roles)
                .map(|(_, call)| call.completion.response.len())
                .sum();
            scored.push(paid.map(|reward| Scored { reward, length }));
            if paid.is_none() {
                continue;
            }
            for (index, call) in trained(episode, roles) {
                check_call(episode, index, call)?;
                let step = parts.next().unwrap_or(0.0);
                if !call.completion.response.is_empty() {
                    batch.data.push(datum(episode.id, index, call));
                    let group = rewards.groups.len();
                    rewards.origins.push(Origin { group, member });
                    rewards.steps.push(step);
                }
            }
        }
        rewards.groups.push(scored);
        rewards.greedy.push(baseline);
    }
    stats.rows = batch.data.len();
    stats.trained_tokens = batch.data.iter().map(Datum::n_trained).sum();
    stats.steps = config.step.map(|_| steps);
    Ok((batch, rewards, stats))
}

/// Whether advantages tell the members of a group apart: two or more have a verdict, and their rewards
/// are not all equal, or those of their steps are not.
///
/// # Errors
/// Rewards that are not finite.
pub fn tells_apart(
    group: &Group,
    roles: &[&str],
    config: &AlgorithmConfig,
) -> Result<bool, BatchError> {
    let paid = Paid::of(group, config)?;
    if paid.members.iter().flatten().count() < 2 {
        return Ok(false);
    }
    let (steps, _) = steps_of(paid.sampled, &paid.members, roles, config)?;
    Ok(!is_uniform(&paid.members) || steps.iter().any(|part| *part != 0.0))
}

/// What the members of a group were paid.
struct Paid<'a> {
    /// Without the greedy episode, where one is played along.
    sampled: &'a [Episode],
    /// One a sampled member; `None` without a verdict.
    members: Vec<Option<f64>>,
    /// Of the greedy episode.
    baseline: Option<f64>,
}

impl<'a> Paid<'a> {
    fn of(group: &'a Group, config: &AlgorithmConfig) -> Result<Self, BatchError> {
        let (sampled, greedy) = match group.episodes.split_last() {
            Some((greedy, sampled)) if config.advantage.needs_greedy() => (sampled, Some(greedy)),
            _ => (group.episodes.as_slice(), None),
        };
        let members = sampled.iter().map(reward_of).collect::<Result<_, _>>()?;
        let baseline = greedy.map(reward_of).transpose()?.flatten();
        Ok(Self {
            sampled,
            members,
            baseline,
        })
    }
}

/// The calls of `roles` in an episode, each with its step.
fn trained<'a>(episode: &'a Episode, roles: &'a [&str]) -> impl Iterator<Item = (usize, &'a Call)> {
    let calls = episode.calls.iter().enumerate();
    calls.filter(|(_, call)| roles.contains(&call.role.as_str()))
}

/// The step parts of a group's trained calls, those without a response too; none where the recipe has no
/// step part.
fn steps_of(
    sampled: &[Episode],
    members: &[Option<f64>],
    roles: &[&str],
    config: &AlgorithmConfig,
) -> Result<(Vec<f64>, StepStats), BatchError> {
    let Some(step) = &config.step else {
        return Ok((Vec::new(), StepStats::default()));
    };
    let mut cells = Cells::new(step.baseline);
    let mut found = Vec::new();
    for (episode, paid) in sampled.iter().zip(members) {
        let Some(reward) = *paid else { continue };
        let values = step.values(episode, reward)?;
        for (index, call) in trained(episode, roles) {
            found.push(StepValue {
                cell: cells.of(call),
                value: values[index].filter(|_| !call.completion.response.is_empty()),
            });
        }
    }
    Ok(step_advantages(&found, step.std))
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
