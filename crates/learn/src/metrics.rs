//! What a step looked like, as numbers under the names of the critique study's spec (sections 3.6
//! and 10.6).

use std::collections::BTreeMap;

use engine::RowScores;
use record::{Batch, Group, StopReason};

use crate::{
    Aggregation, AlgorithmConfig, BatchStats, KlPlacement, Step, StepStats, ValuePass,
    gae::explained_variance,
    policy_loss::{PolicyLoss, Row, episodes_of, lengths, weights},
};

/// Metric name to value; in name order, so that logs are stable.
pub type Metrics = BTreeMap<String, f64>;

/// What the policy loss saw: `scores` are those of the pass that made the gradients, one per row of
/// `batch`.
///
/// `actor/{pg_loss, kl_loss, entropy_loss}` are aggregated like the loss, without coefficients, and there
/// is no `kl_loss` where the penalty is taken off the rewards;
/// `actor/{pg_clipfrac, pg_clipfrac_lower, ppo_kl}` are means over trained tokens;
/// `training/logprob_gap_max` is the largest difference between a recorded and a scored log-prob.
pub fn policy(batch: &Batch, scores: &[RowScores], config: &AlgorithmConfig) -> Metrics {
    let current: Vec<Vec<f32>> = scores.iter().map(|row| row.logprobs.clone()).collect();
    let terms = PolicyLoss::at(batch, config, &current).terms(scores);
    let weights = weights(batch, config);
    let tokens = lengths(batch).iter().sum::<usize>().max(1) as f64;
    let [mut policy, mut kl, mut entropy] = [0.0; 3];
    let [mut clipped, mut clipped_lower, mut old_minus_new, mut gap] = [0.0_f64; 4];
    let mut advantages = Summary::default();
    for (((datum, scores), weight), terms) in batch.data.iter().zip(scores).zip(weights).zip(terms)
    {
        let row = Row::of(datum);
        for (i, terms) in terms.into_iter().enumerate() {
            policy += weight * terms.policy.value;
            kl += weight * terms.kl;
            entropy += weight * f64::from(scores.entropies[i]);
            clipped += f64::from(u8::from(terms.policy.clipped));
            clipped_lower += f64::from(u8::from(terms.policy.clipped_lower));
            old_minus_new += terms.old_minus_new;
            gap = gap.max(terms.old_minus_new.abs());
            advantages.add(row.advantages[i].into());
        }
    }
    let mut metrics = named([
        ("actor/pg_loss", policy),
        ("actor/kl_coef", config.kl.coefficient),
        ("actor/entropy_loss", entropy),
        ("actor/pg_clipfrac", clipped / tokens),
        ("actor/pg_clipfrac_lower", clipped_lower / tokens),
        ("actor/ppo_kl", old_minus_new / tokens),
        ("training/logprob_gap_max", gap),
    ]);
    if config.kl.placement == KlPlacement::Loss {
        metrics.insert("actor/kl_loss".to_owned(), kl);
    }
    advantages.write("critic/advantages", &mut metrics);
    metrics
}

/// What the supervised loss saw: means over trained tokens.
pub fn supervised(batch: &Batch, scores: &[RowScores]) -> Metrics {
    let weights = Aggregation::TokenMean.weights(&lengths(batch), &episodes_of(batch), None);
    let [mut loss, mut entropy] = [0.0; 2];
    for (scores, weight) in scores.iter().zip(weights) {
        loss -= weight
            * scores
                .logprobs
                .iter()
                .map(|&value| f64::from(value))
                .sum::<f64>();
        entropy += weight
            * scores
                .entropies
                .iter()
                .map(|&value| f64::from(value))
                .sum::<f64>();
    }
    named([
        ("sft/loss", loss),
        ("sft/entropy", entropy),
        ("sft/tokens", lengths(batch).iter().sum::<usize>() as f64),
    ])
}

/// What the value function said of a batch before its update, and what it will be fitted to; one entry
/// a trained token of each row: `critic/{values, returns}/{mean, max, min}` and
/// `critic/vf_explained_var`.
pub fn values(values: &[Vec<f64>], returns: &[Vec<f64>]) -> Metrics {
    let explained = explained_variance(values.iter().flatten().zip(returns.iter().flatten()));
    let mut metrics = named([("critic/vf_explained_var", explained)]);
    for (name, rows) in [("critic/values", values), ("critic/returns", returns)] {
        let mut summary = Summary::default();
        rows.iter().flatten().for_each(|&value| summary.add(value));
        summary.write(name, &mut metrics);
    }
    metrics
}

/// What one update of the value function saw and did: `critic/{vf_loss, vf_clipfrac, vpred_mean, lr,
/// grad_norm, skipped_steps}`.
pub fn value_update(pass: &ValuePass, clipped: f64, lr: f64, step: Step) -> Metrics {
    let predicted = || pass.values.iter().flatten().map(|&value| f64::from(value));
    let count = predicted().count().max(1) as f64;
    named([
        ("critic/vf_loss", pass.loss),
        ("critic/vf_clipfrac", clipped),
        ("critic/vpred_mean", predicted().sum::<f64>() / count),
        ("critic/lr", lr),
        ("critic/grad_norm", step.grad_norm),
        ("critic/skipped_steps", f64::from(u8::from(!step.applied))),
    ])
}

/// What the optimizer did.
pub fn optimizer(lr: f64, grad_norm: f64, applied: bool) -> Metrics {
    named([
        ("actor/lr", lr),
        ("actor/grad_norm", grad_norm),
        ("actor/skipped_steps", f64::from(u8::from(!applied))),
    ])
}

/// The metrics of the updates of one step as one, under `who`'s name (`actor`, `critic`): skipped steps
/// are added up, and `training/logprob_gap_max` is that of the first update, after which the weights are
/// others; names that end in `max` or `min` are the greatest and the least, and the rest are means.
/// `updates` counts them where there are several.
pub fn of_updates(who: &str, updates: &[Metrics]) -> Metrics {
    let Some(first) = updates.first() else {
        return Metrics::new();
    };
    if updates.len() == 1 {
        return first.clone();
    }
    let combined = first.iter().map(|(name, value)| {
        let all = || {
            updates
                .iter()
                .filter_map(|metrics| metrics.get(name))
                .copied()
        };
        let combined = match name.as_str() {
            "training/logprob_gap_max" => *value,
            name if name.ends_with("skipped_steps") => all().sum(),
            name if name.ends_with("max") => all().fold(f64::NEG_INFINITY, f64::max),
            name if name.ends_with("min") => all().fold(f64::INFINITY, f64::min),
            _ => all().sum::<f64>() / all().count() as f64,
        };
        (name.clone(), combined)
    });
    let mut combined: Metrics = combined.collect();
    combined.insert(format!("{who}/updates"), updates.len() as f64);
    combined
}

/// What `roles`, which share one policy, did in the groups, and where their members went: [`episodes`] and
/// [`calls`].
pub fn groups(groups: &[Group], roles: &[&str], stats: &BatchStats) -> Metrics {
    let mut metrics = episodes(groups, stats);
    metrics.extend(calls(groups, roles, stats));
    metrics
}

/// Where the members of the groups went, whatever is trained. Rewards and their components are over
/// graded members.
pub fn episodes(groups: &[Group], stats: &BatchStats) -> Metrics {
    let mut metrics = named([
        ("rollout/graded", stats.graded as f64),
        ("rollout/infra_faults", stats.infra_faults as f64),
        ("rollout/grader_faults", stats.grader_faults as f64),
        ("rollout/timeouts", stats.timeouts as f64),
        ("rollout/zero_variance_share", stats.zero_variance_share()),
    ]);
    let mut summaries = Summaries::default();
    for reward in groups
        .iter()
        .flat_map(|group| &group.episodes)
        .filter_map(|episode| episode.outcome.reward())
    {
        summaries.add("critic/score", reward.total);
        // The KL term is part of the loss, so nothing is taken off the score.
        summaries.add("critic/rewards", reward.total);
        for (component, value) in &reward.components {
            summaries.add(&format!("reward/{component}"), *value);
        }
    }
    summaries.write(&mut metrics);
    metrics
}

/// What `roles` said in graded episodes: lengths are over their calls, in tokens;
/// `response_length/clip_ratio` is the share that was cut for length. Where there are several roles, the
/// same of each under its name, and how often it was asked.
pub fn calls(groups: &[Group], roles: &[&str], stats: &BatchStats) -> Metrics {
    let mut metrics = named([("rollout/trained_tokens", stats.trained_tokens as f64)]);
    let together = |role: &str| roles.contains(&role);
    lengths_of(groups, together, "", &mut metrics);
    if roles.len() > 1 {
        for &wanted in roles {
            let count = lengths_of(
                groups,
                |role| role == wanted,
                &format!("{wanted}/"),
                &mut metrics,
            );
            metrics.insert(format!("{wanted}/calls"), count as f64);
        }
    }
    metrics
}

fn lengths_of(
    groups: &[Group],
    wanted: impl Fn(&str) -> bool,
    prefix: &str,
    metrics: &mut Metrics,
) -> usize {
    let mut summaries = Summaries::default();
    let mut cut = Summary::default();
    for call in groups
        .iter()
        .flat_map(|group| &group.episodes)
        .filter(|episode| episode.outcome.reward().is_some())
        .flat_map(|episode| &episode.calls)
        .filter(|call| wanted(&call.role))
    {
        let completion = &call.completion;
        summaries.add("prompt_length", completion.prompt.len() as f64);
        summaries.add("response_length", completion.response.len() as f64);
        cut.add(f64::from(u8::from(completion.stop == StopReason::Length)));
    }
    let mut found = Metrics::new();
    summaries.write(&mut found);
    if cut.n > 0 {
        let ratio = cut.sum / cut.n as f64;
        found.insert("response_length/clip_ratio".to_owned(), ratio);
    }
    let named = found.into_iter();
    metrics.extend(named.map(|(name, value)| (format!("{prefix}{name}"), value)));
    cut.n
}

/// Of groups by how many of their members were graded: `rollout/group_size/{members}`, and those of one,
/// which nothing is compared with, as `rollout/singleton_groups`.
pub fn group_sizes(stats: &BatchStats) -> Metrics {
    let singletons = stats.singleton_groups as f64;
    let mut metrics = named([("rollout/singleton_groups", singletons)]);
    for (members, groups) in &stats.group_sizes {
        metrics.insert(format!("rollout/group_size/{members}"), *groups as f64);
    }
    metrics
}

/// What the steps of the trained calls were worth beside each other: `step/{value, advantage}/{mean, max,
/// min}` over scored steps, the share of those as `step/scored_share`, and of the cells that were compared
/// `step/{cells, singleton_cells, zero_variance_share}`, the last among cells of several steps.
pub fn steps(stats: &StepStats) -> Metrics {
    let scored = stats.values.len() as f64;
    let comparable = stats.cells - stats.singleton_cells;
    let silent = stats.zero_variance_cells as f64 / comparable.max(1) as f64;
    let mut metrics = named([
        ("step/scored_share", scored / stats.steps.max(1) as f64),
        ("step/cells", stats.cells as f64),
        ("step/singleton_cells", stats.singleton_cells as f64),
        ("step/zero_variance_share", silent),
    ]);
    for (name, values) in [
        ("step/value", &stats.values),
        ("step/advantage", &stats.advantages),
    ] {
        let mut summary = Summary::default();
        values.iter().for_each(|&value| summary.add(value));
        summary.write(name, &mut metrics);
    }
    metrics
}

fn named<const N: usize>(values: [(&str, f64); N]) -> Metrics {
    values
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Summaries by name.
#[derive(Default)]
struct Summaries(BTreeMap<String, Summary>);

impl Summaries {
    fn add(&mut self, name: &str, value: f64) {
        match self.0.get_mut(name) {
            Some(summary) => summary.add(value),
            None => self.0.entry(name.to_owned()).or_default().add(value),
        }
    }

    fn write(self, metrics: &mut Metrics) {
        for (name, summary) in self.0 {
            summary.write(&name, metrics);
        }
    }
}

/// Mean, greatest and least of some numbers.
#[derive(Clone, Copy, Debug)]
struct Summary {
    n: usize,
    sum: f64,
    least: f64,
    greatest: f64,
}

impl Default for Summary {
    fn default() -> Self {
        Self {
            n: 0,
            sum: 0.0,
            least: f64::INFINITY,
            greatest: f64::NEG_INFINITY,
        }
    }
}

impl Summary {
    fn add(&mut self, value: f64) {
        self.n += 1;
        self.sum += value;
        self.least = self.least.min(value);
        self.greatest = self.greatest.max(value);
    }

    /// Nothing is written when there were no numbers: absent is not zero.
    fn write(&self, name: &str, metrics: &mut Metrics) {
        if self.n > 0 {
            metrics.insert(format!("{name}/mean"), self.sum / self.n as f64);
            metrics.insert(format!("{name}/max"), self.greatest);
            metrics.insert(format!("{name}/min"), self.least);
        }
    }
}
