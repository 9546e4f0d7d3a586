//! Problems of real datasets, and tasks made of them (spec of the critique study, section 1).

mod attempt;
mod counts;
mod lessons;
mod overlap;
mod pair;
mod prepare;
mod problem;
mod python;
mod sources;
mod tried;
mod values;

pub use attempt::{Attempt, read_attempts};
pub(crate) use attempt::{GENERATION, REVISION};
pub use counts::Counts;
pub use lessons::{LessonOptions, LessonRow, filter_lessons};
pub use overlap::HeldOut;
pub use pair::{read_tasks, task_of_row};
pub use prepare::{CountTokens, Options, Preparation, Prepared, Step};
pub use problem::{Problem, read_problems};
pub use sources::Source;
pub use tried::{StrayCritique, Tried, lesson_rows, pair_rows};
