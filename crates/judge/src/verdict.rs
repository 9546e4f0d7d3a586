//! What the judge found.

use sandbox::Tier;
use serde::{Deserialize, Serialize};

use crate::{CacheKey, harness};

/// What the judge found about one program and one set of tests. Holds nothing of what was expected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Every case passed, and there was at least one.
    pub passed: bool,
    pub n_passed: usize,
    pub n_tests: usize,
    /// One per test, in the order of the tests.
    pub cases: Vec<CaseResult>,
    pub status: VerdictStatus,
    /// The first error, as the program's author would see it; bounded in length. A line number in it
    /// is that of the text which was executed: of a cached verdict, it may differ in layout.
    pub message: Option<String>,
    pub key: CacheKey,
    /// Not executed for this request: taken from the cache, or from a run that was under way.
    pub cached: bool,
    /// Of the execution, also when cached.
    pub wall_ms: f64,
    pub cpu_ms: f64,
    pub tier: Tier,
}

/// For how long a verdict may stand for an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reuse {
    /// A busier machine alone could have made it.
    Never,
    /// Some case ran out of CPU time. Were it not kept, equal requests would be executed once or
    /// twice depending on whether they met, and no run could be made again count for count; but the
    /// next run may find another machine.
    ThisProcess,
    Always,
}

impl Verdict {
    pub(crate) fn reuse(&self) -> Reuse {
        let ended_by = |status, reason: &str| {
            let case =
                |case: &CaseResult| matches!(case, CaseResult::Error(text) if text == reason);
            self.status == status || self.cases.iter().any(case)
        };
        if ended_by(VerdictStatus::WallTimeout, harness::WALL_TIMEOUT) {
            Reuse::Never
        } else if ended_by(VerdictStatus::CpuTimeout, harness::CPU_TIMEOUT) {
            Reuse::ThisProcess
        } else {
            Reuse::Always
        }
    }
}

/// How one test ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaseResult {
    Passed,
    /// Another value or output than expected.
    Wrong,
    /// An exception, a missing function, a value of no builtin type.
    Error(String),
    /// The program was gone before this case was done.
    Missing,
}

/// The whole in one word: `Passed`, or the first thing that went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictStatus {
    Passed,
    /// Ran to the end; some value or output was not the expected one.
    Wrong,
    /// An exception, or the program ended before its tests were done.
    Error,
    /// Blocked or starved: wall time ran out while CPU time did not.
    WallTimeout,
    CpuTimeout,
    Memory,
    Output,
    Disk,
    /// The program wrote to the judge's channel.
    Tampered,
    /// There was nothing to pass.
    NoTests,
}

impl std::fmt::Display for VerdictStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Passed => "passed",
            Self::Wrong => "wrong",
            Self::Error => "error",
            Self::WallTimeout => "wall timeout",
            Self::CpuTimeout => "cpu timeout",
            Self::Memory => "memory",
            Self::Output => "output",
            Self::Disk => "disk",
            Self::Tampered => "tampered",
            Self::NoTests => "no tests",
        })
    }
}

impl VerdictStatus {
    pub fn is_timeout(self) -> bool {
        matches!(self, Self::WallTimeout | Self::CpuTimeout)
    }
}
