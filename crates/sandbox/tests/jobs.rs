//! What a job may bring along and take away: arguments, variables, files, a build; at every tier.

#![allow(
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests stop at the first surprise"
)]

use std::time::Duration;

use sandbox::{
    Build, Config, FetchedFile, Job, Limits, NotFetched, RunOutcome, Sandbox, SandboxError, Status,
    Tier, TierChoice,
};

/// One sandbox for each tier that works here.
fn sandboxes() -> Vec<Sandbox> {
    let start = |tier| {
        let config = Config {
            tier: TierChoice::Exactly(tier),
            allow_weak_tier: true,
            ..Config::new(1)
        };
        match Sandbox::start(config) {
            Ok(sandbox) => Some(sandbox),
            Err(SandboxError::TierUnavailable { detail, .. }) => {
                eprintln!("SKIPPED for {tier}: {detail}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    };
    let sandboxes: Vec<Sandbox> = Tier::ALL.into_iter().filter_map(start).collect();
    assert!(!sandboxes.is_empty(), "no tier works here");
    sandboxes
}

async fn run(sandbox: &Sandbox, job: Job) -> RunOutcome {
    let outcome = sandbox.run(job).await.unwrap();
    assert_eq!(sandbox.stats().errors, 0);
    outcome
}

fn shell(script: &str) -> Job {
    Job::exec(["/bin/sh", "-c", script], Limits::SMALL)
}

fn build(script: &str) -> Build {
    Build {
        argv: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        limits: Limits::SMALL,
    }
}

#[tokio::test]
async fn arguments_and_variables_reach_every_kind_of_program() {
    for sandbox in sandboxes() {
        let source =
            "import os, sys; print(sys.argv[1:], os.environ['A'], os.environ['LANG'], flush=True)";
        let script = Job::script(source, Limits::SMALL);
        let exec = Job::exec(["/usr/bin/env", "python3", "-c", source], Limits::SMALL);
        let main = format!("def main(payload, emit):\n    {source}");
        let harness = Job::harness(main.into(), Vec::new(), Limits::SMALL);
        for job in [script, exec, harness] {
            let job = Job {
                arguments: ["one", "two words", "", "ü"].map(str::to_owned).to_vec(),
                env: vec![
                    ("A".to_owned(), "x=ü\n".to_owned()),
                    ("LANG".to_owned(), "C".to_owned()),
                ],
                ..job
            };
            let outcome = run(&sandbox, job).await;
            let expected = "['one', 'two words', '', 'ü'] x=ü\n C\n";
            assert_eq!(outcome.stdout.text(), expected, "{}", outcome.stderr.text());
        }
        // Nothing stays behind for the next run.
        let next = "import os, sys; print(sys.argv[1:], 'A' in os.environ, os.environ['LANG'])";
        let outcome = run(&sandbox, Job::script(next, Limits::SMALL)).await;
        assert_eq!(outcome.stdout.text(), "[] False C.UTF-8\n");
    }
}

#[tokio::test]
async fn variables_for_the_interpreter_itself_mean_what_they_always_do() {
    for sandbox in sandboxes() {
        let source = "import sys, library; print(library.NAME, sys.flags.optimize, __file__[-7:])";
        let job = Job {
            env: vec![
                ("PYTHONPATH".to_owned(), "lib".to_owned()),
                ("PYTHONOPTIMIZE".to_owned(), "2".to_owned()),
            ],
            ..Job::script(source, Limits::SMALL)
        };
        let outcome = run(&sandbox, job.with_file("lib/library.py", "NAME = 'found'")).await;
        assert_eq!(
            outcome.stdout.text(),
            "found 2 main.py\n",
            "{}",
            outcome.stderr.text()
        );
    }
}

#[tokio::test]
async fn files_go_in_and_come_out() {
    for sandbox in sandboxes() {
        let source = "
import os
os.makedirs('out/deep')
data = open('in/data.bin', 'rb').read()
open('out/deep/data.bin', 'wb').write(data[::-1])
os.symlink('/etc/passwd', 'link')
os.symlink('/etc', 'folder')
open('sparse', 'wb').truncate(60 << 20)
open('sparse2', 'wb').truncate(60 << 20)
open('secret', 'w').write('mine')
os.chmod('secret', 0)
";
        let job = Job::script(source, Limits::SMALL)
            .with_file("in/data.bin", &b"\xff\0a"[..])
            .with_fetch(["out/deep/data.bin", "link", "folder/passwd", "none"])
            .with_fetch(["out", "sparse", "sparse2", "main.py"]);
        let outcome = run(&sandbox, job).await;
        assert_eq!(outcome.status, Status::Ok, "{}", outcome.stderr.text());
        let fetched = |path: &str| {
            let found = |file: &&FetchedFile| file.path == path;
            outcome.files.iter().find(found).unwrap().contents.clone()
        };
        assert_eq!(fetched("out/deep/data.bin").unwrap(), b"a\0\xff");
        assert_eq!(fetched("main.py").unwrap(), source.as_bytes());
        for path in ["link", "folder/passwd", "out"] {
            assert_eq!(fetched(path), Err(NotFetched::NotRegular), "{path}");
        }
        assert_eq!(fetched("none"), Err(NotFetched::Missing));
        assert_eq!(fetched("sparse").unwrap().len(), 60 << 20);
        let bytes = 60 << 20;
        assert_eq!(fetched("sparse2"), Err(NotFetched::TooLarge { bytes }));
        // The next run finds an empty folder.
        let next = run(&sandbox, shell("ls -A")).await;
        assert_eq!(next.stdout.text(), "");
    }
}

#[tokio::test]
async fn files_are_fetched_when_nobody_can_write_them_any_more() {
    for sandbox in sandboxes() {
        let source = "
import os, time
if os.fork() == 0:
    os.setsid()
    while True:
        with open('counter', 'a') as f: f.write('x' * 1000)
time.sleep(0.2)";
        let job = Job::script(source, Limits::SMALL).with_fetch(["counter"]);
        let outcome = run(&sandbox, job).await;
        assert_eq!(outcome.status, Status::Ok);
        assert!(!outcome.files[0].contents.as_ref().unwrap().is_empty());
    }
}

#[tokio::test]
async fn files_of_a_run_that_was_ended_are_fetched_too() {
    for sandbox in sandboxes() {
        let limits = Limits {
            wall: Duration::from_millis(300),
            ..Limits::SMALL
        };
        let script = "echo partial > out; sleep 100";
        let job = Job::exec(["/bin/sh", "-c", script], limits).with_fetch(["out"]);
        let outcome = run(&sandbox, job).await;
        assert_eq!(outcome.status, Status::WallTimeout);
        assert_eq!(outcome.files[0].contents.as_deref(), Ok(&b"partial\n"[..]));
    }
}

#[tokio::test]
async fn executable_files_can_be_run() {
    for sandbox in sandboxes() {
        let mut job = Job::exec(["./tool"], Limits::SMALL).with_file("tool", "#!/bin/sh\necho ran");
        job.files[0].executable = true;
        assert_eq!(run(&sandbox, job).await.stdout.text(), "ran\n");
    }
}

#[tokio::test]
async fn many_files_and_large_ones_fit_or_are_refused() {
    for sandbox in sandboxes() {
        let limits = Limits {
            wall: Duration::from_secs(60),
            cpu: Duration::from_secs(60),
            ..Limits::SMALL
        };
        let mut job = Job::exec(
            ["/bin/sh", "-c", "find . -type f | wc -l; wc -c < large"],
            limits,
        );
        for i in 0..20_000 {
            job = job.with_file(format!("{}/{i}", i % 100), "x");
        }
        let outcome = run(&sandbox, job.with_file("large", vec![b'x'; 40 << 20])).await;
        assert_eq!(
            outcome.stdout.text(),
            "20001\n41943040\n",
            "{:?}",
            outcome.status
        );
    }
    let sandbox = &sandboxes()[0];
    let job = shell("true").with_file("large", vec![b'x'; 65 << 20]);
    let refused = sandbox.run(job).await;
    assert!(
        matches!(refused, Err(SandboxError::TooLarge { .. })),
        "{refused:?}"
    );
    let files = (0..=sandbox::MAX_FILES).map(|i| format!("{i}"));
    let job = files.fold(shell("true"), |job, path| job.with_file(path, ""));
    let refused = sandbox.run(job).await;
    assert!(matches!(
        refused,
        Err(SandboxError::Invalid { field: "files", .. })
    ));
    assert_eq!(sandbox.stats().runs, 0);
}

#[tokio::test]
async fn wrong_jobs_are_refused_before_anything_runs() {
    let sandbox = &sandboxes()[0];
    let no_time = Limits {
        wall: Duration::ZERO,
        ..Limits::SMALL
    };
    let jobs = [
        (shell("true").with_file("../x", ""), "files", "\"../x\""),
        (
            shell("true").with_fetch(["/etc/passwd"]),
            "fetch",
            "\"/etc/passwd\"",
        ),
        (Job::script("", no_time), "limits", "\"wall = 0 ms\""),
        (Job::exec(["a\0b"], Limits::SMALL), "program", "\"a\\0b\""),
    ];
    for (job, wrong, named) in jobs {
        match sandbox.run(job).await {
            Err(SandboxError::Invalid { field, value, .. }) => {
                assert_eq!((field, value.as_str()), (wrong, named));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(sandbox.stats().runs, 0);
}

#[tokio::test]
async fn a_build_makes_the_program() {
    for sandbox in sandboxes() {
        let job = Job::exec(["./made"], Limits::SMALL)
            .with_stdin("in")
            .with_file("source", "#!/bin/sh\necho \"$A\"; cat")
            .with_build(build(
                "echo building; cat; echo odd >&2; cp source made; chmod +x made",
            ));
        let job = Job {
            env: vec![("A".to_owned(), "a".to_owned())],
            ..job
        };
        let outcome = run(&sandbox, job).await;
        assert_eq!(outcome.stdout.text(), "a\nin", "{}", outcome.stderr.text());
        assert!(outcome.program_ran());
        let built = outcome.build.unwrap();
        assert_eq!(
            (built.stdout.text(), built.stderr.text()),
            ("building\n".into(), "odd\n".into())
        );
        assert_eq!(sandbox.stats().runs, 1);
    }
}

#[tokio::test]
async fn a_failed_build_is_told_and_the_program_does_not_run() {
    for sandbox in sandboxes() {
        let endless = Build {
            limits: Limits {
                wall: Duration::from_millis(200),
                ..Limits::SMALL
            },
            ..build("echo left > log; sleep 100")
        };
        for (build, status) in [
            (
                build("echo left > log; echo no >&2; exit 3"),
                Status::NonZero(3),
            ),
            (endless, Status::WallTimeout),
        ] {
            let job = shell("echo ran > log; echo ran")
                .with_build(build)
                .with_fetch(["log"]);
            let outcome = run(&sandbox, job).await;
            assert_eq!((outcome.status, outcome.program_ran()), (status, false));
            assert_eq!(outcome.stdout.total, 0);
            assert_eq!(outcome.build.unwrap().status, status);
            assert_eq!(outcome.files[0].contents.as_deref(), Ok(&b"left\n"[..]));
        }
    }
}

#[tokio::test]
async fn what_a_build_leaves_running_is_gone_when_the_program_starts() {
    for sandbox in sandboxes() {
        let daemon =
            "(setsid sh -c 'while :; do echo x >> counter; sleep 0.01; done' &) ; sleep 0.1";
        let job = shell("cp counter before; sleep 0.2; cmp counter before && echo same");
        let outcome = run(&sandbox, job.with_build(build(daemon))).await;
        assert_eq!(outcome.stdout.text(), "same\n", "{}", outcome.stderr.text());
    }
}

#[tokio::test]
async fn a_fork_bomb_that_a_build_leaves_is_gone_when_the_program_starts() {
    let bomb = "
import os, time
if os.fork() == 0:
    os.setsid()
    while True:
        try: os.fork()
        except OSError: time.sleep(0.001)
time.sleep(0.2)";
    for sandbox in sandboxes() {
        let build = Build {
            argv: ["/usr/bin/python3", "-c", bomb].map(str::to_owned).to_vec(),
            limits: Limits::SMALL,
        };
        // As many processes as the program may have, if none of the bomb's are left.
        let many = "for i in $(seq 40); do sleep 0.3 & done; wait; echo done";
        let outcome = run(&sandbox, shell(many).with_build(build)).await;
        let built = outcome.build.as_ref().unwrap();
        assert_eq!(built.status, Status::Ok, "{}", built.stderr.text());
        assert_eq!(outcome.stdout.text(), "done\n", "{}", outcome.stderr.text());
        assert_eq!(outcome.stderr.text(), "");
    }
}

#[tokio::test]
async fn scripts_are_bytes() {
    for sandbox in sandboxes() {
        let latin = &b"# coding: latin-1\nprint(len('\xff'))"[..];
        let outcome = run(&sandbox, Job::script(latin, Limits::SMALL)).await;
        assert_eq!(outcome.stdout.text(), "1\n", "{}", outcome.stderr.text());
        let noise = &b"print('\xff')"[..];
        let outcome = run(&sandbox, Job::script(noise, Limits::SMALL)).await;
        assert_eq!(outcome.status, Status::NonZero(1));
        assert!(
            outcome.stderr.text().contains("SyntaxError"),
            "{}",
            outcome.stderr.text()
        );
        let nul = &b"print(1)\0"[..];
        let outcome = run(&sandbox, Job::script(nul, Limits::SMALL)).await;
        assert_eq!(
            outcome.status,
            Status::NonZero(1),
            "{}",
            outcome.stderr.text()
        );
    }
}

#[tokio::test]
async fn address_space_is_limited_only_where_asked() {
    let reserve = "import mmap; mmap.mmap(-1, 8 << 30, prot=mmap.PROT_READ); print('reserved')";
    for sandbox in sandboxes() {
        let limited = run(&sandbox, Job::script(reserve, Limits::SMALL)).await;
        assert_ne!(limited.status, Status::Ok);
        let limits = Limits {
            address_space: false,
            ..Limits::SMALL
        };
        let free = run(&sandbox, Job::script(reserve, limits)).await;
        assert_eq!(free.stdout.text(), "reserved\n", "{}", free.stderr.text());
    }
}
