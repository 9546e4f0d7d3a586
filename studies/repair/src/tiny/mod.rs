//! Lessons for a planner that points: lists of suspects that no run of tests has made, an issue, and what an uneven
//! teacher points at.
//!
//! Names are those of the training packages or made up; what tests are said to tell of them is drawn, so that there is
//! no bug behind a lesson and nothing in it to know by heart. The teacher says what it goes by and then points. What it
//! had better go by is for reinforcement to find out.

mod lessons;
mod names;
mod teacher;
mod world;

pub use lessons::{Lesson, Lessons};
pub use teacher::{Grounds, Mix};
