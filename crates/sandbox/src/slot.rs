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
    Config, Status, Tier,
    client::Client,
    confine::landlock_rules,
    filter::Filters,
    groups::{Groups, Meters, SlotGroups},
    ids, jail,
    run::{self, Ground, Lost},
    scratch::Scratch,
    sys, watchdog,
    wire::{self, Reply, Request},
    zygote::{Interpreters, NEVER_BEGAN, ZygoteSetup},
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
    /// Held by the supervisor alone, so that the slot learns of its end.
    _leash: OwnedFd,
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
        let (leash, their_leash) = sys::pipe()?;
        let (user, group) = ids::without_namespaces(index);
        let (flags, scratch) = match tier {
            Tier::Namespaces => (jail::SLOT_NAMESPACES, None),
            Tier::Landlock | Tier::Limits => {
                let scratch = Scratch::new(&setup.config.scratch, index, user, group)?;
                (0, Some(scratch))
            }
        };
        match sys::clone(flags)? {
            sys::Cloned::Child => {
                let ends = Ends {
                    socket: theirs,
                    tell_ready,
                    leash,
                };
                // Both are the supervisor's to remove.
                let scratch = scratch.map(ManuallyDrop::new);
                let groups = groups.map(ManuallyDrop::new);
                let meters = groups.as_ref().map(|groups| &groups.meters);
                let home = Home {
                    setup,
                    tier,
                    filters,
                    scratch: scratch.as_deref(),
                    user,
                    group,
                    meters,
                };
                let code = home.live(ends);
                sys::exit(code)
            }
            sys::Cloned::Parent { pid, pidfd } => {
                let slot = Self {
                    pid,
                    pidfd,
                    ready,
                    socket: Some(socket),
                    _leash: their_leash,
                    scratch,
                    groups,
                    ended: false,
                };
                if tier == Tier::Namespaces {
                    let workspace = setup.config.workspace.as_ref();
                    jail::map_ids(pid, index, workspace.and_then(|workspace| workspace.user))?;
                }
                sys::write_all(slot._leash.as_fd(), b"m")?;
                Ok(slot)
            }
        }
    }

    /// Ends the slot, unless it has ended by itself. What its runs left without namespaces is a child
    /// of this process then.
    pub(crate) fn end(&mut self) {
        if !self.ended {
            sys::kill(self.pidfd.as_fd());
            sys::wait(self.pid);
            self.ended = true;
        }
    }

    pub(crate) fn pid(&self) -> pid_t {
        self.pid
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.end();
        drop(self.groups.take());
        drop(self.scratch.take());
    }
}

/// The slot's ends of the channels.
struct Ends {
    socket: OwnedFd,
    tell_ready: OwnedFd,
    /// Has a byte to read when the user of the slot's namespace is known, and ends with the
    /// supervisor.
    leash: OwnedFd,
}

/// What a slot is made of, in the slot.
struct Home<'a> {
    setup: &'a Setup,
    tier: Tier,
    filters: &'a Filters,
    /// Without namespaces only, as are the ids of programs.
    scratch: Option<&'a Scratch>,
    user: u32,
    group: u32,
    meters: Option<&'a Meters>,
}

impl<'a> Home<'a> {
    /// The life of a slot; returns its exit code.
    fn live(&self, ends: Ends) -> i32 {
        let Ends {
            socket,
            tell_ready,
            leash,
        } = ends;
        let mut kept = [&socket, &tell_ready, &leash]
            .map(AsRawFd::as_raw_fd)
            .to_vec();
        kept.extend(self.meters.iter().flat_map(|meters| meters.descriptors()));
        sys::close_others(&kept);
        let tell = |ready: &Ready| {
            let told = serde_json::to_vec(ready).unwrap_or_default();
            let _ = sys::write_all(tell_ready.as_fd(), &told);
        };
        let (mut interpreters, changes) = match self.prepare(&leash) {
            Ok(prepared) => prepared,
            Err(error) => {
                tell(&Err(error.to_string()));
                self.clear_away();
                return 1;
            }
        };
        tell(&Ok(interpreters.python_version().to_owned()));
        drop(tell_ready);
        let client = Client {
            socket: socket.as_fd(),
            leash: leash.as_fd(),
        };
        let served = self.serve(&mut interpreters, client, changes);
        interpreters.stop();
        self.clear_away();
        i32::from(served.is_err())
    }

    /// What the kernel does not take away with the slot. The supervisor does so too, if it lives.
    fn clear_away(&self) {
        if let Some(scratch) = self.scratch {
            run::kill_descendants(|| watchdog::descendants(&[]));
            scratch.remove();
        }
    }

    /// The interpreters, and what programs change of the work tree.
    fn prepare(&self, leash: &OwnedFd) -> io::Result<(Interpreters<'a>, Option<OwnedFd>)> {
        let Self { setup, tier, .. } = self;
        let mut byte = [0];
        if sys::read(leash.as_fd(), &mut byte)? == 0 {
            return Err(io::Error::other("the supervisor gave up"));
        }
        let (mut rules, mut changes) = (None, None);
        let home = match self.scratch {
            None => {
                let binds: Vec<PathBuf> = [PathBuf::from("/usr")]
                    .into_iter()
                    .chain(setup.readable.clone())
                    .collect();
                if setup.config.loopback {
                    sys::raise_loopback()?;
                }
                changes = jail::enter_root(&binds, setup.config.workspace.as_ref())?;
                // After the change of ids, which would cancel it. All others end with this pid 1.
                sys::die_with_parent()?;
                PathBuf::from(jail::HOME)
            }
            Some(scratch) => {
                // Orphans of runs become children of this slot, which ends them with itself when the
                // supervisor is gone.
                sys::adopt_orphans();
                if sys::effective_ids() != (self.user, self.group) {
                    sys::become_user(self.user, self.group)?;
                }
                if *tier == Tier::Landlock {
                    rules = Some(landlock_rules(&setup.readable, &scratch.home())?);
                }
                scratch.home()
            }
        };
        // Who may look into this process, which holds the inputs of runs? With namespaces, the
        // interpreter has to, to join them; programs may not, as they lack its capabilities. Without,
        // nobody.
        sys::prctl(libc::PR_SET_DUMPABLE, u64::from(*tier == Tier::Namespaces))?;
        let interpreters = Interpreters::start(
            ZygoteSetup {
                tier: *tier,
                python: &setup.python,
                preload: &setup.config.preload,
                home,
                filters: self.filters,
                landlock: rules,
                meters: self.meters,
            },
            &setup.config.preload_on_mention,
        )?;
        Ok((interpreters, changes))
    }

    /// Makes runs until the client closes the socket, the supervisor ends, or something is wrong.
    fn serve(
        &self,
        interpreters: &mut Interpreters<'_>,
        client: Client<'_>,
        changes: Option<OwnedFd>,
    ) -> io::Result<()> {
        let mut incoming = Vec::new();
        let ground = Ground {
            scratch: self.scratch,
            shown: &self.setup.readable,
            changes: changes.map(|folder| {
                let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
                (folder, PathBuf::from(path))
            }),
        };
        while let Some(request) = next_request(client, &mut incoming)? {
            interpreters.warm_up_for(&request.program)?;
            let reply = match self.run(&request, interpreters, client, &ground) {
                Ok(reply) => reply,
                Err(Lost::Abandoned) => return Ok(()),
                Err(Lost::Broken(error)) => Err(error.to_string()),
            };
            let broken = reply.is_err();
            send_all(client.socket, &wire::encode_reply(&reply))?;
            if broken {
                return Err(io::Error::other("the state of this slot is unknown"));
            }
            self.make_ready(interpreters)?;
        }
        Ok(())
    }

    /// Makes a run; makes it once more where the program never began, or was killed and no limit tells why.
    /// Somebody outside may have done it, who will not do it again; or the program had the kernel do it, with
    /// a timer or a limit of its own, and is found out. What a work tree holds would not be as it was.
    fn run(
        &self,
        request: &Request,
        interpreters: &mut Interpreters<'_>,
        client: Client<'_>,
        ground: &Ground<'_>,
    ) -> Result<Reply, Lost> {
        const KILLED: Status = Status::Signal(libc::SIGKILL);
        let reply = run::run(request, interpreters, self.tier, client, ground)?;
        let again = match &reply {
            Ok(outcome) => outcome.status == KILLED,
            Err(detail) => detail == NEVER_BEGAN,
        };
        if again && ground.changes.is_none() {
            self.make_ready(interpreters)?;
            return run::run(request, interpreters, self.tier, client, ground);
        }
        Ok(reply)
    }

    /// As before the first run.
    fn make_ready(&self, interpreters: &mut Interpreters<'_>) -> io::Result<()> {
        interpreters.replace_dead()?;
        if let Some(scratch) = self.scratch {
            scratch.empty()?;
        }
        Ok(())
    }
}

fn next_request(client: Client<'_>, incoming: &mut Vec<u8>) -> io::Result<Option<Request>> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match Request::decode(incoming) {
            Ok(Some((request, length))) => {
                incoming.drain(..length);
                // A large job's room is not kept for the small ones that follow.
                incoming.shrink_to(64 << 10);
                return Ok(Some(request));
            }
            Ok(None) => {}
            Err(_) => return Err(io::Error::other("malformed request")),
        }
        client.wait()?;
        if client.is_orphaned() {
            return Ok(None);
        }
        match sys::read(client.socket, &mut buffer) {
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
