//! Reports of whole, half and hostile runs.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails by these"
)]

mod fixture;
mod recall;
mod recall_fixture;
mod render;
mod rounds;
