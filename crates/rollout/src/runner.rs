//! Plays groups of episodes concurrently and gives all of them back, in order.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream::FuturesUnordered};
use record::{Episode, EpisodeId, Fault, FaultKind, Group, LogLine, Outcome, Seed};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::{sync::Semaphore, task::JoinHandle};

use crate::{Cx, Played, Roles, Spent, Study, Tally, TaskRow, overlap::Overlap};

/// Budgets of a runner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Most episodes in play at once. Changes no result, only memory and speed.
    pub concurrency: usize,
    /// Seconds that one play of an episode may take, its queueing included.
    pub deadline_s: f64,
    /// Times that an infrastructure fault is retried.
    pub retries: u32,
    /// Share of a step's episodes that may end without a verdict before the step is an error.
    pub max_fault_share: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            concurrency: 512,
            deadline_s: 300.0,
            retries: 1,
            max_fault_share: 0.1,
        }
    }
}

/// What a caller may show, or keep, while a step plays.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    pub episodes_done: usize,
    pub episodes: usize,
    /// The one that has just ended.
    pub episode: &'a Episode,
    /// Wall seconds of its plays, waiting for others included.
    pub seconds: f64,
    /// Its lines for logs.
    pub log: &'a [LogLine],
}

/// An episode, and what is no fact of it.
struct Ended {
    episode: Episode,
    seconds: f64,
    log: Vec<LogLine>,
}

#[derive(Debug, Error)]
pub enum RolloutError {
    #[error(
        "step {step}: {faulted} of {episodes} episodes ended without a verdict, more than the \
         share of {max_share} allowed by rollout.max_fault_share; the first: {first}"
    )]
    TooManyFaults {
        step: u64,
        faulted: usize,
        episodes: usize,
        max_share: f64,
        first: String,
    },

    #[error("an episode of step {step} panicked: {message}")]
    Panicked { step: u64, message: String },

    #[error("no tasks were given for step {step}")]
    NoTasks { step: u64 },
}

/// Plays a study's episodes with a set of roles. Cheap to make: one per set of bindings.
pub struct Runner<S: Study> {
    study: Arc<S>,
    roles: Arc<Roles>,
    /// Of the member that is played along with each group, where there is one.
    greedy: Option<Arc<Roles>>,
    options: Options,
    finished: BTreeMap<EpisodeId, Episode>,
    overlap: Overlap,
}

impl<S: Study> Runner<S> {
    pub fn new(study: Arc<S>, roles: Roles, options: Options) -> Self {
        Self {
            study,
            roles: Arc::new(roles),
            greedy: None,
            options,
            finished: BTreeMap::new(),
            overlap: Overlap::default(),
        }
    }

    /// Episodes that were played before and are not played again, by their places; those with faults and
    /// those of other tasks are.
    pub fn with_finished(mut self, episodes: impl IntoIterator<Item = Episode>) -> Self {
        let graded = |episode: &Episode| episode.outcome.reward().is_some();
        let episodes = episodes.into_iter().filter(graded);
        self.finished = episodes.map(|episode| (episode.id, episode)).collect();
        self
    }

    /// Plays one member more with every group, its last, in which `roles` answer greedily: what a
    /// baseline needs that is a sample of the policy at its best guess.
    pub fn with_greedy(mut self, roles: &[&str]) -> Self {
        self.greedy = Some(Arc::new(self.roles.greedy(roles)));
        self
    }

    /// What its episodes have waited for since this was last asked.
    pub fn take_spent(&self) -> Spent {
        self.overlap.take()
    }

    /// Plays every task `members` times and returns one group a task, in the order given, all
    /// members present. The result depends on the tasks, the policies and `seed`, never on the
    /// concurrency or on timing (faults apart).
    ///
    /// Dropping the future aborts the episodes that are still playing.
    ///
    /// # Errors
    /// [`RolloutError::TooManyFaults`] when more than `max_fault_share` of the episodes have no
    /// verdict. Faults below that share are in the groups.
    pub async fn play(
        &self,
        step: u64,
        tasks: &[Arc<S::Task>],
        members: u32,
        seed: Seed,
        progress: impl FnMut(Progress<'_>),
    ) -> Result<Vec<Group>, RolloutError> {
        self.play_from(0, step, tasks, members, seed, progress)
            .await
    }

    /// As [`Self::play`], for tasks whose groups are numbered from `first` on: what is played in one
    /// step in several rounds has numbers and random streams of its own.
    ///
    /// # Errors
    /// As [`Self::play`].
    pub async fn play_from(
        &self,
        first: u32,
        step: u64,
        tasks: &[Arc<S::Task>],
        members: u32,
        seed: Seed,
        mut progress: impl FnMut(Progress<'_>),
    ) -> Result<Vec<Group>, RolloutError> {
        if tasks.is_empty() {
            return Err(RolloutError::NoTasks { step });
        }
        let mut done = Vec::new();
        let permits = Arc::new(Semaphore::new(self.options.concurrency.max(1)));
        let mut playing = FuturesUnordered::new();
        let sampled = (0..members).map(|member| (member, &self.roles));
        let greedy = self.greedy.iter().map(|roles| (members, roles));
        let members: Vec<(u32, &Arc<Roles>)> = sampled.chain(greedy).collect();
        for (group, task) in (first..).zip(tasks) {
            for &(member, roles) in &members {
                let id = EpisodeId {
                    step,
                    group,
                    member,
                };
                let finished = self.finished.get(&id);
                if let Some(episode) = finished.filter(|found| found.task == *task.id()) {
                    done.push(episode.clone());
                    continue;
                }
                let seed = seed
                    .stream("group", group.into())
                    .stream("member", member.into());
                let (roles, overlap) = (roles.clone(), self.overlap.clone());
                let name = task.id().clone();
                let context = move || Cx::new(roles.clone(), seed, name.clone(), overlap.clone());
                playing.push(AbortOnDrop(tokio::spawn(play_episode(
                    self.study.clone(),
                    task.clone(),
                    self.options.clone(),
                    permits.clone(),
                    id,
                    context,
                ))));
            }
        }
        let episodes = done.len() + playing.len();
        while let Some(ended) = playing.next().await {
            let ended = ended.map_err(|error| RolloutError::Panicked {
                step,
                message: error.to_string(),
            })?;
            progress(Progress {
                episodes_done: done.len() + 1,
                episodes,
                episode: &ended.episode,
                seconds: ended.seconds,
                log: &ended.log,
            });
            done.push(ended.episode);
        }
        done.sort_by_key(|episode: &Episode| episode.id);
        let groups = into_groups(first, tasks, done);
        self.check_faults(step, &groups)?;
        Ok(groups)
    }

    fn check_faults(&self, step: u64, groups: &[Group]) -> Result<(), RolloutError> {
        let tally = Tally::of(groups);
        let max_share = self.options.max_fault_share;
        if tally.faulted() as f64 <= max_share * tally.episodes() as f64 {
            return Ok(());
        }
        let first = groups
            .iter()
            .flat_map(|group| &group.episodes)
            .find_map(|episode| fault_message(&episode.outcome))
            .unwrap_or_default();
        Err(RolloutError::TooManyFaults {
            step,
            faulted: tally.faulted(),
            episodes: tally.episodes(),
            max_share,
            first,
        })
    }
}

/// One episode, retried on infrastructure faults, as a complete record whatever happens.
async fn play_episode<S: Study>(
    study: Arc<S>,
    task: Arc<S::Task>,
    options: Options,
    permits: Arc<Semaphore>,
    id: EpisodeId,
    context: impl Fn() -> Cx,
) -> Ended {
    // The semaphore is never closed; without a permit the episode would still be correct.
    let _permit = permits.acquire().await.ok();
    let began = Instant::now();
    let (mut retries, mut log) = (0, Vec::new());
    loop {
        let mut cx = context();
        let played = within_deadline(&options, study.play(&task, &mut cx)).await;
        let (outcome, notes) = match played.and_then(finite) {
            Ok(played) => (
                Outcome::Graded {
                    reward: played.reward,
                },
                played.notes,
            ),
            Err(fault) if fault.kind == FaultKind::Infra && retries < options.retries => {
                retries += 1;
                log.extend(cx.into_parts().1);
                continue;
            }
            Err(fault) => (fault.into(), serde_json::Value::Null),
        };
        let (calls, lines) = cx.into_parts();
        log.extend(lines);
        let episode = Episode {
            id,
            task: task.id().clone(),
            calls,
            outcome,
            retries,
            notes,
        };
        return Ended {
            episode,
            seconds: began.elapsed().as_secs_f64(),
            log,
        };
    }
}

async fn within_deadline(
    options: &Options,
    play: impl Future<Output = Result<Played, Fault>>,
) -> Result<Played, Fault> {
    let deadline = Duration::from_secs_f64(options.deadline_s.clamp(0.001, 1e9));
    match tokio::time::timeout(deadline, play).await {
        Ok(played) => played,
        Err(_) => Err(Fault::timeout(format!(
            "not finished after {} s (rollout.deadline_s)",
            options.deadline_s
        ))),
    }
}

/// A reward that is not finite is the grader's fault: it would poison its whole group.
fn finite(played: Played) -> Result<Played, Fault> {
    if played.reward.total.is_finite() {
        return Ok(played);
    }
    Err(Fault::grader(format!(
        "the reward is {}",
        played.reward.total
    )))
}

fn into_groups<T: TaskRow>(first: u32, tasks: &[Arc<T>], episodes: Vec<Episode>) -> Vec<Group> {
    let mut groups: Vec<Group> = tasks
        .iter()
        .map(|task| Group {
            task: task.id().clone(),
            episodes: Vec::new(),
        })
        .collect();
    for episode in episodes {
        groups[(episode.id.group - first) as usize]
            .episodes
            .push(episode);
    }
    groups
}

fn fault_message(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Graded { .. } => None,
        Outcome::InfraFault { message }
        | Outcome::GraderFault { message }
        | Outcome::Timeout { message } => Some(message.clone()),
    }
}

/// A spawned task that dies with the step that asked for it.
struct AbortOnDrop(JoinHandle<Ended>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Future for AbortOnDrop {
    type Output = Result<Ended, tokio::task::JoinError>;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        std::pin::Pin::new(&mut self.0).poll(cx)
    }
}
