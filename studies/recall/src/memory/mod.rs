//! The memory of an episode: facts with their provenance, a core paragraph, a window of recent turns and
//! a summary of those before (spec of the recall study, section 1.5).
//!
//! A [`MemoryManager`] is immutable and serves all episodes; a [`MemoryState`] is one rollout's memory, and a
//! clone of it is a snapshot. Neither ever sees a gold answer: all that they are given is turns and texts.

mod apply;
mod change;
mod compress;
mod config;
mod dates;
mod duplicates;
mod extract;
mod fact;
mod manager;
mod op;
mod persist;
pub mod protocol;
mod search;
mod sentences;
mod snapshot;
mod state;
mod view;

pub use apply::Author;
pub use config::{
    BadSetting, Baseline, Compression, Extraction, FactOrder, Fusion, MemoryConfig, Retrieval,
    UpdatePolicy,
};
pub use dates::Day;
pub(crate) use dates::{MONTHS, is_named};
pub use extract::{Extracted, chunks, extract};
pub use fact::{BadFactId, Fact, FactId, FactKind, Write};
pub use manager::{CountTokens, MemoryError, MemoryManager};
pub use op::{Compressed, MemoryOp, OpKind, OpRecord, OpStatus, Store};
pub use persist::BadMemory;
pub use protocol::OpFormat;
pub use search::{Hit, RetrieveOptions};
pub use sentences::sentences;
pub use snapshot::{SnapshotCache, SnapshotKey};
pub use state::{BlockTokens, MemoryState, WindowTurn};
pub use view::{Cut, FactLine, MemoryView, ShownFact, ShownTurn, ViewBudget};
