//! Programs that mean harm, behind the strongest walls: what they reach, and what is left of them.
//!
//! Where those walls cannot be built, these tests say so and prove nothing.

#![allow(
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests stop at the first surprise"
)]

use std::{fs, time::Duration};

use sandbox::{Config, Job, Limits, RunOutcome, Sandbox, SandboxError, Status, Tier, TierChoice};

/// `None`, with a loud line, where namespaces do not work.
fn strong_sandbox(slots: usize) -> Option<Sandbox> {
    let config = Config {
        tier: TierChoice::Exactly(Tier::Namespaces),
        ..Config::new(slots)
    };
    match Sandbox::start(config) {
        Ok(sandbox) => Some(sandbox),
        Err(SandboxError::TierUnavailable { detail, .. }) => {
            eprintln!("SKIPPED: NOTHING PROVEN ABOUT HOSTILE PROGRAMS, no namespaces: {detail}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

const TIGHT: Limits = Limits {
    wall: Duration::from_secs(3),
    cpu: Duration::from_millis(600),
    memory: 256 << 20,
    address_space: true,
    output_keep: 1 << 10,
    output_max: 2 << 20,
    processes: 32,
    disk: 8 << 20,
    files: 64,
};

async fn run(sandbox: &Sandbox, source: &str) -> RunOutcome {
    sandbox.run(Job::script(source, TIGHT)).await.unwrap()
}

/// Checks the status of `source`, and that the next program runs undisturbed.
async fn ends_as(source: &str, statuses: &[Status]) -> Option<RunOutcome> {
    let sandbox = strong_sandbox(1)?;
    let outcome = run(&sandbox, source).await;
    let (out, err) = (outcome.stdout.text(), outcome.stderr.text());
    assert!(
        statuses.contains(&outcome.status),
        "{:?}\n{out}\n{err}",
        outcome.status
    );
    let next = run(&sandbox, "print('next')").await;
    assert_eq!(
        next.stdout.text(),
        "next\n",
        "{:?} {}",
        next.status,
        next.stderr.text()
    );
    assert_eq!(sandbox.stats().errors, 0);
    Some(outcome)
}

/// Runs `source`, whose every line of output must be `no`.
async fn reaches_nothing(source: &str) {
    let Some(sandbox) = strong_sandbox(1) else {
        return;
    };
    let outcome = run(&sandbox, source).await;
    let out = outcome.stdout.text();
    assert_eq!(
        outcome.status,
        Status::Ok,
        "{out}\n{}",
        outcome.stderr.text()
    );
    assert!(
        !out.is_empty() && out.lines().all(|line| line == "no"),
        "{out}"
    );
}

/// Python: prints `no` when each call of the list raises `OSError`, else what it returned.
const ATTEMPT: &str = "
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def attempt(*calls):
    for i, call in enumerate(calls):
        try: print('reached', i, call())
        except OSError: print('no')
def sys(number, *args):
    if libc.syscall(number, *args) < 0: raise OSError(ctypes.get_errno(), 'errno')
    return 'done'
";

#[tokio::test]
async fn a_fork_bomb_is_bounded() {
    let source = "
import os
n = 0
try:
    while True:
        if os.fork() == 0:
            import time; time.sleep(60)
        n += 1
except OSError: print(n < 40)
";
    if let Some(outcome) = ends_as(source, &[Status::Ok]).await {
        assert_eq!(outcome.stdout.text(), "True\n");
    }
    let exponential = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass";
    ends_as(exponential, &[Status::CpuTimeout, Status::WallTimeout]).await;
}

#[tokio::test]
async fn a_memory_bomb_is_defused() {
    ends_as("a = 'a' * (1 << 31)", &[Status::Memory]).await;
    ends_as(
        "a = []\nwhile True: a.append(bytes(1 << 20))",
        &[Status::Memory],
    )
    .await;
    let caught = "
try: bytearray(1 << 30)
except MemoryError: print('caught')";
    ends_as(caught, &[Status::Ok]).await;
}

#[tokio::test]
async fn memory_is_bounded_over_all_processes() {
    let source = "
import os, time
for _ in range(20):
    if os.fork() == 0:
        hog = b'x' * (60 << 20)
        time.sleep(60)
time.sleep(60)
";
    ends_as(source, &[Status::Memory]).await;
}

#[tokio::test]
async fn endless_output_is_cut() {
    let statuses = &[Status::Output];
    if let Some(outcome) = ends_as("while True: print('x' * 10000)", statuses).await {
        assert!(outcome.stdout.truncated && outcome.stdout.total > TIGHT.output_max);
        assert!(outcome.stdout.bytes().len() < 2 * TIGHT.output_keep);
    }
    let to_stderr = "import os\nwhile True: os.write(2, b'x' * 10000)";
    ends_as(to_stderr, statuses).await;
}

#[tokio::test]
async fn endless_loops_end() {
    ends_as("while True: pass", &[Status::CpuTimeout]).await;
    ends_as("import time\ntime.sleep(60)", &[Status::WallTimeout]).await;
    let deaf = "import signal
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True: pass";
    ends_as(deaf, &[Status::CpuTimeout]).await;
    let children = "import os\nfor _ in range(4): os.fork()\nwhile True: pass";
    ends_as(children, &[Status::CpuTimeout]).await;
}

#[tokio::test]
async fn a_daemon_does_not_outlive_its_run() {
    let source = "
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv('/bin/sleep', ['sleep-of-the-daemon', '600'])
    os._exit(0)
os.wait()
time.sleep(0.1)
print('parent done')
";
    if let Some(outcome) = ends_as(source, &[Status::Ok]).await {
        assert_eq!(outcome.stdout.text(), "parent done\n");
    }
    assert!(
        !command_lines()
            .iter()
            .any(|line| line.contains("sleep-of-the-daemon"))
    );
}

#[tokio::test]
async fn there_is_no_network() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let source = format!(
        "{ATTEMPT}
def tcp(host, port):
    s = socket.socket(); s.settimeout(1); s.connect((host, port)); return 'connected'
def udp(host, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); return s.sendto(b'x', (host, port))
attempt(
    lambda: tcp('127.0.0.1', {port}), lambda: tcp('1.1.1.1', 80), lambda: tcp('169.254.169.254', 80),
    lambda: udp('127.0.0.1', 9), lambda: udp('8.8.8.8', 53),
    lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW), lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
    lambda: socket.create_connection(('example.com', 80), 1),
)"
    );
    reaches_nothing(&source).await;
}

#[tokio::test]
async fn the_host_is_out_of_sight() {
    let checkout = env!("CARGO_MANIFEST_DIR");
    let secret = tempfile::NamedTempFile::new().unwrap();
    let secret = secret.path().display();
    let source = format!(
        "{ATTEMPT}
read = lambda path: lambda: open(path, 'rb').read(100)
ls = lambda path: lambda: os.listdir(path)
attempt(
    read('/etc/shadow'), ls('/root'), ls('/home'), ls('/var'), ls('/sys'), ls('{checkout}'),
    read('{checkout}/Cargo.toml'), read('{secret}'), read('/proc/1/environ'), read('/proc/1/mem'),
    lambda: os.readlink('/proc/1/cwd'), ls('/proc/1/root'), read('/dev/mem'), read('/dev/vda'), read('/proc/kcore'),
    lambda: open('/usr/x', 'w'), lambda: open('/etc/x', 'w'), lambda: open('/x', 'w'),
    lambda: open('/dev/x', 'w'), lambda: open('/proc/sys/kernel/hostname', 'w').write('x'),
    lambda: open('/proc/sys/vm/drop_caches', 'w').write('1'), lambda: os.chmod('/usr/bin/env', 0o777),
    lambda: open('/proc/sysrq-trigger', 'w').write('h'),
)
print('no' if sorted(os.environ) == {NAMES} else os.environ)
print('no' if [p for p in os.listdir('/proc') if p.isdigit()] == ['1', '2'] else os.listdir('/proc'))
caps = [l.split()[1] for l in open('/proc/self/status') if l.startswith(('CapPrm', 'CapEff', 'CapBnd', 'CapAmb'))]
print('no' if int(caps[0], 16) == int(caps[1], 16) == int(caps[3], 16) == 0 else caps)
flags = dict(l.split(':') for l in open('/proc/self/status') if l.startswith(('NoNewPrivs', 'Seccomp')))
print('no' if int(flags['NoNewPrivs']) == 1 and int(flags['Seccomp']) == 2 else flags)
print('no' if sorted(map(int, os.listdir('/proc/self/fd')))[:3] == [0, 1, 2] and len(os.listdir('/proc/self/fd')) == 4 else os.listdir('/proc/self/fd'))
"
    );
    reaches_nothing(&source).await;
}

const NAMES: &str = "['HOME', 'LANG', 'MALLOC_ARENA_MAX', 'OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'PATH', 'PYTHONDONTWRITEBYTECODE', 'PYTHONHASHSEED', 'PYTHONUTF8', 'TMPDIR']";

#[tokio::test]
async fn the_kernel_is_out_of_reach() {
    let calls = [
        (
            "mount",
            format!("sys({}, 0, b'/tmp', b'tmpfs', 0, 0)", libc::SYS_mount),
        ),
        ("unshare", format!("sys({}, 0x10000000)", libc::SYS_unshare)),
        (
            "setns",
            format!(
                "sys({}, os.open('/proc/self/ns/mnt', 0), 0)",
                libc::SYS_setns
            ),
        ),
        (
            "clone",
            format!("sys({}, 0x10000011, 0, 0, 0, 0)", libc::SYS_clone),
        ),
        ("clone3", format!("sys({}, 0, 0)", libc::SYS_clone3)),
        ("chroot", "os.chroot('/tmp')".to_owned()),
        ("ptrace", format!("sys({}, 16, 1, 0, 0)", libc::SYS_ptrace)),
        ("bpf", format!("sys({}, 0, 0, 0)", libc::SYS_bpf)),
        (
            "io_uring",
            format!("sys({}, 1, 0)", libc::SYS_io_uring_setup),
        ),
        ("keyctl", format!("sys({}, 0, -3, 0)", libc::SYS_keyctl)),
        ("userfaultfd", format!("sys({}, 0)", libc::SYS_userfaultfd)),
        (
            "perf",
            format!("sys({}, 0, 0, 0, -1, 0)", libc::SYS_perf_event_open),
        ),
        (
            "personality",
            format!("sys({}, 0x20000)", libc::SYS_personality),
        ),
        ("reboot", format!("sys({}, 0, 0, 0)", libc::SYS_reboot)),
        ("x32 numbers", "sys(0x40000000 + 39)".to_owned()),
        ("setuid", "os.setuid(0)".to_owned()),
        (
            "mknod",
            "os.mknod('/tmp/d', 0o60600, os.makedev(254, 0))".to_owned(),
        ),
        ("nice", "os.setpriority(os.PRIO_PROCESS, 0, -5)".to_owned()),
        ("clock", "__import__('time').clock_settime(0, 0)".to_owned()),
        ("limits", "raise_limits()".to_owned()),
    ];
    let calls: Vec<String> = calls
        .iter()
        .map(|(_, call)| format!("lambda: {call}"))
        .collect();
    let source = format!(
        "{ATTEMPT}
def raise_limits():
    import resource
    try: resource.setrlimit(resource.RLIMIT_NPROC, (10**6, 10**6))
    except ValueError: raise OSError
attempt({})",
        calls.join(", ")
    );
    reaches_nothing(&source).await;
}

#[tokio::test]
async fn descriptors_lead_nowhere() {
    let write_all = "
import os
for fd in range(3, 2000):
    for data in (b'x' * 100, b'\\0' * 100, b'[0,0,\"value\",1]\\n'):
        try: os.write(fd, data); print('reached', fd)
        except OSError: pass
print('no')";
    reaches_nothing(write_all).await;
    let close_all = "import os\nos.closerange(0, 5000)\nwhile True: pass";
    ends_as(close_all, &[Status::CpuTimeout]).await;
    ends_as(
        "import os\nos.closerange(0, 5000)",
        &[Status::Ok, Status::NonZero(120)],
    )
    .await;
    let Some(sandbox) = strong_sandbox(1) else {
        return;
    };
    let big = vec![b'x'; 5 << 20];
    for unread in ["print('done')", "import os; os.close(0); print('done')"] {
        let job = Job::script(unread, TIGHT).with_stdin(big.clone());
        assert_eq!(sandbox.run(job).await.unwrap().stdout.text(), "done\n");
    }
    let garbage = "import os; os.write(1, bytes(range(256))); os.write(2, b'\\xff\\xfe')";
    let outcome = run(&sandbox, garbage).await;
    assert_eq!(outcome.stdout.bytes(), (0..=255).collect::<Vec<u8>>());
    assert_eq!(outcome.stderr.bytes(), b"\xff\xfe");
}

#[tokio::test]
async fn the_disk_is_bounded() {
    let fill = "f = open('/tmp/x', 'wb')\nwhile True: f.write(bytes(1 << 20))";
    ends_as(fill, &[Status::Disk]).await;
    let files = "for i in range(10**6): open(f'/box/{i}', 'w').close()";
    ends_as(files, &[Status::Disk]).await;
    let many = "
for name in 'abcd':
    with open('/tmp/' + name, 'wb') as f: f.write(bytes(3 << 20))";
    ends_as(many, &[Status::Disk]).await;
}

#[tokio::test]
async fn nothing_passes_from_run_to_run() {
    let Some(sandbox) = strong_sandbox(1) else {
        return;
    };
    let leave = "
import os, builtins, sys, json
open('/tmp/a', 'w').write('x'); open('/box/b', 'w').write('x')
builtins.print = None; json.dumps = None; sys.modules['math'] = None; os.environ['X'] = '1'
os.umask(0o777)";
    assert!(run(&sandbox, leave).await.is_ok());
    let look = "
import os, json, math
print(os.listdir('/tmp'), os.listdir('/box'), os.environ.get('X'), json.dumps(1), math.pi > 3, os.umask(0))";
    assert_eq!(
        run(&sandbox, look).await.stdout.text(),
        "[] ['main.py'] None 1 True 18\n"
    );
}

fn command_lines() -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .collect()
}
