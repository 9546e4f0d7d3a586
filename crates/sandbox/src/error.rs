//! What the machinery failed to do. Never a program's fault, and never a reward.

use crate::Tier;

/// An infrastructure failure: the program was not run, or its outcome is unknown.
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
