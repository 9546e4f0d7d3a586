//! The model: kernels with hand-written backward, optimizer, KV-cached continuous batching, Hugging Face checkpoints.
//!
//! Reading order: [`ModelConfig`] → [`Model`] → [`Engine`] (the threads) → [`Learner`] (training)
//! and [`Sampler`] (continuous batching), which share weights through `Arc<Model>`; [`Adapter`] (LoRA); [`ValueLearner`] (a
//! value function).

mod admission;
mod attend;
mod batch;
mod block;
mod buffer;
mod cache;
mod cache_pool;
mod check;
mod checkpoint;
mod config;
mod decode;
mod draw;
mod error;
mod init;
mod kernels;
mod layout;
mod learner;
mod lora;
mod model;
mod pass;
mod pool;
mod positions;
mod prefixes;
mod prompt_scores;
mod response;
mod sampler;
mod scheduler;
mod score;
#[cfg(test)]
mod testing;
mod token_loss;
mod truncate;
mod value;
mod workspace;

pub use checkpoint::{StoredAdapter, StoredFile, Survey, WeightFiles, WeightType};
pub use config::{Dtype, Family, ModelConfig, SlidingWindow};
pub use error::{EngineError, ModelError, RowError, SampleError};
pub use init::Initializer;
pub use learner::{AdamW, BatchReport, Learner, LearnerOptions, StepReport};
pub use lora::{Adapter, LoraConfig, LoraTarget};
pub use model::Model;
pub use pool::Engine;
pub use positions::RopeScaling;
pub use response::{Next, Sampled, Watch};
pub use sampler::{
    Done, PromptUsage, SampleExtras, SampleRequest, Sampler, SamplerOptions, Ticket,
};
pub use token_loss::{RowScores, TokenLoss, TrainRow};
pub use value::{ValueHead, ValueLearner, ValueLoss, ValueReport};
