//! What ordinary programs see in the jail, and what is told about them.

#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use sandbox::{Config, Job, Limits, RunOutcome, Sandbox, SandboxError, Status, Tier};

fn sandbox() -> Sandbox {
    Sandbox::start(Config::new(2)).unwrap()
}

async fn script(sandbox: &Sandbox, source: &str) -> RunOutcome {
    sandbox
        .run(Job::script(source, Limits::SMALL))
        .await
        .unwrap()
}

#[tokio::test]
async fn programs_run_as_the_interpreter_would_run_them() {
    let sandbox = sandbox();
    assert_eq!(sandbox.tier(), Tier::Namespaces);
    let check = async |source: &str, status: Status, stdout: &str, stderr: &str| {
        let outcome = script(&sandbox, source).await;
        let (out, err) = (outcome.stdout.text(), outcome.stderr.text());
        assert_eq!(outcome.status, status, "{source}\n{out}\n{err}");
        assert_eq!(out, stdout, "{source}");
        assert!(
            err.contains(stderr) && stderr.is_empty() == err.is_empty(),
            "{source}\n{err}"
        );
    };
    check("print('hello')", Status::Ok, "hello\n", "").await;
    check(
        "print(__name__, __file__)",
        Status::Ok,
        "__main__ /box/main.py\n",
        "",
    )
    .await;
    check("import sys; sys.exit(3)", Status::NonZero(3), "", "").await;
    check("exit('no')", Status::NonZero(1), "", "no\n").await;
    check(
        "import os; os._exit(300 & 255)",
        Status::NonZero(44),
        "",
        "",
    )
    .await;
    check(
        "1 / 0",
        Status::NonZero(1),
        "",
        "main.py\", line 1, in <module>\n    1 / 0\n",
    )
    .await;
    check("def f(:", Status::NonZero(1), "", "SyntaxError").await;
    check(
        "import os; os.kill(os.getpid(), 11)",
        Status::Signal(11),
        "",
        "",
    )
    .await;
    check("import os; os.abort()", Status::Signal(6), "", "").await;
    check(
        "import atexit; atexit.register(print, 'bye')",
        Status::Ok,
        "bye\n",
        "",
    )
    .await;
    let threads = "import threading, time
threading.Thread(target=lambda: (time.sleep(0.05), print('late'))).start()";
    check(threads, Status::Ok, "late\n", "").await;
    check(
        "import os; print(os.getcwd(), os.getuid())",
        Status::Ok,
        "/box 1000\n",
        "",
    )
    .await;
    let children = "import subprocess; print(subprocess.check_output(['echo', 'x']).decode())";
    check(children, Status::Ok, "x\n\n", "").await;
    let pool = "from multiprocessing import Pool
if __name__ == '__main__':
    with Pool(2) as pool: print(pool.map(abs, [-1, -2]))";
    check(pool, Status::Ok, "[1, 2]\n", "").await;
    let files =
        "open('a', 'w').write('x'); open('/tmp/b', 'w').write('y'); print(open('a').read())";
    check(files, Status::Ok, "x\n", "").await;
    check(
        "import os; print(os.listdir('/tmp'), os.listdir('.'))",
        Status::Ok,
        "[] ['main.py']\n",
        "",
    )
    .await;
}

#[tokio::test]
async fn the_same_program_behaves_the_same_every_time() {
    let source = "import random; print(random.random(), {'a', 'b', 'c'}, hash('x'))";
    let (first, second) = (sandbox(), sandbox());
    let expected = script(&first, source).await.stdout;
    for sandbox in [&first, &second, &first] {
        assert_eq!(script(sandbox, source).await.stdout, expected);
    }
}

#[tokio::test]
async fn input_and_output_are_bytes() {
    let sandbox = sandbox();
    let echo = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])";
    let job = Job::script(echo, Limits::SMALL).with_stdin(&b"\xff\0a"[..]);
    assert_eq!(sandbox.run(job).await.unwrap().stdout.bytes(), b"a\0\xff");
    let sum = "print(sum(map(int, open(0).read().split())))";
    let job = Job::script(sum, Limits::SMALL).with_stdin("1 2\n3\n");
    assert_eq!(sandbox.run(job).await.unwrap().stdout.text(), "6\n");
    let lines = "print(input() + input())";
    let job = Job::script(lines, Limits::SMALL).with_stdin("a\nb\n");
    assert_eq!(sandbox.run(job).await.unwrap().stdout.text(), "ab\n");
}

#[tokio::test]
async fn a_harness_has_a_channel_of_its_own() {
    let sandbox = sandbox();
    let harness: Arc<str> = "
calls = []
def main(payload, emit):
    calls.append(payload)
    print('to stdout', flush=True)
    emit(repr(calls).encode())
"
    .into();
    for payload in [&b"one"[..], b"two"] {
        let job = Job::harness(harness.clone(), payload.to_vec(), Limits::SMALL);
        let outcome = sandbox.run(job).await.unwrap();
        assert_eq!(outcome.status, Status::Ok, "{}", outcome.stderr.text());
        let expected = format!("[b'{}']", String::from_utf8_lossy(payload));
        assert_eq!(String::from_utf8_lossy(&outcome.result), expected);
        assert_eq!(outcome.stdout.text(), "to stdout\n");
    }
    let payload = vec![b'x'; 3 << 20];
    let echo: Arc<str> = "def main(payload, emit): emit(payload)".into();
    let job = Job::harness(echo, payload.clone(), Limits::SMALL);
    assert_eq!(sandbox.run(job).await.unwrap().result, payload);
}

#[tokio::test]
async fn other_programs_of_the_jail_run_too() {
    let sandbox = sandbox();
    let job = Job::exec(
        ["/bin/sh", "-c", "echo $0; cat; exit 7", "name"],
        Limits::SMALL,
    );
    let outcome = sandbox.run(job.with_stdin("input")).await.unwrap();
    assert_eq!(
        (outcome.status, outcome.stdout.text().as_str()),
        (Status::NonZero(7), "name\ninput")
    );
    let missing = sandbox
        .run(Job::exec(["/no/such"], Limits::SMALL))
        .await
        .unwrap();
    assert_eq!(missing.status, Status::NonZero(127));
}

#[tokio::test]
async fn many_runs_share_few_slots() {
    let sandbox = sandbox();
    let runs = (0..40).map(|i| {
        let sandbox = sandbox.clone();
        tokio::spawn(async move { script(&sandbox, &format!("print({i})")).await.stdout.text() })
    });
    for (i, run) in runs.enumerate().collect::<Vec<_>>() {
        assert_eq!(run.await.unwrap(), format!("{i}\n"));
    }
    assert_eq!(sandbox.stats().runs, 40);
    assert_eq!(sandbox.stats().slots_started, 2);
}

#[tokio::test]
async fn a_slot_is_replaced_when_worn_out() {
    let config = Config {
        runs_per_slot: 3,
        ..Config::new(1)
    };
    let sandbox = Sandbox::start(config).unwrap();
    for _ in 0..10 {
        assert!(script(&sandbox, "print(1)").await.is_ok());
    }
    assert!(sandbox.stats().slots_started >= 4);
    assert_eq!(sandbox.stats().errors, 0);
}

#[tokio::test]
async fn a_job_that_waits_too_long_is_not_run() {
    let sandbox = Sandbox::start(Config::new(1)).unwrap();
    let busy = sandbox.run(Job::script("import time; time.sleep(0.3)", Limits::SMALL));
    let late = async {
        // Not before the other has the slot, as the one that is due first would get it.
        while sandbox.stats().running == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let deadline = Instant::now() + Duration::from_millis(50);
        let job = Job::script("print(1)", Limits::SMALL).with_deadline(deadline);
        sandbox.run(job).await
    };
    let (busy, late) = futures::join!(busy, late);
    assert!(busy.unwrap().is_ok());
    assert_eq!(late, Err(SandboxError::Deadline));
}

#[tokio::test]
async fn a_dropped_run_frees_its_slot() {
    let sandbox = Sandbox::start(Config::new(1)).unwrap();
    let endless = sandbox.run(Job::script("while True: pass", Limits::SMALL));
    assert!(
        tokio::time::timeout(Duration::from_millis(100), endless)
            .await
            .is_err()
    );
    assert!(script(&sandbox, "print(1)").await.is_ok());
}

#[test]
fn without_an_interpreter_the_error_says_what_to_do() {
    let config = Config {
        python: Some("/no/such/python3".into()),
        ..Config::new(1)
    };
    let error = Sandbox::start(config).unwrap_err();
    assert!(matches!(error, SandboxError::NoPython { .. }));
    assert!(
        error.to_string().contains("hint: install python3"),
        "{error}"
    );
}
