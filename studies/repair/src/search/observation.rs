//! What the tests of a checkout do before anything is changed: who fails, how, and along which lines.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use code::graph::is_test_path;
use judge::pytest::TestStatus;
use record::Fault;
use serde::{Deserialize, Serialize};

use super::{
    concern::{Sought, foremost},
    settings::SearchSettings,
};
use crate::{
    Issue,
    test_files::files_of,
    workplace::{Ended, Failure, TestRequest, TestRun, Workplace},
};

/// Lines that one test ran, by path.
pub(crate) type Coverage = BTreeMap<String, Vec<u32>>;

/// The tests of a checkout as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TestsObserved {
    /// Ids of tests that fail, in order.
    pub(crate) failing: Vec<String>,
    pub(crate) failures: BTreeMap<String, Failure>,
    pub(super) passing: BTreeSet<String>,
    /// Of the failing tests those that the user named.
    pub(super) named: Vec<String>,
    /// Failing tests that candidates are run against first, the foremost of those that were traced.
    pub(super) leading: Vec<String>,
    /// Of failing tests that were traced.
    pub(crate) failing_lines: BTreeMap<String, Coverage>,
    /// Of passing tests that were traced.
    pub(crate) passing_lines: BTreeMap<String, Coverage>,
    /// Lines that run when modules are imported.
    pub(super) imported_lines: Coverage,
    /// That the leading tests take without a trace.
    pub(super) failing_seconds: f64,
    pub(super) test_runs: usize,
    /// Files that hold tests, beside those whose names say so.
    #[serde(default)]
    pub(super) test_files: BTreeSet<String>,
    /// Something asked for plugins of pytest, so that all later runs are with them.
    #[serde(default)]
    pub(crate) with_plugins: bool,
}

impl TestsObserved {
    /// Whether a file is of tests.
    pub(crate) fn is_of_tests(&self, path: &str) -> bool {
        is_test_path(path) || self.test_files.contains(path)
    }

    /// The files that failing tests run, without those of tests.
    pub fn suspected_files(&self) -> BTreeSet<&str> {
        let run = self.failing_lines.values().flat_map(BTreeMap::keys);
        let raised = self.failures.values().flat_map(|failure| &failure.frames);
        let files = run
            .map(String::as_str)
            .chain(raised.map(|frame| frame.path.as_str()));
        files.filter(|path| !self.is_of_tests(path)).collect()
    }

    /// How many of some tests pass, and the first of the others of which is known why it fails.
    pub(crate) fn passing_of<'a>(&self, ids: &'a [String]) -> (usize, Option<(&'a str, &Failure)>) {
        let others: Vec<&String> = ids
            .iter()
            .filter(|id| !self.passing.contains(*id))
            .collect();
        let mut failures = others.iter().filter_map(|id| {
            // Of a file that cannot be read it is the file that fails.
            let above = id.match_indices([':', '.']).map(|(at, _)| &id[..at]);
            let mut names = std::iter::once(id.as_str()).chain(above);
            let failure = names.find_map(|name| self.failures.get(name))?;
            Some((id.as_str(), failure))
        });
        (ids.len() - others.len(), failures.next())
    }
}

/// Runs all tests, then traces those that fail and their neighbours that pass.
pub(crate) async fn observe(
    workplace: &mut Workplace,
    issue: &Issue,
    settings: &SearchSettings,
) -> Result<TestsObserved, Fault> {
    let all = run(workplace, Vec::new(), false, settings.suite_wall()).await?;
    let sought = Sought {
        issue,
        named: &[],
        unsteady: &BTreeSet::new(),
    };
    let mut observation = observe_after(&all, &sought, workplace, settings).await?;
    observation.test_runs += 1;
    Ok(observation)
}

/// The same, where all tests have been run on the fresh checkout already.
///
/// # Errors
/// Infrastructure faults, and a grader fault where the tests cannot be run.
pub async fn observe_after(
    all: &TestRun,
    sought: &Sought<'_>,
    workplace: &mut Workplace,
    settings: &SearchSettings,
) -> Result<TestsObserved, Fault> {
    let mut observation = TestsObserved {
        failures: all.failures.clone(),
        with_plugins: all.with_plugins,
        ..TestsObserved::default()
    };
    workplace.load_plugins(all.with_plugins);
    for (id, status) in &all.statuses {
        match status {
            TestStatus::Failed | TestStatus::Error => observation.failing.push(id.clone()),
            TestStatus::Passed | TestStatus::ExpectedFailure => {
                observation.passing.insert(id.clone());
            }
            TestStatus::Skipped => {}
        }
    }
    for id in all.failures.keys() {
        if all.ended != Ended::Finished && !all.statuses.contains_key(id) {
            observation.failing.push(id.clone());
        }
    }
    observation.failing.sort_unstable();
    observation
        .failing
        .retain(|id| !sought.unsteady.contains(id));
    observation
        .failures
        .retain(|id, _| !sought.unsteady.contains(id));
    let named = sought.named.iter();
    let named = named.filter(|id| observation.failing.contains(id));
    observation.named = named.cloned().collect();
    if observation.failing.is_empty() {
        return Ok(observation);
    }
    let mut failing = foremost(
        &observation.failing,
        &observation.failures,
        (sought.issue, &observation.named),
        settings.traced_tests.max(settings.failing_tests),
    );
    let mut leading = failing.clone();
    leading.truncate(settings.failing_tests);
    leading.sort_unstable();
    failing.sort_unstable();
    let wall = settings.candidate_wall(f64::MAX);
    let plain = run(workplace, leading.clone(), false, wall).await?;
    observation.failing_seconds = plain.seconds;
    observation.leading = leading;
    let near = nearest(
        &observation.passing,
        &observation.leading,
        settings.traced_tests,
    );
    // In one process and in their order, so that what tests leave behind is there for those that fail and for those that
    // pass.
    let wall = settings.suite_wall();
    let both = failing.iter().chain(&near).cloned().collect();
    let mut traced = vec![run(workplace, both, true, wall).await?];
    if traced[0].ended != Ended::Finished {
        traced.push(run(workplace, near, true, wall).await?);
    }
    observation.test_runs += 1 + traced.len();
    for run in traced {
        let failures = run.failures.into_iter();
        let failures = failures.filter(|(id, _)| !observation.passing.contains(id));
        observation.failures.extend(failures);
        for (id, lines) in run.lines {
            if id.is_empty() {
                for (path, lines) in lines {
                    let known = observation.imported_lines.entry(path).or_default();
                    known.extend(lines);
                    known.sort_unstable();
                    known.dedup();
                }
            } else if failing.contains(&id) {
                observation.failing_lines.insert(id, lines);
            } else if run.statuses.get(&id) == Some(&TestStatus::Passed) {
                observation.passing_lines.insert(id, lines);
            }
        }
    }
    let traced = observation.failing_lines.values();
    let traced = traced.chain(observation.passing_lines.values());
    let raised = observation.failures.values().flat_map(|it| &it.frames);
    let known: BTreeSet<&str> = traced
        .flat_map(|lines| lines.keys().map(String::as_str))
        .chain(raised.map(|frame| frame.path.as_str()))
        .collect();
    let ids = observation.failing.iter().chain(&observation.passing);
    let framework = workplace.testbed().framework;
    observation.test_files = files_of(ids, framework, &known);
    Ok(observation)
}

async fn run(
    workplace: &mut Workplace,
    ids: Vec<String>,
    trace: bool,
    wall: Duration,
) -> Result<TestRun, Fault> {
    let request = TestRequest {
        writes: BTreeMap::new(),
        ids,
        stop_at_failure: false,
        trace,
        wall,
    };
    let mut runs = workplace.run_tests(std::slice::from_ref(&request)).await?;
    runs.pop()
        .ok_or_else(|| Fault::infra("a run of tests has no result"))
}

/// At most `count` of the passing tests: three of four from next to the failing ones, the others from all over.
fn nearest(passing: &BTreeSet<String>, failing: &[String], count: usize) -> Vec<String> {
    let shared = |id: &str| {
        let parts = |id: &str| -> Vec<String> {
            let parts = id.split(['/', '.', ':']).filter(|part| !part.is_empty());
            parts.map(str::to_owned).collect()
        };
        let own = parts(id);
        let with = |other: &String| {
            let other = parts(other);
            own.iter().zip(&other).take_while(|(a, b)| a == b).count()
        };
        failing.iter().map(with).max().unwrap_or(0)
    };
    let mut ranked: Vec<(usize, &String)> = passing.iter().map(|id| (shared(id), id)).collect();
    ranked.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    let near = count - count / 4;
    let mut chosen: Vec<String> = ranked
        .iter()
        .take(near)
        .map(|(_, id)| (*id).clone())
        .collect();
    let rest = &ranked[chosen.len()..];
    let left = count - chosen.len();
    if left > 0 && !rest.is_empty() {
        let step = rest.len().div_ceil(left).max(1);
        let spread = rest.iter().step_by(step);
        chosen.extend(spread.map(|(_, id)| (*id).clone()));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_next_to_the_failing_ones_are_traced_and_some_from_all_over() {
        let passing: BTreeSet<String> = (0..100)
            .map(|number| format!("tests/test_{}.py::test_{number:02}", number / 10))
            .collect();
        let chosen = nearest(&passing, &["tests/test_3.py::test_x".to_owned()], 12);
        assert_eq!(chosen.len(), 12);
        let near = chosen.iter().take(9);
        assert!(
            near.into_iter().all(|id| id.starts_with("tests/test_3.py")),
            "{chosen:?}"
        );
        let files: BTreeSet<&str> = chosen
            .iter()
            .filter_map(|id| id.split(':').next())
            .collect();
        assert!(files.len() > 2, "{chosen:?}");
        assert_eq!(nearest(&passing, &[], 200).len(), 100);
        assert!(nearest(&BTreeSet::new(), &[], 12).is_empty());
    }
}
