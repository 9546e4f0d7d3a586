//! What every phase of every study works with, and how a phase is run: once, between its two records.

use journal::{Replay, RunDir};
use record::Seed;
use train::Stop;

use super::{Engines, settings::Training};
use crate::{
    failure::{Classify, Failure, Outcome},
    screen::Screen,
};

/// One walk of a process through a run.
pub(crate) struct Frame<'a> {
    pub(crate) run: &'a RunDir,
    /// What was committed when this process began.
    pub(crate) replay: &'a Replay,
    pub(crate) engines: &'a Engines,
    pub(crate) screen: Screen,
    pub(crate) stop: &'a Stop,
    /// Of the run.
    pub(crate) seed: Seed,
    pub(crate) training: Training,
}

impl Frame<'_> {
    /// Runs a phase between its two records, unless the journal says that it has ended.
    /// `work` returns the tokens that no step has counted.
    pub(crate) fn phase(&self, phase: &str, work: impl FnOnce() -> Outcome<u64>) -> Outcome<()> {
        if self.replay.phase_ended(phase).is_some() {
            return Ok(());
        }
        self.run.phase_started(phase).failed()?;
        let tokens = match work() {
            Err(stopped @ Failure::Interrupted { .. }) => {
                self.run.stopped().failed()?;
                return Err(stopped);
            }
            done => done?,
        };
        self.run.phase_ended(phase, tokens).failed()
    }

    /// The end of a run, and its report.
    pub(crate) fn finish(&self) -> Outcome<()> {
        if !self.replay.finished() {
            self.run.finish().failed()?;
        }
        report::write(self.run.path()).failed()?;
        Ok(())
    }

    /// Whether supervised stages have begun: what models are to read was checked before.
    pub(crate) fn has_begun_to_train(&self) -> bool {
        let phases = self.replay.phases();
        phases.iter().any(|phase| phase.starts_with("sft/"))
    }

    /// A loop's error as the command's: a requested stop is no failure.
    pub(crate) fn classify<T>(&self, result: Result<T, train::TrainError>) -> Outcome<T> {
        match result {
            Err(train::TrainError::Stopped) => Err(self.interrupted()),
            result => result.failed(),
        }
    }

    pub(crate) fn interrupted(&self) -> Failure {
        Failure::Interrupted {
            run: self.run.path().to_owned(),
            command: "train",
        }
    }
}
