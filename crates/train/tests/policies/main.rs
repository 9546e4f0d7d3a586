//! Several trained roles: sharing one set of weights, or each with a policy of its own.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod kill;
mod shared_and_separate;
mod world;
