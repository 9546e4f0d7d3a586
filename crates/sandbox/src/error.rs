//! What the machinery failed to do. Never a program's fault, and never a reward.

use std::time::Duration;

use crate::Tier;

/// The program was not run, or its outcome is unknown: an infrastructure failure, or a job that asks
/// for what cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SandboxError {
    /// No usable interpreter.
    #[error(
        "no usable Python 3 found: {detail}\nhint: install python3 (3.8 or newer), or set the sandbox's `python` to its path"
    )]
    NoPython { detail: String },
    /// The requested walls cannot be built on this machine.
    #[error("the sandbox tier {tier} does not work here: {detail}")]
    TierUnavailable { tier: Tier, detail: String },
    /// Only weak walls can be built here and they were not asked for.
    #[error(
        "refusing to run untrusted code at tier {tier}: {detail}\nhint: allow user namespaces (see `etude doctor`), or opt in with allow_weak_tier"
    )]
    WeakTier { tier: Tier, detail: String },
    /// The supervisor could not be started, again and again.
    #[error("the sandbox supervisor did not start: {detail}")]
    Supervisor { detail: String },
    /// The slot died under the run; it is being replaced.
    #[error("sandbox slot {slot} was lost during the run: {detail}")]
    SlotLost { slot: usize, detail: String },
    /// The jail of one run could not be set up.
    #[error("the jail of a run could not be set up in slot {slot}: {detail}")]
    Setup { slot: usize, detail: String },
    /// The job asks for what no run may have. Nothing was run; asking again changes nothing.
    #[error("the job's {field} is refused: {value}: {detail}")]
    Invalid {
        /// Such as `files` or `limits.wall`.
        field: &'static str,
        /// The path, name or number that is wrong.
        value: String,
        detail: String,
    },
    /// As many jobs are queued as [`Config::queue_limit`](crate::Config) allows.
    #[error(
        "{queued} jobs are queued already\nhint: try again in {:.1} s, or raise the sandbox's queue_limit",
        retry_after.as_secs_f64()
    )]
    Overloaded {
        queued: usize,
        /// Until half of the queue is worked off, going by recent runs.
        retry_after: Duration,
    },
    /// A language needs a program that this machine lacks.
    #[error("{language} programs need {program}, which was not found\nhint: {hint}")]
    MissingProgram {
        language: &'static str,
        program: &'static str,
        hint: String,
    },
    /// The job waited in the queue past its deadline.
    #[error("the job was still queued at its deadline")]
    Deadline,
    /// The job is larger than the sandbox carries.
    #[error("the job is {bytes} bytes, more than the {limit} that one run may carry")]
    TooLarge { bytes: usize, limit: usize },
    /// The sandbox has been shut down.
    #[error("the sandbox has been shut down")]
    Closed,
}
