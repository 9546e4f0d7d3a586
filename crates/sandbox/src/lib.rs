//! Runs foreign programs in a jail and says what happened. The only crate that starts foreign processes.
//!
//! ```text
//! this process ──▶ supervisor (its own executable again, one thread, small)
//!                    └─▶ slot × N: user, pid, mount, net namespaces; read-only root
//!                          ├─▶ zygote: a warm Python that forks one child per run
//!                          └─▶ run: fresh pid, mount, ipc, uts namespaces, /tmp and /box
//! ```
//!
//! [`Sandbox::start`] re-executes the running binary as the supervisor: any program that links this
//! crate is its own supervisor, test binaries included (see `hook`). A slot is pid 1 of its own pid
//! namespace, so the kernel ends everything in it when the slot, the supervisor or this process
//! dies, however it dies.
//!
//! What a program did is a [`RunOutcome`]; what the machinery failed to do is a [`SandboxError`],
//! and never a program's fault.

mod abandoned;
mod check;
mod config;
mod enforced;
mod error;
pub mod host;
mod job;
mod language;
mod outcome;
mod probe;
mod sandbox;
mod workspace;

mod mailbox;
mod owner;
mod queue;
mod wire;

mod capture;
mod files;
mod groups;
mod hierarchy;
mod hook;
mod ids;
mod removal;
mod run;
mod scratch;
mod slot;
mod supervisor;
mod watchdog;
mod zygote;

mod client;
mod confine;
mod disk;
mod filter;
mod jail;
mod python;
mod sys;

pub use abandoned::remove_abandoned;
pub use capture::Capture;
pub use check::{MAX_FETCHED_FILES, MAX_FILES};
pub use config::{Config, Tier, TierChoice};
pub use enforced::{Enforced, Mechanism};
pub use error::SandboxError;
pub use files::MAX_FETCHED;
pub use job::{Build, InputFile, Job, Limits, Program};
pub use language::{Language, Toolchain, Toolchains};
pub use outcome::{Captured, FetchedFile, NotFetched, RunOutcome, Status};
pub use probe::{Probe, PythonReport, TierReport, probe};
pub use sandbox::{Sandbox, SandboxStats, StatusCounts};
pub use wire::MAX_JOB;
pub use workspace::{WorkTree, Workspace, remove_tree};
