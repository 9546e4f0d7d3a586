//! Stage I: critiques to learn from, written by a model that is told what running the program has shown (spec of
//! the critique study, section 1.3).

mod rows;
mod study;

pub use rows::{Samples, samples};
pub use study::{Assignment, Synthesis, SynthesisNotes};
