//! The walk through a run of the critique study: tasks, tokenizer, supervised stages, evaluations,
//! reinforcement, report. Every phase asks the journal first whether it was done before.

mod adapters;
mod checkpoints;
pub(crate) mod evaluate;
mod instruments;
pub(crate) mod model_source;
pub(crate) mod recipe;
pub(crate) mod reinforce;
mod roles;
pub(crate) mod supervise;
pub(crate) mod tasks;
pub(crate) mod vocabulary;

use std::path::Path;

use journal::{Replay, RunDir};
use record::Seed;
use train::Stop;

pub(crate) use instruments::Instruments;
use recipe::Recipe;

use crate::{
    failure::{Classify, Failure, Outcome},
    screen::Screen,
};

/// What every phase works with.
pub(crate) struct Walk<'a> {
    pub(crate) recipe: &'a Recipe,
    pub(crate) run: &'a RunDir,
    /// What was committed when this process began.
    pub(crate) replay: &'a Replay,
    pub(crate) instruments: &'a Instruments,
    pub(crate) screen: Screen,
    pub(crate) stop: &'a Stop,
}

impl Walk<'_> {
    /// Walks to the end of the recipe.
    pub(crate) fn train(&self) -> Outcome<()> {
        let sets = self.tasks()?;
        let chats = self.vocabulary()?;
        self.check_prompts(&sets, &chats)?;
        let critic = self.supervised_critic(&chats.critic)?;
        let reviser = self.supervised_reviser(&chats.reviser)?;
        self.evaluate_before(&sets, &chats, &critic, &reviser)?;
        let trained = self.reinforce(&sets, &chats, &critic, &reviser)?;
        self.evaluate_after(&sets, &chats, &trained, &reviser)?;
        if !self.replay.finished() {
            self.run.finish().failed()?;
        }
        self.report()
    }

    fn report(&self) -> Outcome<()> {
        report::write(self.run.path()).failed()?;
        Ok(())
    }

    pub(crate) fn seed(&self) -> Seed {
        Seed(self.recipe.seed)
    }

    /// Runs a phase between its two records, unless the journal says that it has ended.
    /// `work` returns the tokens that no step has counted.
    fn phase(&self, phase: &str, work: impl FnOnce() -> Outcome<u64>) -> Outcome<()> {
        if self.replay.phase_ended(phase).is_some() {
            return Ok(());
        }
        self.run.phase_started(phase).failed()?;
        let tokens = work()?;
        self.run.phase_ended(phase, tokens).failed()
    }

    /// A loop's error as the command's: a requested stop is no failure.
    fn classify<T>(&self, result: Result<T, train::TrainError>) -> Outcome<T> {
        match result {
            Err(train::TrainError::Stopped) => Err(self.interrupted()),
            result => result.failed(),
        }
    }

    fn interrupted(&self) -> Failure {
        Failure::Interrupted {
            run: self.run.path().to_owned(),
        }
    }

    fn path(&self) -> &Path {
        self.run.path()
    }
}
