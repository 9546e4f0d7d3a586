//! The memory of an episode: facts with their provenance, a core paragraph, a window of recent turns and
//! a summary of those before.

mod fact;
mod op;

pub use fact::{BadFactId, Fact, FactId, FactKind, Write};
pub use op::{Compressed, MemoryOp, OpKind, OpRecord, OpStatus, Store};
