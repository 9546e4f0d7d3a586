//! The handle through which programs are run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Config, Job, RunOutcome, SandboxError, Tier};

/// Runs programs in jails. Cheap to clone; the last clone's drop ends the supervisor.
#[derive(Clone, Debug)]
pub struct Sandbox {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    tier: Tier,
    python_version: String,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxStats {
    pub runs: u64,
    /// Runs that came back as [`SandboxError`].
    pub errors: u64,
    /// Slots replaced, for age or after an anomaly.
    pub slots_replaced: u64,
    pub supervisors_started: u64,
}

impl Sandbox {
    /// Starts the supervisor and its slots; returns when the first slot is ready.
    pub fn start(_config: Config) -> Result<Self, SandboxError> {
        Err(SandboxError::Supervisor {
            detail: "unfinished".into(),
        })
    }

    /// Runs `job` when a slot is free, in order of arrival. Dropping the future ends the run.
    pub async fn run(&self, _job: Job) -> Result<RunOutcome, SandboxError> {
        Err(SandboxError::Closed)
    }

    pub fn tier(&self) -> Tier {
        self.inner.tier
    }

    /// Such as `3.11.2`.
    pub fn python_version(&self) -> &str {
        &self.inner.python_version
    }

    pub fn stats(&self) -> SandboxStats {
        SandboxStats::default()
    }
}
