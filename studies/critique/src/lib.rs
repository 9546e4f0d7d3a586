//! The critique study (CTRL, Xie et al. 2025, arXiv 2502.03492).
//!
//! A critic reads a problem and a program, right or wrong, and writes a critique; a frozen reviser
//! rewrites the program from it; the sandbox runs the hidden tests; the pass is the critic's reward.

pub mod format;
mod make;
pub mod metrics;
mod play;
pub mod prompts;
mod study;
mod task;
pub mod tiny;

pub use make::{Checked, Made, MakeError, make_tasks};
pub use play::{CRITIC, Notes, Purpose, REVISER, RewardConfig, RewardForm};
pub use study::{Critique, notes_of};
pub use task::{Facts, Prompter, Public, Task};
