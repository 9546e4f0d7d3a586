//! Runs groups of episodes under budgets and deadlines; every member is accounted for.
//!
//! A study implements [`Study`]: one async function that plays one episode. [`Runner`] plays many of
//! them at once on one tokio runtime. There is no barrier inside a step: an episode whose first
//! call is answered goes on to its next while others still decode. The engine's scheduler and the
//! sandbox's slots are the only queues.
//!
//! Faults are never rewards: an infrastructure fault is retried once, here and nowhere else; an
//! episode that still has no verdict stays in its group with a faulted [`record::Outcome`], is
//! counted in [`Tally`], and past a threshold the step stops with an error.

mod context;
mod overlap;
mod roles;
mod runner;
mod study;
mod tally;

pub use context::{Answer, Cx, Tools};
pub use overlap::Spent;
pub use roles::{Answers, Role, Roles};
pub use runner::{Options, Progress, RolloutError, Runner};
pub use study::{Played, Study, TaskRow};
pub use tally::Tally;
