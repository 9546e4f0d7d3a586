//! Too many processes, processes that stay, and other people's processes.

use sandbox::{Job, Limits, Status};

use crate::common::{
    ALL, ATTEMPT, TIGHT, Tier, WALLED, all_end, at, command_lines, config, control_groups_of,
    descendants, ends_as, eventually, is_counted, is_root, job_ends_as, kill, only_slots_are_left,
    reaches_nothing, start,
};

#[tokio::test]
async fn row_01_fork_bombs_are_bounded() {
    for sandbox in at(ALL) {
        // Without a count of the run's own processes, the limit is the user's, who has others: most
        // is held loosely then, and least at the first attempt that no others got in the way of.
        let exact = sandbox.tier() == Tier::Namespaces || is_root();
        let counted = exact || is_counted(&sandbox, "processes");
        let (most, attempts, statuses) = match counted {
            true => (40, 1, &[Status::Ok][..]),
            false => (2000, 20, &[Status::Ok, Status::NonZero(1)][..]),
        };
        let forks = "
import os
n = 0
try:
    while True:
        if os.fork() == 0:
            import time; time.sleep(60)
        n += 1
except OSError: print(n)";
        let threads = "
import threading, time, os
n = 0
try:
    while True:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        n += 1
except RuntimeError: os.write(1, b'%d' % n); os._exit(0)";
        let roomy = Limits {
            address_space: false,
            ..TIGHT
        };
        for (bomb, limits, least) in [(forks, TIGHT, 16), (threads, roomy, 8)] {
            let mut started = Vec::new();
            while started.len() < attempts && started.last().is_none_or(|&last| last < least) {
                let outcome = job_ends_as(&sandbox, Job::script(bomb, limits), statuses).await;
                let told = outcome.stdout.text().trim().parse::<usize>();
                let number = if counted {
                    told.unwrap()
                } else {
                    told.unwrap_or(0)
                };
                assert!(number < most, "{}: {number}", sandbox.tier());
                started.push(number);
            }
            let reached = started.iter().any(|&number| number >= least);
            assert!(reached, "{}: {started:?}", sandbox.tier());
        }
        let exponential = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass";
        let ended = &[Status::CpuTimeout, Status::WallTimeout];
        ends_as(&sandbox, exponential, ended).await;
    }
}

#[tokio::test]
async fn row_09_deaf_programs_are_ended() {
    for sandbox in at(ALL) {
        let deaf = "import signal
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True: pass";
        ends_as(&sandbox, deaf, &[Status::CpuTimeout]).await;
    }
}

const DAEMON: &str = "
import os, time, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv('/bin/sleep', ['sleep-of-the-daemon-NAME', '600'])
    os._exit(0)
os.wait()
time.sleep(0.1)
print('parent done', flush=True)
";

#[tokio::test]
async fn row_10_daemons_do_not_outlive_their_run() {
    for sandbox in at(ALL) {
        let name = format!(
            "{}-{}",
            std::process::id(),
            sandbox.supervisor_pid().unwrap()
        );
        let daemon = DAEMON.replace("NAME", &name);
        let outcome = ends_as(&sandbox, &daemon, &[Status::Ok]).await;
        assert_eq!(outcome.stdout.text(), "parent done\n");
        assert!(!command_lines().iter().any(|line| line.contains(&name)));
        // Many, that fork on and on to get away.
        let swarm = "
import os
for _ in range(8):
    if os.fork() == 0:
        while True:
            os.setsid() if os.getsid(0) != os.getpid() else None
            try:
                if os.fork(): os._exit(0)
            except OSError: pass
import time; time.sleep(0.2)";
        let statuses = &[Status::Ok, Status::CpuTimeout, Status::NonZero(1)];
        ends_as(&sandbox, swarm, statuses).await;
    }
}

#[tokio::test]
async fn row_11_nothing_outlives_a_killed_supervisor() {
    let scratch = tempfile::tempdir().unwrap();
    open_to_all(scratch.path());
    for tier in ALL {
        let mut config = config(*tier, 2);
        config.scratch = scratch.path().to_owned();
        let Some(sandbox) = start(config) else {
            continue;
        };
        let name = format!(
            "{}-{}",
            std::process::id(),
            sandbox.supervisor_pid().unwrap()
        );
        let daemon = DAEMON.replace("NAME", &name) + "\ntime.sleep(600)";
        let runs = [&daemon, &daemon].map(|source| {
            let job = Job::script(
                source.as_str(),
                Limits {
                    wall: TIGHT.wall * 100,
                    ..TIGHT
                },
            );
            let sandbox = sandbox.clone();
            tokio::spawn(async move { sandbox.run(job).await })
        });
        let daemons = || {
            command_lines()
                .iter()
                .filter(|line| line.contains(&name))
                .count()
        };
        while daemons() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let supervisor = sandbox.supervisor_pid().unwrap();
        let below = descendants(supervisor);
        kill(supervisor);
        for run in runs {
            assert!(run.await.unwrap().is_err(), "{tier}");
        }
        all_end(&below);
        assert_eq!(daemons(), 0, "{tier}");
        eventually(|| {
            let left = control_groups_of(supervisor);
            left.is_empty()
                .then_some(())
                .ok_or(format!("{tier}: {left:?}"))
        });
        drop(sandbox);
        eventually(|| {
            let left: Vec<_> = std::fs::read_dir(scratch.path())
                .unwrap()
                .flatten()
                .collect();
            left.is_empty()
                .then_some(())
                .ok_or(format!("{tier}: {left:?}"))
        });
    }
}

fn open_to_all(folder: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder, mode).unwrap();
}

#[tokio::test]
async fn row_16_other_processes_are_out_of_reach() {
    let own = std::process::id();
    for sandbox in at(WALLED) {
        let supervisor = sandbox.supervisor_pid().unwrap();
        let below = descendants(supervisor);
        let numbers: Vec<String> = below.iter().map(u32::to_string).collect();
        let source = format!(
            "{ATTEMPT}
buffer = ctypes.create_string_buffer(64)
class Part(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t)]
part = ctypes.byref(Part(ctypes.addressof(buffer), 64))
for pid in (1, {own}, {supervisor}, {below}):
    # Asking is enough: what may be asked may be done. The run's own pid 1 may be asked.
    if not (pid == 1 and {namespaces}): attempt(lambda: os.kill(pid, 0))
    attempt(
        lambda: os.kill(pid, 9), lambda: sys({ptrace}, 16, pid, 0, 0), lambda: sys({pidfd_getfd}, pid, 0, 0),
        lambda: sys({readv}, pid, part, 1, part, 1, 0), lambda: sys({writev}, pid, part, 1, part, 1, 0),
        lambda: open('/proc/%d/mem' % pid, 'rb').read(1), lambda: open('/proc/%d/environ' % pid).read(),
        lambda: os.readlink('/proc/%d/cwd' % pid), lambda: os.readlink('/proc/%d/fd/0' % pid),
        lambda: os.sched_setaffinity(pid, [0]), lambda: os.setpriority(os.PRIO_PROCESS, pid, 19) if pid != 1 or not {namespaces} else os.kill(3, 9),
    )
try: os.kill(-1, 15)
except OSError: pass
if {namespaces}: os.kill(1, 15)
print('no')
",
            ptrace = libc::SYS_ptrace,
            pidfd_getfd = libc::SYS_pidfd_getfd,
            readv = libc::SYS_process_vm_readv,
            writev = libc::SYS_process_vm_writev,
            below = numbers.join(", "),
            namespaces = if sandbox.tier() == Tier::Namespaces { "True" } else { "False" },
        );
        reaches_nothing(&sandbox, &source).await;
        assert_eq!(descendants(supervisor), below, "{}", sandbox.tier());
        let own_only = "import os
print([p for p in os.listdir('/proc') if p.isdigit()])";
        if sandbox.tier() == Tier::Namespaces {
            let outcome = ends_as(&sandbox, own_only, &[Status::Ok]).await;
            assert_eq!(outcome.stdout.text(), "['1', '2']\n");
        }
        only_slots_are_left(&sandbox, 1);
    }
}
