//! Evaluation suites over a study, with 95 % intervals over tasks.
//!
//! A [`Suite`] names what is measured: which policies, which tasks, how many samples a task. Playing it
//! is a [`rollout::Runner`]'s work, measuring is the study's; this crate puts the two together and
//! keeps the result in a form that the journal holds.

mod compare;

use std::{collections::BTreeMap, sync::Arc};

use record::{EpisodeId, Estimate, Group, Seed};
use rollout::{Progress, RolloutError, Runner, Study, Tally};

pub use compare::{Difference, paired_difference};

/// One evaluation to be played.
pub struct Suite<'a, S: Study> {
    /// Its name in `summary.json`, for example `sft`.
    pub name: String,
    /// What was evaluated, for people: a checkpoint, a fixed text.
    pub policy: String,
    pub study: &'a S,
    /// Holds the role bindings under test; it must play with the same study.
    pub runner: &'a Runner<S>,
    pub tasks: &'a [Arc<S::Task>],
    /// Episodes a task.
    pub samples: u32,
    pub seed: Seed,
    /// Wall seconds of episodes that were played before.
    pub seconds: BTreeMap<EpisodeId, f64>,
}

/// What came of a suite.
#[derive(Clone, Debug)]
pub struct Evaluated {
    pub name: String,
    pub policy: String,
    pub n_tasks: usize,
    pub metrics: BTreeMap<String, Estimate>,
    /// Seconds, which are other in every run.
    pub timings: BTreeMap<String, Estimate>,
    /// Episodes without a verdict are in here and in no metric.
    pub tally: Tally,
    pub groups: Vec<Group>,
    /// Wall seconds of every episode, in the order of groups and members.
    pub episode_seconds: Vec<f64>,
    /// Tokens sampled by all roles.
    pub sampled_tokens: u64,
}

/// Plays a suite to its end.
///
/// # Errors
/// As [`Runner::play`]: too many episodes without a verdict.
pub async fn evaluate<S: Study>(
    suite: Suite<'_, S>,
    mut progress: impl FnMut(Progress<'_>),
) -> Result<Evaluated, RolloutError> {
    let mut seconds = suite.seconds;
    let progress = |ended: Progress<'_>| {
        seconds.insert(ended.episode.id, ended.seconds);
        progress(ended);
    };
    let groups = suite
        .runner
        .play(0, suite.tasks, suite.samples, suite.seed, progress)
        .await?;
    let sampled_tokens = groups
        .iter()
        .flat_map(|group| &group.episodes)
        .flat_map(|episode| &episode.calls)
        .map(|call| call.completion.response.len() as u64)
        .sum();
    let tally = Tally::of(&groups);
    let mut metrics = suite.study.evaluation_metrics(&groups);
    if tally.faulted() > 0 {
        // Counted, not estimated: these episodes are in no other measure.
        let value = tally.faulted() as f64 / tally.episodes() as f64;
        let share = Estimate {
            value,
            low: value,
            high: value,
        };
        metrics.insert("no_verdict_rate".to_owned(), share);
    }
    let episodes = groups.iter().flat_map(|group| &group.episodes);
    let episode_seconds = episodes.map(|episode| seconds.get(&episode.id).copied());
    Ok(Evaluated {
        metrics,
        timings: suite.study.evaluation_timings(&groups, &seconds),
        episode_seconds: episode_seconds.map(Option::unwrap_or_default).collect(),
        name: suite.name,
        policy: suite.policy,
        n_tasks: suite.tasks.len(),
        tally,
        groups,
        sampled_tokens,
    })
}
