//! The study with the real judge: what may be seen of a task, and what a reward can be had for.

#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

mod canary;
mod cheats;
mod forest;
mod pairs;
mod prepared;
mod programs;
mod stage;
