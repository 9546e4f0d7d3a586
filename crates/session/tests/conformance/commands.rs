//! Commands: how they end, what they say, see and leave.

use std::time::Duration;

use sandbox::{Limits, Status};
use session::{Command, Enforcement, Image, Session, SessionError};

use super::{LIMITS, path, run, shell};

pub(super) async fn outcomes(s: &mut dyn Session) {
    let outcome = run(s, "true").await;
    assert_eq!(outcome.status, Status::Ok);
    assert!(outcome.wall_ms >= 0.0);
    if s.capabilities().usage {
        assert!(outcome.cpu_ms.is_some() && outcome.peak_memory.is_some());
    }
    for code in [1, 3, 77, 255] {
        let outcome = run(s, &format!("exit {code}")).await;
        assert_eq!(outcome.status, Status::NonZero(code));
    }
    for signal in [6, 11, 15] {
        let outcome = run(s, &format!("kill -{signal} $$; sleep 10")).await;
        assert_eq!(outcome.status, Status::Signal(signal));
    }
}

pub(super) async fn streams(s: &mut dyn Session) {
    let outcome = run(s, "echo out; echo err >&2; echo more").await;
    assert_eq!(outcome.stdout.text(), "out\nmore\n");
    assert_eq!(outcome.stderr.text(), "err\n");

    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let limits = Limits {
        output_keep: 1 << 20,
        ..LIMITS
    };
    let command = Command::new(["cat"], limits).with_stdin(bytes.clone());
    let outcome = s.exec(&command).await.unwrap();
    assert_eq!(outcome.stdout.head, bytes);
    assert!(!outcome.stdout.truncated);
    // Left unread, and none at all.
    let command = Command::new(["true"], LIMITS).with_stdin(bytes);
    assert!(s.exec(&command).await.unwrap().is_ok());
    assert_eq!(shell(s, "cat; echo end").await, "end\n");

    let limits = Limits {
        output_keep: 1000,
        ..LIMITS
    };
    let script = "printf begin; head -c 300000 /dev/zero | tr '\\0' x; printf end; printf e >&2";
    let outcome = s.exec(&Command::shell(script, limits)).await.unwrap();
    assert_eq!(outcome.status, Status::Ok);
    assert_eq!(outcome.stdout.total, 300_008);
    assert!(outcome.stdout.truncated);
    assert!(outcome.stdout.head.starts_with(b"beginxx"));
    assert!(outcome.stdout.tail.ends_with(b"xxend"));
    let kept = outcome.stdout.head.len() + outcome.stdout.tail.len();
    assert!(kept <= 1000, "{kept} bytes were kept");
    assert_eq!(outcome.stderr.text(), "e");

    let limits = Limits {
        output_keep: 1000,
        output_max: 100_000,
        ..LIMITS
    };
    let outcome = s.exec(&Command::shell("yes", limits)).await.unwrap();
    assert_eq!(outcome.status, Status::Output);
}

pub(super) async fn surroundings(s: &mut dyn Session, image: &Image) {
    assert_eq!(shell(s, "pwd").await, format!("{}\n", image.work_tree()));
    let command = Command::shell("pwd; echo *", LIMITS).in_folder(path("package/inner"));
    let outcome = s.exec(&command).await.unwrap();
    let expected = format!("{}/package/inner\nmodule.py\n", image.work_tree());
    assert_eq!(outcome.stdout.text(), expected);

    let command = Command::shell("echo \"$OWN|$EMPTY|${UNSET-unset}\"", LIMITS)
        .with_env("OWN", "a b\n=$c")
        .with_env("EMPTY", "");
    let outcome = s.exec(&command).await.unwrap();
    assert_eq!(outcome.stdout.text(), "a b\n=$c||unset\n");
    for (name, value) in &image.env {
        assert_eq!(
            shell(s, &format!("echo \"${name}\"")).await,
            format!("{value}\n")
        );
        let command = Command::shell(format!("echo \"${name}\""), LIMITS).with_env(name, "other");
        assert_eq!(s.exec(&command).await.unwrap().stdout.text(), "other\n");
    }
    // Nothing of this process's; cargo sets this one.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert_eq!(
        shell(s, "echo \"${CARGO_MANIFEST_DIR-unset}\"").await,
        "unset\n"
    );

    // No shell is in between: arguments arrive as they are.
    let strange = ["printf", "%s|", "a b", "", "$HOME", "*", "'\"", "\u{e9}\n"];
    let outcome = s.exec(&Command::new(strange, LIMITS)).await.unwrap();
    assert_eq!(outcome.stdout.text(), "a b||$HOME|*|'\"|\u{e9}\n|");
    let outcome = s.exec(&Command::new(["./tool.sh", "x"], LIMITS)).await;
    assert_eq!(outcome.unwrap().stdout.text(), "tool x\n");
}

pub(super) async fn what_is_missing(s: &mut dyn Session) {
    for program in ["no-such-program", "./no-such-program", "/no/such/program"] {
        let outcome = s.exec(&Command::new([program], LIMITS)).await.unwrap();
        assert_eq!(outcome.status, Status::NonZero(127), "{program}");
        assert!(outcome.stderr.total > 0);
    }
    let outcome = s.exec(&Command::new(["./README"], LIMITS)).await.unwrap();
    assert_eq!(outcome.status, Status::NonZero(126));
    let command = Command::new(["true"], LIMITS).in_folder(path("no/such"));
    let refused = s.exec(&command).await;
    assert_eq!(
        refused,
        Err(SessionError::NotFound {
            path: path("no/such")
        })
    );
    let outcome = s.exec(&Command::new([""; 0], LIMITS)).await;
    assert!(
        matches!(outcome, Err(SessionError::Unsupported { .. })),
        "{outcome:?}"
    );
}

pub(super) async fn state_is_kept(s: &mut dyn Session) {
    shell(
        s,
        "mkdir -p made/below && echo kept > made/below/file && echo >> README && rm bytes",
    )
    .await;
    let told = shell(
        s,
        "cat made/below/file; wc -l < README; test -e bytes || echo gone",
    )
    .await;
    let words: Vec<&str> = told.split_whitespace().collect();
    assert_eq!(words, ["kept", "4", "gone"]);
    let outcome = run(s, "echo partly > partly; exit 1").await;
    assert_eq!(outcome.status, Status::NonZero(1));
    assert_eq!(shell(s, "cat partly").await, "partly\n");
    shell(
        s,
        "mv package moved && mv moved package && chmod 600 README && chmod 644 README",
    )
    .await;
    assert_eq!(shell(s, "cat package/inner/module.py").await, "VALUE = 1\n");
}

pub(super) async fn nothing_runs_on(s: &mut dyn Session) {
    let started = std::time::Instant::now();
    // One in the background, and one that cut every tie.
    let script = "(while :; do date > alive; sleep 0.05; done) >/dev/null 2>&1 & \
        setsid sh -c 'while :; do date > alive; sleep 0.05; done' >/dev/null 2>&1 & \
        while ! test -e alive; do sleep 0.05; done; echo ended";
    assert_eq!(shell(s, script).await, "ended\n");
    assert!(
        started.elapsed() < LIMITS.wall,
        "the command waited for the background"
    );
    shell(s, "rm -f alive").await;
    let left = shell(s, "sleep 0.5; test -e alive || echo none").await;
    assert_eq!(left, "none\n");
}

pub(super) async fn wall_timeout(s: &mut dyn Session) {
    let limits = Limits {
        wall: Duration::from_millis(700),
        ..LIMITS
    };
    let script = "echo before; trap '' TERM INT HUP; while :; do sleep 1; done";
    let outcome = s.exec(&Command::shell(script, limits)).await.unwrap();
    assert_eq!(outcome.status, Status::WallTimeout);
    assert_eq!(outcome.stdout.text(), "before\n");
    assert_eq!(shell(s, "echo goes on").await, "goes on\n");
}

pub(super) async fn cpu_timeout(s: &mut dyn Session) {
    let limits = Limits {
        cpu: Duration::from_secs(1),
        ..LIMITS
    };
    let outcome = s.exec(&Command::shell("while :; do :; done", limits)).await;
    assert_eq!(outcome.unwrap().status, Status::CpuTimeout);
}

/// A program that takes more than it may ends, in whatever way its backend ends it.
pub(super) async fn memory(s: &mut dyn Session) {
    let limits = Limits {
        memory: 64 << 20,
        // What can only be held process by process is held when a command asks for it.
        address_space: s.capabilities().memory == Enforcement::PerProcess,
        ..LIMITS
    };
    // Whole lines are held in memory, and this one has no end.
    let script = "tr '\\0' x < /dev/zero | grep -c y; echo survived";
    let outcome = s.exec(&Command::shell(script, limits)).await.unwrap();
    let text = outcome.stdout.text();
    let ended = outcome.status == Status::Memory
        || outcome.status == Status::Signal(9)
        || (outcome.status == Status::Ok && text.ends_with("survived\n"));
    assert!(ended, "{:?}: {text}", outcome.status);
    assert_eq!(shell(s, "echo goes on").await, "goes on\n");
}

pub(super) async fn no_network(s: &mut dyn Session) {
    // Routes of IPv4 in the kernel's own table: a heading, and nothing else.
    let routes = shell(s, "cat /proc/net/route | wc -l").await;
    assert!(matches!(routes.trim(), "0" | "1"), "{routes} routes");
    let up = "cat /proc/net/dev | grep -v '|' | grep -v lo: | wc -l";
    assert_eq!(shell(s, up).await.trim(), "0");
}
