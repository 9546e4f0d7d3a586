//! Runs of tests in a session: one interpreter serves a list of requests, each in a fork of its own.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use code::RelativePath;
use judge::pytest::{TestStatus, environment};
use record::Fault;
use sandbox::{Limits, Status};
use serde::{Deserialize, Serialize};
use session::{Command, CommandOutcome, Session};

use super::{Ended, Failure, Frame, TestRequest, TestRun, Testbed, infra};
use crate::TestFramework;

/// Starts the harness from its source, which it may have to start once more.
const START: &str = "import sys\nSOURCE = sys.argv.pop(1)\nSTART = sys.argv.pop(1)\n\
    exec(compile(SOURCE, '<tests>', 'exec'))\n";

/// The whole harness; its parts are joined so that nothing has to be put where tests could find it.
const HARNESS: &str = concat!(
    include_str!("harness/tree.py"),
    include_str!("harness/with_pytest.py"),
    include_str!("harness/with_unittest.py"),
    include_str!("harness/serve.py"),
);

/// Bytes of requests that one interpreter is given.
const MAX_BATCH: usize = 24 << 20;
/// Bytes of all that one interpreter says.
const MAX_REPORT: usize = 512 << 20;
/// Bytes kept of what a run prints.
const KEEP: usize = 16 << 10;

#[derive(Serialize)]
struct Job<'a> {
    keep: usize,
    requests: &'a [Asked],
}

#[derive(Serialize)]
struct Asked {
    writes: BTreeMap<String, Option<String>>,
    ids: Vec<String>,
    stop: bool,
    trace: bool,
    /// Seconds, as are `cpu` and `each`.
    wall: f64,
    cpu: f64,
    each: Option<f64>,
    plugins: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Said {
    Absent {
        absent: String,
        interpreter: String,
    },
    Originals {
        originals: BTreeMap<String, Option<Original>>,
    },
    Begun {
        begun: usize,
    },
    Done {
        done: usize,
        run: Told,
        tidy: bool,
    },
}

/// What stood at a path.
#[derive(Deserialize)]
#[serde(untagged)]
enum Original {
    File { data: String, mode: u32 },
    Link { link: String },
}

#[derive(Deserialize)]
struct Told {
    ended: ToldEnd,
    statuses: BTreeMap<String, ToldStatus>,
    order: Vec<String>,
    failures: BTreeMap<String, ToldFailure>,
    /// By test and path: lists of first and last lines in turn.
    lines: BTreeMap<String, BTreeMap<String, Vec<Vec<u32>>>>,
    output: String,
    #[serde(default)]
    plugins: bool,
    longest: f64,
    seconds: f64,
}

/// Kind, message, and the path, line and function of frames.
#[derive(Deserialize)]
struct ToldFailure(String, String, Vec<(String, u32, String)>);

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ToldEnd {
    Finished,
    TimedOut,
    Crashed,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ToldStatus {
    Passed,
    Failed,
    Skipped,
    Error,
    ExpectedFailure,
}

/// Some runs, in the order of their requests.
#[derive(Default)]
pub(super) struct Runs {
    pub(super) runs: Vec<TestRun>,
    /// Tests have changed or removed files of the work tree, and that stays.
    pub(super) is_dirty: bool,
}

/// See [`Workplace::run_tests`](super::Workplace::run_tests).
pub(super) async fn run_tests(
    session: &mut dyn Session,
    testbed: &Testbed,
    requests: &[TestRequest],
) -> Result<Runs, Fault> {
    let asked: Vec<Asked> = requests
        .iter()
        .map(|request| asked(request, testbed))
        .collect();
    let mut all = Runs::default();
    while all.runs.len() < asked.len() {
        let rest = &asked[all.runs.len()..];
        let served = serve(session, testbed, batch(rest)).await?;
        all.runs.extend(served.runs);
        all.is_dirty |= served.is_dirty;
    }
    Ok(all)
}

fn asked(request: &TestRequest, testbed: &Testbed) -> Asked {
    let writes = request.writes.iter().map(|(path, content)| {
        let content = content
            .as_ref()
            .map(|content| BASE64_STANDARD.encode(content));
        (path.to_string(), content)
    });
    Asked {
        writes: writes.collect(),
        ids: request.ids.clone(),
        stop: request.stop_at_failure,
        trace: request.trace,
        wall: request.wall.as_secs_f64(),
        cpu: testbed.limits.cpu.as_secs_f64(),
        each: testbed.test_limit.map(|limit| limit.as_secs_f64()),
        plugins: testbed.with_plugins,
    }
}

/// As many of the first requests as one interpreter is given: at least one.
fn batch(asked: &[Asked]) -> &[Asked] {
    let mut bytes = 0;
    let fits = asked.iter().take_while(|asked| {
        let contents = asked.writes.values().flatten().map(String::len);
        let ids = asked.ids.iter().map(|id| id.len() + 3);
        bytes += contents.chain(ids).sum::<usize>();
        bytes <= MAX_BATCH
    });
    let count = fits.count().max(1);
    &asked[..count]
}

/// Serves at least the first of `asked`; the interpreter may not have lived to serve them all.
async fn serve(
    session: &mut dyn Session,
    testbed: &Testbed,
    asked: &[Asked],
) -> Result<Runs, Fault> {
    let job = serde_json::to_vec(&Job {
        keep: KEEP,
        requests: asked,
    });
    let job = job.map_err(Fault::infra)?;
    let framework = match testbed.framework {
        TestFramework::Pytest => "pytest",
        TestFramework::Unittest => "unittest",
    };
    let wall: f64 = asked.iter().map(|asked| asked.wall + 5.0).sum();
    let count = asked.len() as u32;
    let limits = Limits {
        wall: Duration::from_secs_f64(wall + 60.0),
        cpu: (testbed.limits.cpu + Duration::from_secs(2)) * count + Duration::from_secs(60),
        output_keep: 2 * MAX_REPORT,
        output_max: MAX_REPORT as u64,
        ..testbed.limits
    };
    let argv = [&testbed.python, "-c", START, HARNESS, START, framework];
    let mut command = Command::new(argv, limits).with_stdin(job);
    command.env = environment().to_vec();
    for (name, value) in [("PYTHONDONTWRITEBYTECODE", "1"), ("PYTHONHASHSEED", "0")] {
        command = command.with_env(name, value);
    }
    let outcome = session.exec(&command).await.map_err(infra)?;
    let mut originals = BTreeMap::new();
    let Runs {
        mut runs,
        mut is_dirty,
    } = Runs::default();
    let mut begun = 0;
    let said = outcome.stdout.bytes();
    for line in said.split(|byte| *byte == b'\n') {
        match serde_json::from_slice(line) {
            Ok(Said::Absent {
                absent,
                interpreter,
            }) => return Err(lacks(testbed, &absent, &interpreter)),
            Ok(Said::Originals { originals: found }) => originals = found,
            Ok(Said::Begun { begun: number }) => begun = number + 1,
            Ok(Said::Done { done, run, tidy }) if done == runs.len() => {
                runs.push(run.into());
                is_dirty |= !tidy;
            }
            Ok(Said::Done { .. }) | Err(_) => {}
        }
    }
    if runs.len() == asked.len() {
        return Ok(Runs { runs, is_dirty });
    }
    if begun == 0 {
        return Err(unstarted(testbed, &outcome));
    }
    put_back(session, &originals).await?;
    if begun > runs.len() {
        runs.push(ended_from_outside(testbed, &outcome));
    }
    // What the last one's tests have left is nobody's to tell.
    Ok(Runs {
        runs,
        is_dirty: true,
    })
}

/// Of an interpreter that was ended in the middle of a run.
fn ended_from_outside(testbed: &Testbed, outcome: &CommandOutcome) -> TestRun {
    let ended = match outcome.status {
        Status::WallTimeout | Status::CpuTimeout => Ended::TimedOut,
        _ => Ended::Crashed,
    };
    let errors = outcome.stderr.text();
    TestRun {
        ended,
        statuses: BTreeMap::new(),
        order: Vec::new(),
        failures: BTreeMap::new(),
        lines: BTreeMap::new(),
        output: format!(
            "{errors}\n[ended by the sandbox: {}]\n",
            outcome.status.name()
        ),
        with_plugins: testbed.with_plugins,
        longest: 0.0,
        seconds: outcome.wall_ms / 1000.0,
    }
}

fn lacks(testbed: &Testbed, absent: &str, interpreter: &str) -> Fault {
    Fault::grader(format!(
        "the tests are run by {:?}, which {interpreter} lacks ({absent}): install it for that interpreter, \
         name another one, or choose the framework `unittest`",
        testbed.framework
    ))
}

fn unstarted(testbed: &Testbed, outcome: &CommandOutcome) -> Fault {
    let errors = outcome.stderr.text();
    let errors = errors.trim();
    let python = &testbed.python;
    match outcome.status {
        Status::NonZero(126 | 127) => Fault::grader(format!(
            "the tests' interpreter {python} cannot be started: {errors}"
        )),
        status => Fault::infra(format!(
            "{python} was to run tests and ended with {} before it began: {errors}",
            status.name()
        )),
    }
}

/// Makes files what they were before an interpreter that could not do it any more.
async fn put_back(
    session: &mut dyn Session,
    originals: &BTreeMap<String, Option<Original>>,
) -> Result<(), Fault> {
    for (path, original) in originals {
        let path = RelativePath::new(path).map_err(Fault::infra)?;
        let done = match original {
            Some(Original::File { data, mode }) => {
                let data = BASE64_STANDARD.decode(data).map_err(Fault::infra)?;
                session.write(&path, &data, *mode).await
            }
            Some(Original::Link { link }) => {
                let argv = ["ln", "-sfn", "--", link, path.as_str()];
                let command = Command::new(argv, Limits::SMALL);
                session.exec(&command).await.map(drop)
            }
            None => match session.remove(&path).await {
                Err(error) if !error.is_infrastructure() => Ok(()),
                removed => removed,
            },
        };
        done.map_err(infra)?;
    }
    Ok(())
}

impl From<Told> for TestRun {
    fn from(told: Told) -> Self {
        let statuses = told.statuses.into_iter();
        let failures = told.failures.into_iter();
        let lines = told.lines.into_iter().map(|(id, paths)| {
            let paths = paths.into_iter();
            (
                id,
                paths.map(|(path, runs)| (path, spread(&runs))).collect(),
            )
        });
        Self {
            ended: match told.ended {
                ToldEnd::Finished => Ended::Finished,
                ToldEnd::TimedOut => Ended::TimedOut,
                ToldEnd::Crashed => Ended::Crashed,
            },
            statuses: statuses.map(|(id, status)| (id, status.into())).collect(),
            order: told.order,
            failures: failures
                .map(|(id, ToldFailure(kind, message, frames))| {
                    let frames = frames.into_iter().map(|(path, line, function)| Frame {
                        path,
                        line,
                        function,
                    });
                    let frames = frames.collect();
                    let failure = Failure {
                        kind,
                        message,
                        frames,
                    };
                    (id, failure)
                })
                .collect(),
            lines: lines
                .filter(|(_, paths): &(String, BTreeMap<_, _>)| !paths.is_empty())
                .collect(),
            output: told.output,
            with_plugins: told.plugins,
            longest: told.longest,
            seconds: told.seconds,
        }
    }
}

impl From<ToldStatus> for TestStatus {
    fn from(told: ToldStatus) -> Self {
        match told {
            ToldStatus::Passed => Self::Passed,
            ToldStatus::Failed => Self::Failed,
            ToldStatus::Skipped => Self::Skipped,
            ToldStatus::Error => Self::Error,
            ToldStatus::ExpectedFailure => Self::ExpectedFailure,
        }
    }
}

/// The lines of several lists of first and last lines, ascending.
fn spread(lists: &[Vec<u32>]) -> Vec<u32> {
    let pairs = lists.iter().flat_map(|list| list.chunks_exact(2));
    let mut lines: Vec<u32> = pairs.flat_map(|pair| pair[0]..=pair[1]).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}
