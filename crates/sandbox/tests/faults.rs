//! What happens when the machinery is hit, and what is left behind at the end.

#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stderr,
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

#[path = "common/mod.rs"]
mod common;

use common::{all_end, descendants, eventually, is_alive, kill};
use sandbox::{Config, Job, Limits, Sandbox, SandboxError, Status, Tier, TierChoice, probe};

/// Set in the copy of this test program that is killed by its parent.
const VICTIM: &str = "victim";

const SLEEP: &str = "import os, time
os.fork()
time.sleep(600)";

fn long() -> Limits {
    Limits {
        wall: Duration::from_secs(600),
        ..Limits::SMALL
    }
}

/// The processes below the supervisor once every slot runs [`SLEEP`]: of each, the slot, its interpreter, the
/// program and what it forks, at least.
async fn while_all_sleep(sandbox: &Sandbox, slots: usize) -> BTreeSet<u32> {
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        let below = descendants(sandbox.supervisor_pid().unwrap());
        if below.len() >= 4 * slots {
            return below;
        }
        assert!(Instant::now() < patience, "never asleep: {below:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
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
    let below = while_all_sleep(&killer, 2).await;
    kill(killer.supervisor_pid().unwrap());
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
        let victims = while_all_sleep(&sandbox, 1).await;
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
async fn a_program_killed_by_somebody_else_runs_once_more() {
    let sandbox = Sandbox::start(Config::new(1)).unwrap();
    let before = descendants(sandbox.supervisor_pid().unwrap());
    let source = "import os, time
if os.fork():
    time.sleep(1)
    print(1)
else:
    time.sleep(600)";
    let run = tokio::spawn({
        let sandbox = sandbox.clone();
        async move { sandbox.run(Job::script(source, long())).await }
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
    let outcome = run.await.unwrap().unwrap();
    assert_eq!(outcome.status, Status::Ok);
    assert_eq!(outcome.stdout.text(), "1\n");
}

/// A failure that looked like the machine's would never be scored.
#[tokio::test]
async fn a_program_that_has_itself_killed_has_failed() {
    let sandbox = Sandbox::start(Config::new(1)).unwrap();
    let own = Job::script("import os\nos.kill(os.getpid(), 9)", Limits::SMALL);
    let refused = sandbox.run(own).await.unwrap();
    let said = refused.stderr.text();
    assert_eq!(refused.status, Status::NonZero(1), "{said}");
    assert!(said.contains("PermissionError"));
    let by_the_kernel = "import resource
resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
while True: pass";
    let killed = sandbox.run(Job::script(by_the_kernel, long())).await;
    assert_eq!(killed.unwrap().status, Status::Signal(9));
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
            !is_alive(supervisor),
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
    eventually(|| {
        let found = descendants(victim.id());
        (found.len() >= 8).then_some(()).ok_or(format!("{found:?}"))
    });
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
