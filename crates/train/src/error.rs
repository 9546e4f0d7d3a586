//! Why a loop stopped before its end.

use thiserror::Error;

#[derive(Debug, Error)]
pub enum TrainError {
    /// The caller asked for it; everything committed is kept.
    #[error("stopped on request")]
    Stopped,

    #[error(transparent)]
    Journal(#[from] journal::Error),

    #[error(transparent)]
    Trainer(#[from] learn::TrainError),

    #[error(transparent)]
    Rollout(#[from] rollout::RolloutError),

    #[error(transparent)]
    Batch(#[from] learn::BatchError),

    #[error("no policy is trained; name at least one")]
    NoPolicies,

    /// Its calls would be rows of both.
    #[error("the role `{role}` is trained twice; name it once, under one policy")]
    RoleTrainedTwice { role: String },

    #[error(
        "`{name}` names no policy: where several are trained, each has a name of its own of letters, \
         digits, `-` and `_`"
    )]
    PolicyName { name: String },

    /// Rows were lost or doubled between the episodes and the updates.
    #[error(
        "phase {phase}, step {step}, policy {policy}: {produced} rows were made and {consumed} were \
         trained on; this is a fault of the trainer"
    )]
    RowsLost {
        phase: String,
        step: u64,
        policy: String,
        produced: usize,
        consumed: usize,
    },

    #[error("a training example cannot be rendered: {0}")]
    Chat(#[from] chat::ChatError),

    /// The template renders a finished answer differently from the prompt that asks for it.
    #[error(
        "the chat template is not a prefix code: rendering with the answer does not begin with the \
         prompt, so the answer's tokens are unknown (example {index})"
    )]
    NotAPrefix { index: usize },

    /// A step done again came out differently: other code, another machine or another thread count.
    #[error(
        "phase {phase}, step {step}: `{metric}` was {committed} when it was committed and is {found} \
         now; a run is resumed with the same binary on the same kind of machine"
    )]
    NotReproduced {
        phase: String,
        step: u64,
        metric: String,
        committed: f64,
        found: f64,
    },

    #[error(
        "phase {phase}, step {step}: {skipped} optimizer steps in a row had no finite gradient; \
         lower the learning rate"
    )]
    Diverged {
        phase: String,
        step: u64,
        skipped: u64,
    },
}
