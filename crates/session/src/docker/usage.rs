//! What a container used, read from its control groups where this process can see them.

use std::{fs, path::PathBuf};

/// Files of one container's control groups.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    cpu: PathBuf,
    memory: PathBuf,
    /// `None` where processes are not counted.
    tasks: Option<PathBuf>,
    /// One hierarchy (version 2), not one per controller.
    unified: bool,
}

const MOUNT: &str = "/sys/fs/cgroup";

pub(super) fn groups_are_visible() -> bool {
    let unified = PathBuf::from(MOUNT).join("cgroup.controllers").exists();
    unified || PathBuf::from(MOUNT).join("memory").exists()
}

impl Groups {
    /// The groups of the process `pid`, if they are those of the container `id`.
    pub(super) fn of(pid: i64, id: &str) -> Option<Self> {
        let table = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let folder_of = |controller: &str| {
            let mut lines = table.lines().map(|line| line.splitn(3, ':'));
            lines.find_map(|mut fields| {
                let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
                let listed = controllers.split(',').any(|found| found == controller);
                (listed && path.contains(id)).then(|| path.trim_start_matches('/').to_owned())
            })
        };
        let unified = PathBuf::from(MOUNT).join("cgroup.controllers").exists();
        let groups = if unified {
            let folder = PathBuf::from(MOUNT).join(folder_of("")?);
            Self {
                cpu: folder.join("cpu.stat"),
                tasks: Some(folder.join("pids.current")),
                memory: folder,
                unified,
            }
        } else {
            let memory = folder_of("memory")?;
            let mut lines = table.lines().map(|line| line.splitn(3, ':'));
            let cpu = lines.find_map(|mut fields| {
                let controllers = fields.nth(1)?;
                let listed = controllers.split(',').any(|found| found == "cpuacct");
                listed.then(|| fields.next().map(|path| path.trim_start_matches('/')))?
            })?;
            Self {
                cpu: PathBuf::from(MOUNT)
                    .join("cpuacct")
                    .join(cpu)
                    .join("cpuacct.usage"),
                memory: PathBuf::from(MOUNT).join("memory").join(memory),
                tasks: folder_of("pids").map(|folder| {
                    PathBuf::from(MOUNT)
                        .join("pids")
                        .join(folder)
                        .join("pids.current")
                }),
                unified,
            }
        };
        groups.cpu_ms()?;
        Some(groups)
    }

    /// Milliseconds of CPU time of all processes since the container's start.
    pub(super) fn cpu_ms(&self) -> Option<f64> {
        let text = fs::read_to_string(&self.cpu).ok()?;
        if self.unified {
            Some(field(&text, "usage_usec")? as f64 / 1e3)
        } else {
            Some(text.trim().parse::<u64>().ok()? as f64 / 1e6)
        }
    }

    /// Threads of all processes, those that ended and that nobody has collected among them.
    pub(super) fn tasks(&self) -> Option<usize> {
        let text = fs::read_to_string(self.tasks.as_ref()?).ok()?;
        text.trim().parse().ok()
    }

    /// Bytes that cannot be dropped at will: of processes, without files that were only read.
    pub(super) fn memory(&self) -> Option<u64> {
        let text = fs::read_to_string(self.memory.join("memory.stat")).ok()?;
        if self.unified {
            Some(field(&text, "anon")? + field(&text, "shmem").unwrap_or(0))
        } else {
            Some(field(&text, "total_rss")? + field(&text, "total_shmem").unwrap_or(0))
        }
    }

    /// How many processes the kernel has ended for want of memory.
    pub(super) fn memory_kills(&self) -> Option<u64> {
        let name = match self.unified {
            true => "memory.events",
            false => "memory.oom_control",
        };
        field(
            &fs::read_to_string(self.memory.join(name)).ok()?,
            "oom_kill",
        )
    }
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(' ')?;
        (found == name).then(|| value.trim().parse().ok())?
    })
}
