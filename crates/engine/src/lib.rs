//! The model: kernels with hand-written backward, optimizer, KV-cached continuous batching, Hugging Face checkpoints.

mod token_loss;

pub use token_loss::{RowScores, TokenLoss, TrainRow};
