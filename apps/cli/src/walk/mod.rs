//! The walk through a run: tasks, tokenizer, supervised stages, evaluations, reinforcement, report. Every
//! phase asks the journal first whether it was done before.
//!
//! What walks of all studies share lies here; a study's own tasks, rows, roles, measures and words lie in
//! a folder of its own. A new study is a folder with a [`StudyWalk`] and its line in `study.rs`.

mod adapters;
mod checkpoints;
pub(crate) mod critique;
pub(crate) mod endpoint;
mod engines;
mod evaluate;
mod frame;
mod model_source;
mod recall;
mod reinforce;
pub(crate) mod repair;
mod settings;
mod study;
mod supervise;
mod tasks;
mod vocabulary;

pub(crate) use engines::Engines;
pub(crate) use frame::Frame;
pub(crate) use settings::{Common, PolicySettings, StageSize, check_seconds};
pub(crate) use study::{Again, Commands, StudyWalk, load};
