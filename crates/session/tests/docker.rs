//! The docker backend against a real engine: Podman's service with runc.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod engine;

use std::{fs, time::Duration};

use code::RelativePath;
use engine::{BARE, IMAGE, TestEngine};
use sandbox::{Limits, Status};
use session::{
    Backend, Command, Image, Session, SessionError,
    docker::{DockerBackend, DockerConfig},
    lease::{Leases, TIME_TO_LIVE},
};

const LIMITS: Limits = Limits {
    wall: Duration::from_secs(60),
    cpu: Duration::from_secs(30),
    address_space: false,
    ..Limits::SMALL
};

/// Lists the processes that run: the waiting shell, this one, and the listing ones.
const RUNNING: &str = "ps -o stat,comm | grep -v '^Z'";

async fn backend(engine: &TestEngine) -> DockerBackend {
    let leases = Leases::open(engine.folder().join("leases"), TIME_TO_LIVE).unwrap();
    DockerBackend::connect(DockerConfig::new(engine.address(), leases))
        .await
        .unwrap()
}

fn path(text: &str) -> RelativePath {
    RelativePath::new(text).unwrap()
}

/// The standard output of a script that must end well.
async fn shell(session: &mut dyn Session, script: &str) -> String {
    let outcome = session.exec(&Command::shell(script, LIMITS)).await.unwrap();
    assert_eq!(
        outcome.status,
        Status::Ok,
        "{script}: {}",
        outcome.stderr.text()
    );
    outcome.stdout.text()
}

fn assert_nothing_is_left(engine: &TestEngine) {
    assert_eq!(engine.containers(), [] as [String; 0]);
    assert_eq!(engine.images(), [] as [String; 0]);
    assert_eq!(engine.volumes(), [] as [String; 0]);
    // These end after what they keep.
    for _ in 0..500 {
        if engine.monitors().is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(engine.monitors(), [0i32; 0]);
    assert!(
        fs::read_dir(engine.folder().join("leases"))
            .unwrap()
            .next()
            .is_none()
    );
}

#[tokio::test]
async fn commands_run_and_their_end_is_told() {
    let Some(engine) = TestEngine::start() else {
        return;
    };
    let backend = backend(&engine).await;
    eprintln!("{:?}", backend.capabilities());
    let mut image = Image::container(IMAGE);
    image.env.push(("GIVEN".to_owned(), "by image".to_owned()));
    let mut session = backend.start(&image).await.unwrap();
    let session_ref = session.as_mut();

    let command = Command::shell(
        "echo out; echo err >&2; cat; pwd; echo $GIVEN $OWN; exit 3",
        LIMITS,
    )
    .with_stdin("input\n")
    .with_env("OWN", "by command");
    let started = std::time::Instant::now();
    let outcome = session_ref.exec(&command).await.unwrap();
    eprintln!("one exec: {:?}", started.elapsed());
    assert_eq!(outcome.status, Status::NonZero(3));
    assert_eq!(
        outcome.stdout.text(),
        "out\ninput\n/testbed\nby image by command\n"
    );
    assert_eq!(outcome.stderr.text(), "err\n");
    eprintln!("{outcome:?}");

    // The walls: no network but the loopback, no capabilities, no new privileges.
    let status = shell(session_ref, "cat /proc/self/status; ls /sys/class/net").await;
    assert!(status.contains("CapEff:\t0000000000000000"), "{status}");
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    assert!(status.ends_with("\nlo\n"), "{status}");

    let outcome = session_ref
        .exec(&Command::new(["no-such-program"], LIMITS))
        .await
        .unwrap();
    assert_eq!(outcome.status, Status::NonZero(127));
    let outcome = session_ref
        .exec(&Command::shell("kill -SEGV $$", LIMITS))
        .await
        .unwrap();
    assert_eq!(outcome.status, Status::Signal(11));
    let inside = Command::shell("pwd", LIMITS).in_folder(path("a/b"));
    let refused = session_ref.exec(&inside).await.unwrap_err();
    assert!(
        matches!(refused, SessionError::NotFound { .. }),
        "{refused}"
    );
    shell(session_ref, "mkdir -p a/b").await;
    let outcome = session_ref.exec(&inside).await.unwrap();
    assert_eq!(outcome.stdout.text(), "/testbed/a/b\n");

    session.stop().await.unwrap();
    assert_nothing_is_left(&engine);
}

#[tokio::test]
async fn limits_end_commands_with_all_they_started() {
    let Some(engine) = TestEngine::start() else {
        return;
    };
    let backend = backend(&engine).await;
    let usage = backend.capabilities().usage;
    let mut session = backend.start(&Image::container(IMAGE)).await.unwrap();
    let session = session.as_mut();
    let short = Limits {
        wall: Duration::from_secs(1),
        ..LIMITS
    };
    // Ignores what can be ignored, and leaves a daemon that holds on to the output.
    let script = "trap '' TERM HUP INT; setsid sleep 1000 & while :; do sleep 1000; done";
    let outcome = session.exec(&Command::shell(script, short)).await.unwrap();
    assert_eq!(outcome.status, Status::WallTimeout);
    let processes = shell(session, RUNNING).await;
    assert!(!processes.contains("sleep"), "{processes}");

    // A command that ends well while its daemon holds the output does not wait for it.
    let outcome = session
        .exec(&Command::shell("(setsid sleep 1000 &); echo done", LIMITS))
        .await
        .unwrap();
    assert_eq!(
        (outcome.status, outcome.stdout.text()),
        (Status::Ok, "done\n".to_owned())
    );
    assert!(!shell(session, RUNNING).await.contains("sleep"));

    let flood = Limits {
        output_max: 1 << 20,
        output_keep: 1 << 10,
        ..LIMITS
    };
    let outcome = session.exec(&Command::new(["yes"], flood)).await.unwrap();
    assert_eq!(outcome.status, Status::Output);
    assert!(outcome.stdout.truncated && outcome.stdout.head.len() == 512);

    let busy = Limits {
        cpu: Duration::from_secs(1),
        ..LIMITS
    };
    let outcome = session
        .exec(&Command::shell("while :; do :; done", busy))
        .await
        .unwrap();
    assert_eq!(outcome.status, Status::CpuTimeout);

    let large = Command::shell(
        "dd if=/dev/zero of=large bs=1M count=100 2>/dev/null",
        LIMITS,
    );
    assert_eq!(session.exec(&large).await.unwrap().status, Status::Disk);

    if usage {
        let small = Limits {
            memory: 64 << 20,
            ..LIMITS
        };
        // Doubles a string for ever.
        let script = "x=0123456789abcdef; while :; do x=$x$x; done";
        let outcome = session.exec(&Command::shell(script, small)).await.unwrap();
        assert_eq!(outcome.status, Status::Memory, "{outcome:?}");
    }
    // Many processes are stopped by the container's limit, and nothing of them is left.
    let bomb = "f() { f | f & }; f; sleep 1";
    let outcome = session.exec(&Command::shell(bomb, LIMITS)).await.unwrap();
    eprintln!("fork bomb: {:?} {}", outcome.status, outcome.stderr.total);
    assert_eq!(
        // The first of the container and this shell; those that have ended and that nobody collects are nothing.
        shell(
            session,
            "all=$(ps -o stat,comm); echo \"$all\" | grep -vc -e ^Z -e ps -e COMMAND"
        )
        .await,
        "2\n"
    );
}

#[tokio::test]
async fn a_shell_that_was_replaced_does_not_keep_processes() {
    let Some(engine) = TestEngine::start() else {
        return;
    };
    let backend = backend(&engine).await;
    let mut session = backend.start(&Image::container(IMAGE)).await.unwrap();
    // From now on the container's shell sleeps instead of killing, when it is asked to.
    let script = "rm /bin/sh; \
        printf '#!/bin/busybox ash\\ncase \"$2\" in kill*) exit 0;; esac\\nexec /bin/busybox ash \"$@\"\\n' \
        > /bin/sh; chmod 755 /bin/sh; (setsid sleep 1000 &)";
    shell(session.as_mut(), script).await;
    let processes = shell(session.as_mut(), RUNNING).await;
    assert!(!processes.contains("sleep"), "{processes}");
    session.write(&path("kept"), b"x", 0o644).await.unwrap();
    session.stop().await.unwrap();
    assert_nothing_is_left(&engine);
}

#[tokio::test]
async fn files_go_in_and_out_and_no_link_is_followed() {
    let Some(engine) = TestEngine::start() else {
        return;
    };
    let backend = backend(&engine).await;
    let checkout = tempfile::tempdir().unwrap();
    fs::create_dir(checkout.path().join("src")).unwrap();
    fs::write(checkout.path().join("src/main"), "content").unwrap();
    std::os::unix::fs::symlink("src/main", checkout.path().join("link")).unwrap();
    let mut image = Image::container(IMAGE);
    image.checkout = Some(checkout.path().to_owned());
    let mut session = backend.start(&image).await.unwrap();
    let session_ref = session.as_mut();
    assert_eq!(shell(session_ref, "cat link").await, "content");

    let content = vec![7u8; 3 << 20];
    session_ref
        .write(&path("new/deep/file"), &content, 0o750)
        .await
        .unwrap();
    assert_eq!(
        session_ref
            .read(&path("new/deep/file"), 4 << 20)
            .await
            .unwrap(),
        content
    );
    let told = shell(session_ref, "stat -c '%a %s %u' new/deep/file").await;
    assert_eq!(told, format!("750 {} 0\n", content.len()));
    let refused = session_ref
        .read(&path("new/deep/file"), 10)
        .await
        .unwrap_err();
    assert!(
        matches!(refused, SessionError::FileTooLarge { .. }),
        "{refused}"
    );
    for (target, what) in [
        ("new", "a folder"),
        ("link", "a symbolic link"),
        ("pipe", "a pipe"),
    ] {
        shell(session_ref, "[ -e pipe ] || mkfifo pipe").await;
        match session_ref.read(&path(target), 1 << 20).await.unwrap_err() {
            SessionError::NotAFile { found, .. } => assert_eq!(found, what),
            other => panic!("{target}: {other}"),
        }
    }
    let refused = session_ref.read(&path("none/file"), 10).await.unwrap_err();
    assert!(
        matches!(refused, SessionError::NotFound { .. }),
        "{refused}"
    );

    // A link as a folder leads nowhere; a link at the end is replaced.
    shell(session_ref, "ln -s /etc outside; ln -s /etc/passwd mine").await;
    for refused in [
        session_ref
            .read(&path("outside/passwd"), 1 << 20)
            .await
            .unwrap_err(),
        session_ref
            .write(&path("outside/passwd"), b"x", 0o644)
            .await
            .unwrap_err(),
        session_ref
            .remove(&path("outside/passwd"))
            .await
            .unwrap_err(),
    ] {
        assert!(
            matches!(refused, SessionError::NotAFile { .. }),
            "{refused}"
        );
    }
    session_ref
        .write(&path("mine"), b"mine", 0o644)
        .await
        .unwrap();
    session_ref
        .write(&path("pipe"), b"file", 0o644)
        .await
        .unwrap();
    assert_eq!(
        shell(session_ref, "cat mine pipe; readlink mine || :").await,
        "minefile"
    );
    assert!(
        shell(session_ref, "cat /etc/passwd")
            .await
            .starts_with("root")
    );
    session_ref.write(&path("mine"), b"", 0o644).await.unwrap();
    assert_eq!(session_ref.read(&path("mine"), 0).await.unwrap(), b"");
    session_ref.remove(&path("link")).await.unwrap();
    let refused = session_ref.remove(&path("link")).await.unwrap_err();
    assert!(
        matches!(refused, SessionError::NotFound { .. }),
        "{refused}"
    );
    assert_eq!(
        fs::read(checkout.path().join("src/main")).unwrap(),
        b"content"
    );
    session.stop().await.unwrap();
    assert_nothing_is_left(&engine);
}

#[tokio::test]
async fn snapshots_come_back_and_sessions_are_apart() {
    let Some(engine) = TestEngine::start() else {
        return;
    };
    let backend = backend(&engine).await;
    let image = Image::container(IMAGE);
    let (first, second) = tokio::join!(backend.start(&image), backend.start(&image));
    let (mut first, mut second) = (first.unwrap(), second.unwrap());
    assert_ne!(first.id(), second.id());
    shell(first.as_mut(), "echo one > file; echo kept > other").await;
    let snapshot = first.snapshot().await.unwrap();
    let later = tokio::join!(
        shell(
            first.as_mut(),
            "echo two > file; rm other; echo new > third; cat file"
        ),
        shell(second.as_mut(), "ls; echo mine > file; cat file"),
    );
    assert_eq!(later, ("two\n".to_owned(), "mine\n".to_owned()));
    let id = first.id().to_owned();
    for _ in 0..2 {
        first.restore(&snapshot).await.unwrap();
        assert_eq!(
            shell(first.as_mut(), "cat file other; ls").await,
            "one\nkept\nfile\nother\n"
        );
        shell(first.as_mut(), "rm file").await;
    }
    assert_eq!(first.id(), id);
    let unknown = session::SnapshotId("none".to_owned());
    let refused = first.restore(&unknown).await.unwrap_err();
    assert!(
        matches!(refused, SessionError::NoSuchSnapshot { .. }),
        "{refused}"
    );
    assert_eq!(engine.containers().len(), 2);
    first.stop().await.unwrap();
    // Dropped, not stopped: the runtime ends it soon.
    drop(second);
    for _ in 0..500 {
        if engine.containers().is_empty() && backend.engine().address() == engine.address() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for _ in 0..100 {
        if fs::read_dir(engine.folder().join("leases"))
            .unwrap()
            .next()
            .is_none()
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_nothing_is_left(&engine);
}

#[tokio::test]
async fn what_cannot_be_is_said_clearly() {
    let Some(mut engine) = TestEngine::start() else {
        return;
    };
    let backend = backend(&engine).await;
    let absent = Image::container("localhost/no-such-image:1");
    let refused = backend.start(&absent).await.unwrap_err();
    assert!(
        matches!(&refused, SessionError::Image { image, .. } if image.contains("no-such")),
        "{refused}"
    );
    let refused = backend.start(&Image::container(BARE)).await.unwrap_err();
    assert!(matches!(&refused, SessionError::Image { .. }), "{refused}");
    assert!(refused.to_string().contains("/bin/sh"), "{refused}");
    let refused = backend.start(&Image::default()).await.unwrap_err();
    assert!(
        matches!(refused, SessionError::Unsupported { .. }),
        "{refused}"
    );
    let mut socket = Image::container(IMAGE);
    socket.checkout = Some(engine.folder().to_owned());
    let refused = backend.start(&socket).await.unwrap_err();
    assert!(
        refused.to_string().contains("engine.sock is neither"),
        "{refused}"
    );
    assert!(matches!(refused, SessionError::Image { .. }), "{refused}");
    assert_nothing_is_left(&engine);

    // The engine goes down under a command.
    let mut session = backend.start(&Image::container(IMAGE)).await.unwrap();
    let command = Command::shell("sleep 30", LIMITS);
    let down = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        engine.crash();
    };
    let (lost, ()) = tokio::join!(session.exec(&command), down);
    let lost = lost.unwrap_err();
    assert!(
        matches!(lost, SessionError::Lost { .. }) && lost.is_infrastructure(),
        "{lost}"
    );
    assert!(session.stop().await.unwrap_err().is_infrastructure());
    let refused = DockerBackend::connect(DockerConfig::new(
        engine.address(),
        Leases::open(engine.folder().join("leases"), TIME_TO_LIVE).unwrap(),
    ));
    let refused = refused.await.unwrap_err();
    assert!(
        matches!(refused, SessionError::Unavailable { .. }),
        "{refused}"
    );
}
