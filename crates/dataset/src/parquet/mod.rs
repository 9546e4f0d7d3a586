//! Parquet files as JSON rows and back, nested lists and structs included.
//!
//! Columns are taken apart and put together here, by the repetition and definition levels of the format
//! (Melnik et al., "Dremel", 2010, section 4), so that neither direction needs Arrow.

mod cell;
mod columns;
mod read;
mod shred;
mod tree;
mod write;

pub(crate) use read::Reader;
pub use write::write_parquet;
