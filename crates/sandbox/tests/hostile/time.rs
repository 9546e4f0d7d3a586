//! Loops, waits, clocks, and the noise of other programs.

use std::time::Duration;

use sandbox::{Job, Limits, Status};

use crate::common::{
    ALL, ATTEMPT, TIGHT, Tier, at, config, ends_as, job_ends_as, reaches_nothing, start,
};

#[tokio::test]
async fn row_07_endless_loops_end() {
    for sandbox in at(ALL) {
        ends_as(&sandbox, "while True: pass", &[Status::CpuTimeout]).await;
        let children = "import os\nfor _ in range(4): os.fork()\nwhile True: pass";
        ends_as(&sandbox, children, &[Status::CpuTimeout]).await;
        let in_c =
            "a = [1]\nfor _ in range(40): a = a * 2 if len(a) < 10**6 else a\nwhile True: sum(a)";
        ends_as(&sandbox, in_c, &[Status::CpuTimeout]).await;
        // Each process is young and waits for none, so that no parent's account has their time.
        let relay = "
import os, time
while True:
    began = time.process_time()
    while time.process_time() - began < 0.02: pass
    if os.fork(): os._exit(0)
";
        let first = format!("import os, time\nif os.fork(): time.sleep(60)\n{relay}");
        // Without a pid 1 of the run's own, what has ended stays until the run does, and counts.
        let statuses = match sandbox.tier() {
            Tier::Namespaces => &[Status::CpuTimeout][..],
            _ => &[Status::CpuTimeout, Status::WallTimeout],
        };
        let mut limits = TIGHT;
        if sandbox.tier() != Tier::Namespaces {
            limits.wall = Duration::from_secs(2);
        }
        job_ends_as(&sandbox, Job::script(first, limits), statuses).await;
    }
}

#[tokio::test]
async fn row_08_sleepers_and_readers_are_woken_for_good() {
    let limits = Limits {
        wall: Duration::from_millis(600),
        ..TIGHT
    };
    for sandbox in at(ALL) {
        for source in [
            "import time\ntime.sleep(60)",
            "import signal\nsignal.pause()",
            "import os\nr, w = os.pipe()\nos.read(r, 1)",
            "import os\nos.mkfifo('f')\nopen('f').read()",
            "import os\nif os.fork(): os.wait()\nimport time; time.sleep(60)",
            "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
            "import threading\nt = threading.Lock(); t.acquire(); t.acquire()",
        ] {
            let job = Job::script(source, limits);
            job_ends_as(&sandbox, job, &[Status::WallTimeout]).await;
        }
        // Without input there is an end of it, not a wait.
        let outcome = ends_as(&sandbox, "print(repr(open(0).read()))", &[Status::Ok]).await;
        assert_eq!(outcome.stdout.text(), "''\n");
    }
}

#[tokio::test]
async fn row_22_clocks_cannot_be_set_and_are_not_believed() {
    for sandbox in at(ALL) {
        let source = format!(
            "{ATTEMPT}
import time
attempt(
    lambda: time.clock_settime(0, 0), lambda: sys({settimeofday}, b'\\0' * 16, 0),
    lambda: sys({adjtimex}, b'\\1' + b'\\0' * 300), lambda: sys({clock_adjtime}, 0, b'\\1' + b'\\0' * 300),
    lambda: sys({unshare}, 0x80), lambda: put('/proc/self/timens_offsets', 'monotonic 1000 0'),
    lambda: open('/dev/rtc0', 'w'),
)",
            settimeofday = libc::SYS_settimeofday,
            adjtimex = libc::SYS_adjtimex,
            clock_adjtime = libc::SYS_clock_adjtime,
            unshare = libc::SYS_unshare,
        );
        reaches_nothing(&sandbox, &source).await;
        // All timing happens outside.
        let patched = "
import time
time.time = time.monotonic = time.perf_counter = lambda: 0.0
import signal, resource
signal.setitimer(signal.ITIMER_REAL, 0)
try: resource.setrlimit(resource.RLIMIT_CPU, (10**6, 10**6))
except ValueError: pass
while True: pass";
        ends_as(&sandbox, patched, &[Status::CpuTimeout]).await;
    }
}

#[tokio::test]
async fn row_30_noise_of_others_is_nobodys_timeout() {
    let Some(sandbox) = start(config(Tier::Namespaces, 8)) else {
        return;
    };
    // More programs that compute than there are cores; each uses less than its own CPU time.
    let limits = Limits {
        wall: Duration::from_secs(60),
        cpu: Duration::from_millis(700),
        ..TIGHT
    };
    let busy = "
import time
while time.process_time() < 0.2: pass
print('done')";
    let runs: Vec<_> = (0..24)
        .map(|_| {
            let sandbox = sandbox.clone();
            let job = Job::script(busy, limits);
            tokio::spawn(async move { sandbox.run(job).await })
        })
        .collect();
    for run in runs {
        let outcome = run.await.unwrap().unwrap();
        assert_eq!(
            (outcome.status, outcome.stdout.text().as_str()),
            (Status::Ok, "done\n")
        );
    }
    // Waiting is not computing.
    let waits = "import time; time.sleep(1)";
    let outcome = sandbox.run(Job::script(waits, limits)).await.unwrap();
    assert_eq!(outcome.status, Status::Ok);
    assert!(outcome.cpu_ms < 800.0 && outcome.wall_ms >= 1000.0);
}
