//! How much an episode's memory may hold.
//!
//! Spec of the repair study, sections 2.1 and 2.7.

use serde::{Deserialize, Serialize};

/// Caps of a memory; `None` is no cap. In files, a negative number is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, from = "Limits", into = "Limits")]
pub struct MemoryCaps {
    pub nodes: Option<usize>,
    pub edges: Option<usize>,
    pub frontier: Option<usize>,
    pub planner_tokens: Option<usize>,
    pub cgm_tokens: Option<usize>,
}

impl Default for MemoryCaps {
    fn default() -> Self {
        Limits::default().into()
    }
}

/// As files have them.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Limits {
    nodes: i64,
    edges: i64,
    frontier: i64,
    planner_tokens: i64,
    cgm_tokens: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            nodes: 200,
            edges: 1000,
            frontier: 50,
            planner_tokens: 2000,
            cgm_tokens: 16_000,
        }
    }
}

impl From<Limits> for MemoryCaps {
    fn from(limits: Limits) -> Self {
        let cap = |limit: i64| usize::try_from(limit).ok();
        Self {
            nodes: cap(limits.nodes),
            edges: cap(limits.edges),
            frontier: cap(limits.frontier),
            planner_tokens: cap(limits.planner_tokens),
            cgm_tokens: cap(limits.cgm_tokens),
        }
    }
}

impl From<MemoryCaps> for Limits {
    fn from(caps: MemoryCaps) -> Self {
        let limit =
            |cap: Option<usize>| cap.map_or(-1, |cap| i64::try_from(cap).unwrap_or(i64::MAX));
        Self {
            nodes: limit(caps.nodes),
            edges: limit(caps.edges),
            frontier: limit(caps.frontier),
            planner_tokens: limit(caps.planner_tokens),
            cgm_tokens: limit(caps.cgm_tokens),
        }
    }
}

/// What a memory holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySize {
    pub nodes: usize,
    pub edges: usize,
    /// Nodes of the last exploration that are in the working graph and not kept.
    pub frontier: usize,
    pub planner_tokens: usize,
    pub cgm_tokens: usize,
}

impl MemoryCaps {
    /// The names of the caps that `size` is above.
    pub fn exceeded(&self, size: &MemorySize) -> Vec<&'static str> {
        [
            ("nodes", self.nodes, size.nodes),
            ("edges", self.edges, size.edges),
            ("frontier", self.frontier, size.frontier),
            ("planner_tokens", self.planner_tokens, size.planner_tokens),
            ("cgm_tokens", self.cgm_tokens, size.cgm_tokens),
        ]
        .into_iter()
        .filter(|(_, cap, size)| cap.is_some_and(|cap| *size > cap))
        .map(|(name, _, _)| name)
        .collect()
    }
}
