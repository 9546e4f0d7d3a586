//! Folders of the host in the jail: work trees that programs change, and what they may only read.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a failed unwrap is a failed test, and what is skipped is said"
)]

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
};

use sandbox::{
    Config, Job, Limits, Sandbox, SandboxError, Status, Tier, TierChoice, WorkTree, Workspace,
};

/// Who owns what programs make, where this is root.
const USER: u32 = 899_999_999;

fn workspace(tree: WorkTree) -> Workspace {
    Workspace {
        place: PathBuf::from("/work"),
        tree,
        user: is_root().then_some(USER),
    }
}

fn is_root() -> bool {
    // SAFETY: this call cannot fail.
    unsafe { libc::geteuid() == 0 }
}

fn folder(parent: &Path, name: &str) -> PathBuf {
    let folder = parent.join(name);
    fs::create_dir(&folder).unwrap();
    if is_root() {
        chown(&folder, Some(USER), Some(USER)).unwrap();
    }
    folder
}

async fn shell(sandbox: &Sandbox, script: &str) -> String {
    let job = Job::exec(["/bin/sh", "-c", script], Limits::SMALL);
    let outcome = sandbox.run(job).await.unwrap();
    assert_eq!(outcome.status, Status::Ok, "{}", outcome.stderr.text());
    outcome.stdout.text()
}

fn start(config: Config) -> Option<Sandbox> {
    match Sandbox::start(config) {
        Ok(sandbox) => Some(sandbox),
        Err(SandboxError::TierUnavailable { detail, .. }) => {
            eprintln!("skipped: {detail}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn readable_folders_below_tmp_are_not_hidden_by_the_runs_own() {
    let place = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = place.path().join("program");
    fs::write(
        &program,
        "#!/bin/sh\necho read; echo x > /tmp/own && cat /tmp/own\n",
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let config = Config {
        tier: TierChoice::Exactly(Tier::Namespaces),
        readable: vec![place.path().to_owned()],
        ..Config::new(1)
    };
    let Some(sandbox) = start(config) else { return };
    let program = program.display();
    for _ in 0..2 {
        assert_eq!(shell(&sandbox, &program.to_string()).await, "read\nx\n");
        let script = format!(
            "echo y > {program} || echo refused; rm -f {program} || echo refused; ls -A /tmp | wc -l"
        );
        assert_eq!(shell(&sandbox, &script).await, "refused\nrefused\n1\n");
    }
}

#[tokio::test]
async fn a_work_tree_keeps_changes_from_run_to_run_and_over_a_lost_slot() {
    let place = tempfile::tempdir().unwrap();
    let lower = folder(place.path(), "lower");
    fs::write(lower.join("file"), "below\n").unwrap();
    if is_root() {
        chown(lower.join("file"), Some(USER), Some(USER)).unwrap();
    }
    let tree = WorkTree::Overlay {
        lower: vec![lower.clone()],
        upper: folder(place.path(), "upper"),
        work: folder(place.path(), "work"),
    };
    let config = Config {
        workspace: Some(workspace(tree)),
        runs_per_slot: 2,
        ..Config::new(3)
    };
    let Some(sandbox) = start(config) else { return };
    for round in 0..5 {
        let told = shell(&sandbox, "cd /work && echo above >> file && wc -l < file").await;
        assert_eq!(told.trim(), (round + 2).to_string());
    }
    assert_eq!(fs::read_to_string(lower.join("file")).unwrap(), "below\n");
    drop(sandbox);
    assert!(place.path().join("upper/file").exists());
}

#[test]
fn a_work_tree_needs_a_place_of_its_own_and_the_strongest_walls() {
    let place = tempfile::tempdir().unwrap();
    let start = |at: &str, tier: TierChoice| {
        Sandbox::start(Config {
            tier,
            allow_weak_tier: true,
            workspace: Some(Workspace {
                place: PathBuf::from(at),
                ..workspace(WorkTree::Folder(place.path().to_owned()))
            }),
            ..Config::new(1)
        })
    };
    for at in [
        "",
        "/",
        "work",
        "/tmp",
        "/tmp/work",
        "/usr/work",
        "/etc",
        "/a/../usr",
        "/box",
    ] {
        let refused = start(at, TierChoice::Strongest);
        assert!(
            matches!(refused, Err(SandboxError::Invalid { .. })),
            "{at}: {refused:?}"
        );
    }
    for tier in [Tier::Landlock, Tier::Limits] {
        let refused = start("/work", TierChoice::Exactly(tier));
        assert!(
            matches!(refused, Err(SandboxError::TierUnavailable { .. })),
            "{refused:?}"
        );
    }
}
