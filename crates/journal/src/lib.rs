//! The run directory: append-only log, episodes, checkpoints, replay. The only crate that writes there.
//!
//! ```text
//! recipe.toml  recipe.hash      what was asked for
//! journal.log                   the truth: one fsynced record a step (see [`Entry`])
//! episodes/  checkpoints/       whole before the record that names them
//! metrics.jsonl  summary.json   views, rebuilt from the journal whenever the run is opened
//! logs/events.jsonl  logs/test_runs.jsonl    line logs, cut on opening to what is committed or kept
//! report.html  tasks/           written by request
//! ```
//!
//! A process may die at any instruction. [`RunDir::open`] then finds every committed step, cuts the
//! half-written record, removes files that no record names, and rebuilds the views; nothing
//! committed is lost and nothing is there twice. [`RunReader`] looks at a run, also at one that is
//! being written, without touching it.

mod checkpoint;
mod entry;
mod episodes;
mod error;
mod files;
mod kept;
mod log;
mod reader;
mod recovery;
mod replay;
mod run_dir;
mod state;
mod summary;
mod test_run;
mod views;

pub use entry::{
    Checkpoint, Entry, EpisodesRef, Evaluation, LogSizes, Metrics, PhaseEnded, PhaseStarted,
    Resumed, RunStarted, Stamped, Step,
};
pub use error::{Error, Result};
pub use kept::{Kept, KeptEpisodes};
pub use reader::{RunReader, write_report};
pub use replay::Replay;
pub use run_dir::RunDir;
pub use summary::{Summary, SummaryEvaluation};
pub use test_run::{TestResult, TestRun};
