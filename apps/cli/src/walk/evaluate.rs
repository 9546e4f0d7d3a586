//! Evaluation suites: played, committed, and said again when the journal has them.

use std::{cell::OnceCell, sync::Arc};

use eval::{Evaluated, Suite, evaluate};
use journal::{Evaluation, Kept};
use record::{LineLog, LogLine, Outcome as Ended, Seed};
use rollout::{Options as RolloutOptions, Progress, Roles, Runner, Study};
use serde_json::{Value, json};
use train::Stop;

use super::{Engines, Frame};
use crate::failure::{Classify, Outcome};

/// One suite with everything that it is played with.
pub(crate) struct Played<'a, S: Study> {
    pub(crate) name: &'a str,
    /// What is evaluated, for people.
    pub(crate) policy: &'a str,
    pub(crate) study: Arc<S>,
    pub(crate) roles: Roles,
    pub(crate) tasks: &'a [Arc<S::Task>],
    pub(crate) samples: u32,
    pub(crate) seed: Seed,
    pub(crate) rollout: &'a RolloutOptions,
    /// Keep every episode as it ends, so that a killed run plays none twice: where an episode takes longer
    /// than the disk does.
    pub(crate) keeps: bool,
}

impl<S: Study> Played<'_, S> {
    pub(crate) fn episodes(&self) -> u64 {
        self.tasks.len() as u64 * u64::from(self.samples)
    }

    /// Plays the suite; `None` when a stop was requested first.
    pub(crate) fn play(
        &self,
        engines: &Engines,
        stop: &Stop,
        on_progress: impl Fn(u64),
    ) -> Outcome<Option<Evaluated>> {
        let keep = |_: &Progress<'_>| Ok(());
        self.play_rest(engines, stop, (Vec::new(), keep), on_progress)
    }

    /// Plays what is not `finished`, and gives each episode to `keep` as it ends.
    fn play_rest(
        &self,
        engines: &Engines,
        stop: &Stop,
        (finished, keep): (Vec<Kept>, impl Fn(&Progress<'_>) -> journal::Result<()>),
        on_progress: impl Fn(u64),
    ) -> Outcome<Option<Evaluated>> {
        let (study, roles) = (self.study.clone(), self.roles.clone());
        let seconds = finished.iter().map(|it| (it.episode.id, it.seconds));
        let seconds = seconds.collect();
        let finished = finished.into_iter().map(|it| it.episode);
        let runner = Runner::new(study, roles, self.rollout.clone()).with_finished(finished);
        let lost = OnceCell::new();
        let done = |progress: Progress<'_>| {
            if let Err(error) = keep(&progress) {
                // The first failure is told; nothing is kept after it.
                let _ = lost.set(error);
            }
            on_progress(progress.episodes_done as u64);
        };
        let suite = Suite {
            name: self.name.to_owned(),
            policy: self.policy.to_owned(),
            study: self.study.as_ref(),
            runner: &runner,
            tasks: self.tasks,
            samples: self.samples,
            // The same draws for every policy, so that they are compared on equal luck.
            seed: self.seed.stream("evaluation", 0),
            seconds,
        };
        let played = engines.runtime.block_on(async {
            tokio::select! {
                done = evaluate(suite, done) => done.map(Some).failed(),
                () = stop.wait() => Ok(None),
            }
        })?;
        match lost.into_inner() {
            Some(error) => Err(error).failed(),
            None => Ok(played),
        }
    }
}

impl Frame<'_> {
    /// Plays and commits one evaluation, unless the journal has it; `line` says it to people.
    pub(crate) fn suite<S: Study>(
        &self,
        suite: &Played<'_, S>,
        line: impl Fn(&Evaluated) -> String,
    ) -> Outcome<()> {
        let name = suite.name;
        if let Some(done) = self.replay.evaluation(name) {
            if let Some(reference) = &done.episodes {
                let groups = self.run.read_episodes(reference).failed()?;
                groups
                    .iter()
                    .flat_map(|group| &group.episodes)
                    .for_each(|episode| suite.study.replay(episode));
            }
            self.screen.say(format!("  {name}: done before"));
            return Ok(());
        }
        self.phase(&format!("eval/{name}"), || {
            let work = self.screen.work(name, suite.episodes());
            let played = if suite.keeps {
                let (kept, finished) = self.run.kept_episodes(name).failed()?;
                if !finished.is_empty() {
                    let n = finished.len();
                    self.screen
                        .say(format!("  {name}: {n} episodes were played before"));
                    work.at(n as u64);
                }
                let keep = |ended: &Progress<'_>| {
                    kept.keep(ended.episode, ended.seconds, &lines(name, ended))
                };
                let rest = (finished, keep);
                suite.play_rest(self.engines, self.stop, rest, |done| work.at(done))
            } else {
                suite.play(self.engines, self.stop, |done| work.at(done))
            };
            let evaluated = played?.ok_or_else(|| self.interrupted())?;
            work.done(line(&evaluated));
            let tokens = evaluated.sampled_tokens;
            self.commit(evaluated, suite.keeps)?;
            Ok(tokens)
        })
    }

    fn commit(&self, evaluated: Evaluated, keeps: bool) -> Outcome<()> {
        let evaluation = Evaluation {
            name: evaluated.name,
            policy: evaluated.policy,
            n_tasks: evaluated.n_tasks as u64,
            metrics: evaluated.metrics,
            timings: evaluated.timings,
            episode_seconds: match keeps {
                true => evaluated.episode_seconds,
                false => Vec::new(),
            },
            episodes: None,
        };
        self.run
            .commit_evaluation(evaluation, Some(&evaluated.groups))
            .failed()?;
        Ok(())
    }
}

/// What the logs say of an episode that has ended: its own lines, then how it ended, each with whose it is.
fn lines(evaluation: &str, ended: &Progress<'_>) -> Vec<LogLine> {
    let episode = ended.episode;
    let mut end = json!({
        "outcome": match episode.outcome {
            Ended::Graded { .. } => "graded",
            Ended::InfraFault { .. } => "infra_fault",
            Ended::GraderFault { .. } => "grader_fault",
            Ended::Timeout { .. } => "timeout",
        },
        "duration_sec": ended.seconds,
    });
    match &episode.outcome {
        Ended::Graded { reward } => {
            end["reward"] = reward.total.into();
            end["components"] = json!(reward.components);
        }
        Ended::InfraFault { message }
        | Ended::GraderFault { message }
        | Ended::Timeout { message } => end["message"] = message.as_str().into(),
    }
    let end = LogLine::new(LineLog::Events, "episode_ended", end);
    let whose = [
        ("evaluation", Value::from(evaluation)),
        ("task_id", Value::from(episode.task.0.as_str())),
        ("sample", Value::from(episode.id.member)),
    ];
    let mut lines: Vec<LogLine> = ended.log.iter().cloned().chain([end]).collect();
    for line in &mut lines {
        let whose = whose
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()));
        let own = std::mem::take(&mut line.fields);
        line.fields = whose.chain(own).collect();
    }
    lines
}

/// Episodes without a verdict at the end of an evaluation's line, where there are any.
pub(crate) fn faults(evaluated: &Evaluated) -> String {
    match evaluated.tally.faulted() {
        0 => String::new(),
        n => format!(", {n} episodes without a verdict"),
    }
}

/// A share and its interval in percent, or nothing where it was not measured.
pub(crate) fn share(evaluated: &Evaluated, metric: &str) -> String {
    evaluated
        .metrics
        .get(metric)
        .map_or_else(String::new, |found| {
            format!(
                "{:.1} % [{:.1}, {:.1}]",
                100.0 * found.value,
                100.0 * found.low,
                100.0 * found.high
            )
        })
}
