//! What a repository's tests do before any bug is planted: which pass every time, and which lines each runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use code::RelativePath;
use judge::pytest::TestStatus;
use record::Fault;
use serde::Serialize;

use super::MutateError;
use crate::workplace::{Ended, TestRequest, TestRun, Testbed, Workplace};

/// A test that decides nothing, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    pub test: String,
    pub why: &'static str,
}

/// Tests that pass every time.
#[derive(Clone, Debug)]
pub(super) struct Survey {
    /// In the order in which they run.
    pub tests: Vec<String>,
    /// By path: of each line that runs, the tests that run it, by their place in `tests`.
    pub lines: BTreeMap<String, BTreeMap<u32, Vec<u32>>>,
    /// Of the slowest run without traces.
    pub seconds: f64,
    /// Tests that fail, are skipped, do not come out the same every time, or pass only when such ones run before them.
    pub left_out: Vec<LeftOut>,
}

/// Runs without traces, each in an interpreter of its own.
const RUNS: usize = 2;
/// Of one run of all tests. Traces make some many times slower.
const WALL: Duration = Duration::from_secs(1800);

impl Survey {
    /// Runs all tests, once with traces.
    pub(super) async fn of(
        testbed: &Testbed,
        workplace: &mut Workplace,
        name: &str,
    ) -> Result<Self, MutateError> {
        let request = TestRequest {
            writes: BTreeMap::new(),
            ids: Vec::new(),
            stop_at_failure: false,
            trace: true,
            wall: WALL,
        };
        let traced = run(workplace, &request).await?;
        let mut runs = Vec::new();
        for _ in 0..RUNS {
            let request = TestRequest {
                trace: false,
                ..request.clone()
            };
            runs.push(run(workplace, &request).await?);
        }
        let seconds = runs.iter().map(|run| run.seconds).fold(0.0, f64::max);
        runs.push(traced);
        for run in &runs {
            finished(run, name)?;
        }
        let seen: BTreeSet<&String> = runs.iter().flat_map(|run| run.statuses.keys()).collect();
        if seen.is_empty() {
            return Err(MutateError::NoTests {
                name: name.to_owned(),
                framework: testbed.framework,
                output: last_lines(&runs[0].output),
            });
        }
        let passes = |id: &&String| {
            let mut runs = runs.iter();
            !is_of_source(id) && runs.all(|run| run.statuses.get(*id) == Some(&TestStatus::Passed))
        };
        let tests = runs[0].order.iter().filter(passes).cloned().collect();
        let tests = alone(workplace, name, &request, tests, seen.len()).await?;
        if tests.is_empty() {
            let first = runs.iter().flat_map(|run| &run.failures).next();
            let first =
                first.map(|(id, failure)| format!("{id}: {}: {}", failure.kind, failure.message));
            return Err(MutateError::NonePass {
                name: name.to_owned(),
                tests: seen.len(),
                first: first.unwrap_or_else(|| last_lines(&runs[0].output)),
            });
        }
        let left_out: Vec<LeftOut> = {
            let kept: BTreeSet<&String> = tests.iter().collect();
            let others = seen.into_iter().filter(|id| !kept.contains(id));
            let others = others.map(|id| LeftOut {
                test: id.clone(),
                why: why_not(id, &runs),
            });
            others.collect()
        };
        if let [test] = tests.as_slice() {
            return Err(MutateError::OnePasses {
                name: name.to_owned(),
                test: test.clone(),
                left_out,
            });
        }
        let traced = runs.pop();
        let mut lines: BTreeMap<String, BTreeMap<u32, Vec<u32>>> = BTreeMap::new();
        for (number, id) in (0..).zip(&tests) {
            let covered = traced.as_ref().and_then(|run| run.lines.get(id));
            for (path, found) in covered.into_iter().flatten() {
                let of_file = lines.entry(path.clone()).or_default();
                for line in found {
                    of_file.entry(*line).or_default().push(number);
                }
            }
        }
        Ok(Self {
            left_out,
            tests,
            lines,
            seconds,
        })
    }

    /// The tests that run one of these lines of a file.
    pub(super) fn covering(&self, path: &RelativePath, lines: (u32, u32)) -> Vec<u32> {
        let Some(of_file) = self.lines.get(path.as_str()) else {
            return Vec::new();
        };
        let found = of_file
            .range(lines.0..=lines.1)
            .flat_map(|(_, tests)| tests);
        found
            .copied()
            .collect::<BTreeSet<u32>>()
            .into_iter()
            .collect()
    }

    /// A run with a bug is ended after this long.
    pub(super) fn wall(&self) -> Duration {
        Duration::from_secs_f64((4.0 * self.seconds).max(5.0) + 2.0)
    }
}

/// Why a test is left out.
fn why_not(id: &str, runs: &[TestRun]) -> &'static str {
    let mut statuses = runs.iter().map(|run| run.statuses.get(id));
    let first = statuses.next().flatten();
    if is_of_source(id) {
        return "it stands in a source";
    }
    if statuses.any(|status| status != first) {
        return "it does not end alike every time";
    }
    match first {
        Some(TestStatus::Passed) => "it passes only after a test that is left out",
        Some(TestStatus::Skipped) => "it is skipped",
        Some(TestStatus::ExpectedFailure) => "it is expected to fail",
        Some(TestStatus::Failed | TestStatus::Error) | None => "it fails",
    }
}

/// Those of `tests` that pass without the others of `seen`: repairs are decided by these alone, and many a test goes
/// by what those before it have left.
async fn alone(
    workplace: &mut Workplace,
    name: &str,
    request: &TestRequest,
    mut tests: Vec<String>,
    seen: usize,
) -> Result<Vec<String>, MutateError> {
    let mut others = seen - tests.len();
    while others > 0 && !tests.is_empty() {
        let request = TestRequest {
            ids: tests.clone(),
            trace: false,
            ..request.clone()
        };
        let run = run(workplace, &request).await?;
        finished(&run, name)?;
        let before = tests.len();
        tests.retain(|id| run.statuses.get(id) == Some(&TestStatus::Passed));
        others = before - tests.len();
    }
    Ok(tests)
}

fn finished(run: &TestRun, name: &str) -> Result<(), MutateError> {
    let how = match run.ended {
        Ended::Finished => return Ok(()),
        Ended::TimedOut => "did not end in half an hour",
        Ended::Crashed => "ended the interpreter",
    };
    Err(MutateError::Unfinished {
        name: name.to_owned(),
        how,
        output: last_lines(&run.output),
    })
}

pub(super) async fn run(
    workplace: &mut Workplace,
    request: &TestRequest,
) -> Result<TestRun, MutateError> {
    let mut runs = workplace.run_tests(std::slice::from_ref(request)).await?;
    let run = runs.pop();
    run.ok_or_else(|| Fault::infra("a run of tests said nothing").into())
}

/// Whether a test is written in what a source says of itself. Whoever grades a repair puts the files of tests
/// back as they were, and the repair with them.
fn is_of_source(id: &str) -> bool {
    let Some((path, name)) = id.split_once("::") else {
        return false;
    };
    let Some(module) = path.strip_suffix(".py") else {
        return false;
    };
    let name = name.split('[').next().unwrap_or(name);
    let is_module = module.rsplit('/').next() == Some(name) && !name.starts_with("test");
    name.contains('.') || is_module
}

/// The end of what was printed.
fn last_lines(output: &str) -> String {
    const LINES: usize = 12;
    let lines: Vec<&str> = output.trim().lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doctests_of_sources_are_told() {
        for id in [
            "inflect/__init__.py::inflect.engine.compare",
            "heaps.py::heaps",
        ] {
            assert!(is_of_source(id), "{id}");
        }
        for id in [
            "tests/test_a.py::test_b[1.5]",
            "tests/test_a.py::TestA::test_b",
            "tests/test_a.py::test_a",
            "docs/usage.rst::usage.rst",
            "tests.test_a.TestA.test_b",
        ] {
            assert!(!is_of_source(id), "{id}");
        }
    }
}
