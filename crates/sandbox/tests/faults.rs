//! What happens when the machinery is hit, and what is left behind at the end.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests stop at the first surprise"
)]

use std::{
    collections::BTreeSet,
    fs,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use sandbox::{Config, Job, Limits, Sandbox, SandboxError, Status, Tier, TierChoice, probe};

/// Set in the copy of this test program that is killed by its parent.
const VICTIM: &str = "victim";

fn kill(pid: u32) {
    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
}

/// All processes of this machine below `root`, by walking `/proc`.
fn descendants(root: u32) -> BTreeSet<u32> {
    let parents: Vec<(u32, u32)> = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let parent = stat
                .rsplit_once(')')?
                .1
                .split_ascii_whitespace()
                .nth(1)?
                .parse()
                .ok()?;
            Some((pid, parent))
        })
        .collect();
    let mut found = BTreeSet::from([root]);
    loop {
        let more = parents
            .iter()
            .filter(|(_, parent)| found.contains(parent))
            .map(|(pid, _)| *pid);
        let more: BTreeSet<u32> = found.iter().copied().chain(more).collect();
        if more.len() == found.len() {
            found.remove(&root);
            return found;
        }
        found = more;
    }
}

fn alive(pid: u32) -> bool {
    // A zombie that init has not collected yet has ended.
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.starts_with(" Z"))
}

#[track_caller]
fn all_end(processes: &BTreeSet<u32>) {
    let patience = Instant::now() + Duration::from_secs(20);
    while processes.iter().any(|pid| alive(*pid)) {
        let left: Vec<&u32> = processes.iter().filter(|pid| alive(**pid)).collect();
        assert!(Instant::now() < patience, "still alive: {left:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits for `condition`, which must come true.
#[track_caller]
fn eventually(condition: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < patience, "it did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

const SLEEP: &str = "import os, time
os.fork()
time.sleep(600)";

fn long() -> Limits {
    Limits {
        wall: Duration::from_secs(600),
        ..Limits::SMALL
    }
}

#[tokio::test]
async fn a_killed_supervisor_is_nobodys_failure_and_is_replaced() {
    let sandbox = Sandbox::start(Config::new(2)).unwrap();
    let killer = sandbox.clone();
    let runs = [SLEEP, SLEEP].map(|source| {
        let sandbox = sandbox.clone();
        tokio::spawn(async move { sandbox.run(Job::script(source, long())).await })
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let supervisor = killer.supervisor_pid().unwrap();
    let below = descendants(supervisor);
    assert!(below.len() >= 6, "slots, interpreters and runs: {below:?}");
    kill(supervisor);
    for run in runs {
        let lost = run.await.unwrap();
        assert!(
            matches!(lost, Err(SandboxError::SlotLost { .. })),
            "{lost:?}"
        );
    }
    let next = sandbox
        .run(Job::script("print(1)", Limits::SMALL))
        .await
        .unwrap();
    assert_eq!(next.status, Status::Ok);
    assert_eq!(sandbox.stats().supervisors_started, 2);
    assert_eq!(sandbox.stats().errors, 2);
    all_end(&below);
}

#[tokio::test]
async fn a_killed_interpreter_or_slot_is_replaced() {
    let sandbox = Sandbox::start(Config::new(1)).unwrap();
    for _ in 0..3 {
        let run = tokio::spawn({
            let sandbox = sandbox.clone();
            async move { sandbox.run(Job::script(SLEEP, long())).await }
        });
        tokio::time::sleep(Duration::from_millis(150)).await;
        let victims = descendants(sandbox.supervisor_pid().unwrap());
        // Slots come before what they start.
        kill(
            *victims
                .iter()
                .nth(sandbox.stats().errors as usize % 2)
                .unwrap(),
        );
        let lost = run.await.unwrap();
        assert!(lost.is_err(), "{lost:?}");
        assert_eq!(
            sandbox
                .run(Job::script("print(1)", Limits::SMALL))
                .await
                .unwrap()
                .stdout
                .text(),
            "1\n"
        );
    }
    assert_eq!(sandbox.stats().supervisors_started, 1);
}

#[tokio::test]
async fn a_program_killed_by_somebody_else_is_no_failed_program() {
    let sandbox = Sandbox::start(Config::new(1)).unwrap();
    let own = Job::script("import os\nos.kill(os.getpid(), 9)", Limits::SMALL);
    let refused = sandbox.run(own).await.unwrap();
    assert_eq!(
        refused.status,
        Status::NonZero(1),
        "{}",
        refused.stderr.text()
    );
    assert!(refused.stderr.text().contains("PermissionError"));
    let before = descendants(sandbox.supervisor_pid().unwrap());
    let run = tokio::spawn({
        let sandbox = sandbox.clone();
        async move { sandbox.run(Job::script(SLEEP, long())).await }
    });
    let program = loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = descendants(sandbox.supervisor_pid().unwrap());
        // The run's init comes first, then the program, then what it starts.
        if let [_, program, ..] = now.difference(&before).copied().collect::<Vec<_>>()[..] {
            break program;
        }
    };
    kill(program);
    let lost = run.await.unwrap();
    assert!(matches!(lost, Err(SandboxError::Setup { .. })), "{lost:?}");
    let next = sandbox.run(Job::script("print(1)", Limits::SMALL)).await;
    assert_eq!(next.unwrap().status, Status::Ok);
}

#[tokio::test]
async fn nothing_is_left_behind() {
    let scratch = tempfile::tempdir().unwrap();
    let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mounts_before = mounts();
    for tier in Tier::ALL {
        let config = Config {
            tier: TierChoice::Exactly(tier),
            allow_weak_tier: true,
            scratch: scratch.path().to_owned(),
            ..Config::new(2)
        };
        let Ok(sandbox) = Sandbox::start(config) else {
            eprintln!("SKIPPED: {tier} does not work here");
            continue;
        };
        let supervisor = sandbox.supervisor_pid().unwrap();
        for source in [
            "open('x', 'w'); import os; os.mkdir('d')",
            "print(1)",
            "import os; os.fork()",
        ] {
            let outcome = sandbox
                .run(Job::script(source, Limits::SMALL))
                .await
                .unwrap();
            assert_eq!(
                outcome.status,
                Status::Ok,
                "{tier}: {}",
                outcome.stderr.text()
            );
        }
        let abandoned = sandbox.run(Job::script(SLEEP, long()));
        assert!(
            tokio::time::timeout(Duration::from_millis(100), abandoned)
                .await
                .is_err()
        );
        let mut processes = descendants(supervisor);
        processes.insert(supervisor);
        drop(sandbox);
        assert!(
            !alive(supervisor),
            "{tier}: dropping waits for the supervisor"
        );
        all_end(&processes);
        let files: Vec<_> = fs::read_dir(scratch.path()).unwrap().flatten().collect();
        assert!(files.is_empty(), "{tier}: {files:?}");
        assert_eq!(mounts(), mounts_before);
    }
}

/// The program below is started by the next test only.
#[test]
fn victim() {
    if std::env::args().next().as_deref() != Some(VICTIM) {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let sandbox = Sandbox::start(Config::new(2)).unwrap();
    println!("supervisor {}", sandbox.supervisor_pid().unwrap());
    let _ = runtime.block_on(sandbox.run(Job::script(SLEEP, long())));
}

#[test]
fn when_the_parent_is_killed_everything_ends() {
    let own = std::env::current_exe().unwrap();
    let mut victim = Command::new(own)
        .arg0(VICTIM)
        .args(["--exact", "victim", "--nocapture"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Supervisor, two slots, two interpreters, the run's init and its two processes.
    eventually(|| descendants(victim.id()).len() >= 8);
    let processes = descendants(victim.id());
    kill(victim.id());
    victim.wait().unwrap();
    all_end(&processes);
}

#[test]
fn weak_walls_must_be_asked_for() {
    for tier in [Tier::Landlock, Tier::Limits] {
        let config = Config {
            tier: TierChoice::Exactly(tier),
            ..Config::new(1)
        };
        match Sandbox::start(config) {
            Err(SandboxError::WeakTier { tier: refused, .. }) => assert_eq!(refused, tier),
            Err(SandboxError::TierUnavailable { .. }) => {
                eprintln!("SKIPPED: {tier} does not work here");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn weak_walls_hold_what_they_promise() {
    let Ok(secret) = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")) else {
        return;
    };
    let path = secret.path().display();
    for tier in [Tier::Landlock, Tier::Limits] {
        let config = Config {
            tier: TierChoice::Exactly(tier),
            allow_weak_tier: true,
            ..Config::new(1)
        };
        let sandbox = match Sandbox::start(config) {
            Ok(sandbox) => sandbox,
            Err(error) => {
                eprintln!("SKIPPED: {error}");
                continue;
            }
        };
        let source = format!(
            "
import os, socket
def attempt(call):
    try: call(); print('reached')
    except OSError: print('no')
attempt(lambda: socket.socket())
attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
attempt(lambda: open('/etc/shadow').read())
attempt(lambda: open('/etc/x', 'w'))
attempt(lambda: os.setuid(0))
if {landlock}:
    attempt(lambda: open('{path}').read())
    attempt(lambda: os.listdir('/etc'))
    attempt(lambda: open('/tmp/x-of-the-sandbox', 'w'))
    attempt(lambda: os.kill({own}, 0))
    attempt(lambda: open('/proc/{own}/environ').read())
open('own', 'w').write('x')
",
            landlock = if tier == Tier::Landlock {
                "True"
            } else {
                "False"
            },
            own = std::process::id(),
        );
        let outcome = sandbox
            .run(Job::script(source, Limits::SMALL))
            .await
            .unwrap();
        let (out, err) = (outcome.stdout.text(), outcome.stderr.text());
        assert_eq!(
            (outcome.status, outcome.tier),
            (Status::Ok, tier),
            "{out}{err}"
        );
        assert!(out.lines().all(|line| line == "no"), "{tier}: {out}");
        let files = sandbox
            .run(Job::script("import os; print(os.listdir())", Limits::SMALL))
            .await;
        assert_eq!(files.unwrap().stdout.text(), "['main.py']\n");
        let daemon = "import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: time.sleep(600)
    os._exit(0)
os.wait()";
        let supervisor = sandbox.supervisor_pid().unwrap();
        assert!(
            sandbox
                .run(Job::script(daemon, Limits::SMALL))
                .await
                .unwrap()
                .is_ok()
        );
        assert_eq!(
            descendants(supervisor).len(),
            2,
            "a slot and its interpreter"
        );
        for (source, status) in [
            ("while True: pass", Status::CpuTimeout),
            ("import time; time.sleep(60)", Status::WallTimeout),
            ("a = 'a' * (1 << 31)", Status::Memory),
            ("while True: print('x' * 1000)", Status::Output),
        ] {
            let limits = Limits {
                wall: Duration::from_secs(2),
                cpu: Duration::from_millis(300),
                output_max: 1 << 20,
                ..Limits::SMALL
            };
            let outcome = sandbox.run(Job::script(source, limits)).await.unwrap();
            assert_eq!(outcome.status, status, "{tier}: {source}");
        }
    }
}

#[tokio::test]
async fn the_probe_tells_what_works() {
    let report = tokio::task::spawn_blocking(|| probe(&Config::new(1)))
        .await
        .unwrap();
    let python = report.python.as_ref().unwrap();
    assert!(python.executable.starts_with('/') && python.version.starts_with('3'));
    assert_eq!(report.tiers.len(), 3);
    for tier in &report.tiers {
        assert_eq!(tier.works, tier.detail.is_empty());
        println!("{}: {} {}", tier.tier, tier.works, tier.detail);
    }
    assert!(report.best().is_some());
}
