//! Processes of this machine: telling them apart, and ending them.

use std::{fs, io, time::Duration};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::time::{Instant, sleep};

use super::MARK;

/// How long a killed process may take to end.
const KILL_GRACE: Duration = Duration::from_secs(5);

/// When a process started, in clock ticks since the boot, and whether it has ended and only waits to
/// be collected. `None` when there is no such process.
pub(super) fn find(pid: u32) -> io::Result<Option<(u64, bool)>> {
    let text = match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // The process ended while it was looked at.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    // The name in parentheses may contain anything; the state follows the last one.
    let fields = text.rsplit_once(')').map(|(_, rest)| rest).unwrap_or("");
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let started = fields.get(19).and_then(|field| field.parse().ok());
    let started = started.ok_or_else(|| io::Error::other("unreadable /proc/PID/stat"))?;
    // The first thread may be over while others run on.
    let threads: u32 = fields[17].parse().unwrap_or(u32::MAX);
    Ok(Some((
        started,
        matches!(fields[0], "Z" | "X") && threads <= 1,
    )))
}

/// Kills one process and waits for its end. One that is gone, or another one by now, is left alone.
pub(super) async fn kill(pid: u32, started: u64) -> Result<(), String> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let raw = raw.ok_or_else(|| format!("{pid} is no process id"))?;
    // From here on the handle means one process, whatever becomes of its number.
    let handle = match pidfd_open(raw, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    let lives = || match find(pid) {
        Ok(found) => Ok(found.is_some_and(|(found, ended)| found == started && !ended)),
        Err(error) => Err(error.to_string()),
    };
    if !lives()? {
        return Ok(());
    }
    match pidfd_send_signal(&handle, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => return Err(error.to_string()),
    }
    let deadline = Instant::now() + KILL_GRACE;
    while lives()? {
        if Instant::now() > deadline {
            return Err("it was killed and has not ended yet".to_owned());
        }
        sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// A process that was just forked bears the mark only once it runs its program.
const SETTLE: Duration = Duration::from_millis(50);

/// Kills every process that was started with the mark of the lease `id`, until none shows up.
pub(super) async fn kill_marked(id: &str) -> Result<(), String> {
    let deadline = Instant::now() + KILL_GRACE;
    let mut settled = false;
    loop {
        let marked = marked(id).map_err(|error| error.to_string())?;
        if marked.is_empty() {
            if settled {
                return Ok(());
            }
            sleep(SETTLE).await;
        }
        settled = marked.is_empty();
        if Instant::now() > deadline {
            return Err(format!("{} processes keep coming back", marked.len()));
        }
        for (pid, started) in marked {
            kill(pid, started).await?;
        }
    }
}

/// Process ids and start times. Processes whose environment may not be read are not this user's.
fn marked(id: &str) -> io::Result<Vec<(u32, u64)>> {
    let mark = format!("{MARK}={id}");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let Ok(environment) = fs::read(entry.path().join("environ")) else {
            continue;
        };
        let has_mark = environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == mark.as_bytes());
        if has_mark && let Ok(Some((started, false))) = find(pid) {
            found.push((pid, started));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "a process that has ended is needed"
    )]
    fn a_process_that_was_not_collected_is_dead() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        let ended = || matches!(find(pid).unwrap(), Some((_, true)));
        for _ in 0..1000 {
            if ended() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(ended());
        child.wait().unwrap();
        assert_eq!(find(pid).unwrap(), None);
    }
}
