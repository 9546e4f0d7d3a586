//! Starts the warm interpreter of a slot and talks to it.

use std::{
    ffi::CString,
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd},
    path::{Path, PathBuf},
    time::Duration,
};

use libc::pid_t;
use serde::Serialize;

use crate::{
    Limits, Tier,
    filter::Filters,
    groups::Meters,
    sys,
    wire::{Kind, Task},
};

/// What is told of a run whose process was ended before it became the program: its limits hold from the beginning, and
/// on a machine that is too busy they may be reached by then.
pub(crate) const NEVER_BEGAN: &str = "the process was ended before the program began";

/// A warm interpreter, child of this slot.
pub(crate) struct Zygote {
    pub(crate) pid: pid_t,
    socket: OwnedFd,
    pub(crate) python_version: String,
}

/// The warm interpreters of a slot: one for all programs, and one for those that mention a module
/// that is slow to import.
pub(crate) struct Interpreters<'a> {
    setup: ZygoteSetup<'a>,
    on_mention: &'a [String],
    plain: Zygote,
    heavy: Heavy,
}

enum Heavy {
    /// Started when a program first mentions such a module: it takes a tenth of a second and tens
    /// of megabytes.
    Unasked,
    Ready(Zygote),
    /// None of the modules is installed.
    Unavailable,
}

/// What a zygote needs to know to start.
pub(crate) struct ZygoteSetup<'a> {
    pub(crate) tier: Tier,
    pub(crate) python: &'a Path,
    pub(crate) preload: &'a [String],
    /// The working folder of runs.
    pub(crate) home: PathBuf,
    pub(crate) filters: &'a Filters,
    pub(crate) landlock: Option<OwnedFd>,
    /// Of the groups in which interpreters and runs are.
    pub(crate) meters: Option<&'a Meters>,
}

/// The descriptors of a run.
pub(crate) struct RunFds<'a> {
    pub(crate) stdin: BorrowedFd<'a>,
    pub(crate) stdout: BorrowedFd<'a>,
    pub(crate) stderr: BorrowedFd<'a>,
    /// Source, payload, arguments and environment.
    pub(crate) content: BorrowedFd<'a>,
    pub(crate) result: BorrowedFd<'a>,
    /// Pid 1 of the run's namespaces.
    pub(crate) namespaces: Option<BorrowedFd<'a>>,
}

/// How the main process of a run ended.
pub(crate) struct Ended {
    /// As `wait` reports it.
    pub(crate) status: i32,
    pub(crate) cpu: Duration,
    /// Bytes.
    pub(crate) peak_memory: u64,
}

impl Ended {
    /// Of a run whose interpreter was killed.
    pub(crate) const UNKNOWN: Self = Self {
        status: libc::SIGKILL,
        cpu: Duration::ZERO,
        peak_memory: 0,
    };
}

const SOURCE: &str = include_str!("zygote.py");

/// The zygote's end of the socket, in the zygote.
const SOCKET_FD: RawFd = 3;
const LANDLOCK_FD: RawFd = 4;

impl<'a> Interpreters<'a> {
    /// Starts the one for all programs.
    pub(crate) fn start(setup: ZygoteSetup<'a>, on_mention: &'a [String]) -> io::Result<Self> {
        Ok(Self {
            plain: Zygote::start(&setup, &[])?,
            heavy: Heavy::Unasked,
            setup,
            on_mention,
        })
    }

    /// Of the interpreter that every program could run in.
    pub(crate) fn python_version(&self) -> &str {
        &self.plain.python_version
    }

    /// Makes [`Interpreters::of`] what it should be for `task`.
    pub(crate) fn warm_up_for(&mut self, task: &Task) -> io::Result<()> {
        if matches!(self.heavy, Heavy::Unasked) && self.is_heavy(task) {
            self.setup.meters.map_or(Ok(()), Meters::lift)?;
            self.heavy = match Zygote::start(&self.setup, self.on_mention) {
                Ok(zygote) => Heavy::Ready(zygote),
                Err(_) => Heavy::Unavailable,
            };
        }
        Ok(())
    }

    /// Starts anew what a run's processes took with them when the kernel ran out of the memory that
    /// they may use together.
    pub(crate) fn replace_dead(&mut self) -> io::Result<()> {
        if self.plain.has_ended() {
            self.setup.meters.map_or(Ok(()), Meters::lift)?;
            self.plain = Zygote::start(&self.setup, &[])?;
        }
        if matches!(&self.heavy, Heavy::Ready(heavy) if heavy.has_ended()) {
            self.heavy = Heavy::Unasked;
        }
        Ok(())
    }

    pub(crate) fn meters(&self) -> Option<&'a Meters> {
        self.setup.meters
    }

    /// The interpreter that runs `task`.
    pub(crate) fn of(&self, task: &Task) -> &Zygote {
        match &self.heavy {
            Heavy::Ready(zygote) if self.is_heavy(task) => zygote,
            _ => &self.plain,
        }
    }

    pub(crate) fn pids(&self) -> impl Iterator<Item = pid_t> {
        let heavy = match &self.heavy {
            Heavy::Ready(zygote) => Some(zygote.pid),
            Heavy::Unasked | Heavy::Unavailable => None,
        };
        [self.plain.pid].into_iter().chain(heavy)
    }

    /// Lets the interpreters end and waits for that, so that their CPU time is accounted for.
    pub(crate) fn stop(self) {
        self.plain.stop();
        if let Heavy::Ready(zygote) = self.heavy {
            zygote.stop();
        }
    }

    /// Whether the program mentions such a module. A mention in vain costs nothing but the choice of
    /// the interpreter.
    fn is_heavy(&self, task: &Task) -> bool {
        let mentioned = |module: &String| {
            [&task.source, &task.payload]
                .iter()
                .any(|text| memchr::memmem::find(text, module.as_bytes()).is_some())
        };
        task.kind != Kind::Exec && self.on_mention.iter().any(mentioned)
    }
}

impl Zygote {
    /// Starts the interpreter and waits until it is warm. At least one of `wanted` must be installed,
    /// unless there are none.
    fn start(setup: &ZygoteSetup<'_>, wanted: &[String]) -> io::Result<Self> {
        let (socket, theirs) = sys::socket_pair(libc::SOCK_SEQPACKET)?;
        let (errors, their_errors) = sys::pipe()?;
        let arguments = arguments(setup, wanted)?;
        match sys::clone(0)? {
            sys::Cloned::Child => {
                let error = become_python(setup, &arguments, &theirs, &their_errors);
                sys::complain(&error);
                sys::exit(126)
            }
            sys::Cloned::Parent { pid, .. } => {
                drop((theirs, their_errors));
                let mut buffer = [0; 64];
                let ready = sys::read(socket.as_fd(), &mut buffer)
                    .ok()
                    .and_then(|n| buffer[..n].strip_prefix(b"ready "));
                let Some(version) = ready else {
                    let mut text = vec![0; 4096];
                    sys::wait(pid);
                    let n = sys::read(errors.as_fd(), &mut text).unwrap_or(0);
                    let text = String::from_utf8_lossy(&text[..n]);
                    return Err(io::Error::other(format!(
                        "the interpreter did not start: {text}"
                    )));
                };
                let python_version = String::from_utf8_lossy(version).into_owned();
                Ok(Self {
                    pid,
                    socket,
                    python_version,
                })
            }
        }
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Asks for a child that runs `task`, whose user may have so many processes.
    pub(crate) fn send(
        &self,
        task: &Task,
        most_processes: Option<u64>,
        fds: &RunFds<'_>,
    ) -> io::Result<()> {
        let Limits {
            cpu,
            memory,
            address_space,
            disk,
            files,
            ..
        } = task.limits;
        // 0 stands for none.
        let address_space = if address_space { memory } else { 0 };
        let kind: u8 = match task.kind {
            Kind::Script => 0,
            Kind::Harness => 1,
            Kind::Exec => 2,
        };
        // The kernel counts whole seconds; the watchdog is exact.
        let cpu_seconds = u32::try_from(cpu.as_secs() + 1).unwrap_or(u32::MAX);
        let mut message = vec![kind];
        message.extend(cpu_seconds.to_le_bytes());
        let processes = most_processes.unwrap_or(0);
        let limits = [address_space, disk, u64::from(files), processes];
        let parts = [
            &task.source,
            &task.payload,
            &task.arguments,
            &task.environment,
        ];
        for number in limits
            .into_iter()
            .chain(parts.map(|part| part.len() as u64))
        {
            message.extend(number.to_le_bytes());
        }
        let RunFds {
            stdin,
            stdout,
            stderr,
            content,
            result,
            namespaces,
        } = fds;
        let fds: Vec<RawFd> = [stdin, stdout, stderr, content, result]
            .into_iter()
            .chain(namespaces)
            .map(AsRawFd::as_raw_fd)
            .collect();
        sys::send_with_fds(self.socket(), &message, &fds)
    }

    /// The answer to [`Zygote::send`], once the socket is readable. The inner error is a run that
    /// could not be prepared.
    pub(crate) fn receive(&self) -> io::Result<Result<Ended, String>> {
        let mut buffer = [0; 512];
        let n = sys::read(self.socket(), &mut buffer)?;
        let reply = &buffer[..n];
        let (Some(status), Some(numbers)) = (reply.first_chunk::<4>(), reply.get(4..28)) else {
            return Err(io::Error::other("the interpreter died"));
        };
        let status = i32::from_le_bytes(*status);
        if status < 0 {
            return Ok(Err(match &reply[28..] {
                [] => NEVER_BEGAN.to_owned(),
                told => String::from_utf8_lossy(told).into_owned(),
            }));
        }
        let number = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&numbers[at * 8..at * 8 + 8]);
            u64::from_le_bytes(bytes)
        };
        let cpu = Duration::from_micros(number(0) + number(1));
        Ok(Ok(Ended {
            status,
            cpu,
            peak_memory: number(2) * 1024,
        }))
    }

    /// It says nothing between runs, so whatever can be read then is its end.
    fn has_ended(&self) -> bool {
        let mut fds = [sys::interest(&self.socket, libc::POLLIN)];
        let polled = sys::poll(&mut fds, Some(Duration::ZERO));
        polled.is_err() || fds[0].revents != 0
    }

    fn stop(self) {
        drop(self.socket);
        sys::wait(self.pid);
    }
}

fn arguments(setup: &ZygoteSetup<'_>, wanted: &[String]) -> io::Result<Vec<CString>> {
    #[derive(Serialize)]
    struct Setup<'a> {
        home: &'a Path,
        preload: &'a [String],
        wanted: &'a [String],
        filter: &'a [u8],
        landlock: Option<RawFd>,
        landlock_restrict_self: i64,
        capset: i64,
        first_to_go: bool,
        same_user: bool,
    }
    let told = serde_json::to_string(&Setup {
        home: &setup.home,
        preload: setup.preload,
        wanted,
        filter: &setup.filters.run,
        landlock: setup.landlock.as_ref().map(|_| LANDLOCK_FD),
        landlock_restrict_self: libc::SYS_landlock_restrict_self,
        capset: libc::SYS_capset,
        same_user: setup.tier != Tier::Namespaces,
        first_to_go: setup.meters.is_some_and(Meters::counts_memory),
    })?;
    let program = sys::c_path(setup.python)?;
    let rest = ["-s", "-c", SOURCE, &told].map(CString::new);
    let rest = rest.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok([program].into_iter().chain(rest).collect())
}

/// In the new process: returns only when it fails.
fn become_python(
    setup: &ZygoteSetup<'_>,
    arguments: &[CString],
    socket: &OwnedFd,
    errors: &OwnedFd,
) -> io::Error {
    match prepare_exec(setup, socket, errors) {
        Ok(environment) => exec(arguments, &environment),
        Err(error) => error,
    }
}

fn prepare_exec(
    setup: &ZygoteSetup<'_>,
    socket: &OwnedFd,
    errors: &OwnedFd,
) -> io::Result<Vec<CString>> {
    setup.meters.map_or(Ok(()), Meters::enter)?;
    // Closed with all the others below, and so not by its owner.
    let null = sys::open_null()?.into_raw_fd();
    let wanted = [
        (null, 0),
        (null, 1),
        (errors.as_raw_fd(), 2),
        (socket.as_raw_fd(), SOCKET_FD),
    ];
    let landlock = setup
        .landlock
        .as_ref()
        .map(|fd| (fd.as_raw_fd(), LANDLOCK_FD));
    sys::place_fds(wanted.into_iter().chain(landlock))?;
    let mut kept = vec![SOCKET_FD];
    kept.extend(setup.landlock.as_ref().map(|_| LANDLOCK_FD));
    sys::close_others(&kept);
    if setup.tier == Tier::Namespaces {
        sys::keep_capabilities_over_exec()?;
    } else {
        sys::die_with_parent()?;
        sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1)?;
    }
    // The same addresses, and so the same order of sets of objects, in every zygote. Refused in
    // some containers, where the order then varies.
    sys::fix_addresses();
    for filter in &setup.filters.zygote {
        seccompiler::apply_filter(filter).map_err(io::Error::other)?;
    }
    let home = setup.home.display();
    // The weaker tiers have one folder to write in.
    let temporary = match setup.tier {
        Tier::Namespaces => Path::new("/tmp"),
        Tier::Landlock | Tier::Limits => &setup.home,
    };
    let variables = [
        "PATH=/usr/local/bin:/usr/bin:/bin".to_owned(),
        format!("HOME={home}"),
        "LANG=C.UTF-8".to_owned(),
        format!("TMPDIR={}", temporary.display()),
        "PYTHONUTF8=1".to_owned(),
        // The order of sets of strings is part of a program's behaviour.
        "PYTHONHASHSEED=0".to_owned(),
        "PYTHONDONTWRITEBYTECODE=1".to_owned(),
        // One arena: further ones reserve address space, which is limited.
        "MALLOC_ARENA_MAX=1".to_owned(),
        "OPENBLAS_NUM_THREADS=1".to_owned(),
        "OMP_NUM_THREADS=1".to_owned(),
    ];
    variables
        .into_iter()
        .map(|variable| CString::new(variable).map_err(io::Error::from))
        .collect()
}

fn exec(arguments: &[CString], environment: &[CString]) -> io::Error {
    let pointers = |texts: &[CString]| {
        let pointers = texts.iter().map(|text| text.as_ptr());
        pointers.chain([std::ptr::null()]).collect::<Vec<_>>()
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    // SAFETY: both arrays are terminated by null and point to NUL-terminated strings.
    unsafe { libc::execve(arguments[0], arguments.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}
