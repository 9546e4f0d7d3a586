//! Control groups: the kernel's own count of what the runs of a slot use, where groups may be made.
//!
//! The interpreters of a slot are in its group for good, and so is all that they start; the slot
//! itself and the pid 1 of each run are not. So a run costs a few reads and no move of a process
//! between groups, which was measured at a quarter of a millisecond and sometimes at ten.
//!
//! A group is locked by its supervisor: one that can be locked was left by a dead one.

use std::{
    cell::Cell,
    fs::{self, File, OpenOptions},
    io,
    os::{
        fd::{AsFd, AsRawFd, RawFd},
        unix::fs::FileExt,
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{Limits, enforced::Counted, hierarchy::Hierarchy, sys};

/// Where groups can be made.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    hierarchies: Vec<Hierarchy>,
}

/// The groups of one slot. Removed with this value.
pub(crate) struct SlotGroups {
    folders: Vec<(PathBuf, Lock)>,
    pub(crate) meters: Meters,
}

/// Held as long as the group is in use. The kernel lets go of it however its process ends.
type Lock = File;

/// What the slot needs of its groups.
pub(crate) struct Meters {
    /// A process that writes `0` here is in the group from then on.
    doors: Vec<File>,
    memory: Option<Memory>,
    processes: Option<(File, Cell<u64>)>,
    cpu: Option<Cpu>,
}

struct Memory {
    limit: File,
    usage: File,
    /// Absent on version 2 before Linux 6.12, which cannot reset it.
    peak: Option<File>,
    events: File,
    detail: File,
    /// The name of anonymous memory in `detail`.
    anonymous: &'static str,
    written_limit: Cell<u64>,
    /// The least usage seen between runs: that of the interpreters.
    idle: Cell<u64>,
}

struct Cpu {
    usage: File,
    unified: bool,
}

/// One run, as its groups count it.
pub(crate) struct Gauge<'a> {
    meters: &'a Meters,
    memory_at_start: u64,
    kills_at_start: u64,
    cpu_at_start: Duration,
}

/// Groups carry this, their supervisor's process and the slot's number in their name.
const PREFIX: &str = "etude-sandbox-";

/// The kernel's own memory for a run's processes: stacks, page tables, descriptors.
const KERNEL_SHARE: u64 = 16 << 20;

/// At least one interpreter is in the group, or two.
const INTERPRETERS: u64 = 2;

impl Groups {
    /// Those that this process, which has one thread, may use; found by using one. Removes what dead
    /// supervisors left.
    pub(crate) fn find() -> Self {
        let mut hierarchies = Hierarchy::all_writable();
        for hierarchy in &hierarchies {
            remove_abandoned(&hierarchy.folder);
        }
        hierarchies.retain(|hierarchy| {
            let groups = Self {
                hierarchies: vec![hierarchy.clone()],
            };
            groups.make("probe").is_ok_and(|slot| slot.meters.work())
        });
        Self { hierarchies }
    }

    pub(crate) fn counted(&self) -> Counted {
        let any = |has: fn(&Hierarchy) -> bool| self.hierarchies.iter().any(has);
        Counted {
            memory: any(|hierarchy| hierarchy.memory),
            processes: any(|hierarchy| hierarchy.processes),
            cpu: any(|hierarchy| hierarchy.cpu),
        }
    }

    /// New groups, named after this process and `slot`. `None` when there are no hierarchies.
    pub(crate) fn for_slot(&self, slot: usize) -> io::Result<Option<SlotGroups>> {
        if self.hierarchies.is_empty() {
            return Ok(None);
        }
        self.make(&slot.to_string()).map(Some)
    }

    fn make(&self, slot: &str) -> io::Result<SlotGroups> {
        let mut groups = SlotGroups {
            folders: Vec::new(),
            meters: Meters {
                doors: Vec::new(),
                memory: None,
                processes: None,
                cpu: None,
            },
        };
        for hierarchy in &self.hierarchies {
            let name = format!("{PREFIX}{}-{slot}", std::process::id());
            let folder = hierarchy.folder.join(name);
            let lock = make_locked(&folder)?;
            groups.folders.push((folder.clone(), lock));
            groups.meters.add(hierarchy, &folder)?;
        }
        Ok(groups)
    }
}

/// Another process that looks for abandoned groups may come in between.
fn make_locked(folder: &Path) -> io::Result<Lock> {
    const TRIES: usize = 20;
    let mut refused = io::Error::other("not tried");
    for _ in 0..TRIES {
        let made = match fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => sys::lock_folder(folder),
        };
        match made {
            Ok(lock) if folder.is_dir() => return Ok(lock),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
            Err(error) => refused = error,
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err(refused)
}

/// Ends what is in the groups of dead supervisors below `parent`, and removes them. Says which.
pub(crate) fn remove_abandoned(parent: &Path) -> Vec<PathBuf> {
    let mut removed = Vec::new();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        if let Ok(lock) = sys::lock_folder(&entry.path()) {
            remove(&entry.path());
            drop(lock);
            removed.extend((!entry.path().exists()).then(|| entry.path()));
        }
    }
    removed
}

/// Kills the members, and waits for their end as long as is sensible.
fn remove(folder: &Path) {
    const PATIENCE: Duration = Duration::from_secs(2);
    let until = Instant::now() + PATIENCE;
    loop {
        let _ = fs::write(folder.join("cgroup.kill"), "1");
        let members = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        for pid in members.lines().filter_map(|line| line.parse().ok()) {
            // 0 stands for processes out of this namespace's sight.
            if pid > 0 {
                // SAFETY: a plain call. The process was in the group just now.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
        }
        match fs::remove_dir(folder) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(2));
            }
            _ => return,
        }
    }
}

impl Drop for SlotGroups {
    fn drop(&mut self) {
        for (folder, _) in &self.folders {
            remove(folder);
        }
    }
}

impl Meters {
    fn add(&mut self, hierarchy: &Hierarchy, folder: &Path) -> io::Result<()> {
        let unified = hierarchy.unified;
        let read = |name: &str| File::open(folder.join(name));
        let write = |name: &str| OpenOptions::new().write(true).open(folder.join(name));
        let both = |name: &str| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).open(folder.join(name))
        };
        self.doors.push(write("cgroup.procs")?);
        if hierarchy.memory {
            // What is swapped out is still used.
            let swap = if unified {
                "memory.swap.max"
            } else {
                "memory.swappiness"
            };
            let _ = fs::write(folder.join(swap), "0");
            let names = match unified {
                true => [
                    "memory.max",
                    "memory.current",
                    "memory.peak",
                    "memory.events",
                ],
                false => [
                    "memory.limit_in_bytes",
                    "memory.usage_in_bytes",
                    "memory.max_usage_in_bytes",
                    "memory.oom_control",
                ],
            };
            let [limit, usage, peak, events] = names;
            self.memory = Some(Memory {
                limit: write(limit)?,
                usage: read(usage)?,
                peak: both(peak).ok().filter(|peak| reset(peak).is_ok()),
                events: read(events)?,
                detail: read("memory.stat")?,
                anonymous: if unified { "anon " } else { "rss " },
                written_limit: Cell::new(u64::MAX),
                idle: Cell::new(u64::MAX),
            });
        }
        if hierarchy.processes {
            self.processes = Some((write("pids.max")?, Cell::new(u64::MAX)));
        }
        if hierarchy.cpu {
            let usage = read(if unified { "cpu.stat" } else { "cpuacct.usage" })?;
            self.cpu = Some(Cpu { usage, unified });
        }
        Ok(())
    }

    /// Whether limits can be set, use be read, and a process of another user enter.
    fn work(&self) -> bool {
        let limits = Limits::SMALL;
        let Ok(gauge) = self.begin(&limits) else {
            return false;
        };
        let readable = gauge.ran_out().is_ok() && gauge.cpu().is_ok();
        match sys::clone(0) {
            Ok(sys::Cloned::Child) => {
                const NOBODY: u32 = 65534;
                let _ = sys::become_user(NOBODY, NOBODY);
                sys::exit(i32::from(self.enter().is_err()))
            }
            Ok(sys::Cloned::Parent { pid, .. }) => readable && sys::wait_for_code(pid) == Some(0),
            Err(_) => false,
        }
    }

    /// Moves the calling process into the groups.
    pub(crate) fn enter(&self) -> io::Result<()> {
        self.doors
            .iter()
            .try_for_each(|door| sys::write_all(door.as_fd(), b"0"))
    }

    /// For whoever closes all others.
    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        let memory = self.memory.iter().flat_map(|memory| {
            let Memory {
                limit,
                usage,
                events,
                detail,
                peak,
                ..
            } = memory;
            [limit, usage, events, detail].into_iter().chain(peak)
        });
        let files = self.doors.iter().chain(memory);
        let files = files.chain(self.processes.iter().map(|(file, _)| file));
        let files = files.chain(self.cpu.iter().map(|cpu| &cpu.usage));
        files.map(AsRawFd::as_raw_fd).collect()
    }

    pub(crate) fn counts_processes(&self) -> bool {
        self.processes.is_some()
    }

    pub(crate) fn counts_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Lifts the limits, for an interpreter to start.
    pub(crate) fn lift(&self) -> io::Result<()> {
        if let Some(memory) = &self.memory {
            memory.idle.set(u64::MAX);
            memory.limit_to(u64::MAX)?;
        }
        Ok(())
    }

    /// Sets the limits of a run that is about to start.
    pub(crate) fn begin(&self, limits: &Limits) -> io::Result<Gauge<'_>> {
        let mut gauge = Gauge {
            meters: self,
            memory_at_start: 0,
            kills_at_start: 0,
            cpu_at_start: self.cpu.as_ref().map_or(Ok(Duration::ZERO), Cpu::read)?,
        };
        if let Some(memory) = &self.memory {
            let usage = number(&memory.usage)?;
            memory.idle.set(memory.idle.get().min(usage));
            // The kernel may still be taking down what the run before has left: above that. What the run's processes hold is limited to `memory` at the next look; this is the
            // limit of everything that the kernel counts, the files in memory included.
            let run = limits.memory.saturating_add(limits.disk.saturating_mul(2));
            memory.limit_to(run.saturating_add(usage).saturating_add(KERNEL_SHARE))?;
            if let Some(peak) = &memory.peak {
                reset(peak)?;
            }
            gauge.memory_at_start = usage;
            gauge.kills_at_start = memory.kills()?;
        }
        if let Some((file, written)) = &self.processes {
            let most = u64::from(limits.processes) + INTERPRETERS;
            if written.get() != most {
                file.write_all_at(most.to_string().as_bytes(), 0)?;
                written.set(most);
            }
        }
        Ok(gauge)
    }
}

impl Memory {
    fn limit_to(&self, bytes: u64) -> io::Result<()> {
        // Rounded up, so that it changes rarely.
        const STEP: u64 = 4 << 20;
        let rounded = bytes
            .checked_next_multiple_of(STEP)
            .filter(|limit| *limit < 1 << 60);
        let (limit, text) = match rounded {
            Some(limit) => (limit, limit.to_string()),
            None => (u64::MAX, "-1".to_owned()),
        };
        if self.written_limit.get() == limit {
            return Ok(());
        }
        let unlimited = if self.anonymous == "anon " && rounded.is_none() {
            "max"
        } else {
            &text
        };
        self.limit.write_all_at(unlimited.as_bytes(), 0)?;
        self.written_limit.set(limit);
        Ok(())
    }

    /// Processes that the kernel has ended here for want of memory.
    fn kills(&self) -> io::Result<u64> {
        field(&self.events, "oom_kill ")
    }
}

impl Cpu {
    fn read(&self) -> io::Result<Duration> {
        if self.unified {
            field(&self.usage, "usage_usec ").map(Duration::from_micros)
        } else {
            number(&self.usage).map(Duration::from_nanos)
        }
    }
}

impl Gauge<'_> {
    /// Whether the kernel has ended a process of the run for want of memory.
    pub(crate) fn ran_out(&self) -> io::Result<bool> {
        let memory = self.meters.memory.as_ref();
        memory.map_or(
            Ok(false),
            |memory| Ok(memory.kills()? > self.kills_at_start),
        )
    }

    /// Whether the processes hold more than `limit` bytes together; `None` when nothing counts it.
    pub(crate) fn holds_more_than(&self, limit: u64) -> io::Result<Option<bool>> {
        let Some(memory) = &self.meters.memory else {
            return Ok(None);
        };
        let limit = limit.saturating_add(memory.idle.get());
        // The whole, which is quick to read, counts files too.
        let more =
            number(&memory.usage)? > limit && field(&memory.detail, memory.anonymous)? > limit;
        Ok(Some(more))
    }

    /// CPU time of all processes since the start; `None` when nothing counts it.
    pub(crate) fn cpu(&self) -> io::Result<Option<Duration>> {
        let Some(cpu) = &self.meters.cpu else {
            return Ok(None);
        };
        Ok(Some(cpu.read()?.saturating_sub(self.cpu_at_start)))
    }

    /// Bytes held at most beyond those at the start, the files in memory included.
    pub(crate) fn peak_memory(&self) -> io::Result<Option<u64>> {
        let peak = self
            .meters
            .memory
            .as_ref()
            .and_then(|memory| memory.peak.as_ref());
        let peak = peak.map(number).transpose()?;
        Ok(peak.map(|peak| peak.saturating_sub(self.memory_at_start)))
    }
}

fn reset(peak: &File) -> io::Result<()> {
    peak.write_all_at(b"0", 0)
}

fn number(file: &File) -> io::Result<u64> {
    with_text(file, |text| text.trim().parse().ok())
}

/// The number behind `name` at the beginning of a line.
fn field(file: &File, name: &str) -> io::Result<u64> {
    with_text(file, |text| {
        let value = text.lines().find_map(|line| line.strip_prefix(name))?;
        value.trim().parse().ok()
    })
}

fn with_text<T>(file: &File, parse: impl Fn(&str) -> Option<T>) -> io::Result<T> {
    let mut buffer = [0; 8 << 10];
    let n = file.read_at(&mut buffer, 0)?;
    let text = String::from_utf8_lossy(&buffer[..n]);
    parse(&text).ok_or_else(|| io::Error::other(format!("a control group says {text:?}")))
}
