//! What is asked of a run of tests, and what it says.

use std::{collections::BTreeMap, time::Duration};

use code::RelativePath;
use judge::pytest::TestStatus;
use serde::{Deserialize, Serialize};

/// Some tests, on the work tree as it is or with some files changed for this run alone.
#[derive(Clone, Debug, PartialEq)]
pub struct TestRequest {
    /// Files that are other during this run; `None` removes one. They are put back after it.
    pub writes: BTreeMap<RelativePath, Option<Vec<u8>>>,
    /// Tests that are run; none: all that the framework finds. They run in the order in which they run among all,
    /// whatever theirs is here. An id of a file, module or class stands for all tests in it; one of no test is
    /// passed over and has no status.
    pub ids: Vec<String>,
    /// Ends the run at the first test that does not pass.
    pub stop_at_failure: bool,
    /// Notes for each test the lines of the work tree's own sources that ran, its tests included.
    pub trace: bool,
    pub wall: Duration,
}

/// What came of a run. What the tests do is told here and is never an error. A run that found no test at all
/// has finished and has no status.
#[derive(Clone, Debug, PartialEq)]
pub struct TestRun {
    pub ended: Ended,
    /// Of every test that came to an end, by id. A file, module or class that could not be read or set up is
    /// an error by its own name and by those of the tests that were asked for in it.
    pub statuses: BTreeMap<String, TestStatus>,
    /// The ids of `statuses`, in the order in which the tests ended.
    pub order: Vec<String>,
    /// Of those that failed or could not be run; a `Timeout` where one took longer than the testbed lets it, and as
    /// `Timeout` or `Crash` of the one that was running when the interpreter was ended or died.
    pub failures: BTreeMap<String, Failure>,
    /// By test and path: lines that ran, ascending; below an empty id those that ran outside of any test, when
    /// modules were imported. Empty without `trace`.
    pub lines: BTreeMap<String, BTreeMap<String, Vec<u32>>>,
    /// What was printed beside, cut to its ends.
    pub output: String,
    /// Plugins of pytest that are installed were loaded, as something asked for them.
    pub with_plugins: bool,
    /// Seconds of the longest test that came to an end by itself.
    pub longest: f64,
    /// Seconds of the whole run.
    pub seconds: f64,
}

impl TestRun {
    /// What single tests of later runs need be given, where those of this one had `limit`: less once one has not ended.
    pub fn test_limit(&self, limit: Duration) -> Duration {
        let is_endless = |failure: &Failure| failure.kind == TIMEOUT;
        match self.failures.values().any(is_endless) {
            // Tests could forge the number.
            true => Duration::try_from_secs_f64((8.0 * self.longest).max(5.0))
                .map_or(limit, |less| limit.min(less)),
            false => limit,
        }
    }
}

/// The kind of failure of tests that did not end in time.
pub const TIMEOUT: &str = "Timeout";

/// How a run of tests ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Finished,
    TimedOut,
    /// The interpreter died, or said nothing that could be read.
    Crashed,
}

/// Why a test did not pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The exception's type.
    pub kind: String,
    pub message: String,
    /// Inside the work tree, the outermost first.
    pub frames: Vec<Frame>,
}

/// A line that an exception passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Below the work tree.
    pub path: String,
    pub line: u32,
    pub function: String,
}
