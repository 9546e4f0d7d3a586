//! Counts of how episodes ended.

use record::{Group, Outcome};
use serde::{Deserialize, Serialize};

/// How many episodes ended in which way. Every episode asked for is in exactly one of the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    pub graded: usize,
    pub infra_faults: usize,
    pub grader_faults: usize,
    pub timeouts: usize,
    /// Plays repeated after an infrastructure fault, whatever came of them.
    pub retries: usize,
}

impl Tally {
    pub fn of(groups: &[Group]) -> Self {
        let mut tally = Self::default();
        for episode in groups.iter().flat_map(|group| &group.episodes) {
            tally.retries += episode.retries as usize;
            match episode.outcome {
                Outcome::Graded { .. } => tally.graded += 1,
                Outcome::InfraFault { .. } => tally.infra_faults += 1,
                Outcome::GraderFault { .. } => tally.grader_faults += 1,
                Outcome::Timeout { .. } => tally.timeouts += 1,
            }
        }
        tally
    }

    pub fn faulted(&self) -> usize {
        self.infra_faults + self.grader_faults + self.timeouts
    }

    pub fn episodes(&self) -> usize {
        self.graded + self.faulted()
    }
}
