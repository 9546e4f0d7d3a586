//! Pure learning algorithms (advantage, loss, KL, aggregation, schedules) and the trainers that apply them.
//!
//! Reading order: [`AlgorithmConfig`] → [`advantages`] → [`batch_of_groups`] → [`Loss`] →
//! [`metrics`]; then [`Trainer`], the verbs that turn batches into weights, and [`EngineTrainer`].

pub mod metrics;

mod advantage;
mod aggregation;
mod batch;
mod config;
mod engine_trainer;
mod error;
mod kl;
mod loss;
mod loss_mode;
mod policy_loss;
mod schedule;
mod supervised;
mod trainer;

pub use advantage::{Advantage, Scored, advantages, is_uniform};
pub use aggregation::Aggregation;
pub use batch::{BatchStats, batch_of_groups};
pub use config::{AlgorithmConfig, KlConfig, OptimizerConfig, ZeroVariance};
pub use engine_trainer::EngineTrainer;
pub use error::{BatchError, ConfigError, TrainError};
pub use kl::KlEstimator;
pub use loss::Loss;
pub use loss_mode::LossMode;
pub use policy_loss::PolicyLoss;
pub use schedule::Schedule;
pub use supervised::SupervisedLoss;
pub use trainer::{Pass, Published, Step, Trainer};
