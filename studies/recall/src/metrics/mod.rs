//! How good answers are, and what episodes measured: metrics of texts, grades, and the study's measures.

pub mod benchmarks;
mod grade;
pub mod locomo;
mod measures;
pub mod overlap;
pub mod porter;
mod sample;
pub mod text;

pub use grade::{Asked, Metric, grade, grade_turn};
pub use measures::{MemorySize, memory_over_turns, of_evaluation, of_step, paired_gain};

#[cfg(test)]
mod tests;
