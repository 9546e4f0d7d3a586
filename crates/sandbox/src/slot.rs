//! A slot: a process behind walls, with a warm interpreter, that makes one run at a time.

use std::{
    io,
    mem::ManuallyDrop,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use libc::pid_t;
use serde::{Deserialize, Serialize};

use crate::{
    Config, Tier,
    confine::{Scratch, landlock_rules},
    filter::Filters,
    groups::{Groups, Meters, SlotGroups},
    jail,
    run::{self, Lost},
    sys,
    wire::{self, Request},
    zygote::{Interpreters, ZygoteSetup},
};

/// What the supervisor is started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) config: Config,
    /// The resolved interpreter.
    pub(crate) python: PathBuf,
    /// Folders that programs may read besides the system's.
    pub(crate) readable: Vec<PathBuf>,
    /// The process that the supervisor belongs to.
    pub(crate) parent: u32,
}

/// A slot, seen from the supervisor. Ended when dropped.
pub(crate) struct Slot {
    pid: pid_t,
    pub(crate) pidfd: OwnedFd,
    /// Tells [`Ready`] once, or ends.
    pub(crate) ready: OwnedFd,
    /// The end of the socket for whoever asks for runs; given away when ready.
    pub(crate) socket: Option<OwnedFd>,
    scratch: Option<Scratch>,
    groups: Option<SlotGroups>,
    ended: bool,
}

/// The first thing a slot tells: the interpreter's version, or why there is none.
pub(crate) type Ready = Result<String, String>;

impl Slot {
    /// Starts the slot `index` at `tier`. Called in the supervisor, which has one thread.
    pub(crate) fn start(
        setup: &Setup,
        index: usize,
        tier: Tier,
        filters: &Filters,
        groups: &Groups,
    ) -> io::Result<Self> {
        let groups = groups.for_slot(index)?;
        let (socket, theirs) = sys::socket_pair(libc::SOCK_STREAM)?;
        let (ready, tell_ready) = sys::pipe()?;
        let (wait_mapped, mapped) = sys::pipe()?;
        let (flags, scratch) = match tier {
            Tier::Namespaces => (jail::SLOT_NAMESPACES, None),
            Tier::Landlock | Tier::Limits => {
                let (user, group) = weak_ids();
                (
                    0,
                    Some(Scratch::new(&setup.config.scratch, index, user, group)?),
                )
            }
        };
        match sys::clone(flags)? {
            sys::Cloned::Child => {
                let ends = Ends {
                    socket: theirs,
                    tell_ready,
                    wait_mapped,
                };
                // Both are the supervisor's to remove.
                let scratch = scratch.map(ManuallyDrop::new);
                let groups = groups.map(ManuallyDrop::new);
                let meters = groups.as_ref().map(|groups| &groups.meters);
                let code = live(setup, tier, filters, ends, scratch.as_deref(), meters);
                sys::exit(code)
            }
            sys::Cloned::Parent { pid, pidfd } => {
                let slot = Self {
                    pid,
                    pidfd,
                    ready,
                    socket: Some(socket),
                    scratch,
                    groups,
                    ended: false,
                };
                if tier == Tier::Namespaces {
                    jail::map_ids(pid, index)?;
                }
                sys::write_all(mapped.as_fd(), b"m")?;
                Ok(slot)
            }
        }
    }

    /// To be called when the slot has ended by itself.
    pub(crate) fn collect(mut self) {
        sys::wait(self.pid);
        self.ended = true;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !self.ended {
            sys::kill(self.pidfd.as_fd());
            sys::wait(self.pid);
        }
        drop(self.groups.take());
        drop(self.scratch.take());
    }
}

/// The slot's ends of the channels.
struct Ends {
    socket: OwnedFd,
    tell_ready: OwnedFd,
    wait_mapped: OwnedFd,
}

/// Programs of the weaker tiers are nobody, when the starting user may become that.
fn weak_ids() -> (u32, u32) {
    const NOBODY: u32 = 65534;
    match sys::effective_ids() {
        (0, _) => (NOBODY, NOBODY),
        ids => ids,
    }
}

/// The life of a slot; returns its exit code.
fn live(
    setup: &Setup,
    tier: Tier,
    filters: &Filters,
    ends: Ends,
    scratch: Option<&Scratch>,
    meters: Option<&Meters>,
) -> i32 {
    let Ends {
        socket,
        tell_ready,
        wait_mapped,
    } = ends;
    let mut kept = vec![
        socket.as_raw_fd(),
        tell_ready.as_raw_fd(),
        wait_mapped.as_raw_fd(),
    ];
    kept.extend(meters.iter().flat_map(|meters| meters.descriptors()));
    sys::close_others(&kept);
    let tell = |ready: &Ready| {
        let told = serde_json::to_vec(ready).unwrap_or_default();
        let _ = sys::write_all(tell_ready.as_fd(), &told);
    };
    let mut interpreters = match prepare(setup, tier, filters, &wait_mapped, scratch, meters) {
        Ok(interpreters) => interpreters,
        Err(error) => {
            tell(&Err(error.to_string()));
            return 1;
        }
    };
    tell(&Ok(interpreters.python_version().to_owned()));
    drop((tell_ready, wait_mapped));
    let served = serve(&mut interpreters, tier, socket.as_fd(), scratch);
    interpreters.stop();
    i32::from(served.is_err())
}

fn prepare<'a>(
    setup: &'a Setup,
    tier: Tier,
    filters: &'a Filters,
    wait_mapped: &OwnedFd,
    scratch: Option<&Scratch>,
    meters: Option<&'a Meters>,
) -> io::Result<Interpreters<'a>> {
    let mut byte = [0];
    if sys::read(wait_mapped.as_fd(), &mut byte)? == 0 {
        return Err(io::Error::other("the supervisor gave up"));
    }
    let mut rules = None;
    let home = match scratch {
        None => {
            let binds: Vec<PathBuf> = [PathBuf::from("/usr")]
                .into_iter()
                .chain(setup.readable.clone())
                .collect();
            jail::enter_root(&binds)?;
            PathBuf::from(jail::HOME)
        }
        Some(scratch) => {
            // SAFETY: a plain call: orphans of runs become children of this slot.
            unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
            let (user, group) = weak_ids();
            if sys::effective_ids() != (user, group) {
                sys::become_user(user, group)?;
            }
            if tier == Tier::Landlock {
                rules = Some(landlock_rules(&setup.readable, &scratch.home())?);
            }
            scratch.home()
        }
    };
    // After the change of ids, which would cancel it.
    sys::die_with_parent()?;
    // Who may look into this process, which holds the inputs of runs? With namespaces, the
    // interpreter has to, to join them; programs may not, as they lack its capabilities. Without,
    // nobody.
    sys::prctl(libc::PR_SET_DUMPABLE, u64::from(tier == Tier::Namespaces))?;
    Interpreters::start(
        ZygoteSetup {
            tier,
            python: &setup.python,
            preload: &setup.config.preload,
            home,
            filters,
            landlock: rules,
            meters,
        },
        &setup.config.preload_on_mention,
    )
}

/// Makes runs until the client closes the socket, or something is wrong.
fn serve(
    interpreters: &mut Interpreters<'_>,
    tier: Tier,
    client: BorrowedFd<'_>,
    scratch: Option<&Scratch>,
) -> io::Result<()> {
    let mut incoming = Vec::new();
    while let Some(request) = next_request(client, &mut incoming)? {
        interpreters.warm_up_for(&request.program)?;
        let reply = match run::run(&request, interpreters, tier, client, scratch) {
            Ok(reply) => reply,
            Err(Lost::Abandoned) => return Ok(()),
            Err(Lost::Broken(error)) => Err(error.to_string()),
        };
        let broken = reply.is_err();
        send_all(client, &wire::encode_reply(&reply))?;
        if broken {
            return Err(io::Error::other("the state of this slot is unknown"));
        }
        interpreters.replace_dead()?;
        if let Some(scratch) = scratch {
            scratch.empty()?;
        }
    }
    Ok(())
}

fn next_request(client: BorrowedFd<'_>, incoming: &mut Vec<u8>) -> io::Result<Option<Request>> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match Request::decode(incoming) {
            Ok(Some((request, length))) => {
                incoming.drain(..length);
                return Ok(Some(request));
            }
            Ok(None) => {}
            Err(_) => return Err(io::Error::other("malformed request")),
        }
        match sys::read(client, &mut buffer) {
            Ok(0) => return Ok(None),
            Ok(n) => incoming.extend_from_slice(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn send_all(client: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match sys::send(client, bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether `path` can be seen in every slot without binding it.
pub(crate) fn is_system_path(path: &Path) -> bool {
    ["/usr", "/lib", "/lib64", "/bin", "/sbin"]
        .iter()
        .any(|root| path.starts_with(root))
}
