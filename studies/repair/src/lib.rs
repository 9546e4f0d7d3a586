//! The repair study: a planner explores the code graph of a repository, keeps a memory of it and hands a
//! plan to a patch model; the patch is applied in a sandbox, and the tests decide (spec of the repair
//! study).
//!
//! Reading order: [`Task`], [`Workplace`](workplace::Workplace), [`PatchModel`](patch_model::PatchModel).

pub mod action;
pub mod adapters;
mod builtin;
mod checkout;
pub mod contracts;
pub mod environment;
pub mod evaluation;
mod gold_patch;
pub mod grading;
mod markdown;
pub mod metrics;
pub mod mutate;
pub mod patch_model;
pub mod planner;
pub mod play;
mod remembered;
pub mod repair_loop;
pub mod repairer;
pub mod search;
mod source_store;
mod study;
mod task;
mod tasks_file;
mod test_files;
pub mod tiny;
pub mod wire;
pub mod workplace;

pub use builtin::{PACKAGES, Package};
pub use checkout::{Checkout, CheckoutError, is_left_out};
pub use remembered::Remembered;
pub use source_store::{KeptSources, MAX_MIB, SourceStore, StoreError};
pub use study::{Repair, RepairConfig, Testbeds, Watch};
pub use task::{Checks, Facts, Gold, Issue, Place, Public, Task, TestFramework};
pub use tasks_file::{read_tasks, task_of_row, write_tasks};
