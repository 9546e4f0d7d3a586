//! Problems of real datasets, and tasks made of them (spec of the critique study, section 1).

mod pair;
mod problem;
mod values;

pub use pair::{read_tasks, task_of_row};
pub use problem::{Problem, read_problems};
