//! The nouns of a run: tasks, messages, completions, calls, episodes, groups, outcomes, data, batches.
//!
//! Everything that crosses a border between two rooms of the house is declared here, and nothing
//! here does I/O, sleeps or reads a clock. Reading order: [`Message`] → [`Completion`] → [`Episode`]
//! → [`Outcome`] → [`Group`] → [`Datum`].

mod completion;
mod datum;
mod episode;
mod estimate;
mod interval;
mod log_line;
mod message;
mod outcome;
mod seed;

pub use completion::{BadSampling, Completion, Sampling, StopReason, TokenId, WeightVersion};
pub use datum::{Batch, Datum};
pub use episode::{Call, Episode, EpisodeId, Group, Said, StepKey, TaskId};
pub use estimate::Estimate;
pub use interval::{Cluster, bootstrap, pass_at_k, proportion};
pub use log_line::{LineLog, LogLine};
pub use message::{FunctionCall, Message, Speaker, ToolCall, ToolKind};
pub use outcome::{Fault, FaultKind, Outcome, Reward};
pub use seed::Seed;
