//! The handle through which programs are run.

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::Ordering::Relaxed, mpsc},
    thread::JoinHandle,
};

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::{
    Config, Enforced, Job, RunOutcome, SandboxError, Tier, TierChoice,
    language::foreign,
    mailbox::{Mailbox, Pending},
    owner,
    python::find_python,
    slot::Setup,
    wire::Request,
};

/// Runs programs in jails. Cheap to clone; the last clone's drop ends the supervisor and waits for
/// its end.
#[derive(Clone, Debug)]
pub struct Sandbox {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    mailbox: Arc<Mailbox>,
    owner: Mutex<Option<JoinHandle<()>>>,
    tier: Tier,
    python_version: String,
    enforced: Enforced,
}

/// Counters since the start, and what is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxStats {
    pub runs: u64,
    /// Jobs that came back as [`SandboxError`].
    pub errors: u64,
    /// Slots, the first ones and those that replaced others.
    pub slots_started: u64,
    pub supervisors_started: u64,
    /// Jobs refused with [`SandboxError::Overloaded`]; no runs.
    pub refused: u64,
    /// Jobs that wait at this moment.
    pub queued: usize,
    /// Runs under way at this moment.
    pub running: usize,
    pub statuses: StatusCounts,
}

/// Runs by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusCounts {
    pub ok: u64,
    pub non_zero: u64,
    pub signal: u64,
    pub wall_timeout: u64,
    pub cpu_timeout: u64,
    pub memory: u64,
    pub output: u64,
    pub disk: u64,
}

impl Sandbox {
    /// Starts the supervisor and its slots; returns when the first slot is ready. Blocks for some
    /// tens of milliseconds.
    ///
    /// A workspace needs the walls of [`Tier::Namespaces`], and has one slot.
    pub fn start(mut config: Config) -> Result<Self, SandboxError> {
        if let Some(workspace) = &config.workspace {
            workspace.check(&config.readable)?;
            if let TierChoice::Exactly(tier @ (Tier::Landlock | Tier::Limits)) = config.tier {
                let detail = "a work tree cannot be copied on write there".to_owned();
                return Err(SandboxError::TierUnavailable { tier, detail });
            }
            config.tier = TierChoice::Exactly(Tier::Namespaces);
            config.slots = 1;
        }
        let python = find_python(config.python.as_deref(), &config.search)?;
        let mut readable = python.folders;
        readable.extend(foreign(config.readable.iter().cloned()));
        readable.sort();
        readable.dedup();
        let setup = Setup {
            config,
            python: python.executable,
            readable,
            parent: std::process::id(),
        };
        let failed = |detail: String| SandboxError::Supervisor { detail };
        let mailbox = Mailbox::new(&setup.config).map_err(|error| failed(error.to_string()))?;
        let (tell_started, started) = mpsc::channel();
        let owners = mailbox.clone();
        // The kernel ends the supervisor with the thread that started it, so this one lives as long.
        let owner = std::thread::Builder::new()
            .name("sandbox-owner".to_owned())
            .spawn(move || owner::own(setup, owners, tell_started))
            .map_err(|error| failed(error.to_string()))?;
        let (tier, python_version, enforced) = started
            .recv()
            .unwrap_or_else(|_| Err(failed("its owner ended".to_owned())))?;
        let owner = Mutex::new(Some(owner));
        Ok(Self {
            inner: Arc::new(Inner {
                mailbox,
                owner,
                tier,
                python_version,
                enforced,
            }),
        })
    }

    /// Runs `job` when a slot is free. The job that is due first goes first: at its deadline, or 10 s
    /// after it came where it has none. Dropping the future ends the run and frees its slot.
    pub async fn run(&self, job: Job) -> Result<RunOutcome, SandboxError> {
        let answer = Answer {
            receiver: self.submit(job)?,
            mailbox: &self.inner.mailbox,
        };
        answer.wait().await
    }

    /// The walls around every run.
    pub fn tier(&self) -> Tier {
        self.inner.tier
    }

    /// What holds the limits of every run, as far as its limits do not say otherwise; each outcome
    /// has its own.
    pub fn enforced(&self) -> &Enforced {
        &self.inner.enforced
    }

    /// Such as `3.11.2`.
    pub fn python_version(&self) -> &str {
        &self.inner.python_version
    }

    /// Jobs that it takes at a time, those that run and those that wait.
    pub fn places(&self) -> usize {
        let mailbox = &self.inner.mailbox;
        mailbox.limit.saturating_add(mailbox.slots)
    }

    pub fn stats(&self) -> SandboxStats {
        let mailbox = &self.inner.mailbox;
        let counters = &mailbox.counters;
        let (queued, running) = mailbox.load();
        let statuses = counters
            .statuses
            .each_ref()
            .map(|count| count.load(Relaxed));
        let [
            ok,
            non_zero,
            signal,
            wall_timeout,
            cpu_timeout,
            memory,
            output,
            disk,
        ] = statuses;
        SandboxStats {
            refused: counters.refused.load(Relaxed),
            queued,
            running,
            statuses: StatusCounts {
                ok,
                non_zero,
                signal,
                wall_timeout,
                cpu_timeout,
                memory,
                output,
                disk,
            },
            runs: counters.runs.load(Relaxed),
            errors: counters.errors.load(Relaxed),
            slots_started: counters.slots_started.load(Relaxed),
            supervisors_started: counters.supervisors_started.load(Relaxed),
        }
    }

    /// The process id of the supervisor, `None` between two of them. For tests that kill it.
    pub fn supervisor_pid(&self) -> Option<u32> {
        match self.inner.mailbox.counters.supervisor.load(Relaxed) {
            0 => None,
            pid => Some(pid),
        }
    }

    /// As [`Sandbox::run`], for threads outside any runtime.
    pub(crate) fn run_blocking(&self, job: Job) -> Result<RunOutcome, SandboxError> {
        self.submit(job)?
            .blocking_recv()
            .unwrap_or(Err(SandboxError::Closed))
    }

    fn submit(
        &self,
        job: Job,
    ) -> Result<oneshot::Receiver<Result<RunOutcome, SandboxError>>, SandboxError> {
        let deadline = job.deadline;
        let request = Request::new(job)?;
        let (answer, receiver) = oneshot::channel();
        self.inner.mailbox.push(Pending {
            request,
            deadline,
            answer,
        })?;
        Ok(receiver)
    }
}

/// A job under way; dropped early, the owner is told.
struct Answer<'a> {
    receiver: oneshot::Receiver<Result<RunOutcome, SandboxError>>,
    mailbox: &'a Mailbox,
}

impl Answer<'_> {
    async fn wait(mut self) -> Result<RunOutcome, SandboxError> {
        (&mut self.receiver)
            .await
            .unwrap_or(Err(SandboxError::Closed))
    }
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        if !self.receiver.is_terminated() {
            self.receiver.close();
            self.mailbox.abandon();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.mailbox.close();
        let owner = self
            .owner
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(owner) = owner {
            // It has nothing to say that matters now.
            let _ = owner.join();
        }
    }
}
