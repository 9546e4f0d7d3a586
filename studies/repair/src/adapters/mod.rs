//! Datasets and files of others.

mod records;

pub use records::{Record, records};
