//! What a recipe says about the environment: rewards, ends of episodes, guards, budgets.

use std::path::PathBuf;

use code::graph::MemoryCaps;
use serde::{Deserialize, Serialize};

use super::{ObservationConfig, RewardConfig};

/// The planner's environment (spec of the repair study, sections 2 and 8).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EnvironmentConfig {
    pub rewards: RewardConfig,
    pub end: EndConfig,
    pub guards: GuardConfig,
    pub explore: ExploreConfig,
    /// What memory may hold.
    pub memory: MemoryCaps,
    pub observation: ObservationConfig,
    /// A folder for `.aci/subgraphs/<issue>.json`: the working graph is loaded from there and saved there.
    /// Without one, nothing is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subgraphs: Option<PathBuf>,
    /// A folder for `<issue>.step_NNNN.working.json` and `.memory.json`: both graphs after every step (spec,
    /// section 6). Without one, nothing is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traces: Option<PathBuf>,
}

/// When an episode ends, beside a submit whose tests pass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EndConfig {
    /// Replies, the malformed ones too. Absent: what the task says, or 40. Nothing overrides it silently.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// Actions that look at the repository, change or test it: all but memory and noop.
    pub repository_operations: u32,
    /// Wall seconds from what the planner sees first on; what is under way then is cut short, and the episode has
    /// failed. Results then depend on how fast the machine is and on what else it does. Absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<f64>,
    /// A submit whose tests fail ends the episode.
    pub failed_submit: bool,
    /// A repair whose tests pass ends the episode, and is paid like a submit.
    pub verified_repair: bool,
}

impl Default for EndConfig {
    fn default() -> Self {
        Self {
            max_steps: None,
            repository_operations: 40,
            max_seconds: None,
            failed_submit: false,
            verified_repair: false,
        }
    }
}

/// What is done about planners that turn in circles (spec, section 1.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GuardConfig {
    /// The same action so many times in a row is refused; 0 for never.
    pub repeats: u32,
    /// Searches that led nowhere are replaced by something that leads further.
    pub avoid_repeated_find: bool,
    /// A repair with nothing in memory becomes a search for the title.
    pub repair_needs_memory: bool,
    /// Nodes can be committed by id only when their source was read.
    pub commit_needs_read: bool,
    /// Repairs and proposals are refused until the planner has run the failing tests.
    #[serde(skip_serializing_if = "is_false")]
    pub repair_needs_failure: bool,
}

/// Left out of resolved recipes, so that those without it keep their hash.
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Default for GuardConfig {
    fn default() -> Self {
        Self {
            repeats: 3,
            avoid_repeated_find: true,
            repair_needs_memory: true,
            commit_needs_read: false,
            repair_needs_failure: false,
        }
    }
}

/// How explorations fill the working graph (spec, section 2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExploreConfig {
    /// Of what a search finds, the best so many enter the working graph.
    pub find_to_working: usize,
    /// Candidates of an expansion whose action gives no limit.
    pub expand_total: usize,
    /// Of one folder, before others have their turn.
    pub expand_per_folder: usize,
    /// Nodes of the working graph before it is pruned, and those that stay beside what memory holds.
    pub working: usize,
    pub recent: usize,
    /// Nodes that a commit takes that names none.
    pub commit_top: usize,
    /// Lines of source that a node carries.
    pub snippet_lines: u32,
}

impl Default for ExploreConfig {
    fn default() -> Self {
        Self {
            find_to_working: 1,
            expand_total: 32,
            expand_per_folder: 4,
            working: 350,
            recent: 120,
            commit_top: 8,
            snippet_lines: 80,
        }
    }
}
