//! Sessions over a real ssh connection to this machine: the test starts its own `sshd`, with keys of
//! its own, on a port of its own. Skipped, and said so, where there is none.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "helpers of tests"
)]

mod conformance;

use std::{
    fs::{self, File},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use code::RelativePath;
use sandbox::{Limits, Status};
use session::{
    Apptainer, ApptainerOptions, Backend, Command, Image, Session, SessionError,
    lease::{Leases, TIME_TO_LIVE},
    local::{LocalBackend, LocalConfig},
    ssh::{Ssh, SshOptions, serve_lines},
};
use tempfile::TempDir;
use tokio::process::Child;

/// Where the remote end of a test keeps its things; set for it alone.
const PLACE: &str = "SSH_TEST_PLACE";

/// Set where the remote end hosts jails.
const LOCAL: &str = "SSH_TEST_LOCAL";

/// The remote end: this test program again, started by `sshd` through a small script.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn remote_end() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else {
        return;
    };
    // The harness writes to the standard output; the script keeps the true one at 3.
    let output = File::options().write(true).open("/proc/self/fd/3").unwrap();
    let output = tokio::fs::File::from_std(output);
    let input = tokio::io::BufReader::new(tokio::io::stdin());
    if std::env::var_os(LOCAL).is_some() {
        let leases = Leases::open(place.join("leases"), TIME_TO_LIVE).unwrap();
        let config = LocalConfig::new(leases, place.join("work"));
        let backend = LocalBackend::open(config).await.unwrap();
        let _ = serve_lines(&backend, "test", input, output).await;
        std::process::exit(0);
    }
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/remote/apptainer.sh");
    let backend = Apptainer::new(ApptainerOptions {
        program,
        env: vec![
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            (
                "STATE".to_owned(),
                place.join("state").display().to_string(),
            ),
        ],
        sif_dir: place.join("sif"),
        share: None,
        work: place.join("work"),
        instance: format!("gp-{}", std::process::id()),
        record: place.join(format!("{}.instance.json", std::process::id())),
    });
    backend.reap_dead().await.unwrap();
    let _ = serve_lines(&backend, "test", input, output).await;
    std::process::exit(0);
}

struct Server {
    place: TempDir,
    sshd: Child,
}

impl Server {
    /// `None`, with a word about it, where there is no `sshd`.
    async fn start() -> Option<Self> {
        let sshd = ["/usr/sbin/sshd", "/usr/local/sbin/sshd"];
        let Some(sshd) = sshd.iter().find(|path| Path::new(path).exists()) else {
            eprintln!("skipped: there is no sshd here; it is in the package openssh-server");
            return None;
        };
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for name in ["state", "sif", "work", "control", "sif/image.sif.d"] {
            fs::create_dir(at(name)).unwrap();
        }
        fs::write(at("sif/image.sif"), "").unwrap();
        fs::write(at("sif/image.sif.d/README"), "read me\n").unwrap();
        for key in ["host_key", "user_key"] {
            let made = tokio::process::Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(at(key))
                .status();
            assert!(made.await.unwrap().success());
        }
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        fs::copy(at("user_key.pub"), at("authorized")).unwrap();
        let host_key = fs::read_to_string(at("host_key.pub")).unwrap();
        fs::write(at("known"), format!("[127.0.0.1]:{port} {host_key}")).unwrap();
        let place_text = place.path().display();
        fs::write(
            at("sshd_config"),
            format!(
                "Port {port}\nListenAddress 127.0.0.1\nHostKey {place_text}/host_key\n\
                 AuthorizedKeysFile {place_text}/authorized\nStrictModes no\nUsePAM no\n\
                 PasswordAuthentication no\nPermitRootLogin yes\nPidFile none\n"
            ),
        )
        .unwrap();
        fs::write(
            at("ssh_config"),
            format!(
                "Host box\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {place_text}/user_key\n  \
                 IdentitiesOnly yes\n  UserKnownHostsFile {place_text}/known\n"
            ),
        )
        .unwrap();
        let own = std::env::current_exe().unwrap();
        fs::write(
            at("etude"),
            format!(
                "#!/bin/sh\n[ \"$1 $2\" = 'runner --stdio' ] || exit 9\nexec 3>&1 >/dev/null\n\
                 {PLACE}={place_text} exec {} remote_end --exact --nocapture\n",
                own.display()
            ),
        )
        .unwrap();
        let script = fs::read_to_string(at("etude")).unwrap();
        let hosts_jails = script.replace(PLACE, &format!("{LOCAL}=1 {PLACE}"));
        fs::write(at("etude-local"), hosts_jails).unwrap();
        for program in ["etude", "etude-local"] {
            fs::set_permissions(at(program), fs::Permissions::from_mode(0o755)).unwrap();
        }
        // Started as another user's service it needs this folder.
        let _ = fs::create_dir_all("/run/sshd");
        let sshd = tokio::process::Command::new(sshd)
            .args(["-D", "-e", "-f"])
            .arg(at("sshd_config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(at("sshd.log")).unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        for _ in 0..200 {
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Some(Self { place, sshd })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn ssh(&self, remote: &str) -> Ssh {
        Ssh::new(SshOptions {
            destination: "box".to_owned(),
            config: Some(self.at("ssh_config")),
            remote: vec![remote.to_owned()],
            connect_timeout: Duration::from_secs(10),
            control_folder: self.at("control"),
        })
    }

    async fn start_session(&self) -> Box<dyn Session> {
        let program = self.at("etude").display().to_string();
        let started = self.ssh(&program).start(&Image::container("image")).await;
        started.unwrap_or_else(|error| {
            let log = fs::read_to_string(self.at("sshd.log")).unwrap();
            panic!("{error}\n{log}")
        })
    }

    /// Waits until the remote side has stopped what it had.
    async fn assert_clean(&self) {
        let left = || {
            let work = fs::read_dir(self.at("work/gp_work")).map_or(0, Iterator::count);
            work + fs::read_dir(self.at("state")).unwrap().count()
        };
        for _ in 0..1000 {
            if left() == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the remote side left something");
    }
}

fn path(text: &str) -> RelativePath {
    RelativePath::new(text).unwrap()
}

fn shell(script: &str) -> Command {
    Command::shell(script, Limits::SMALL)
}

#[tokio::test]
async fn a_session_does_over_ssh_what_it_does_here() {
    let Some(server) = Server::start().await else {
        return;
    };
    let mut session = server.start_session().await;
    assert_eq!(session.capabilities().backend, "ssh");
    let told = shell("cat README -; printf \"$A\" >&2; exit 3")
        .with_stdin(b"\0\xff".to_vec())
        .with_env("A", "'\"$x\n");
    let outcome = session.exec(&told).await.unwrap();
    assert_eq!(outcome.status, Status::NonZero(3));
    assert_eq!(outcome.stdout.bytes(), b"read me\n\0\xff");
    assert_eq!(outcome.stderr.bytes(), b"'\"$x\n");

    let large: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    session
        .write(&path("d/large"), &large, 0o600)
        .await
        .unwrap();
    assert_eq!(
        session.read(&path("d/large"), 3_000_000).await.unwrap(),
        large
    );
    let absent = session.read(&path("absent"), 1).await.unwrap_err();
    assert_eq!(
        absent,
        SessionError::NotFound {
            path: path("absent")
        }
    );
    let snapshot = session.snapshot().await.unwrap();
    session.remove(&path("d/large")).await.unwrap();
    session.restore(&snapshot).await.unwrap();
    assert!(session.read(&path("d/large"), 3_000_000).await.is_ok());
    let mut limits = Limits::SMALL;
    limits.wall = Duration::from_millis(300);
    let slow = session
        .exec(&Command::shell("sleep 1000", limits))
        .await
        .unwrap();
    assert_eq!(slow.status, Status::WallTimeout);
    session.stop().await.unwrap();
    server.assert_clean().await;
}

#[tokio::test]
async fn a_dropped_session_is_stopped_at_the_other_end() {
    let Some(server) = Server::start().await else {
        return;
    };
    let mut session = server.start_session().await;
    let endless = shell("sleep 1000");
    let given_up = tokio::time::timeout(Duration::from_millis(500), session.exec(&endless));
    assert!(given_up.await.is_err());
    drop(session);
    server.assert_clean().await;
}

#[tokio::test]
async fn a_lost_connection_is_a_lost_session_and_is_cleaned_up() {
    let Some(mut server) = Server::start().await else {
        return;
    };
    let mut session = server.start_session().await;
    assert!(session.exec(&shell("true")).await.unwrap().is_ok());
    server.sshd.kill().await.unwrap();
    // The process of the connection lives on without its listener.
    for (_, parent) in ends_of(&server.place) {
        let name = fs::read_to_string(format!("/proc/{parent}/comm")).unwrap_or_default();
        if name.starts_with("sshd") {
            let kill = std::process::Command::new("kill")
                .args(["-9", &parent])
                .status();
            assert!(kill.unwrap().success());
        }
    }
    let lost = session.exec(&shell("true")).await.unwrap_err();
    assert!(matches!(lost, SessionError::Lost { .. }), "{lost}");
    server.assert_clean().await;
}

#[tokio::test]
async fn what_a_killed_end_left_is_removed_by_the_next_one() {
    let Some(server) = Server::start().await else {
        return;
    };
    let mut session = server.start_session().await;
    assert!(session.exec(&shell("true")).await.unwrap().is_ok());
    for (pid, _) in ends_of(&server.place) {
        let kill = std::process::Command::new("kill")
            .args(["-9", &pid])
            .status();
        assert!(kill.unwrap().success());
    }
    let lost = session.exec(&shell("true")).await.unwrap_err();
    assert!(matches!(lost, SessionError::Lost { .. }), "{lost}");
    drop(session);
    assert_eq!(fs::read_dir(server.at("state")).unwrap().count(), 1);
    let next = server.start_session().await;
    assert_eq!(fs::read_dir(server.at("state")).unwrap().count(), 1);
    next.stop().await.unwrap();
    server.assert_clean().await;
}

#[tokio::test]
async fn what_is_wrong_at_the_other_end_is_said() {
    let Some(server) = Server::start().await else {
        return;
    };
    let image = Image::container("image");
    let absent = server.ssh("/absent/etude").start(&image).await.unwrap_err();
    assert!(absent.is_infrastructure(), "{absent}");
    assert!(
        absent.to_string().contains("/absent/etude did not start"),
        "{absent}"
    );
    let old = server.at("old");
    fs::write(
        &old,
        "#!/bin/sh\necho '{\"etude\":\"0.0.1\",\"protocol\":0}'; cat\n",
    )
    .unwrap();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o755)).unwrap();
    let old = server
        .ssh(&old.display().to_string())
        .start(&image)
        .await
        .unwrap_err();
    assert!(old.to_string().contains("is etude 0.0.1"), "{old}");
    let nobody = Ssh::new(SshOptions {
        destination: "nobody@127.0.0.1:1".to_owned(),
        config: Some(server.at("ssh_config")),
        remote: vec!["etude".to_owned()],
        connect_timeout: Duration::from_secs(5),
        control_folder: server.at("control"),
    });
    let refused = nobody.start(&image).await.unwrap_err();
    assert!(
        matches!(refused, SessionError::Unavailable { .. }),
        "{refused}"
    );
    let none = server.ssh(&server.at("etude").display().to_string());
    let none = none.start(&Image::container("ab/sent")).await.unwrap_err();
    assert!(matches!(none, SessionError::Image { .. }), "{none}");
    server.assert_clean().await;
}

/// The processes that are the remote ends of `place`, and who started each.
fn ends_of(place: &TempDir) -> Vec<(String, String)> {
    let marker = format!("{PLACE}={}", place.path().display());
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let end = |process: fs::DirEntry| {
        let environ = fs::read(process.path().join("environ")).ok()?;
        environ
            .split(|byte| *byte == 0)
            .find(|pair| *pair == marker.as_bytes())?;
        let status = fs::read_to_string(process.path().join("status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        let pid = process.file_name().into_string().ok()?;
        Some((pid, parent.trim().to_owned()))
    };
    processes.filter_map(end).collect()
}

#[tokio::test]
async fn jails_of_another_machine_do_what_every_backend_does() {
    let Some(server) = Server::start().await else {
        return;
    };
    let checkout = server.at("checkout");
    conformance::checkout(&checkout);
    let mut image = Image::checkout(checkout);
    image.env.push(("GIVEN".to_owned(), "by image".to_owned()));
    let backend = server.ssh(&server.at("etude-local").display().to_string());
    conformance::all(&backend, &image).await;
    server.assert_clean().await;
}
