//! Episodes of the study, played with policies that say what they are told to.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed unwrap is a failed test"
)]

mod chunk_questions;
mod episodes;
mod fixture;
mod four_roles;
mod gold;
mod info_gain;
mod judge;
mod lessons;
