//! Which user programs are, outside of any namespace.

use std::fs;

use crate::sys;

/// The first of the users that own nothing.
pub(crate) const FIRST_UNOWNED: u32 = 600_000_000;
const NOBODY: u32 = 65534;
/// Slots of one supervisor that get a user of their own; more share them.
const SLOTS: u32 = 64;
/// Process ids are below this.
const PROCESSES: u32 = 1 << 22;

/// A user and group of the slot's own, who owns nothing. Called in the supervisor.
///
/// Of its own because some limits and rights go by user: processes of one slot do not count against
/// another's, and cannot touch them.
pub(crate) fn unowned(slot: usize) -> u32 {
    let slot = u32::try_from(slot).unwrap_or(0) % SLOTS;
    FIRST_UNOWNED + std::process::id() % PROCESSES * SLOTS + slot
}

/// Whether all processes and files of this user are some slot's.
pub(crate) fn is_unowned(user: u32) -> bool {
    (FIRST_UNOWNED..FIRST_UNOWNED + PROCESSES * SLOTS).contains(&user)
}

/// Who programs of the weaker tiers are: somebody who owns nothing, where this process may become
/// that; else whoever it is itself.
pub(crate) fn without_namespaces(slot: usize) -> (u32, u32) {
    let (user, group) = sys::effective_ids();
    if user != 0 {
        return (user, group);
    }
    let wanted = unowned(slot);
    let id = if is_mapped("uid_map", wanted) && is_mapped("gid_map", wanted) {
        wanted
    } else {
        NOBODY
    };
    (id, id)
}

/// In a container, only some users exist.
fn is_mapped(map: &str, id: u32) -> bool {
    let map = fs::read_to_string(format!("/proc/self/{map}")).unwrap_or_default();
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().map(|text| text.parse::<u64>());
        let (Some(Ok(first)), Some(_), Some(Ok(count))) =
            (numbers.next(), numbers.next(), numbers.next())
        else {
            return false;
        };
        (first..first.saturating_add(count)).contains(&u64::from(id))
    })
}

/// Ends all processes of `user`, whom [`is_unowned`] is true for.
pub(crate) fn kill_all_of(user: u32) {
    const ROUNDS: usize = 50;
    if !is_unowned(user) {
        return;
    }
    for _ in 0..ROUNDS {
        let processes = processes_of(user);
        if processes.is_empty() {
            return;
        }
        for pid in processes {
            // SAFETY: a plain call. The process was that user's just now.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// The living processes of `user`.
fn processes_of(user: u32) -> Vec<libc::pid_t> {
    use std::os::unix::fs::MetadataExt;
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let owned = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        // The folder of a process that keeps its memory to itself is root's.
        let status = || fs::read_to_string(entry.path().join("status")).ok();
        let owner = entry.metadata().ok()?.uid();
        let its =
            owner == user || (owner == 0 && status()?.lines().any(|line| is_uid_line(line, user)));
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let ended = stat.rsplit_once(')')?.1.starts_with(" Z");
        (its && !ended).then_some(pid)
    });
    owned.collect()
}

fn is_uid_line(line: &str, user: u32) -> bool {
    let real = line
        .strip_prefix("Uid:")
        .and_then(|rest| rest.split_whitespace().next());
    real.and_then(|id| id.parse().ok()) == Some(user)
}

/// Processes and threads of this process's own user.
pub(crate) fn tasks_of_own_user() -> u64 {
    use std::os::unix::fs::MetadataExt;
    let (user, _) = sys::effective_ids();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let tasks = entries.filter_map(|entry| {
        entry.file_name().to_str()?.parse::<u32>().ok()?;
        if entry.metadata().ok()?.uid() != user {
            return None;
        }
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let threads = status
            .lines()
            .find_map(|line| line.strip_prefix("Threads:"))?;
        threads.trim().parse::<u64>().ok()
    });
    tasks.sum()
}
