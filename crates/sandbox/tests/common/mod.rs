//! Sandboxes at every tier, and what the host sees of them.

#![allow(dead_code, reason = "each test program uses some of this")]

use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use sandbox::{Config, Job, Limits, Mechanism, Program, RunOutcome, Sandbox, SandboxError, Status};
pub(crate) use sandbox::{Tier, TierChoice};

/// Every tier.
pub(crate) const ALL: &[Tier] = &Tier::ALL;
/// The tiers that keep programs from the host's files.
pub(crate) const WALLED: &[Tier] = &[Tier::Namespaces, Tier::Landlock];

pub(crate) fn config(tier: Tier, slots: usize) -> Config {
    Config {
        tier: TierChoice::Exactly(tier),
        allow_weak_tier: true,
        ..Config::new(slots)
    }
}

/// `None`, with a loud line, where the tier does not work.
pub(crate) fn start(config: Config) -> Option<Sandbox> {
    match Sandbox::start(config) {
        Ok(sandbox) => Some(sandbox),
        Err(SandboxError::TierUnavailable { tier, detail }) => {
            eprintln!("SKIPPED: NOTHING PROVEN AT TIER {tier}, which does not work here: {detail}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A sandbox of one slot for each of `tiers` that works here.
pub(crate) fn at(tiers: &[Tier]) -> impl Iterator<Item = Sandbox> {
    tiers.iter().filter_map(|tier| start(config(*tier, 1)))
}

pub(crate) const TIGHT: Limits = Limits {
    wall: Duration::from_secs(8),
    cpu: Duration::from_millis(600),
    memory: 256 << 20,
    address_space: true,
    output_keep: 1 << 10,
    output_max: 2 << 20,
    processes: 32,
    disk: 8 << 20,
    files: 64,
};

pub(crate) async fn run(sandbox: &Sandbox, source: impl Into<Vec<u8>>) -> RunOutcome {
    sandbox.run(Job::script(source, TIGHT)).await.unwrap()
}

/// Checks the status of `job`, that nothing of it is left, and that the next program runs
/// undisturbed.
pub(crate) async fn job_ends_as(sandbox: &Sandbox, job: Job, statuses: &[Status]) -> RunOutcome {
    let shown = match &job.program {
        Program::Script { source } => String::from_utf8_lossy(source).into_owned(),
        other => format!("{other:?}"),
    };
    let outcome = sandbox.run(job).await.unwrap();
    assert!(
        statuses.contains(&outcome.status),
        "{}: {:?}\n{shown}\n{}\n{}",
        sandbox.tier(),
        outcome.status,
        outcome.stdout.text(),
        outcome.stderr.text()
    );
    only_slots_are_left(sandbox, 1);
    let next = run(sandbox, "print('next')").await;
    let told = (next.status, next.stderr.text());
    assert_eq!(next.stdout.text(), "next\n", "{}: {told:?}", sandbox.tier());
    assert_eq!(sandbox.stats().errors, 0);
    outcome
}

pub(crate) async fn ends_as(sandbox: &Sandbox, source: &str, statuses: &[Status]) -> RunOutcome {
    job_ends_as(sandbox, Job::script(source, TIGHT), statuses).await
}

/// Runs `source`, whose every line of output must be `no`.
pub(crate) async fn reaches_nothing(sandbox: &Sandbox, source: &str) {
    let outcome = ends_as(sandbox, source, &[Status::Ok]).await;
    let (out, err) = (outcome.stdout.text(), outcome.stderr.text());
    let lines = out.lines().all(|line| line == "no");
    assert!(lines && !out.is_empty(), "{}: {out}\n{err}", sandbox.tier());
}

/// Python: `attempt` prints `no` when each of its calls raises `OSError`, else what it returned.
pub(crate) const ATTEMPT: &str = "
import ctypes, os, socket, sys as system
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def attempt(*calls):
    for i, call in enumerate(calls):
        try: print('reached', i, call())
        except OSError: print('no')
def sys(number, *args):
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    if libc.syscall(ctypes.c_long(number), *wide) < 0: raise OSError(ctypes.get_errno(), 'errno')
    return 'done'
def put(path, text):
    fd = os.open(path, os.O_WRONLY)
    try: return os.write(fd, text.encode())
    finally: os.close(fd)
";

/// Whether a control group counts what `limit` names.
pub(crate) fn is_counted(sandbox: &Sandbox, limit: &str) -> bool {
    let mut limits = sandbox.enforced().each().into_iter();
    limits.any(|(name, by)| name == limit && by.contains(&Mechanism::Cgroup))
}

pub(crate) fn is_root() -> bool {
    // SAFETY: this call cannot fail.
    unsafe { libc::geteuid() == 0 }
}

pub(crate) fn kill(pid: u32) {
    // SAFETY: a plain call.
    unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
}

/// Every living process of this machine and its parent.
fn processes() -> Vec<(u32, u32)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let stats = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        // A zombie that nobody has collected yet has ended.
        let lives = fields.next()? != "Z";
        let parent = fields.next()?.parse().ok()?;
        lives.then_some((pid, parent))
    });
    stats.collect()
}

/// All living processes below `root`.
pub(crate) fn descendants(root: u32) -> BTreeSet<u32> {
    let processes = processes();
    let mut found = BTreeSet::from([root]);
    loop {
        let below = processes
            .iter()
            .filter(|(_, parent)| found.contains(parent));
        let more: BTreeSet<u32> = below.map(|(pid, _)| *pid).collect();
        let more: BTreeSet<u32> = &found | &more;
        if more.len() == found.len() {
            found.remove(&root);
            return found;
        }
        found = more;
    }
}

pub(crate) fn is_alive(pid: u32) -> bool {
    processes().iter().any(|(alive, _)| *alive == pid)
}

#[track_caller]
pub(crate) fn all_end(processes: &BTreeSet<u32>) {
    eventually(|| {
        let left: Vec<u32> = processes
            .iter()
            .copied()
            .filter(|pid| is_alive(*pid))
            .collect();
        left.is_empty()
            .then_some(())
            .ok_or(format!("still alive: {left:?}"))
    });
}

/// Waits for `condition`, which must come true.
#[track_caller]
pub(crate) fn eventually<T>(condition: impl Fn() -> Result<T, String>) -> T {
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        match condition() {
            Ok(value) => return value,
            Err(problem) => assert!(Instant::now() < patience, "{problem}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until each slot and its interpreter are the only processes of `sandbox`.
#[track_caller]
pub(crate) fn only_slots_are_left(sandbox: &Sandbox, slots: usize) {
    eventually(|| {
        let supervisor = sandbox.supervisor_pid().ok_or("no supervisor")?;
        let found = descendants(supervisor);
        // One may be on its way, taken down but not quite gone.
        (found.len() == 2 * slots).then_some(()).ok_or(format!(
            "{}: beside slots and interpreters: {found:?}",
            sandbox.tier()
        ))
    });
}

pub(crate) fn command_lines() -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let text = |line: Vec<u8>| String::from_utf8_lossy(&line).replace('\0', " ");
    lines.map(text).collect()
}

/// Control groups that the supervisor with this process id made.
pub(crate) fn control_groups_of(supervisor: u32) -> Vec<PathBuf> {
    let wanted = format!("etude-sandbox-{supervisor}-");
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().starts_with(&wanted) {
                    found.push(entry.path());
                }
                waiting.push(entry.path());
            }
        }
    }
    found
}
