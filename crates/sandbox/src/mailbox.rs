//! Where jobs wait, and what is told about them.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicBool, AtomicU32, AtomicU64,
            Ordering::{Relaxed, Release},
        },
    },
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use crate::{Config, RunOutcome, SandboxError, queue::Queue, sys, wire::Request};

/// A queued job. Whoever waits for it may go away.
pub(crate) struct Pending {
    pub(crate) request: Request,
    pub(crate) deadline: Option<Instant>,
    pub(crate) answer: oneshot::Sender<Result<RunOutcome, SandboxError>>,
}

/// What the owner is told by handles, which then wake it.
#[derive(Debug)]
pub(crate) struct Mailbox {
    waiting: Mutex<Waiting>,
    pub(crate) wake: OwnedFd,
    pub(crate) closed: AtomicBool,
    /// Somebody stopped waiting for an answer.
    pub(crate) abandoned: AtomicBool,
    /// Jobs that may wait.
    pub(crate) limit: usize,
    pub(crate) slots: usize,
    pub(crate) counters: Counters,
}

#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) queue: Queue<Pending>,
    pub(crate) running: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) runs: AtomicU64,
    pub(crate) errors: AtomicU64,
    /// Outcomes by status, as in [`StatusCounts`](crate::StatusCounts).
    pub(crate) statuses: [AtomicU64; 8],
    pub(crate) refused: AtomicU64,
    pub(crate) slots_started: AtomicU64,
    pub(crate) supervisors_started: AtomicU64,
    /// The present supervisor's process, 0 when there is none.
    pub(crate) supervisor: AtomicU32,
    /// Microseconds that recent runs kept their slot, on average; 0 before the first.
    typical_run: AtomicU64,
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending")
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl Mailbox {
    pub(crate) fn new(config: &Config) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            waiting: Mutex::default(),
            wake: sys::event_fd()?,
            closed: false.into(),
            abandoned: false.into(),
            limit: config.queue_limit,
            slots: config.slots,
            counters: Counters::default(),
        }))
    }

    pub(crate) fn push(&self, pending: Pending) -> Result<(), SandboxError> {
        let mut waiting = self.waiting();
        let queued = waiting.queue.len();
        // A job for an idle slot is queued for a moment only.
        if queued + waiting.running >= self.limit.saturating_add(self.slots) {
            self.counters.refused.fetch_add(1, Relaxed);
            return Err(SandboxError::Overloaded {
                queued,
                retry_after: self.retry_after(queued),
            });
        }
        let deadline = pending.deadline;
        waiting.queue.push(pending, deadline, Instant::now());
        drop(waiting);
        self.wake();
        Ok(())
    }

    /// Jobs that wait and jobs that run.
    pub(crate) fn load(&self) -> (usize, usize) {
        let waiting = self.waiting();
        (waiting.queue.len(), waiting.running)
    }

    pub(crate) fn next_waiting(&self) -> Option<Pending> {
        self.waiting().queue.pop()
    }

    /// Until half of the queue is worked off.
    fn retry_after(&self, queued: usize) -> Duration {
        const UNKNOWN: Duration = Duration::from_millis(100);
        const LEAST: Duration = Duration::from_millis(10);
        const MOST: Duration = Duration::from_secs(60);
        let run = match self.counters.typical_run.load(Relaxed) {
            0 => UNKNOWN,
            microseconds => Duration::from_micros(microseconds),
        };
        let rounds = (queued / 2 + 1).div_ceil(self.slots.max(1));
        let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
        run.saturating_mul(rounds).clamp(LEAST, MOST)
    }

    /// Makes the owner look for answers that nobody waits for.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Release);
        self.wake();
    }

    fn wake(&self) {
        let _ = sys::write_all(self.wake.as_fd(), &1u64.to_ne_bytes());
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Relaxed);
        self.wake();
    }

    pub(crate) fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // It is consistent between any two of its operations.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counters {
    /// Takes note of an answered run that kept its slot for `time`.
    pub(crate) fn note(&self, answer: &Result<RunOutcome, SandboxError>, time: Duration) {
        self.runs.fetch_add(1, Relaxed);
        match answer {
            Ok(outcome) => self.statuses[outcome.status.index()].fetch_add(1, Relaxed),
            Err(_) => self.errors.fetch_add(1, Relaxed),
        };
        // Only the owner writes it.
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1);
        let typical = match self.typical_run.load(Relaxed) {
            0 => time,
            typical => (typical - typical / 8).saturating_add(time / 8).max(1),
        };
        self.typical_run.store(typical, Relaxed);
    }
}
