//! Files of rows, read and written.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failed unwrap is a failed test, and what is skipped is said"
)]

mod json;
mod parquet;
mod pyarrow;
