//! Repair tasks judged by their own gold: what must begin to pass fails without the patch and passes with it, and the
//! solution of a task of Harbor's earns its reward.

use std::path::{Path, PathBuf};

use code::Patch;
use dataset::{Place as RowPlace, Row, RowError};
use futures::{StreamExt, stream};
use judge::pytest::TestStatus;
use record::Fault;
use repair::{
    Checkout, Place, Task, Testbeds,
    evaluation::{Evaluated, evaluate, evaluate_gold},
    grading::Grader,
    task_of_row,
    workplace::{TestRequest, Testbed},
};
use serde::Serialize;

use crate::{
    failure::{Classify, Failure, Outcome},
    machine,
    sandboxes::{BackendName, SandboxSettings},
    screen::Screen,
    walk::repair::{bare_testbeds, testbeds},
};

/// A task and where it stands.
pub(super) struct FoundTask {
    file: PathBuf,
    place: RowPlace,
    pub(super) task: Task,
}

/// What running tests told of tasks.
#[derive(Debug, Default, Serialize)]
pub(super) struct Solvable {
    /// Tasks whose tests fail before their gold patch and pass after it, or whose solution earns the reward.
    pub(super) solved: u64,
    /// Those where that is not so.
    pub(super) unsolved: u64,
    /// In images, graded by scripts of others, or without anything gold: they were only read.
    pub(super) not_run: u64,
    /// What is wrong with the unsolved ones.
    pub(super) failures: Vec<String>,
}

impl FoundTask {
    /// The task of a row; its gold patch fits its sources, where they are here.
    pub(super) fn read(row: &Row) -> Result<Self, RowError> {
        let task = task_of_row(row)?;
        if task.gold.grader.is_none() && task.checks.fail_to_pass.is_empty() {
            return Err(row.error(
                "checks.fail_to_pass",
                "no test: nothing can tell whether the task is solved",
            ));
        }
        let gold = |message: String| row.error("gold.patch", message);
        if !task.gold.patch.is_empty() {
            let patch = Patch::parse(task.gold.patch.as_bytes());
            let patch = patch.map_err(|error| gold(error.to_string()))?;
            if is_here(&task.place) {
                fits(&patch, &task.place).map_err(gold)?;
            }
        }
        Ok(Self {
            file: row.path().to_owned(),
            place: row.place(),
            task,
        })
    }

    /// The task of a folder of Harbor's.
    pub(super) fn of_harbor(folder: &Path, place: RowPlace, task: Task) -> Self {
        Self {
            file: folder.to_owned(),
            place,
            task,
        }
    }

    fn is_harbor(&self) -> bool {
        let grader = self.task.gold.grader.as_ref();
        grader
            .is_some_and(|grader| matches!(grader, Grader::Harbor(grader) if grader.has_solution()))
    }

    fn can_run(&self) -> bool {
        let gold = &self.task.gold;
        self.is_harbor()
            || (is_here(&self.task.place) && gold.grader.is_none() && !gold.patch.is_empty())
    }
}

fn is_here(place: &Place) -> bool {
    matches!(place, Place::Folder(_) | Place::Patched { .. })
}

fn fits(patch: &Patch, place: &Place) -> Result<(), String> {
    let checkout = Checkout::of(place).map_err(|error| error.to_string())?;
    let mut files = std::collections::BTreeMap::new();
    for path in patch.paths() {
        let content = checkout
            .read(&path)
            .map_err(|error| format!("{path}: {error}"))?;
        files.insert(path, content);
    }
    let applied = patch.apply(&files);
    applied
        .map(drop)
        .map_err(|error| format!("it does not fit the sources: {error}"))
}

/// The interpreter of tests that run here, and the engine of containers.
type Places<'a> = (Option<&'a Path>, Option<&'a str>);

/// Runs the tests of every task that can be run: here without and with its gold patch, or in its image after its
/// solution.
pub(super) fn solve(found: &[FoundTask], places: Places<'_>, screen: Screen) -> Outcome<Solvable> {
    let runtime = tokio::runtime::Runtime::new().failed()?;
    runtime.block_on(async {
        tokio::select! {
            done = all(found, places, screen) => done,
            () = crate::stop::asked_to_stop() => Err(Failure::Stopped),
        }
    })
}

async fn all(
    found: &[FoundTask],
    (python, engine): Places<'_>,
    screen: Screen,
) -> Outcome<Solvable> {
    let mut solvable = Solvable::default();
    let run: Vec<&FoundTask> = found.iter().filter(|found| found.can_run()).collect();
    solvable.not_run = (found.len() - run.len()) as u64;
    if run.is_empty() {
        return Ok(solvable);
    }
    let settings = SandboxSettings {
        python: python.map(Path::to_owned),
        python_setting: "--python",
        ..SandboxSettings::default()
    };
    let containers = SandboxSettings {
        backend: BackendName::Docker,
        engine: engine.map(str::to_owned),
        wall_s: 3600.0,
        cpu_s: 4.0 * 3600.0,
        memory_mb: 4096,
        ..settings.clone()
    };
    let (harbor, here): (Vec<&FoundTask>, Vec<&FoundTask>) =
        run.iter().partition(|found| found.is_harbor());
    let jails = match here.first() {
        None => None,
        Some(_) => {
            let sandboxes = settings.open().await?;
            for found in &here {
                sandboxes.python(found.task.public.framework).asked()?;
            }
            Some((
                testbeds(&settings, &sandboxes),
                bare_testbeds(&settings, &sandboxes),
            ))
        }
    };
    let images = match harbor.first() {
        None => None,
        Some(_) => {
            let opened = containers.open().await.map_err(|failure| match failure {
                Failure::Asked(why) => Failure::Asked(why.context(
                    "Harbor's tasks run in containers; --engine ADDRESS names an engine, --no-run only reads them",
                )),
                other => other,
            });
            Some(bare_testbeds(&containers, &opened?))
        }
    };
    let work = screen.work("gold", run.len() as u64);
    let (jails, images) = (&jails, &images);
    let mut verdicts = stream::iter(run)
        .map(|found| async move {
            let task = &found.task;
            let verdict = match (found.is_harbor(), jails, images) {
                (true, _, Some(images)) => Ok(solved_by_itself(task, images).await),
                (false, Some(jails), _) => verdict(task, jails).await,
                _ => Err(Fault::infra("no sandbox was opened for the task")),
            };
            (found, verdict)
        })
        .buffered(machine::cores());
    let mut done = 0;
    while let Some((found, verdict)) = verdicts.next().await {
        done += 1;
        work.at(done);
        match verdict.failed()? {
            None => solvable.solved += 1,
            Some(why) => {
                solvable.unsolved += 1;
                solvable.failures.push(format!(
                    "{}, {}: {}: {why}",
                    found.file.display(),
                    found.place,
                    found.task.id
                ));
            }
        }
    }
    Ok(solvable)
}

/// What is wrong with a task of Harbor's, whose solution must earn the whole reward. That it cannot be run is a
/// matter of the one task, such as an image that nobody has built.
async fn solved_by_itself(task: &Task, images: &Testbeds) -> Option<String> {
    let evaluated = match images(task) {
        Ok(testbed) => evaluate_gold(task, &testbed).await,
        Err(fault) => Err(fault),
    };
    match evaluated {
        Ok(Evaluated {
            report: Some(report),
            ..
        }) if report.resolved => None,
        Ok(evaluated) => Some(format!(
            "after its solution the reward is not 1:\n{}",
            last_lines(&(evaluated.run_log + &evaluated.test_output), 12)
        )),
        Err(fault) => Some(match (&task.place, environment(task)) {
            (Place::Image { name, .. }, Some(folder)) => {
                format!("{fault}; its image is built with: docker build -t {name} {folder}")
            }
            _ => fault.to_string(),
        }),
    }
}

/// The folder that the task's image is built from.
fn environment(task: &Task) -> Option<&str> {
    task.facts.metadata.get("environment")?.as_str()
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(count);
    let shown = lines[from..].iter().map(|line| format!("    {line}"));
    shown.collect::<Vec<_>>().join("\n")
}

/// What is wrong with a task. `places` are its checkouts, and those without the patches that make them.
async fn verdict(task: &Task, places: &(Testbeds, Testbeds)) -> Result<Option<String>, Fault> {
    let gold = &task.gold;
    // Of tests that the checkout does not show nothing is to be seen before.
    if gold.test_patch.is_empty() && gold.test_files.is_empty() {
        let mut workplace = places.0(task)?.open().await?;
        let request = TestRequest {
            writes: Default::default(),
            ids: task.checks.fail_to_pass.clone(),
            stop_at_failure: false,
            trace: false,
            wall: workplace.testbed().limits.wall,
        };
        let runs = workplace.run_tests(&[request]).await;
        workplace.close().await?;
        let statuses = runs?.into_iter().flat_map(|run| run.statuses);
        let mut passing = statuses.filter(|(_, status)| *status == TestStatus::Passed);
        if let Some((id, _)) = passing.next() {
            return Ok(Some(format!("{id} must fail and passes without a patch")));
        }
    }
    let evaluated = evaluate(task, &gold.patch, &places.1(task)?).await?;
    Ok(match evaluated.report {
        None => Some("its gold patch could not be graded".to_owned()),
        Some(report) if report.resolved => None,
        Some(report) => {
            let tests = report.tests_status.unwrap_or_default();
            let failing = tests.fail_to_pass.failure.iter();
            let mut failing = failing.chain(&tests.pass_to_pass.failure);
            let first = failing.next().map_or("", String::as_str);
            let why = why(task, first, &places.0(task)?).await?;
            Some(format!("with its gold patch {first} does not pass{why}"))
        }
    })
}

/// What a test says of itself with the gold patch, as far as it says anything.
async fn why(task: &Task, test: &str, testbed: &Testbed) -> Result<String, Fault> {
    let Ok(patch) = Patch::parse(task.gold.patch.as_bytes()) else {
        return Ok(String::new());
    };
    let request = TestRequest {
        writes: Default::default(),
        ids: vec![test.to_owned()],
        stop_at_failure: false,
        trace: false,
        wall: testbed.limits.wall,
    };
    let mut workplace = testbed.open().await?;
    let runs = match workplace.apply(&patch).await? {
        Ok(_) => workplace.run_tests(&[request]).await,
        Err(_) => Ok(Vec::new()),
    };
    workplace.close().await?;
    // What keeps a whole file from being read stands below the file's name.
    let failure = runs?.into_iter().flat_map(|run| run.failures).next();
    Ok(failure.map_or_else(String::new, |(_, failure)| {
        let line = failure.message.lines().next().unwrap_or_default();
        format!(": {}: {line}", failure.kind)
    }))
}
