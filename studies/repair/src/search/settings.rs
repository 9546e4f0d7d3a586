//! What a search may spend.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Settings of the patch model `search`. No result depends on `slots`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SearchSettings {
    /// Candidates that are run at most.
    pub budget: usize,
    /// Workplaces that are open at the same time at most; the testbed's own limit holds too.
    pub slots: usize,
    /// Candidates that are run, at most, before those of them that mend the failing tests are looked at more closely.
    /// At first they are 4, then twice as many each time.
    pub wave: usize,
    /// Tests that are traced at most: of those that fail, and as many of those that pass, the nearest first.
    pub traced_tests: usize,
    /// Failing tests that a candidate is run against first, at most.
    pub failing_tests: usize,
    /// Seconds of the longest run of all tests.
    pub suite_seconds: f64,
    /// Seconds of the longest run of one candidate against the failing tests; less where these end soon.
    pub candidate_seconds: f64,
    /// How much more suspicious lines are that the plan targets.
    pub target_factor: f64,
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self {
            budget: 200,
            slots: 2,
            wave: 20,
            traced_tests: 160,
            failing_tests: 12,
            suite_seconds: 180.0,
            candidate_seconds: 20.0,
            target_factor: 6.0,
        }
    }
}

impl SearchSettings {
    /// # Errors
    /// Numbers that no search can work with, in words.
    pub fn check(&self) -> Result<(), String> {
        let whole = [
            ("budget", self.budget),
            ("slots", self.slots),
            ("wave", self.wave),
            ("failing_tests", self.failing_tests),
        ];
        for (name, value) in whole {
            if value == 0 {
                return Err(format!("`{name}` is 0; it must be at least 1"));
            }
        }
        let positive = [
            ("suite_seconds", self.suite_seconds),
            ("candidate_seconds", self.candidate_seconds),
            ("target_factor", self.target_factor),
        ];
        for (name, value) in positive {
            if !(value > 0.0 && value <= 1e6) {
                return Err(format!(
                    "`{name}` is {value}; it must be above 0 and at most 1000000"
                ));
            }
        }
        Ok(())
    }

    pub(super) fn suite_wall(&self) -> Duration {
        Duration::from_secs_f64(self.suite_seconds)
    }

    /// How long a candidate may run against failing tests that took `seconds` before.
    pub(super) fn candidate_wall(&self, seconds: f64) -> Duration {
        let enough = (2.0 + 4.0 * seconds).min(self.candidate_seconds);
        Duration::from_secs_f64(enough)
    }
}
