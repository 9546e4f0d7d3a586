//! The supervisor: starts slots, replaces those that end, and ends with its parent.

use std::{
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::process::parent_id,
    },
    time::{Duration, Instant},
};

use crate::{
    Enforced, Tier, TierChoice,
    filter::{self, Filters},
    groups::Groups,
    run, scratch,
    slot::{Ready, Setup, Slot},
    sys, watchdog,
    wire::{Event, Failure},
};

/// Runs the supervisor in this process, which has one thread and nothing else to do. Standard
/// input is the control socket: events go out, and its end is the parent's end. Never returns.
pub(crate) fn main(setup: &str) -> ! {
    // SAFETY: descriptor 0 is open, as the parent made it, and stays open until the exit.
    let control = unsafe { BorrowedFd::borrow_raw(0) };
    let code = match serde_json::from_str::<Setup>(setup) {
        Ok(setup) => i32::from(supervise(&setup, control).is_err()),
        Err(_) => 2,
    };
    sys::exit(code)
}

/// For a slot to become ready, on a machine under heavy load.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Slots that end before they are ready, one after the other, before the sandbox is given up.
const MAX_FAILURES: u32 = 5;

fn supervise(setup: &Setup, control: BorrowedFd<'_>) -> io::Result<()> {
    sys::die_with_parent()?;
    if parent_id() != setup.parent {
        return Ok(());
    }
    sys::close_others(&[]);
    sys::adopt_orphans();
    scratch::remove_abandoned(&setup.config.scratch);
    let groups = Groups::find();
    let (tier, filters, first) = match first_slot(setup, &groups) {
        Ok(found) => found,
        Err(failure) => return tell(control, &Event::Failed(failure), None),
    };
    let mut supervisor = Supervisor {
        setup,
        control,
        tier,
        filters,
        groups,
        slots: (0..setup.config.slots).map(|_| None).collect(),
        failures: 0,
    };
    let (slot, version) = first;
    supervisor.announce(0, slot, version)?;
    for index in 1..setup.config.slots {
        supervisor.start(index)?;
    }
    supervisor.watch()
}

/// The strongest tier that is asked for and works, with its first slot.
fn first_slot(setup: &Setup, groups: &Groups) -> Result<(Tier, Filters, (Slot, String)), Failure> {
    let tiers = match &setup.config.tier {
        TierChoice::Strongest => &Tier::ALL[..],
        TierChoice::Exactly(tier) => std::slice::from_ref(tier),
    };
    let mut refusals = Vec::new();
    for tier in tiers {
        match try_tier(setup, *tier, groups) {
            Ok(_) if *tier != Tier::Namespaces && !setup.config.allow_weak_tier => {
                let detail = match refusals.is_empty() {
                    true => "it was chosen without allow_weak_tier".to_owned(),
                    false => refusals.join("; "),
                };
                return Err(Failure::Weak {
                    tier: *tier,
                    detail,
                });
            }
            Ok(found) => return Ok(found),
            Err(detail) => refusals.push(format!("{tier}: {detail}")),
        }
    }
    let tier = tiers.first().copied().unwrap_or(Tier::Namespaces);
    Err(Failure::Unavailable {
        tier,
        detail: refusals.join("; "),
    })
}

fn try_tier(
    setup: &Setup,
    tier: Tier,
    groups: &Groups,
) -> Result<(Tier, Filters, (Slot, String)), String> {
    let filters = filter::filters(tier, groups.counted().memory)?;
    let slot = Slot::start(setup, 0, tier, &filters, groups).map_err(|error| error.to_string())?;
    let version = wait_ready(&slot)?;
    Ok((tier, filters, (slot, version)))
}

fn wait_ready(slot: &Slot) -> Ready {
    let deadline = Instant::now() + READY_WITHIN;
    let mut told = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut fds = [sys::interest(&slot.ready, libc::POLLIN)];
        sys::poll(&mut fds, Some(left)).map_err(|error| error.to_string())?;
        if left.is_zero() {
            return Err("the slot did not become ready".to_owned());
        }
        if fds[0].revents == 0 {
            continue;
        }
        match sys::read(slot.ready.as_fd(), &mut buffer) {
            Ok(0) => return Err("the slot ended before it was ready".to_owned()),
            Ok(n) => told.extend_from_slice(&buffer[..n]),
            Err(error) => return Err(error.to_string()),
        }
        if let Ok(ready) = serde_json::from_slice::<Ready>(&told) {
            return ready;
        }
    }
}

struct Supervisor<'a> {
    setup: &'a Setup,
    control: BorrowedFd<'a>,
    tier: Tier,
    filters: Filters,
    groups: Groups,
    slots: Vec<Option<Place>>,
    failures: u32,
}

struct Place {
    slot: Slot,
    announced: bool,
}

impl Supervisor<'_> {
    fn start(&mut self, index: usize) -> io::Result<()> {
        let slot = Slot::start(self.setup, index, self.tier, &self.filters, &self.groups)?;
        self.slots[index] = Some(Place {
            slot,
            announced: false,
        });
        Ok(())
    }

    /// Hands the slot's socket to the parent.
    fn announce(&mut self, index: usize, mut slot: Slot, python_version: String) -> io::Result<()> {
        let socket = slot.socket.take();
        self.slots[index] = Some(Place {
            slot,
            announced: true,
        });
        self.failures = 0;
        tell(
            self.control,
            &Event::Slot {
                index,
                tier: self.tier,
                python_version,
                enforced: Enforced::new(self.tier, self.groups.counted()),
            },
            socket.as_ref(),
        )
    }

    /// Until the parent closes the control socket.
    fn watch(&mut self) -> io::Result<()> {
        loop {
            let mut fds = vec![sys::interest(self.control, libc::POLLIN)];
            for place in self.slots.iter().flatten() {
                fds.push(sys::interest(&place.slot.pidfd, libc::POLLIN));
                if !place.announced {
                    fds.push(sys::interest(&place.slot.ready, libc::POLLIN));
                }
            }
            sys::poll(&mut fds, None)?;
            if fds[0].revents != 0 {
                return self.stop();
            }
            for index in 0..self.slots.len() {
                self.look_after(index)?;
            }
        }
    }

    fn look_after(&mut self, index: usize) -> io::Result<()> {
        let Some(place) = self.slots[index].take() else {
            return Ok(());
        };
        let mut fds = [
            sys::interest(&place.slot.pidfd, libc::POLLIN),
            sys::interest(&place.slot.ready, libc::POLLIN),
        ];
        sys::poll(&mut fds, Some(Duration::ZERO))?;
        let [ended, ready] = fds.map(|fd| fd.revents != 0);
        if !place.announced && ready {
            match wait_ready(&place.slot) {
                Ok(version) => return self.announce(index, place.slot, version),
                Err(detail) => {
                    self.failures += 1;
                    if self.failures >= MAX_FAILURES {
                        let detail = format!("slot {index}: {detail}");
                        tell(
                            self.control,
                            &Event::Failed(Failure::Other { detail }),
                            None,
                        )?;
                        return Err(io::Error::other("no slot can be started any more"));
                    }
                    self.end(place.slot);
                    return self.start(index);
                }
            }
        }
        if ended {
            self.end(place.slot);
            return self.start(index);
        }
        self.slots[index] = Some(place);
        Ok(())
    }

    /// Idle slots end by themselves when their socket is closed; that way the CPU time of their
    /// interpreters is accounted for. Those that do not are killed.
    fn stop(&mut self) -> io::Result<()> {
        const GRACE: Duration = Duration::from_millis(500);
        let deadline = Instant::now() + GRACE;
        for index in 0..self.slots.len() {
            let Some(Place { mut slot, .. }) = self.slots[index].take() else {
                continue;
            };
            drop(slot.socket.take());
            let left = deadline.saturating_duration_since(Instant::now());
            let mut fds = [sys::interest(&slot.pidfd, libc::POLLIN)];
            sys::poll(&mut fds, Some(left))?;
            self.end(slot);
        }
        Ok(())
    }

    /// Ends a slot with all that is left of its runs, and then takes its folders away.
    fn end(&self, mut slot: Slot) {
        slot.end();
        let known: Vec<_> = self
            .slots
            .iter()
            .flatten()
            .map(|place| place.slot.pid())
            .collect();
        run::kill_descendants(|| watchdog::descendants_but_below(&known));
    }
}

fn tell(control: BorrowedFd<'_>, event: &Event, fd: Option<&OwnedFd>) -> io::Result<()> {
    let told = serde_json::to_vec(event)?;
    let fds: Vec<_> = fd.iter().map(|fd| fd.as_raw_fd()).collect();
    sys::send_with_fds(control, &told, &fds)
}
