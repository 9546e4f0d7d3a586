//! What can be wrong with the input of learning.

use std::path::PathBuf;

use record::{EpisodeId, StepKey, TaskId};

/// A group that cannot become training data. Every variant names the episode.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BatchError {
    /// A reward that is NaN or infinite. It would poison its whole group, so nothing is guessed.
    #[error("episode {episode} of task {task}: the reward is {reward}; rewards must be finite")]
    RewardNotFinite {
        episode: EpisodeId,
        task: TaskId,
        reward: f64,
    },
    /// A step reward that is NaN or infinite. It would poison all steps that it is compared with.
    #[error("step {step} of task {task}: the step reward is {reward}; step rewards must be finite")]
    StepRewardNotFinite {
        step: StepKey,
        task: TaskId,
        reward: f64,
    },
    /// The policy recorded no log-probs, or not one per sampled token: it cannot be trained on.
    #[error(
        "episode {episode} of task {task}, call {call} of role {role}: {tokens} sampled tokens but \
         {logprobs} log-probs; only a role whose policy reports log-probs can be trained"
    )]
    LogprobsMissing {
        episode: EpisodeId,
        task: TaskId,
        role: String,
        call: usize,
        tokens: usize,
        logprobs: usize,
    },
    /// A recorded log-prob that is NaN or infinite.
    #[error("episode {episode} of task {task}, call {call} of role {role}: log-prob {logprob}")]
    LogprobNotFinite {
        episode: EpisodeId,
        task: TaskId,
        role: String,
        call: usize,
        logprob: f32,
    },
    /// A sampled token with nothing before it has no probability to train.
    #[error("episode {episode} of task {task}, call {call} of role {role}: the prompt is empty")]
    EmptyPrompt {
        episode: EpisodeId,
        task: TaskId,
        role: String,
        call: usize,
    },
}

/// A setting outside what it may be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("`{key}` is {value}, but it must be {must}")]
pub struct ConfigError {
    pub key: &'static str,
    pub value: String,
    pub must: &'static str,
}

/// Why a trainer did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// No token of the batch carries loss, so there is nothing to learn.
    #[error("no token of the batch carries loss; skip the step or sample more groups")]
    EmptyBatch,
    /// The loss has a KL term, but the trainer was made without a reference policy.
    #[error("the trainer has no reference policy; give it one or set kl.coefficient to 0")]
    NoReference,
    /// The advantages are made from values, but nothing gives any.
    #[error(
        "advantages by `gae` need a value function; say in the recipe how it is trained, [rl.value]"
    )]
    NoValues,
    /// A checkpoint of another model.
    #[error(
        "{}: this checkpoint is of a model of another shape; the run and its checkpoint must agree",
        directory.display()
    )]
    AnotherShape { directory: PathBuf },
    /// A row that the model cannot run.
    #[error(transparent)]
    Row(#[from] engine::RowError),
    /// A checkpoint that cannot be written or read.
    #[error(transparent)]
    Checkpoint(#[from] engine::ModelError),
    /// A trainer on another machine failed.
    #[error("the training service failed: {0}")]
    Service(String),
}
