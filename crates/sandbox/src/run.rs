//! One run: streams, limits, and how it ended.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    time::{Duration, Instant},
};

use crate::{
    Enforced, Limits, RunOutcome, Status, Tier,
    capture::Capture,
    client::Client,
    disk, files,
    groups::{Gauge, Meters},
    ids,
    jail::RunNamespaces,
    scratch::Scratch,
    sys, watchdog,
    wire::{Reply, Request, Task},
    zygote::{Ended, Interpreters, RunFds, Zygote},
};

/// The run could not go on, and the slot cannot either.
pub(crate) enum Lost {
    /// Whoever asked has closed the socket: nobody waits for this run any more.
    Abandoned,
    /// The slot is in an unknown state.
    Broken(io::Error),
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

/// Between two looks at what the run uses. The first look costs nothing to runs that are shorter.
const WATCH_EVERY: Duration = Duration::from_millis(20);

/// As [`WATCH_EVERY`], of what it has written, which takes longer to find out.
const DISK_WATCH_EVERY: Duration = Duration::from_millis(60);

/// For the interpreter to report a child that was killed.
const AFTER_KILL: Duration = Duration::from_secs(5);

/// What the slot has for all its runs.
pub(crate) struct Ground<'a> {
    /// The working folder, without namespaces.
    pub(crate) scratch: Option<&'a Scratch>,
    /// What programs may read besides the system's.
    pub(crate) shown: &'a [PathBuf],
    /// What programs change of the work tree, and its path in this process.
    pub(crate) changes: Option<(OwnedFd, PathBuf)>,
}

impl Ground<'_> {
    /// The folder whose growth is watched, as no file system of the run's own limits it.
    fn watched(&self) -> Option<PathBuf> {
        let scratch = self.scratch.map(Scratch::home);
        scratch.or_else(|| self.changes.as_ref().map(|(_, path)| path.clone()))
    }
}

/// Runs `request` and says how it went. The end of `client` ends the run.
pub(crate) fn run(
    request: &Request,
    interpreters: &Interpreters<'_>,
    tier: Tier,
    client: Client<'_>,
    ground: &Ground<'_>,
) -> Result<Reply, Lost> {
    let scratch = ground.scratch;
    let disk = request.program.limits.disk;
    let namespaces = match scratch {
        None => {
            let build = request.build.as_ref().map_or(0, |build| build.limits.disk);
            Some(RunNamespaces::new(
                disk.max(build),
                &request.files,
                ground.shown,
            )?)
        }
        Some(scratch) => {
            files::write(&scratch.home(), &request.files)?;
            None
        }
    };
    let home = if request.fetch.is_empty() {
        None
    } else {
        let home = namespaces.as_ref().map(RunNamespaces::home);
        let home = home
            .or_else(|| scratch.map(Scratch::home))
            .unwrap_or_default();
        Some(files::open_home(&home)?)
    };
    let mut place = Place {
        interpreters,
        housekeeping: interpreters
            .pids()
            .chain(namespaces.as_ref().map(RunNamespaces::pid))
            .collect(),
        tier,
        namespaces: &namespaces,
        brought: match &ground.changes {
            Some((_, changes)) => disk::usage(changes),
            None => files::space(&request.files),
        },
        watched: ground.watched(),
        client,
    };
    let mut built = None;
    if let Some(build) = &request.build {
        match step(build, &place, false)? {
            Ok(outcome) => built = Some(outcome),
            Err(detail) => return Ok(Err(detail)),
        }
        if let Some(watched) = &place.watched {
            place.brought = disk::usage(watched);
        }
    }
    let outcome = match &built {
        Some(build) if !build.is_ok() => {
            place.kill_all();
            Ok(RunOutcome::not_run(build))
        }
        _ => step(&request.program, &place, true)?,
    };
    // Waits until the kernel has taken everything down.
    drop(namespaces);
    Ok(outcome.map(|outcome| RunOutcome {
        build: built.map(Box::new),
        files: home.map_or_else(Vec::new, |home| files::fetch(home.as_fd(), &request.fetch)),
        ..outcome
    }))
}

/// Where the steps of a run happen.
struct Place<'a> {
    interpreters: &'a Interpreters<'a>,
    /// Processes of the slot that are no run's.
    housekeeping: Vec<libc::pid_t>,
    tier: Tier,
    namespaces: &'a Option<RunNamespaces>,
    /// See [`Ground::watched`].
    watched: Option<PathBuf>,
    /// What is there that is not the program's doing.
    brought: disk::Usage,
    client: Client<'a>,
}

/// Runs one program; leaves no process of it, nor of the run when it is the `last`.
fn step(task: &Task, place: &Place<'_>, last: bool) -> Result<Reply, Lost> {
    let (stdout, their_stdout) = sys::pipe()?;
    let (stderr, their_stderr) = sys::pipe()?;
    let (result, their_result) = sys::pipe()?;
    let stdin = if task.stdin.is_empty() {
        sys::open_null()?
    } else {
        sys::memory_file(&[&task.stdin])?
    };
    let content = sys::memory_file(&[
        &task.source,
        &task.payload,
        &task.arguments,
        &task.environment,
    ])?;
    let fds = RunFds {
        stdin: stdin.as_fd(),
        stdout: their_stdout.as_fd(),
        stderr: their_stderr.as_fd(),
        content: content.as_fd(),
        result: their_result.as_fd(),
        namespaces: place
            .namespaces
            .as_ref()
            .map(|namespaces| namespaces.pidfd.as_fd()),
    };
    let gauge = place.interpreters.meters();
    let gauge = gauge.map(|meters| meters.begin(&task.limits)).transpose()?;
    let started = Instant::now();
    let zygote = place.interpreters.of(task);
    zygote.send(task, place.most_processes(task), &fds)?;
    drop((stdin, content, their_stdout, their_stderr, their_result));

    let keep = task.limits.output_keep;
    let mut run = Run {
        task,
        zygote,
        place,
        gauge,
        cpu_of_orphans: place.cpu_of_orphans(),
        next_disk_watch: DISK_WATCH_EVERY,
        started,
        streams: [
            Stream::new(stdout, keep)?,
            Stream::new(stderr, keep)?,
            Stream::new(result, usize::MAX)?,
        ],
        buffer: vec![0; 64 << 10],
        killed: None,
    };
    let oom_kills_before = oom_kills();
    let ended = run.watch();
    let wall_ms = started.elapsed().as_secs_f64() * 1e3;
    // Descendants may have outlived the main process.
    if last {
        place.kill_all();
    } else if !kill_descendants(|| place.processes()) {
        let detail = "what a build left running could not be ended";
        return Err(Lost::Broken(io::Error::other(detail)));
    }
    let ended = ended?;
    drain_to_end(&mut run)?;
    if run.killed.is_none() && run.ran_out_of_memory()? {
        run.killed = Some(Status::Memory);
    }
    // What was written since the last look, or in a run too short for one.
    if run.killed.is_none() && place.wrote_too_much(&task.limits) {
        run.killed = Some(Status::Disk);
    }
    let (cpu, peak_memory) = match &run.gauge {
        Some(gauge) => (gauge.cpu()?, gauge.peak_memory()?),
        None => (None, None),
    };
    let (killed, [stdout, stderr, result]) = (run.killed, run.streams);

    let ended = match ended {
        Ok(ended) => ended,
        Err(detail) => return Ok(Err(detail)),
    };
    let status = match killed.or_else(|| status(&ended, task)) {
        Some(status) => status,
        // A host that runs out of memory counts whom it kills. Of others, the slot asks further.
        None if oom_kills() == oom_kills_before => Status::Signal(libc::SIGKILL),
        None => {
            let detail = "the host ran out of memory while the program ran";
            return Ok(Err(detail.to_owned()));
        }
    };
    Ok(Ok(RunOutcome {
        status,
        stdout: stdout.capture.finish(),
        stderr: stderr.capture.finish(),
        result: result.capture.finish().head,
        wall_ms,
        // What was never waited for is in the group's count only.
        cpu_ms: ended.cpu.max(cpu.unwrap_or_default()).as_secs_f64() * 1e3,
        peak_memory: ended.peak_memory.max(peak_memory.unwrap_or_default()),
        tier: place.tier,
        // Filled in by whoever knows the slot.
        enforced: Enforced::default(),
        build: None,
        files: Vec::new(),
    }))
}

impl Place<'_> {
    /// CPU seconds of the run's pid 1 and of the orphans that it has collected.
    fn cpu_of_orphans(&self) -> f64 {
        let namespaces = self.namespaces.as_ref();
        namespaces.map_or(0.0, |namespaces| watchdog::usage(&[namespaces.pid()]).cpu)
    }

    /// The limit of the program's user, who may have other processes; `None` where a control group
    /// counts the run's alone.
    fn most_processes(&self, task: &Task) -> Option<u64> {
        // Slot, interpreters and the run's pid 1 are that user's too.
        const HOUSEKEEPING: u64 = 4;
        let most = u64::from(task.limits.processes) + HOUSEKEEPING;
        if self.tier == Tier::Namespaces || sys::effective_ids().0 >= ids::FIRST_UNOWNED {
            return Some(most);
        }
        let counted = self
            .interpreters
            .meters()
            .is_some_and(Meters::counts_processes);
        (!counted).then(|| most + ids::tasks_of_own_user())
    }

    fn processes(&self) -> Vec<libc::pid_t> {
        watchdog::descendants(&self.housekeeping)
    }

    /// In a working folder that is no file system of its own and so no larger than allowed.
    fn wrote_too_much(&self, limits: &Limits) -> bool {
        let Some(watched) = &self.watched else {
            return false;
        };
        let used = disk::usage(watched);
        let bytes = used.bytes.saturating_sub(self.brought.bytes);
        let files = used.files.saturating_sub(self.brought.files);
        bytes > limits.disk || files > disk::most_files(limits.disk)
    }

    fn kill_all(&self) {
        match self.namespaces {
            Some(namespaces) => namespaces.kill(),
            None => {
                kill_descendants(|| self.processes());
            }
        }
    }
}

struct Run<'a> {
    task: &'a Task,
    zygote: &'a Zygote,
    place: &'a Place<'a>,
    gauge: Option<Gauge<'a>>,
    /// Seconds, before this program.
    cpu_of_orphans: f64,
    next_disk_watch: Duration,
    started: Instant,
    /// Standard output, standard error, result.
    streams: [Stream; 3],
    buffer: Vec<u8>,
    /// The limit for which the run was ended.
    killed: Option<Status>,
}

struct Stream {
    /// `None` at its end.
    pipe: Option<File>,
    capture: Capture,
}

impl Stream {
    fn new(pipe: OwnedFd, keep: usize) -> io::Result<Self> {
        sys::set_nonblocking(pipe.as_fd())?;
        Ok(Self {
            pipe: Some(pipe.into()),
            capture: Capture::new(keep),
        })
    }

    fn drain(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else {
            return Ok(());
        };
        match pipe.read(buffer) {
            Ok(0) => self.pipe = None,
            Ok(n) => self.capture.push(&buffer[..n]),
            Err(error) if is_transient(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl Run<'_> {
    /// Until the main process has ended, for whatever reason.
    fn watch(&mut self) -> Result<Result<Ended, String>, Lost> {
        let limits = self.task.limits;
        let mut next_watch = WATCH_EVERY;
        loop {
            let elapsed = self.started.elapsed();
            if self.killed.is_none() && elapsed >= limits.wall {
                self.kill(Status::WallTimeout);
            }
            if self.killed.is_some() && elapsed >= limits.wall.max(next_watch) + AFTER_KILL {
                return Err(Lost::Broken(io::Error::other(
                    "the run did not end when killed",
                )));
            }
            if self.killed.is_none() && elapsed >= next_watch {
                self.check_usage()?;
                next_watch = self.started.elapsed() + WATCH_EVERY;
            }
            let until = if self.killed.is_some() {
                AFTER_KILL
            } else {
                limits.wall.min(next_watch)
            };
            let timeout = until
                .saturating_sub(self.started.elapsed())
                .max(Duration::from_millis(1));

            let mut fds = vec![
                sys::interest(self.zygote.socket(), libc::POLLIN),
                sys::interest(self.place.client.socket, libc::POLLIN),
                sys::interest(self.place.client.leash, libc::POLLIN),
            ];
            for stream in &self.streams {
                match &stream.pipe {
                    Some(pipe) => fds.push(sys::interest(pipe, libc::POLLIN)),
                    None => fds.push(libc::pollfd {
                        fd: -1,
                        events: 0,
                        revents: 0,
                    }),
                }
            }
            sys::poll(&mut fds, Some(timeout))?;
            if fds[1].revents != 0 || fds[2].revents != 0 {
                return Err(Lost::Abandoned);
            }
            for (stream, _) in self
                .streams
                .iter_mut()
                .zip(&fds[3..])
                .filter(|(_, fd)| fd.revents != 0)
            {
                stream.drain(&mut self.buffer)?;
            }
            if self.killed.is_none() && self.too_much_output() {
                self.kill(Status::Output);
            }
            if fds[0].revents != 0 {
                return match self.zygote.receive() {
                    // The interpreter was in the same group.
                    Err(_) if self.ran_out_of_memory()? => {
                        self.kill(Status::Memory);
                        Ok(Ok(Ended::UNKNOWN))
                    }
                    received => Ok(received?),
                };
            }
        }
    }

    fn too_much_output(&self) -> bool {
        let [stdout, stderr, result] = self.streams.each_ref().map(|stream| stream.capture.total);
        (stdout + stderr).max(result) > self.task.limits.output_max
    }

    fn check_usage(&mut self) -> io::Result<()> {
        let limits = &self.task.limits;
        let (mut cpu, mut too_much_memory) = (None, None);
        if let Some(gauge) = &self.gauge {
            cpu = gauge.cpu()?;
            too_much_memory = gauge.holds_more_than(limits.memory)?;
            if gauge.ran_out()? {
                too_much_memory = Some(true);
            }
        }
        if cpu.is_none() || too_much_memory.is_none() {
            let processes = self.place.processes();
            let usage = watchdog::usage(&processes);
            let orphans = self.place.cpu_of_orphans() - self.cpu_of_orphans;
            cpu.get_or_insert(Duration::from_secs_f64(usage.cpu + orphans.max(0.0)));
            too_much_memory.get_or_insert_with(|| {
                usage.resident > limits.memory
                    && watchdog::proportional_memory(&processes) > limits.memory
            });
        }
        if too_much_memory == Some(true) {
            self.kill(Status::Memory);
        } else if cpu.is_some_and(|cpu| cpu >= limits.cpu) {
            self.kill(Status::CpuTimeout);
        } else {
            self.check_disk();
        }
        Ok(())
    }

    fn check_disk(&mut self) {
        let began = self.started.elapsed();
        if began < self.next_disk_watch {
            return;
        }
        if self.place.wrote_too_much(&self.task.limits) {
            self.kill(Status::Disk);
        }
        // A tenth of the time at most goes into looking.
        let took = self.started.elapsed().saturating_sub(began);
        self.next_disk_watch = began + (took * 10).max(DISK_WATCH_EVERY);
    }

    /// Whether the kernel ended some of the run for want of memory.
    fn ran_out_of_memory(&self) -> io::Result<bool> {
        self.gauge.as_ref().map_or(Ok(false), Gauge::ran_out)
    }

    fn kill(&mut self, reason: Status) {
        self.killed.get_or_insert(reason);
        self.place.kill_all();
    }
}

/// Without namespaces: until none is left, as each may start another before its turn comes.
/// False when some are left all the same.
pub(crate) fn kill_descendants(processes: impl Fn() -> Vec<libc::pid_t>) -> bool {
    const ROUNDS: usize = 200;
    for _ in 0..ROUNDS {
        let processes = processes();
        if processes.is_empty() {
            return true;
        }
        for pid in processes {
            // SAFETY: a plain call; the pid is that of a living or unreaped descendant.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        sys::reap_orphans();
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

/// All writers are dead, so what the pipes still hold is the end of the streams.
fn drain_to_end(run: &mut Run<'_>) -> io::Result<()> {
    for stream in &mut run.streams {
        loop {
            let before = stream.capture.total;
            stream.drain(&mut run.buffer)?;
            let enough = stream.capture.total > run.task.limits.output_max;
            if stream.pipe.is_none() || stream.capture.total == before || enough {
                break;
            }
        }
    }
    if run.killed.is_none() && run.too_much_output() {
        run.killed = Some(Status::Output);
    }
    Ok(())
}

/// Processes that the host has killed for want of memory since its start; `None` where it does not tell.
fn oom_kills() -> Option<u64> {
    let counters = std::fs::read_to_string("/proc/vmstat").ok()?;
    let line = counters
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill "))?;
    line.parse().ok()
}

/// How a main process that was not killed for a limit ended. The signals that say why are those of
/// `zygote.py`. `None` when it was killed otherwise: by the host out of memory, or by what it asked the
/// kernel for.
fn status(ended: &Ended, task: &Task) -> Option<Status> {
    if libc::WIFEXITED(ended.status) {
        return Some(match libc::WEXITSTATUS(ended.status) {
            0 => Status::Ok,
            code => Status::NonZero(code),
        });
    }
    let signal = libc::WTERMSIG(ended.status);
    Some(match signal {
        libc::SIGXCPU => Status::CpuTimeout,
        libc::SIGKILL if ended.cpu >= task.limits.cpu => Status::CpuTimeout,
        libc::SIGKILL => return None,
        libc::SIGXFSZ => Status::Disk,
        _ if signal == libc::SIGRTMIN() + 7 => Status::Memory,
        _ if signal == libc::SIGRTMIN() + 8 => Status::Disk,
        _ => Status::Signal(signal),
    })
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
