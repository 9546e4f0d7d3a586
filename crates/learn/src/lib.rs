//! Pure learning algorithms (advantage, loss, KL, aggregation, schedules) and the trainers that apply them.
//!
//! Reading order: [`AlgorithmConfig`] → [`advantages`] → [`batch_of_groups`] → [`Loss`] →
//! [`metrics`]; then [`Trainer`], the verbs that turn batches into weights, and [`EngineTrainer`]; for PPO
//! [`ValueTrainer`] beside it.

pub mod metrics;

mod advantage;
mod aggregation;
pub mod balance;
mod batch;
mod combination;
mod config;
mod covariance;
mod engine_trainer;
mod engine_value_trainer;
mod error;
pub mod gae;
mod kl;
mod kl_controller;
mod loss;
mod loss_mode;
pub mod pack;
mod policy_loss;
mod rewards;
pub mod rollout_correction;
mod schedule;
mod step_advantage;
mod supervised;
mod trainer;
mod value;

pub use advantage::{Advantage, Scored, advantages, is_uniform};
pub use aggregation::Aggregation;
pub use batch::{BatchStats, batch_of_groups, rewards_of_groups, tells_apart};
pub use config::{
    AlgorithmConfig, KlConfig, KlPlacement, OptimizerConfig, Singleton, ZeroVariance,
};
pub use covariance::{CovarianceConfig, covariances};
pub use engine_trainer::EngineTrainer;
pub use engine_value_trainer::EngineValueTrainer;
pub use error::{BatchError, ConfigError, TrainError};
pub use kl::KlEstimator;
pub use kl_controller::KlController;
pub use loss::Loss;
pub use loss_mode::LossMode;
pub use policy_loss::PolicyLoss;
pub use rewards::{Filled, Rewards, weigh};
pub use rollout_correction::RolloutCorrection;
pub use schedule::Schedule;
pub use step_advantage::{StepBaseline, StepConfig, StepStats, StepValue, step_advantages};
pub use supervised::SupervisedLoss;
pub use trainer::{Pass, Published, Step, Trainer};
pub use value::{ClippedValueLoss, ValueConfig, ValuePass, ValueTrainer};
