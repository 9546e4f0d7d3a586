//! The critique study (CTRL, Xie et al. 2025, arXiv 2502.03492).
//!
//! A critic reads a problem and a program, right or wrong, and writes a critique; a frozen reviser
//! rewrites the program from it; the sandbox runs the hidden tests; the pass is the critic's reward.

pub mod data;
pub mod forest;
pub mod format;
mod hint;
pub mod judging;
mod lesson;
mod make;
pub mod metrics;
mod play;
pub mod prompts;
mod reward;
mod study;
pub mod suspicion;
pub mod synthesis;
mod task;
pub mod tiny;

pub use hint::hint;
pub use lesson::{CriticLesson, lesson_order};
pub use make::{Checked, Made, MakeError, make_tasks};
pub use play::{CRITIC, GENERATOR, Notes, Purpose, REVISER};
pub use reward::{RewardConfig, RewardForm};
pub use study::{Critique, notes_of};
pub use task::{Facts, Prompter, Public, Task};
