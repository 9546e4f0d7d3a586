//! Who turns a plan into patches: the border between the repair loop and its back ends.

mod chat;
mod generate;
mod prompt;
mod recorded;
mod reply;

use std::{collections::BTreeSet, fmt, sync::Arc};

use async_trait::async_trait;
use code::{
    Patch,
    graph::{Chunk, ListedGraph},
};
use record::{Fault, LogLine};
use rollout::Cx;
use serde::{Deserialize, Serialize};

use crate::{
    Issue,
    search::{Searched, TestsObserved},
    workplace::Testbed,
};
pub use chat::ChatPatcher;
pub use generate::{GenerateConfig, GeneratePatcher};
pub use recorded::RecordedPatcher;
pub use reply::read_reply;

/// The role that a policy is bound to which writes patches.
pub const PATCHER: &str = "patcher";

/// The code of an answer without patches because the episode's budget of candidates is spent: it ends the episode.
pub const SPENT: &str = "budget-spent";

/// The code of an answer without patches because there is no candidate that was not tried, whatever of the budget is
/// left: it ends the episode.
pub const EXHAUSTED: &str = "candidates-exhausted";

/// The code of a patch that was tried, or refused for the same reason, before.
pub const DUPLICATE: &str = "duplicate-patch";

/// What a patch model is told (spec, sections 4.1 and 10.5).
#[derive(Clone, Debug)]
pub struct PatchRequest {
    pub issue: Issue,
    /// A line a step.
    pub plan: Vec<String>,
    pub targets: Vec<PlanTarget>,
    /// The memory graph.
    pub graph: ListedGraph,
    pub snippets: Vec<Chunk>,
    /// What became of the attempts before, the oldest first.
    pub feedback: Vec<Feedback>,
    pub constraints: Constraints,
    /// Files that hold tests, beside those whose names say so: no patch may change them.
    pub of_tests: Arc<BTreeSet<String>>,
    /// What the tests of the fresh checkout were seen to do, where somebody has looked already.
    pub observed: Option<Arc<TestsObserved>>,
    /// What searches of the same episode have come to.
    pub searched: Option<Arc<Searched>>,
}

/// Lines that the plan wants changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanTarget {
    pub path: String,
    /// From 1, both included.
    pub start: u32,
    pub end: u32,
    /// The graph's node.
    #[serde(default)]
    pub id: String,
    #[serde(default)]
    pub confidence: f64,
    #[serde(default)]
    pub why: String,
}

/// A patch that failed, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feedback {
    pub patch: String,
    /// The fault's code.
    pub outcome: String,
    /// What the tests or the checks said, cut to what is worth reading.
    pub detail: String,
}

/// What a patch must keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Constraints {
    pub max_edits: usize,
    /// Lines that one edit may replace.
    pub max_lines_per_edit: usize,
    pub one_file_per_patch: bool,
    /// Candidate patches that the episode has tried before: a budget is for all of its repairs together.
    #[serde(skip)]
    pub tried: usize,
}

impl Default for Constraints {
    fn default() -> Self {
        Self {
            max_edits: 20,
            max_lines_per_edit: 200,
            one_file_per_patch: true,
            tried: 0,
        }
    }
}

/// A patch that somebody proposes.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    pub patch: Patch,
    /// What the model wrote, or the patch as a diff.
    pub text: String,
    pub summary: String,
    /// The greatest is tried first.
    pub confidence: f64,
    /// Whoever proposes it has run its tests and counted it: see [`Effort::candidates`].
    pub counted: bool,
}

/// What came of asking a patch model.
#[derive(Clone, Debug, PartialEq)]
pub enum Proposed {
    /// At least one.
    Patches(Vec<Proposal>),
    /// None, and why: a code of the spec's section 1.5, and words.
    None { code: &'static str, detail: String },
}

/// An answer, and what it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    pub proposed: Proposed,
    pub effort: Effort,
    /// The runs of tests that it took, as lines of `logs/test_runs.jsonl`.
    pub log: Vec<LogLine>,
    /// There is nothing to ask for after these patches, and why.
    pub spent: Option<NothingLeft>,
    /// For the next request of the episode; `None` where there is nothing to go on from.
    pub searched: Option<Arc<Searched>>,
}

/// Why a patch model has no other patch for an episode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NothingLeft {
    /// [`SPENT`] or [`EXHAUSTED`].
    pub code: &'static str,
    pub detail: String,
}

impl From<Proposed> for Answered {
    fn from(proposed: Proposed) -> Self {
        Self {
            proposed,
            effort: Effort::default(),
            log: Vec::new(),
            spent: None,
            searched: None,
        }
    }
}

/// What a patch model tried in workplaces of its own before it answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effort {
    /// Candidates: changes that were made and whose tests were run. That the one that is proposed is then tested
    /// again in the planner's work tree makes it no other.
    pub candidates: usize,
    /// Runs of tests, those of candidates and all others.
    pub test_runs: usize,
}

/// A back end of the role `patcher`.
#[async_trait]
pub trait PatchModel: Send + Sync + fmt::Debug {
    /// # Errors
    /// Only what prevented an answer. A bad answer is [`Proposed::None`].
    async fn propose(
        &self,
        request: &PatchRequest,
        testbed: &Testbed,
        cx: &mut Cx,
    ) -> Result<Answered, Fault>;
}
