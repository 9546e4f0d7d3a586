//! From a verdict to a reward.

use serde::{Deserialize, Serialize};

use crate::Verdict;

/// How a verdict is rewarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scoring {
    /// 1 when every test passed, else 0.
    #[default]
    AllPass,
    /// The share of tests that passed.
    PassRate,
}

impl Verdict {
    /// Between 0 and 1; 0 where there was nothing to pass.
    pub fn reward(&self, scoring: Scoring) -> f64 {
        match scoring {
            Scoring::AllPass => f64::from(u8::from(self.passed)),
            Scoring::PassRate if self.n_tests == 0 => 0.0,
            Scoring::PassRate => self.n_passed as f64 / self.n_tests as f64,
        }
    }
}
