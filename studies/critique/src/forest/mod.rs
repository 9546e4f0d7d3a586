//! The critique-revision forest (spec of the critique study, section 6.2): every problem has initial programs,
//! every program gets critiques and a revision for each, and those are criticised again, round after round.
//!
//! A round is a suite of episodes: one program, one critique, one revision, its tests ([`Round`]). So every node
//! is journalled as any episode is, is kept as it ends, and is played by its own random stream. [`Forest`] is
//! what the rounds lead to: which programs go on, what their paths measured, and the lines of the original's file
//! ([`Line`]).

mod grow;
mod initial;
mod line;
mod round;
mod start;

pub use grow::Forest;
pub use initial::initial_programs;
pub use line::{ForestError, Line, NodeType, read_forest};
pub use round::{Round, Votes};
pub use start::{Start, Started};
