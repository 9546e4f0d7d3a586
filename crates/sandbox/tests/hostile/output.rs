//! Output without end, output that is no text, descriptors, and input that nobody reads.

use sandbox::{Job, Status};

use crate::common::{
    ALL, TIGHT, Tier, all_end, at, config, descendants, ends_as, kill, reaches_nothing, run, start,
};

#[tokio::test]
async fn row_06_endless_output_is_cut() {
    for sandbox in at(ALL) {
        let to_stdout = "while True: print('x' * 10000)";
        let outcome = ends_as(&sandbox, to_stdout, &[Status::Output]).await;
        assert!(outcome.stdout.truncated && outcome.stdout.total > TIGHT.output_max);
        assert!(outcome.stdout.bytes().len() < 2 * TIGHT.output_keep);
        let to_stderr = "import os\nwhile True: os.write(2, b'x' * 10000)";
        ends_as(&sandbox, to_stderr, &[Status::Output]).await;
        let from_children = "
import os
for _ in range(8): os.fork()
while True: os.write(1, b'x' * 10000)";
        let statuses = &[Status::Output, Status::NonZero(1)];
        ends_as(&sandbox, from_children, statuses).await;
        let at_the_end = "import atexit, os
atexit.register(lambda: os.write(1, b'x' * (3 << 20)))";
        ends_as(&sandbox, at_the_end, &[Status::Output]).await;
    }
    // With nobody left to drain it.
    if let Some(sandbox) = start(config(Tier::Namespaces, 1)) {
        let flood = {
            let sandbox = sandbox.clone();
            tokio::spawn(async move {
                let mut limits = TIGHT;
                limits.output_max = u64::MAX >> 24;
                limits.cpu *= 100;
                limits.wall *= 100;
                let source = "while True: print('x' * 10000)";
                sandbox.run(Job::script(source, limits)).await
            })
        };
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        let supervisor = sandbox.supervisor_pid().unwrap();
        let below = descendants(supervisor);
        assert!(below.len() >= 4, "{below:?}");
        kill(supervisor);
        assert!(flood.await.unwrap().is_err());
        all_end(&below);
    }
}

#[tokio::test]
async fn row_23_output_is_bytes_from_end_to_end() {
    for sandbox in at(ALL) {
        let garbage = "import os; os.write(1, bytes(range(256))); os.write(2, b'\\xff\\xfe\\0')";
        let outcome = ends_as(&sandbox, garbage, &[Status::Ok]).await;
        assert_eq!(outcome.stdout.bytes(), (0..=255).collect::<Vec<u8>>());
        assert_eq!(outcome.stderr.bytes(), b"\xff\xfe\0");
        let surrogates = "print('\\ud800')";
        ends_as(&sandbox, surrogates, &[Status::NonZero(1)]).await;
        let escapes = "print('\\x1b[2J\\x1b]0;title\\a', end='')";
        let outcome = ends_as(&sandbox, escapes, &[Status::Ok]).await;
        assert_eq!(outcome.stdout.bytes(), b"\x1b[2J\x1b]0;title\x07");
    }
}

#[tokio::test]
async fn row_24_descriptors_lead_nowhere() {
    for sandbox in at(ALL) {
        let write_to_all = "
import os
for fd in range(3, 2000):
    for data in (b'x' * 100, b'\\0' * 100, b'[0,0,\"value\",1]\\n'):
        try: os.write(fd, data); print('reached', fd)
        except OSError: pass
print('no')";
        reaches_nothing(&sandbox, write_to_all).await;
        let read_from_all = "
import os
for fd in range(3, 2000):
    try: os.set_blocking(fd, False); print('reached', fd, os.read(fd, 10))
    except OSError: pass
try: fds = os.listdir('/proc/self/fd')
except PermissionError: fds = [0, 1, 2, 3]
print('no' if len(fds) == 4 else fds)";
        reaches_nothing(&sandbox, read_from_all).await;
        let close_all = "import os\nos.closerange(0, 5000)\nwhile True: pass";
        ends_as(&sandbox, close_all, &[Status::CpuTimeout]).await;
        let and_leave = "import os\nos.closerange(0, 5000)";
        ends_as(&sandbox, and_leave, &[Status::Ok, Status::NonZero(120)]).await;
        let shuffled =
            "import os\nos.dup2(2, 50); os.dup2(1, 2); os.dup2(50, 1); os.write(1, b'x')";
        let outcome = ends_as(&sandbox, shuffled, &[Status::Ok]).await;
        assert_eq!(outcome.stderr.bytes(), b"x");
    }
}

#[tokio::test]
async fn row_25_unread_input_hurts_nobody() {
    let big = vec![b'x'; 5 << 20];
    for sandbox in at(ALL) {
        for unread in [
            "print('done')",
            "import os; os.close(0); print('done')",
            "import sys; sys.stdin.read(10); print('done')",
            "import os\nif os.fork() == 0:\n  import time; time.sleep(60)\nprint('done', flush=True); os._exit(0)",
        ] {
            let job = Job::script(unread, TIGHT).with_stdin(big.clone());
            let outcome = sandbox.run(job).await.unwrap();
            assert_eq!(outcome.stdout.text(), "done\n", "{}", outcome.stderr.text());
        }
        // It cannot be written to either, for whoever reads it next.
        let write = "import os
try: os.write(0, b'y'); print('reached')
except OSError: print('no')
try: os.ftruncate(0, 0); print('reached')
except OSError: print('no')
print('no' if os.read(0, 3) == b'xxx' else 'changed')";
        let job = Job::script(write, TIGHT).with_stdin(big.clone());
        let outcome = sandbox.run(job).await.unwrap();
        assert_eq!(outcome.stdout.text(), "no\nno\nno\n");
        assert!(run(&sandbox, "print(1)").await.is_ok());
    }
}
