//! The run directory from outside: what survives which damage, and what is refused.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails by these"
)]

mod damage;
mod fixture;
mod kept;
mod kill;
mod round_trip;
mod views;
mod writers;
