//! The repair study: a planner explores the code graph of a repository, keeps a memory of it and hands a
//! plan to a patch model; the patch is applied in a sandbox, and the tests decide (spec of the repair
//! study).
//!
//! Reading order: [`Task`], [`Workplace`](workplace::Workplace), [`PatchModel`](patch_model::PatchModel).

pub mod patch_model;
mod task;
pub mod workplace;

pub use task::{Checks, Facts, Gold, Issue, Place, Public, Task, TestFramework};
