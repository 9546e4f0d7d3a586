//! What planners write and what the environment makes of it.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod replies;
mod round_trip;
