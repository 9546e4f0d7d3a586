//! The jobs, each in every place. Every job checks its answer.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use judge::{Judge, Tests};
use sandbox::{Job, Limits, Sandbox};
use serde_json::{Value, json};

use crate::http::Connection;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Trivial,
    Numpy,
    TenCases,
}

const CASES: usize = 10;

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Trivial, Self::Numpy, Self::TenCases];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Trivial => "print(1)",
            Self::Numpy => "import numpy",
            Self::TenCases => "ten cases of stdin and stdout",
        }
    }

    /// Programs that one job runs.
    pub(crate) fn programs(self) -> usize {
        match self {
            Self::TenCases => CASES,
            Self::Trivial | Self::Numpy => 1,
        }
    }

    /// The `i`-th program; all differ.
    fn source(self, i: usize) -> String {
        match self {
            Self::Trivial => format!("print({i})"),
            Self::Numpy => format!("import numpy; print(int(numpy.array([{i}]).sum()))"),
            Self::TenCases => format!("print(int(input()) + {i})"),
        }
    }
}

fn cases(i: usize) -> impl Iterator<Item = (String, String)> {
    (0..CASES).map(move |x| (format!("{x}\n"), format!("{}\n", x as u128 + i as u128)))
}

/// Whether the bare interpreter can run programs of this kind.
pub(crate) fn bare_works(kind: Kind) -> bool {
    bare_python(&kind.source(1), "1\n").is_some()
}

pub(crate) async fn bare(kind: Kind, i: usize) {
    let work = move || match kind {
        Kind::Trivial | Kind::Numpy => {
            let output = bare_python(&kind.source(i), "");
            assert_eq!(output, Some(format!("{i}\n")));
        }
        Kind::TenCases => {
            for (input, expected) in cases(i) {
                assert_eq!(bare_python(&kind.source(i), &input), Some(expected));
            }
        }
    };
    tokio::task::spawn_blocking(work).await.unwrap();
}

/// What the program printed, when it ended well.
fn bare_python(program: &str, input: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the bare process is what is compared with"
    )]
    let mut command = Command::new("/usr/bin/python3");
    let mut child = command
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    // A program may leave its input unread.
    let _ = child.stdin.take()?.write_all(input.as_bytes());
    let output = child.wait_with_output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

pub(crate) async fn in_process(sandbox: &Sandbox, judge: &Judge, kind: Kind, i: usize) {
    let source = kind.source(i);
    match kind {
        Kind::Trivial | Kind::Numpy => {
            let job = Job::script(source, Limits::SMALL);
            let outcome = sandbox.run(job).await.unwrap();
            assert_eq!(outcome.stdout.text(), format!("{i}\n"));
        }
        Kind::TenCases => {
            let verdict = judge.verdict(&source, &Tests::stdio(cases(i))).await;
            assert!(verdict.unwrap().passed);
        }
    }
}

pub(crate) async fn over_http(connection: &mut Connection, kind: Kind, i: usize) {
    let source = kind.source(i);
    match kind {
        Kind::Trivial | Kind::Numpy => {
            let body = json!({ "code": source, "language": "python" });
            let reply = connection.post("/run_code", &body).await;
            assert_eq!(reply["run_result"]["stdout"], format!("{i}\n"), "{reply}");
        }
        Kind::TenCases => {
            let tests: Vec<Value> = cases(i)
                .map(|(stdin, stdout)| json!({"input": {"stdin": stdin}, "output": {"stdout": stdout}}))
                .collect();
            let body = json!({
                "dataset": "code_contests", "id": 0,
                "completion": format!("```python\n{source}\n```"),
                "config": {
                    "language": "python",
                    "dataset_type": "CommonOJDataset",
                    "provided_data": { "id": 0, "content": "", "labels": {}, "test": tests },
                    "extra": { "run_all_cases": true },
                },
            });
            let reply = connection.post("/submit", &body).await;
            assert_eq!(reply["accepted"], true, "{reply}");
        }
    }
}

/// User and system time of this process and its ended descendants.
pub(crate) fn cpu_ms() -> f64 {
    let usage = |who| {
        // SAFETY: the structure is plain data that the call fills.
        unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &raw mut usage);
            [usage.ru_utime, usage.ru_stime]
        }
    };
    [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN]
        .into_iter()
        .flat_map(usage)
        .map(|time| time.tv_sec as f64 * 1e3 + time.tv_usec as f64 / 1e3)
        .sum()
}
