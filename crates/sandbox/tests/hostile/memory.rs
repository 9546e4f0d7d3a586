//! More memory than allowed, in one process, in many, and in none.

use std::time::Duration;

use sandbox::{Job, Limits, RunOutcome, Sandbox, Status};

use crate::common::{
    ALL, ATTEMPT, TIGHT, Tier, at, is_counted, is_root, job_ends_as, reaches_nothing,
};

/// Taking memory takes time, more so on a busy machine.
const AMPLE_TIME: Limits = Limits {
    wall: Duration::from_secs(60),
    cpu: Duration::from_secs(10),
    ..TIGHT
};

async fn bomb_ends_as(sandbox: &Sandbox, source: &str, statuses: &[Status]) -> RunOutcome {
    job_ends_as(sandbox, Job::script(source, AMPLE_TIME), statuses).await
}

#[tokio::test]
async fn row_02_a_memory_bomb_in_one_process_is_defused() {
    for sandbox in at(ALL) {
        let at_once = "a = 'a' * (1 << 31)";
        bomb_ends_as(&sandbox, at_once, &[Status::Memory]).await;
        let little_by_little = "a = []\nwhile True: a.append(bytes(1 << 20))";
        bomb_ends_as(&sandbox, little_by_little, &[Status::Memory]).await;
        let caught = "
try: bytearray(1 << 30)
except MemoryError: print('caught')";
        let outcome = bomb_ends_as(&sandbox, caught, &[Status::Ok]).await;
        assert_eq!(outcome.stdout.text(), "caught\n");
        // As runtimes are run that reserve more than they use.
        let unlimited = Limits {
            address_space: false,
            ..AMPLE_TIME
        };
        for source in [at_once, little_by_little] {
            let job = Job::script(source, unlimited);
            let outcome = job_ends_as(&sandbox, job, &[Status::Memory]).await;
            if is_counted(&sandbox, "memory") {
                // The kernel's count includes its own share and files in memory.
                let most = TIGHT.memory + 2 * TIGHT.disk + (40 << 20);
                assert!(outcome.peak_memory < most, "{}", outcome.peak_memory);
            }
        }
    }
}

#[tokio::test]
async fn row_03_memory_is_bounded_over_all_processes() {
    for sandbox in at(ALL) {
        let children = "
import os, time
for _ in range(20):
    if os.fork() == 0:
        hog = b'x' * (60 << 20)
        time.sleep(60)
time.sleep(60)
";
        let outcome = bomb_ends_as(&sandbox, children, &[Status::Memory]).await;
        if is_counted(&sandbox, "memory") {
            let least = TIGHT.memory - (32 << 20);
            assert!(outcome.peak_memory > least, "{}", outcome.peak_memory);
        }
        // Children that end and are replaced, so that none is large for long, do no harm.
        let in_turn = "
import os
for _ in range(10):
    if os.fork() == 0:
        hog = b'x' * (60 << 20)
        os._exit(0)
    os.wait()";
        let mut statuses = vec![Status::Ok, Status::CpuTimeout];
        if sandbox.tier() != Tier::Namespaces && !is_root() {
            // Other tests' bombs are this user's too, whose processes are limited together.
            statuses.push(Status::NonZero(1));
        }
        bomb_ends_as(&sandbox, in_turn, &statuses).await;
        // The kernel's first choice must be a program even when it makes itself small and many.
        let hiding = "
import os, time
try: open('/proc/self/oom_score_adj', 'w').write('0')
except PermissionError: pass
for _ in range(30):
    if os.fork() == 0:
        hog = b'x' * (11 << 20)
        time.sleep(60)
time.sleep(60)
";
        bomb_ends_as(&sandbox, hiding, &[Status::Memory]).await;
    }
}

/// Memory that is in no process's address space.
#[tokio::test]
async fn row_03_memory_without_a_process_is_counted_or_refused() {
    for sandbox in at(ALL) {
        let counted = sandbox.tier() == Tier::Namespaces && is_counted(&sandbox, "memory");
        let one_file = "sys(319, b'x', 0)";
        let one_segment = "sys(29, 0, 7 << 20, 0o1600)";
        let one_queue = "sys(68, 0, 0o1600)";
        if cfg!(target_arch = "x86_64") && !counted {
            let source = format!(
                "{ATTEMPT}\nattempt(lambda: {one_file}, lambda: {one_segment}, lambda: {one_queue})"
            );
            reaches_nothing(&sandbox, &source).await;
        }
        if counted {
            let files = "
import os
fds = []
for _ in range(50):
    fds.append(os.memfd_create('x'))
    os.write(fds[-1], bytes(7 << 20))
import time; time.sleep(60)";
            bomb_ends_as(&sandbox, files, &[Status::Memory]).await;
            let segments = "
import ctypes
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
for _ in range(50):
    address = libc.shmat(libc.shmget(0, 7 << 20, 0o1600), None, 0)
    ctypes.memset(address, 1, 7 << 20)
    libc.shmdt(ctypes.c_void_p(address))
import time; time.sleep(60)";
            bomb_ends_as(&sandbox, segments, &[Status::Memory]).await;
        }
    }
}
