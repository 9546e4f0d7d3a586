//! What the tests say of a bug: measured, and measured again.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::try_join_all;
use judge::pytest::TestStatus;
use serde::{Deserialize, Serialize};

use super::{MutateError, choice::Candidate, survey::Survey};
use crate::workplace::{Ended, Failure, TestRequest, TestRun, Workplace};

/// What became of a bug.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fate {
    /// No test notices.
    Unnoticed,
    /// The tests do not end.
    TimedOut,
    /// The interpreter ends.
    Crashed,
    /// More than half of the tests fail: nobody would hand that in.
    BreaksTooMuch,
    /// Not the same tests fail each time.
    Unsteady,
    Noticed(Noticed),
}

/// Some tests fail each time, and others pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Noticed {
    /// In the order in which they run.
    pub fails: Vec<String>,
    /// Of the first few.
    pub failures: BTreeMap<String, Failure>,
}

/// Failures that are kept, to write an issue from.
const FAILURES: usize = 4;

/// The fates of some candidates, in their order. `sources` are the files without bugs.
pub(super) async fn fates(
    workplaces: &mut [Workplace],
    survey: &Survey,
    candidates: &[(&Candidate, String)],
) -> Result<Vec<Fate>, MutateError> {
    let request =
        |(candidate, text): &(&Candidate, String), ids: Vec<String>, stop: bool| TestRequest {
            writes: BTreeMap::from([(candidate.path.clone(), Some(text.clone().into_bytes()))]),
            ids,
            stop_at_failure: stop,
            trace: false,
            wall: survey.wall(),
        };
    let covering = |candidate: &Candidate| -> Vec<String> {
        let tests = candidate.tests.iter();
        tests
            .map(|test| survey.tests[*test as usize].clone())
            .collect()
    };
    let first = candidates
        .iter()
        .map(|each| request(each, covering(each.0), true));
    let first = spread(workplaces, first.collect()).await?;
    let mut fates: Vec<Option<Fate>> = first.iter().map(at_first).collect();
    let left = still(&fates);
    let all = left
        .iter()
        .map(|at| request(&candidates[*at], survey.tests.clone(), false));
    let all = spread(workplaces, all.collect()).await?;
    let mut noticed = BTreeMap::new();
    for (at, run) in left.iter().zip(&all) {
        match of_all(survey, run) {
            Ok(found) => {
                noticed.insert(*at, found);
            }
            Err(fate) => fates[*at] = Some(fate),
        }
    }
    // No other test runs what the bug changes.
    let again = noticed.iter().map(|(at, found)| {
        let ids: BTreeSet<String> = covering(candidates[*at].0)
            .into_iter()
            .chain(found.fails.iter().cloned())
            .collect();
        let ids = survey.tests.iter().filter(|id| ids.contains(*id));
        request(&candidates[*at], ids.cloned().collect(), false)
    });
    let again: Vec<TestRequest> = again.collect();
    let runs = spread(workplaces, again.clone()).await?;
    let mut unsure = Vec::new();
    for (((at, found), request), run) in noticed.into_iter().zip(&again).zip(&runs) {
        let fate = confirmed(&found, &request.ids, run);
        if fate == Fate::Unsteady {
            unsure.push((at, found));
        }
        fates[at] = Some(fate);
    }
    // Those may have missed what other tests leave behind; only the same tests can tell.
    let again = unsure
        .iter()
        .map(|(at, _)| request(&candidates[*at], survey.tests.clone(), false));
    let runs = spread(workplaces, again.collect()).await?;
    for ((at, found), run) in unsure.iter().zip(&runs) {
        fates[*at] = Some(confirmed(found, &survey.tests, run));
    }
    Ok(fates.into_iter().flatten().collect())
}

fn still(fates: &[Option<Fate>]) -> Vec<usize> {
    (0..fates.len()).filter(|at| fates[*at].is_none()).collect()
}

/// Runs requests in all workplaces at the same time; the runs in the order of the requests.
async fn spread(
    workplaces: &mut [Workplace],
    requests: Vec<TestRequest>,
) -> Result<Vec<TestRun>, MutateError> {
    let count = workplaces.len();
    let shares = workplaces
        .iter_mut()
        .enumerate()
        .map(|(number, workplace)| {
            let share: Vec<TestRequest> = requests
                .iter()
                .skip(number)
                .step_by(count)
                .cloned()
                .collect();
            async move {
                match share.is_empty() {
                    true => Ok(Vec::new()),
                    false => workplace.run_tests(&share).await,
                }
            }
        });
    let shares = try_join_all(shares).await?;
    let mut shares: Vec<_> = shares.into_iter().map(Vec::into_iter).collect();
    Ok((0..requests.len())
        .filter_map(|at| shares[at % count].next())
        .collect())
}

/// What the tests that run the changed lines say, up to the first that fails.
fn at_first(run: &TestRun) -> Option<Fate> {
    match run.ended {
        Ended::TimedOut => Some(Fate::TimedOut),
        Ended::Crashed => Some(Fate::Crashed),
        Ended::Finished => {
            let all_pass = run
                .statuses
                .values()
                .all(|status| *status == TestStatus::Passed);
            (all_pass && !run.statuses.is_empty()).then_some(Fate::Unnoticed)
        }
    }
}

/// Of these tests, those that did not pass.
fn failing(ids: &[String], run: &TestRun) -> Vec<String> {
    let fails = ids
        .iter()
        .filter(|id| run.statuses.get(*id) != Some(&TestStatus::Passed));
    fails.cloned().collect()
}

/// What all tests say.
fn of_all(survey: &Survey, run: &TestRun) -> Result<Noticed, Fate> {
    match run.ended {
        Ended::TimedOut => return Err(Fate::TimedOut),
        Ended::Crashed => return Err(Fate::Crashed),
        Ended::Finished => {}
    }
    let fails = failing(&survey.tests, run);
    if fails.is_empty() {
        return Err(Fate::Unsteady);
    }
    if fails.len() * 2 > survey.tests.len() {
        return Err(Fate::BreaksTooMuch);
    }
    let failures = run.failures.iter().filter(|(id, _)| fails.contains(id));
    let failures = failures
        .take(FAILURES)
        .map(|(id, failure)| (id.clone(), failure.clone()))
        .collect();
    Ok(Noticed { fails, failures })
}

/// Whether the second run of the tests `ids`, which are in order, says the same.
fn confirmed(found: &Noticed, ids: &[String], run: &TestRun) -> Fate {
    match run.ended {
        Ended::TimedOut => Fate::TimedOut,
        Ended::Crashed => Fate::Crashed,
        Ended::Finished if failing(ids, run) == found.fails => Fate::Noticed(found.clone()),
        Ended::Finished => Fate::Unsteady,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(count: usize) -> Survey {
        Survey {
            tests: (0..count).map(|number| format!("t{number}")).collect(),
            lines: BTreeMap::new(),
            seconds: 1.0,
            left_out: Vec::new(),
        }
    }

    fn run(statuses: &[(&str, TestStatus)], ended: Ended) -> TestRun {
        TestRun {
            ended,
            statuses: statuses
                .iter()
                .map(|(id, status)| ((*id).to_owned(), *status))
                .collect(),
            order: statuses.iter().map(|(id, _)| (*id).to_owned()).collect(),
            failures: BTreeMap::new(),
            lines: BTreeMap::new(),
            output: String::new(),
            with_plugins: false,
            longest: 0.5,
            seconds: 1.0,
        }
    }

    #[test]
    fn a_bug_is_kept_only_when_the_same_few_tests_fail_each_time() {
        use TestStatus::{Error, Failed, Passed};
        let survey = survey(4);
        let finished = |last| {
            let statuses = [("t0", Passed), ("t1", Passed), ("t2", Passed), ("t3", last)];
            run(&statuses, Ended::Finished)
        };
        let found = of_all(&survey, &finished(Failed)).unwrap();
        assert_eq!(found.fails, ["t3"]);
        let ids = ["t2".to_owned(), "t3".to_owned()];
        let again = |run| confirmed(&found, &ids, &run);
        assert_eq!(again(finished(Error)), Fate::Noticed(found.clone()));
        assert_eq!(again(finished(Passed)), Fate::Unsteady);
        assert_eq!(again(run(&[], Ended::TimedOut)), Fate::TimedOut);
        // The first test that failed does not do so among all others.
        assert_eq!(of_all(&survey, &finished(Passed)), Err(Fate::Unsteady));
        assert_eq!(
            of_all(&survey, &run(&[], Ended::Crashed)),
            Err(Fate::Crashed)
        );
        // A test that is not heard of fails.
        let silent = run(&[("t0", Passed)], Ended::Finished);
        assert_eq!(of_all(&survey, &silent), Err(Fate::BreaksTooMuch));
    }

    #[test]
    fn at_first_only_what_ends_and_passes_is_settled() {
        use TestStatus::{Failed, Passed};
        assert_eq!(
            at_first(&run(&[("t", Passed)], Ended::Finished)),
            Some(Fate::Unnoticed)
        );
        assert_eq!(at_first(&run(&[("t", Failed)], Ended::Finished)), None);
        assert_eq!(at_first(&run(&[], Ended::Finished)), None);
        assert_eq!(
            at_first(&run(&[("t", Failed)], Ended::Crashed)),
            Some(Fate::Crashed)
        );
        assert_eq!(at_first(&run(&[], Ended::TimedOut)), Some(Fate::TimedOut));
    }
}
