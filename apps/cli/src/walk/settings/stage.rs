//! A supervised stage, as `[[sft.…]]` says it.

use learn::OptimizerConfig;
use serde::{Deserialize, Serialize};

/// Rows, and how they are trained on; `mix` is the study's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stage<Mix> {
    pub(crate) rows: usize,
    /// Rows of one optimizer step.
    pub(crate) batch_rows: usize,
    pub(crate) optimizer: OptimizerConfig,
    pub(crate) mix: Mix,
}

/// A stage apart from what its rows are.
#[derive(Clone, Copy)]
pub(crate) struct StageSize<'a> {
    pub(crate) rows: usize,
    pub(crate) batch_rows: usize,
    pub(crate) optimizer: &'a OptimizerConfig,
}

impl<Mix> Stage<Mix> {
    pub(crate) fn size(&self) -> StageSize<'_> {
        StageSize {
            rows: self.rows,
            batch_rows: self.batch_rows,
            optimizer: &self.optimizer,
        }
    }
}
