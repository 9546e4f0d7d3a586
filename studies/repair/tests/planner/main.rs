//! What planners write, what the environment makes of it, and whole episodes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails is a failed test"
)]

mod episodes;
mod exploring;
mod guards;
mod limits;
#[path = "../place/mod.rs"]
mod place;
mod remembering;
mod replies;
mod round_trip;
mod stage;
