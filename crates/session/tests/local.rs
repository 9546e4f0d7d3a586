//! The local backend: the conformance suite, over layers and over copies, and what is its own.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a failed unwrap is a failed test, and what is skipped is said"
)]

mod conformance;

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use conformance::{LIMITS, checkout, run, shell};
use sandbox::{Limits, Status};
use session::{
    Backend, Command, Image, SessionError, SnapshotKind,
    lease::{Leases, TIME_TO_LIVE},
    local::{LocalBackend, LocalConfig},
};
use tempfile::TempDir;

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("scratch")).unwrap();
        fs::create_dir(folder.path().join("checkout")).unwrap();
        checkout(&folder.path().join("checkout"));
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn config(&self) -> LocalConfig {
        let leases = Leases::open(self.path("leases"), TIME_TO_LIVE).unwrap();
        LocalConfig::new(leases, self.path("scratch"))
    }

    fn image(&self) -> Image {
        let mut image = Image::checkout(self.path("checkout"));
        image.env.push(("GIVEN".to_owned(), "by image".to_owned()));
        image
    }

    fn assert_nothing_is_left(&self) {
        for folder in ["leases", "scratch"] {
            let left: Vec<_> = fs::read_dir(self.path(folder)).unwrap().collect();
            assert!(left.is_empty(), "{folder}: {left:?}");
        }
    }
}

/// Says why there is nothing to test where the walls cannot be built.
async fn open(config: LocalConfig) -> Option<LocalBackend> {
    match LocalBackend::open(config).await {
        Ok(backend) => Some(backend),
        Err(SessionError::Sandbox(error)) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Of every file of this name below `folder`, as far as that can be entered.
fn owners_of(name: &str, folder: &Path) -> Vec<u32> {
    let mut owners = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let found = entry.metadata().unwrap();
        if entry.file_name() == name {
            owners.push(found.uid());
        } else if found.is_dir() {
            owners.extend(owners_of(name, &entry.path()));
        }
    }
    owners
}

#[tokio::test]
async fn layers_conform() {
    let place = Place::new();
    let Some(backend) = open(place.config()).await else {
        return;
    };
    if let Some(why) = backend.copied_because() {
        eprintln!("skipped: no overlay can be mounted here: {why}");
        return;
    }
    assert_eq!(backend.capabilities().snapshots, SnapshotKind::Layer);
    conformance::all(&backend, &place.image()).await;
    place.assert_nothing_is_left();
}

#[tokio::test]
async fn copies_conform() {
    let place = Place::new();
    let config = LocalConfig {
        copy: true,
        ..place.config()
    };
    let Some(backend) = open(config).await else {
        return;
    };
    assert_eq!(backend.capabilities().snapshots, SnapshotKind::Copy);
    conformance::all(&backend, &place.image()).await;
    place.assert_nothing_is_left();
}

/// The two tests before this one, by somebody without any rights.
#[test]
fn both_conform_for_an_ordinary_user() {
    const USER: &str = "54321";
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can become another user; the other tests are that user's");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let temporary = folder.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    for (path, mode) in [
        (folder.path(), 0o755),
        (&program, 0o755),
        (&temporary, 0o777),
    ] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "this test is done by another user"
    )]
    let mut setpriv = std::process::Command::new("setpriv");
    let told = setpriv
        .args(["--reuid", USER, "--regid", USER, "--clear-groups"])
        .arg(&program)
        .args(["--nocapture", "_conform", "commands_are_never"])
        .env("TMPDIR", &temporary)
        .current_dir(&temporary)
        .output();
    let told = match told {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("skipped: there is no setpriv here");
            return;
        }
        told => told.unwrap(),
    };
    let text = String::from_utf8_lossy(&told.stdout) + String::from_utf8_lossy(&told.stderr);
    assert!(told.status.success(), "{text}");
    eprintln!("{text}");
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

#[tokio::test]
async fn commands_are_never_the_hosts_root_and_files_never_theirs() {
    let place = Place::new();
    // Readable by its owner alone, who is this test's user.
    let secret = place.path("checkout/secret");
    fs::write(&secret, "inside\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let Some(backend) = open(place.config()).await else {
        return;
    };
    let mut session = backend.start(&place.image()).await.unwrap();
    let s = session.as_mut();
    assert_eq!(
        shell(s, "cat secret; echo more >> secret; id -u").await,
        "inside\n1000\n"
    );
    shell(s, "chmod 4755 tool.sh; ls -ln > list").await;
    let own = fs::metadata(place.path("scratch")).unwrap().uid();
    let made = owners_of("list", &place.path("scratch"));
    assert_eq!(made.len(), 1);
    assert_ne!(made[0], 0);
    assert!(own == 0 || made[0] == own);
    session.stop().await.unwrap();
    assert_eq!(fs::read_to_string(&secret).unwrap(), "inside\n");
    place.assert_nothing_is_left();
}

#[tokio::test]
async fn commands_reach_each_other_over_a_loopback_of_their_own() {
    let place = Place::new();
    let Some(backend) = open(place.config()).await else {
        return;
    };
    let outside = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let script = "
import socket, sys, threading
server = socket.create_server(('127.0.0.1', 0))
def answer():
    client, _ = server.accept()
    client.sendall(b'heard')
    client.close()
threading.Thread(target=answer).start()
print(socket.create_connection(server.getsockname()).recv(5).decode())
try:
    socket.create_connection(('127.0.0.1', int(sys.argv[1])))
except OSError as error:
    print(type(error).__name__)
";
    let port = outside.local_addr().unwrap().port();
    let mut session = backend.start(&place.image()).await.unwrap();
    let command = Command::new(["python3", "-c", script, &port.to_string()], LIMITS);
    let outcome = session.exec(&command).await.unwrap();
    assert_eq!(
        (outcome.stdout.text(), outcome.stderr.text()),
        ("heard\nConnectionRefusedError\n".into(), "".into())
    );
    session.stop().await.unwrap();
    place.assert_nothing_is_left();
}

#[tokio::test]
async fn what_commands_write_is_bounded() {
    let place = Place::new();
    let Some(backend) = open(place.config()).await else {
        return;
    };
    let mut session = backend.start(&place.image()).await.unwrap();
    let limits = Limits {
        disk: 8 << 20,
        ..LIMITS
    };
    let script = "i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero > file$i || exit 9; done";
    let outcome = session.exec(&Command::shell(script, limits)).await.unwrap();
    assert_eq!(outcome.status, Status::Disk);
    let outcome = session
        .exec(&Command::shell("head -c 20000000 /dev/zero > one", limits))
        .await;
    assert!(!outcome.unwrap().is_ok());
    // What was there before does not count.
    let outcome = session
        .exec(&Command::shell("sleep 0.3; echo small > small", limits))
        .await;
    assert_eq!(outcome.unwrap().status, Status::Ok);
}

#[tokio::test]
async fn what_cannot_be_a_work_tree_is_refused() {
    let place = Place::new();
    let Some(backend) = open(place.config()).await else {
        return;
    };
    for folder in [
        None,
        Some(place.path("none")),
        Some(place.path("checkout/README")),
    ] {
        let image = Image {
            checkout: folder,
            ..Image::default()
        };
        let refused = backend.start(&image).await;
        assert!(
            matches!(refused, Err(SessionError::Image { .. })),
            "{refused:?}"
        );
    }
    for tree in [
        "/",
        "relative",
        "/usr/local",
        "/tmp/x",
        "/a/../usr",
        "/proc",
        "",
    ] {
        let image = Image {
            work_tree: Some(tree.to_owned()),
            ..place.image()
        };
        let refused = backend.start(&image).await;
        assert!(
            matches!(refused, Err(SessionError::Unsupported { .. })),
            "{tree}: {refused:?}"
        );
    }
    let image = Image {
        work_tree: Some("/home/someone/a, b:c\\d=e".to_owned()),
        ..place.image()
    };
    let mut session = backend.start(&image).await.unwrap();
    assert_eq!(
        shell(session.as_mut(), "pwd").await,
        "/home/someone/a, b:c\\d=e\n"
    );
    session.stop().await.unwrap();
    place.assert_nothing_is_left();
}

#[tokio::test]
async fn a_dropped_command_is_ended_and_the_session_goes_on() {
    let place = Place::new();
    let Some(backend) = open(place.config()).await else {
        return;
    };
    let mut session = backend.start(&place.image()).await.unwrap();
    let command = Command::shell("echo kept > kept; while :; do date > alive; done", LIMITS);
    let waiting = session.exec(&command);
    assert!(
        tokio::time::timeout(Duration::from_millis(500), waiting)
            .await
            .is_err()
    );
    let s = session.as_mut();
    assert_eq!(
        shell(
            s,
            "rm -f alive; sleep 0.3; cat kept; test -e alive || echo none"
        )
        .await,
        "kept\nnone\n"
    );
    session.stop().await.unwrap();
    place.assert_nothing_is_left();
}

#[tokio::test]
async fn trees_of_any_kind_are_cleared_away() {
    let place = Place::new();
    let Some(backend) = open(place.config()).await else {
        return;
    };
    for dropped in [false, true] {
        let mut session = backend.start(&place.image()).await.unwrap();
        // Deeper than any path is long; where that is seen in time, it is taken for too much.
        let deep = "import os\nfor _ in range(1500): os.mkdir('deep-deep-deep'); os.chdir('deep-deep-deep')";
        let outcome = session
            .exec(&Command::new(["python3", "-c", deep], LIMITS))
            .await;
        let status = outcome.unwrap().status;
        assert!(matches!(status, Status::Ok | Status::Disk), "{status:?}");
        let script =
            "mkfifo fifo; mkdir -p locked/in; echo x > locked/in/x; chmod 0 locked/in locked";
        shell(session.as_mut(), script).await;
        let snapshot = session.snapshot().await.unwrap();
        session.restore(&snapshot).await.unwrap();
        let outcome = run(session.as_mut(), "cat locked/in/x").await;
        assert_eq!(outcome.status, Status::NonZero(1));
        match dropped {
            true => drop(session),
            false => session.stop().await.unwrap(),
        }
        place.assert_nothing_is_left();
    }
}

#[tokio::test]
async fn what_a_dead_owner_left_is_reaped() {
    if let Some(folder) = std::env::var_os("LOCAL_SESSION_OWNER") {
        let leases = Leases::open(Path::new(&folder).join("leases"), TIME_TO_LIVE).unwrap();
        let config = LocalConfig::new(leases, Path::new(&folder).join("scratch"));
        let backend = LocalBackend::open(config).await.unwrap();
        let image = Image::checkout(Path::new(&folder).join("checkout"));
        let mut session = backend.start(&image).await.unwrap();
        shell(
            session.as_mut(),
            "mkdir -p a/b; chmod 0 a/b a; echo ready > ready",
        )
        .await;
        println!("ready");
        let command = Command::shell("while :; do :; done", LIMITS);
        let _ = session.exec(&command).await;
        return;
    }
    use std::io::BufRead;
    let place = Place::new();
    if open(place.config()).await.is_none() {
        return;
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "this test kills a process that owns a session"
    )]
    let mut owner = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "what_a_dead_owner_left_is_reaped", "--nocapture"])
        .env("LOCAL_SESSION_OWNER", place.path(""))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let output = std::io::BufReader::new(owner.stdout.take().unwrap());
    assert!(
        output
            .lines()
            .map_while(Result::ok)
            .any(|line| line.contains("ready"))
    );
    owner.kill().unwrap();
    owner.wait().unwrap();
    let leases = place.config().leases;
    assert_eq!(leases.list().unwrap().len(), 1);
    // The kernel may still be at ending what the owner had started.
    for _ in 0..100 {
        let report = leases.reap(&[]).await.unwrap();
        if report.failed.is_empty() && leases.list().unwrap().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    place.assert_nothing_is_left();
}
