//! Evaluation suites: played, committed, and said again when the journal has them.

use std::{cell::OnceCell, sync::Arc};

use eval::{Evaluated, Suite, evaluate};
use journal::Evaluation;
use record::{Episode, Seed};
use rollout::{Options as RolloutOptions, Progress, Roles, Runner, Study};
use serde_json::Value;
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
        let keep = |_: &Episode, _| Ok(());
        self.play_rest(engines, stop, (Vec::new(), keep), on_progress)
    }

    /// Plays what is not `finished`, and gives each episode to `keep` as it ends.
    fn play_rest(
        &self,
        engines: &Engines,
        stop: &Stop,
        (finished, keep): (
            Vec<Episode>,
            impl Fn(&Episode, Vec<Value>) -> journal::Result<()>,
        ),
        on_progress: impl Fn(u64),
    ) -> Outcome<Option<Evaluated>> {
        let (study, roles) = (self.study.clone(), self.roles.clone());
        let runner = Runner::new(study, roles, self.rollout.clone()).with_finished(finished);
        let lost = OnceCell::new();
        let done = |progress: Progress<'_>| {
            let log = self.study.take_log(progress.episode);
            if let Err(error) = keep(progress.episode, log) {
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
        self.suite_with(suite, line, |_, _| Ok(()))
    }

    /// As [`Self::suite`]; `before` writes what belongs to the evaluation, before it is committed. It is given
    /// the lines for logs that were kept with the episodes, in the episodes' order.
    pub(crate) fn suite_with<S: Study>(
        &self,
        suite: &Played<'_, S>,
        line: impl Fn(&Evaluated) -> String,
        before: impl FnOnce(&Evaluated, Vec<Value>) -> Outcome<()>,
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
                let finished: Vec<Episode> = finished.into_iter().map(|it| it.episode).collect();
                if !finished.is_empty() {
                    let n = finished.len();
                    self.screen
                        .say(format!("  {name}: {n} episodes were played before"));
                }
                let keep = |episode: &Episode, log| kept.keep(episode, log);
                let rest = (finished, keep);
                suite.play_rest(self.engines, self.stop, rest, |done| work.at(done))
            } else {
                suite.play(self.engines, self.stop, |done| work.at(done))
            };
            let evaluated = played?.ok_or_else(|| self.interrupted())?;
            work.done(line(&evaluated));
            let tokens = evaluated.sampled_tokens;
            before(&evaluated, self.kept_lines(suite)?)?;
            self.commit(evaluated)?;
            Ok(tokens)
        })
    }

    /// Those of this process and of those before it.
    fn kept_lines<S: Study>(&self, suite: &Played<'_, S>) -> Outcome<Vec<Value>> {
        if !suite.keeps {
            return Ok(Vec::new());
        }
        let (_, mut kept) = self.run.kept_episodes(suite.name).failed()?;
        kept.sort_by_key(|kept| kept.episode.id);
        Ok(kept.into_iter().flat_map(|kept| kept.log).collect())
    }

    fn commit(&self, evaluated: Evaluated) -> Outcome<()> {
        let evaluation = Evaluation {
            name: evaluated.name,
            policy: evaluated.policy,
            n_tasks: evaluated.n_tasks as u64,
            metrics: evaluated.metrics,
            episodes: None,
        };
        self.run
            .commit_evaluation(evaluation, Some(&evaluated.groups))
            .failed()?;
        Ok(())
    }
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
