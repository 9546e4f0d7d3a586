//! What the searches of one episode have come to: the next one goes on from there.

use std::{collections::BTreeSet, sync::Arc};

use super::{observation::TestsObserved, ranking::Ranked, trial::Partial};

/// Tells a program from others of the same checkout.
pub(super) type ProgramId = [u8; 32];

/// What was found out so far. Of one checkout: what repairs left in the planner's work tree does not count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Searched {
    /// What the tests do before anything is changed.
    pub(super) observed: Option<Arc<TestsObserved>>,
    /// Programs that were run. None is run again.
    pub(super) programs: BTreeSet<ProgramId>,
    /// Candidates that mend failing tests and were not held to the others, as one before them passed, by their
    /// numbers in the episode.
    pub(super) unchecked: Vec<(usize, Ranked)>,
    /// Candidates that mend a failing test and break another.
    pub(super) breaking: usize,
    /// What is proposed where nothing better is found, and was not yet.
    pub(super) partial: Option<Partial>,
    /// Candidates that passed and were proposed.
    pub(super) proposed: usize,
}

impl Searched {
    /// What the tests do before anything is changed, where it was looked at.
    pub(crate) fn observed(&self) -> Option<&TestsObserved> {
        self.observed.as_deref()
    }

    /// Candidates that were run, each another program.
    pub fn n_programs(&self) -> usize {
        self.programs.len()
    }

    /// The same for searches that go on alike.
    pub(crate) fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for program in &self.programs {
            hasher.update(program);
        }
        for (number, _) in &self.unchecked {
            hasher.update(&number.to_le_bytes());
        }
        if let Some(partial) = &self.partial {
            hasher.update(b"partial");
            hasher.update(&partial.number.to_le_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}
