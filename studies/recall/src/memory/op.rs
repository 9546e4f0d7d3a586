//! What can be done to a memory, and the record of what was done.

use serde::{Deserialize, Serialize};

use super::fact::{FactId, FactKind};

/// A wish to change the memory: of a rule, or of a policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum MemoryOp {
    Insert {
        kind: FactKind,
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        importance: Option<f32>,
        /// Of the turn, when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timestamp: Option<String>,
    },
    Update {
        id: FactId,
        text: String,
        /// The store that its writer takes the fact to lie in; it fails where that is another.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<FactKind>,
    },
    Delete {
        id: FactId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<FactKind>,
    },
    /// Replaces the core paragraph; an empty text clears it.
    SetCore { text: String },
    /// Replaces the short-term summary.
    SetSummary { text: String },
    /// Nothing is worth a change.
    Noop,
}

/// One entry of the log that step rewards, metrics and reports are made from (spec, section 1.5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpRecord {
    /// Counts the records of an episode.
    pub op_id: u32,
    pub kind: OpKind,
    pub store: Store,
    /// The fact that was written or named, where there is one; of a duplicate, the one that is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_id: Option<FactId>,
    /// The fact that `item_id` took the place of, under `append_supersede`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<FactId>,
    /// `content_hash` of the item before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_hash: Option<String>,
    /// Text before an update or a deletion, for reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_text: Option<String>,
    /// Text after it; absent for deletions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_text: Option<String>,
    pub turn_id: u32,
    /// `rule`, or the role that asked for it.
    pub agent_role: String,
    /// The policy call that asked for it: its index in the episode's calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_id: Option<u32>,
    pub status: OpStatus,
    /// Why it failed or was skipped, or what was cut, for its writer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// By which its store grew, in tokens; negative where it shrank.
    pub tokens: i64,
    /// Of a new summary: what went into it and what came out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compressed: Option<Compressed>,
}

/// A compression, in tokens of the answering policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compressed {
    /// The summary before, and the text that was folded into it.
    pub input_tokens: u32,
    /// The summary after.
    pub output_tokens: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpKind {
    Add,
    Update,
    Delete,
    Noop,
    Summarize,
    /// An identical or nearly identical fact is there already: nothing was written.
    DuplicateSkipped,
    /// Dropped because a cap was reached.
    Evict,
    /// What a policy wrote could not be read as an operation.
    Malformed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Store {
    Core,
    Semantic,
    Episodic,
    Summary,
    Window,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpStatus {
    Done,
    /// Understood, and nothing to do: a duplicate, a noop.
    Skipped,
    /// Refused: unknown id, wrong store, over a cap, unreadable.
    Failed,
}

impl From<FactKind> for Store {
    fn from(kind: FactKind) -> Self {
        match kind {
            FactKind::Semantic => Self::Semantic,
            FactKind::Episodic => Self::Episodic,
        }
    }
}
