//! The supervised and the reinforcement learning loop, both resumable from the journal.
//!
//! A loop commits one journal record a step. A resumed loop loads the newest checkpoint at or before
//! the last committed step, does the updates between the two again (reinforcement learning from the
//! journalled episodes, without sampling), checks that nothing differs, and goes on with the very
//! batch that would have come next.

mod conversations;
mod curriculum;
mod error;
mod metrics;
mod parts;
mod policies;
mod policy_update;
mod progress;
mod reinforce;
mod supervised;
mod value;

pub use conversations::conversations_to_rows;
pub use error::TrainError;
pub use parts::MiniBatchUnit;
pub use policies::TrainedPolicy;
pub use progress::{StepDone, Stop};
pub use reinforce::{Reinforce, ReinforceConfig};
pub use supervised::{Example, Supervised, SupervisedStage, examples_to_rows};
