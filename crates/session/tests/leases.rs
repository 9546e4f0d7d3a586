//! What a program leaves when it is killed at any moment is found and removed, and nothing else is.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use rand::RngExt;
use record::Seed;
use session::lease::{Held, Leases, MARK, ReapReport, TIME_TO_LIVE};
use tokio::runtime::{Builder, Runtime};

/// Set in the process that plays the owner: the folder to work in.
const STAGE: &str = "ETUDE_TEST_LEASE_STAGE";

fn leases(stage: &Path) -> Leases {
    Leases::open(stage.join("leases"), TIME_TO_LIVE).unwrap()
}

fn reap(leases: &Leases) -> ReapReport {
    runtime().block_on(leases.reap(&[])).unwrap()
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

/// The owner: makes and removes things until it is killed.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the owner is a process of its own"
)]
fn owner_process() {
    let Ok(stage) = std::env::var(STAGE) else {
        return;
    };
    let stage = PathBuf::from(stage);
    let leases = leases(&stage);
    let mut kept = Vec::new();
    for round in 0.. {
        let lease = leases.take("local").unwrap();
        let folder = stage.join("work").join(format!("{}-tree", lease.id()));
        lease
            .hold(Held::Folder {
                path: folder.clone(),
            })
            .unwrap();
        fs::create_dir_all(folder.join("deep/er")).unwrap();
        fs::write(folder.join("deep/file"), "content").unwrap();
        lease.hold(Held::MarkedProcesses).unwrap();
        let mut daemon = Command::new("sh")
            .args(["-c", "(setsid sleep 1000 &) ; exec sleep 1000"])
            .env(MARK, lease.id())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mount = folder.join("mount");
        fs::create_dir(&mount).unwrap();
        lease
            .hold(Held::Mount {
                path: mount.clone(),
            })
            .unwrap();
        let flags = rustix::mount::MountFlags::empty();
        let mounted = rustix::mount::mount("none", &mount, "tmpfs", flags, None).is_ok();
        if round % 3 != 0 {
            kept.push((lease, daemon));
            continue;
        }
        if mounted {
            rustix::mount::unmount(&mount, rustix::mount::UnmountFlags::DETACH).unwrap();
        }
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        runtime().block_on(lease.kill_marked()).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        lease.release().unwrap();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the owner is a process of its own"
)]
fn start_owner(stage: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "owner_process", "--nocapture"])
        .env(STAGE, stage)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Processes with the mark of a lease of the stage.
fn marked_processes(stage: &Path) -> Vec<i32> {
    let stage = format!("{STAGE}={}", stage.display());
    let mark = format!("{MARK}=");
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let environment = fs::read(entry.path().join("environ")).ok()?;
            let has = |wanted: &str| {
                let mut variables = environment.split(|byte| *byte == 0);
                variables.any(|variable| variable.starts_with(wanted.as_bytes()))
            };
            (has(&stage) && has(&mark)).then_some(pid)
        })
        .collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[test]
fn nothing_is_left_of_owners_killed_at_random_moments() {
    let scratch = tempfile::tempdir().unwrap();
    let stage = scratch.path().canonicalize().unwrap();
    let mut random = Seed(7).stream("lease chaos", 0).rng();
    let leases = leases(&stage);
    let (mut ended, mut removed) = (0, 0);
    for _ in 0..12 {
        let mut owner = start_owner(&stage);
        // The time that a start takes, then any moment of the work.
        thread::sleep(Duration::from_millis(random.random_range(5..150)));
        owner.kill().unwrap();
        // Dead, not yet collected.
        let report = reap(&leases);
        assert_eq!(report.failed, [], "{report:?}");
        owner.wait().unwrap();
        let report_again = reap(&leases);
        assert_eq!(report_again.failed, []);
        ended += report.ended.len() + report_again.ended.len();
        removed += report.removed.len() + report_again.removed.len();
        assert_eq!(entries(&stage.join("leases")), [] as [PathBuf; 0]);
        assert_eq!(entries(&stage.join("work")), [] as [PathBuf; 0]);
        assert_eq!(marked_processes(&stage), [0i32; 0]);
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(stage.to_str().unwrap()), "{mounts}");
    }
    assert!(ended > 0 && removed > ended, "the owners got to do nothing");
}

#[test]
fn what_a_living_owner_holds_is_left_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let leases = leases(scratch.path());
    let lease = leases.take("local").unwrap();
    let path = scratch.path().join(lease.id());
    lease.hold(Held::Folder { path: path.clone() }).unwrap();
    fs::create_dir(&path).unwrap();
    let report = reap(&leases);
    assert_eq!((report.live, report.ended.len()), (1, 0));
    assert!(path.exists());
    // Given up without being released, it goes although the owner lives.
    drop(lease);
    let report = reap(&leases);
    assert_eq!((report.live, report.ended.len()), (0, 1));
    assert!(!path.exists() && leases.list().unwrap().is_empty());
}

#[test]
fn a_released_lease_is_gone() {
    let scratch = tempfile::tempdir().unwrap();
    let leases = leases(scratch.path());
    let lease = leases.take("local").unwrap();
    assert_eq!(leases.list().unwrap().len(), 1);
    lease.release().unwrap();
    assert_eq!(leases.list().unwrap(), []);
    assert_eq!(reap(&leases), ReapReport::default());
}

#[test]
fn a_lease_can_only_name_folders_of_its_own() {
    let scratch = tempfile::tempdir().unwrap();
    let leases = leases(scratch.path());
    let lease = leases.take("local").unwrap();
    let path = scratch.path().join("precious");
    fs::create_dir(&path).unwrap();
    lease.hold(Held::Folder { path: path.clone() }).unwrap();
    drop(lease);
    let report = reap(&leases);
    assert!(report.failed[0].detail.contains("refused"), "{report:?}");
    assert!(path.exists());
    assert_eq!(leases.list().unwrap().len(), 1, "it stays to be looked at");
}

#[test]
fn what_is_no_lease_is_told_and_left() {
    let scratch = tempfile::tempdir().unwrap();
    let leases = leases(scratch.path());
    let path = leases.folder().join("etude-0-0.lease");
    fs::write(&path, "{\"version\": 1").unwrap();
    assert_eq!(reap(&leases).damaged, std::slice::from_ref(&path));
    assert!(path.exists());
}

#[test]
fn programs_that_reap_at_once_end_each_lease_once() {
    let scratch = tempfile::tempdir().unwrap();
    let leases = leases(scratch.path());
    for _ in 0..40 {
        let lease = leases.take("local").unwrap();
        let path = scratch.path().join(lease.id());
        fs::create_dir_all(path.join("inner")).unwrap();
        lease.hold(Held::Folder { path }).unwrap();
    }
    let reports: Vec<ReapReport> = thread::scope(|scope| {
        let reapers: Vec<_> = (0..4).map(|_| scope.spawn(|| reap(&leases))).collect();
        reapers.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let mut ended: Vec<&String> = reports.iter().flat_map(|report| &report.ended).collect();
    ended.sort();
    ended.dedup();
    assert_eq!(ended.len(), 40);
    let all: usize = reports.iter().map(|report| report.ended.len()).sum();
    assert_eq!(all, 40, "a lease was ended twice");
    assert!(reports.iter().all(|report| report.failed.is_empty()));
}
