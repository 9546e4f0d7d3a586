//! The study against real sandboxes, in one program: what it links is large.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "what fails is a failed test"
)]

mod adapters;
mod builtin;
mod container;
mod defects;
mod grading;
mod limits;
mod log_parsers;
#[path = "place/loops.rs"]
mod loops;
mod mutate;
mod patch_replies;
mod place;
mod planner;
mod plugins;
mod repair_loop;
mod replies;
mod run_tests;
mod search;
