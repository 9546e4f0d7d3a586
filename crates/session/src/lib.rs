//! A repository that commands run in: one contract over the jail, containers, queues and other machines.
//!
//! A [`Backend`] starts [`Session`]s. A session is a folder, the work tree, in which commands run one
//! after the other and keep what they change; it can be read, written, patched, put aside as a
//! snapshot and brought back. What a command did is a [`CommandOutcome`]; what the machinery failed
//! to do is a [`SessionError`], and never the command's fault. What sessions hold is written down as
//! [`lease`]s, so that nothing outlives the program that started them for long.

mod apptainer;
mod backend;
mod command;
pub mod docker;
mod error;
mod image;
pub mod lease;
pub mod local;
mod patching;
pub mod queue;
pub mod ssh;
mod tree;
mod wire;

pub use apptainer::{Apptainer, ApptainerOptions, sif_name};
pub use backend::{Backend, Session, SnapshotId};
pub use command::{Command, CommandOutcome};
pub use error::SessionError;
pub use image::{Capabilities, Enforcement, Image, SnapshotKind};
pub use patching::PatchError;
