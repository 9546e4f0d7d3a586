//! The thread that owns the supervisor: queues jobs, gives them to idle slots, and starts a new
//! supervisor when the old one is gone.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::Ordering::{Acquire, Relaxed},
        mpsc,
    },
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use crate::{
    Enforced, Limits, RunOutcome, SandboxError, Tier, TierChoice, hook,
    mailbox::{Mailbox, Pending},
    scratch,
    slot::Setup,
    sys,
    wire::{self, Event, Failure},
};

/// The tier, the interpreter's version and what holds the limits, once the first slot is ready.
pub(crate) type Started = Result<(Tier, String, Enforced), SandboxError>;

/// Supervisors that end before a slot is ready, one after the other, before jobs fail.
const MAX_FAILURES: u32 = 3;

/// Past a run's wall time, for its slot to answer before it is given up.
const SLOT_GRACE: Duration = Duration::from_secs(30);

/// Runs until the mailbox is closed. Tells `started` how the first start went.
pub(crate) fn own(mut setup: Setup, mailbox: Arc<Mailbox>, started: mpsc::Sender<Started>) {
    setup.parent = std::process::id();
    let mut owner = Owner {
        setup,
        mailbox,
        supervisor: None,
        slots: Vec::new(),
        failures: 0,
        started: Some(started),
    };
    while !owner.mailbox.closed.load(Relaxed) {
        if let Err(error) = owner.step() {
            owner.lose_supervisor(&error.to_string());
        }
        if owner.started.is_some() && owner.failures >= 1 {
            // The first start failed, and was reported.
            break;
        }
    }
    owner.end();
}

struct Owner {
    setup: Setup,
    mailbox: Arc<Mailbox>,
    supervisor: Option<Supervisor>,
    /// By index; `None` until ready.
    slots: Vec<Option<SlotLink>>,
    failures: u32,
    started: Option<mpsc::Sender<Started>>,
}

struct Supervisor {
    process: Child,
    control: OwnedFd,
}

struct SlotLink {
    socket: OwnedFd,
    enforced: Enforced,
    /// Made so far.
    runs: u32,
    run: Option<InFlight>,
}

struct InFlight {
    /// Of the program and its build.
    limits: (Limits, Option<Limits>),
    outgoing: Vec<u8>,
    sent: usize,
    incoming: Vec<u8>,
    started: Instant,
    give_up: Instant,
    answer: oneshot::Sender<Result<RunOutcome, SandboxError>>,
}

impl Owner {
    fn step(&mut self) -> io::Result<()> {
        if self.supervisor.is_none() {
            self.start_supervisor()?;
        }
        self.drop_unwanted();
        self.count_running();
        self.dispatch();
        let mut fds = vec![sys::interest(&self.mailbox.wake, libc::POLLIN)];
        if let Some(supervisor) = &self.supervisor {
            fds.push(sys::interest(&supervisor.control, libc::POLLIN));
        }
        for link in self.slots.iter().flatten() {
            let sending = link
                .run
                .as_ref()
                .is_some_and(|run| run.sent < run.outgoing.len());
            let events = if sending {
                libc::POLLIN | libc::POLLOUT
            } else {
                libc::POLLIN
            };
            fds.push(sys::interest(&link.socket, events));
        }
        sys::poll(&mut fds, self.next_timeout())?;
        if fds[0].revents != 0 {
            let _ = sys::read(self.mailbox.wake.as_fd(), &mut [0; 8]);
        }
        if fds.get(1).is_some_and(|fd| fd.revents != 0) {
            self.hear_supervisor()?;
        }
        for index in 0..self.slots.len() {
            self.serve_slot(index);
        }
        self.count_running();
        Ok(())
    }

    fn count_running(&self) {
        let links = self.slots.iter().flatten();
        self.mailbox.waiting().running = links.filter(|link| link.run.is_some()).count();
    }

    fn start_supervisor(&mut self) -> io::Result<()> {
        let (control, theirs) = sys::socket_pair(libc::SOCK_SEQPACKET)?;
        let (program, name) = hook::supervisor_command();
        let setup = serde_json::to_string(&self.setup)?;
        #[expect(
            clippy::disallowed_methods,
            reason = "this crate starts foreign processes"
        )]
        let mut command = Command::new(program);
        let process = command
            .arg0(name)
            .arg(setup)
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let counters = &self.mailbox.counters;
        counters.supervisors_started.fetch_add(1, Relaxed);
        counters.supervisor.store(process.id(), Relaxed);
        self.supervisor = Some(Supervisor { process, control });
        self.slots = (0..self.setup.config.slots).map(|_| None).collect();
        Ok(())
    }

    fn hear_supervisor(&mut self) -> io::Result<()> {
        let Some(supervisor) = &self.supervisor else {
            return Ok(());
        };
        let mut buffer = vec![0; 64 << 10];
        let (n, socket) = sys::receive_with_fd(supervisor.control.as_fd(), &mut buffer)?;
        if n == 0 {
            return Err(io::Error::other("the supervisor ended"));
        }
        match (serde_json::from_slice::<Event>(&buffer[..n])?, socket) {
            (
                Event::Slot {
                    index,
                    tier,
                    python_version,
                    enforced,
                },
                Some(socket),
            ) => {
                sys::set_nonblocking(socket.as_fd())?;
                let Some(place) = self.slots.get_mut(index) else {
                    return Err(io::Error::other("a slot that was not asked for"));
                };
                *place = Some(SlotLink {
                    socket,
                    enforced: enforced.clone(),
                    runs: 0,
                    run: None,
                });
                self.failures = 0;
                self.mailbox.counters.slots_started.fetch_add(1, Relaxed);
                if let Some(started) = self.started.take() {
                    // What this sandbox was said to be is what every later supervisor must be.
                    self.setup.config.tier = TierChoice::Exactly(tier);
                    let _ = started.send(Ok((tier, python_version, enforced)));
                }
                Ok(())
            }
            (Event::Failed(failure), _) => {
                let error = match failure {
                    Failure::Unavailable { tier, detail } => {
                        SandboxError::TierUnavailable { tier, detail }
                    }
                    Failure::Weak { tier, detail } => SandboxError::WeakTier { tier, detail },
                    Failure::Other { detail } => SandboxError::Supervisor { detail },
                };
                if let Some(started) = &self.started {
                    let _ = started.send(Err(error.clone()));
                }
                Err(io::Error::other(error.to_string()))
            }
            (Event::Slot { .. }, None) => Err(io::Error::other("a slot without its socket")),
        }
    }

    /// Forgets jobs whose waiters are gone, and fails those past their deadline. A run that nobody
    /// waits for is ended with its slot, which the supervisor replaces.
    fn drop_unwanted(&mut self) {
        let now = Instant::now();
        let mut waiting = self.mailbox.waiting();
        while let Some(pending) = waiting.queue.pop_expired(now) {
            let _ = pending.answer.send(Err(SandboxError::Deadline));
        }
        if self.mailbox.abandoned.swap(false, Acquire) {
            waiting.queue.retain(|pending| !pending.answer.is_closed());
        }
        drop(waiting);
        for (index, place) in self.slots.iter_mut().enumerate() {
            let Some(run) = place.as_mut().and_then(|link| link.run.as_mut()) else {
                continue;
            };
            if run.give_up <= now {
                let run = place.take().and_then(|link| link.run);
                let detail = "it did not answer in time".to_owned();
                self.mailbox.counters.errors.fetch_add(1, Relaxed);
                let lost = SandboxError::SlotLost {
                    slot: index,
                    detail,
                };
                if let Some(run) = run {
                    let _ = run.answer.send(Err(lost));
                }
            } else if run.answer.is_closed() {
                *place = None;
            }
        }
    }

    fn dispatch(&mut self) {
        for index in 0..self.slots.len() {
            let Some(link) = self.slots[index].as_mut().filter(|link| link.run.is_none()) else {
                continue;
            };
            let mut waiting = self.mailbox.waiting();
            let Some(Pending {
                request, answer, ..
            }) = waiting.queue.pop()
            else {
                return;
            };
            waiting.running += 1;
            drop(waiting);
            let started = Instant::now();
            let build = request.build.as_ref().map(|build| build.limits);
            link.run = Some(InFlight {
                limits: (request.program.limits, build),
                outgoing: request.encode(),
                sent: 0,
                incoming: Vec::new(),
                started,
                give_up: started + request.wall() + SLOT_GRACE,
                answer,
            });
            self.serve_slot(index);
        }
    }

    /// Moves bytes to and from a slot as far as they go.
    fn serve_slot(&mut self, index: usize) {
        let Some(link) = self.slots[index].as_mut() else {
            return;
        };
        match link.exchange() {
            Ok(None) => {}
            Ok(Some(reply)) => {
                let mut outcome = reply.map_err(|detail| SandboxError::Setup {
                    slot: index,
                    detail,
                });
                if let (Ok(outcome), Some(run)) = (&mut outcome, &link.run) {
                    let (limits, build_limits) = &run.limits;
                    outcome.enforced = link.enforced.of_run(limits);
                    if let (Some(build), Some(limits)) = (&mut outcome.build, build_limits) {
                        build.enforced = link.enforced.of_run(limits);
                    }
                }
                link.runs += 1;
                let spent = outcome.is_err() || link.runs >= self.setup.config.runs_per_slot;
                if let Some(run) = link.run.take() {
                    let counters = &self.mailbox.counters;
                    counters.note(&outcome, run.started.elapsed());
                    let _ = run.answer.send(outcome);
                }
                if spent {
                    // Closing the socket ends the slot, and the supervisor replaces it.
                    self.slots[index] = None;
                }
            }
            Err(error) => {
                let run = self.slots[index].take().and_then(|link| link.run);
                if let Some(run) = run {
                    self.mailbox.counters.errors.fetch_add(1, Relaxed);
                    let detail = error.to_string();
                    let _ = run.answer.send(Err(SandboxError::SlotLost {
                        slot: index,
                        detail,
                    }));
                }
            }
        }
    }

    fn next_timeout(&self) -> Option<Duration> {
        let runs = self
            .slots
            .iter()
            .flatten()
            .filter_map(|link| link.run.as_ref());
        let give_ups = runs.map(|run| run.give_up);
        let deadline = self.mailbox.waiting().queue.next_deadline();
        let next = give_ups.chain(deadline).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Fails what was under way. What is queued waits for the next supervisor, unless there have
    /// been too many.
    fn lose_supervisor(&mut self, detail: &str) {
        self.failures += 1;
        if let Some(started) = &self.started {
            let detail = detail.to_owned();
            let _ = started.send(Err(SandboxError::Supervisor { detail }));
        }
        for (slot, link) in std::mem::take(&mut self.slots).into_iter().enumerate() {
            if let Some(run) = link.and_then(|link| link.run) {
                self.mailbox.counters.errors.fetch_add(1, Relaxed);
                let detail = detail.to_owned();
                let _ = run
                    .answer
                    .send(Err(SandboxError::SlotLost { slot, detail }));
            }
        }
        self.count_running();
        self.stop_supervisor();
        if self.failures >= MAX_FAILURES {
            while let Some(pending) = self.mailbox.next_waiting() {
                self.mailbox.counters.errors.fetch_add(1, Relaxed);
                let detail = detail.to_owned();
                let _ = pending
                    .answer
                    .send(Err(SandboxError::Supervisor { detail }));
            }
            // Until somebody asks again.
            let mut fds = [sys::interest(&self.mailbox.wake, libc::POLLIN)];
            let _ = sys::poll(&mut fds, None);
        }
    }

    fn stop_supervisor(&mut self) {
        self.mailbox.counters.supervisor.store(0, Relaxed);
        self.slots.clear();
        let Some(Supervisor {
            mut process,
            control,
        }) = self.supervisor.take()
        else {
            return;
        };
        drop(control);
        let id = process.id();
        let _ = process.wait();
        scratch::remove_scratch_of(id, &self.setup.config.scratch);
    }

    fn end(mut self) {
        self.stop_supervisor();
        while let Some(pending) = self.mailbox.next_waiting() {
            let _ = pending.answer.send(Err(SandboxError::Closed));
        }
    }
}

impl SlotLink {
    /// The reply of the run, once it is there.
    fn exchange(&mut self) -> io::Result<Option<wire::Reply>> {
        let Some(run) = &mut self.run else {
            // An idle slot says nothing; it can only end.
            return match sys::read(self.socket.as_fd(), &mut [0; 1]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                _ => Err(io::Error::other("the slot ended")),
            };
        };
        while run.sent < run.outgoing.len() {
            match sys::send(self.socket.as_fd(), &run.outgoing[run.sent..]) {
                Ok(n) => run.sent += n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let mut buffer = [0; 16 << 10];
        loop {
            match sys::read(self.socket.as_fd(), &mut buffer) {
                Ok(0) => return Err(io::Error::other("the slot ended")),
                Ok(n) => run.incoming.extend_from_slice(&buffer[..n]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        match wire::decode_reply(&run.incoming) {
            Ok(reply) => Ok(reply.map(|(reply, _)| reply)),
            Err(_) => Err(io::Error::other("malformed reply")),
        }
    }
}
