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
    /// In order.
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
    let request = |(candidate, text): &(&Candidate, String), first: bool| {
        let ids = match first {
            true => candidate
                .tests
                .iter()
                .map(|test| survey.tests[*test as usize].clone())
                .collect(),
            false => survey.tests.clone(),
        };
        TestRequest {
            writes: BTreeMap::from([(candidate.path.clone(), Some(text.clone().into_bytes()))]),
            ids,
            stop_at_failure: first,
            trace: false,
            wall: survey.wall(),
        }
    };
    let first = candidates
        .iter()
        .map(|candidate| request(candidate, true))
        .collect();
    let first = spread(workplaces, first).await?;
    let mut fates: Vec<Option<Fate>> = first.iter().map(at_first).collect();
    let left: Vec<usize> = (0..fates.len()).filter(|at| fates[*at].is_none()).collect();
    let again = left.iter().map(|at| request(&candidates[*at], false));
    let again: Vec<TestRequest> = again
        .flat_map(|request| [request.clone(), request])
        .collect();
    let again = spread(workplaces, again).await?;
    for (at, runs) in left.iter().zip(again.chunks(2)) {
        fates[*at] = Some(twice(survey, runs));
    }
    Ok(fates.into_iter().flatten().collect())
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

/// What all tests say, each time.
fn twice(survey: &Survey, runs: &[TestRun]) -> Fate {
    for run in runs {
        match run.ended {
            Ended::TimedOut => return Fate::TimedOut,
            Ended::Crashed => return Fate::Crashed,
            Ended::Finished => {}
        }
    }
    let fails = |run: &TestRun| -> BTreeSet<String> {
        let passes = |id: &&String| run.statuses.get(*id) != Some(&TestStatus::Passed);
        survey.tests.iter().filter(passes).cloned().collect()
    };
    let sets: Vec<BTreeSet<String>> = runs.iter().map(fails).collect();
    let Some(first) = sets.first() else {
        return Fate::Unsteady;
    };
    if sets.iter().any(|set| set != first) {
        return Fate::Unsteady;
    }
    if first.is_empty() {
        return Fate::Unnoticed;
    }
    if first.len() * 2 > survey.tests.len() {
        return Fate::BreaksTooMuch;
    }
    let failures = runs[0]
        .failures
        .iter()
        .filter(|(id, _)| first.contains(*id));
    Fate::Noticed(Noticed {
        failures: failures
            .take(FAILURES)
            .map(|(id, failure)| (id.clone(), failure.clone()))
            .collect(),
        fails: first.iter().cloned().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(count: usize) -> Survey {
        Survey {
            tests: (0..count).map(|number| format!("t{number}")).collect(),
            lines: BTreeMap::new(),
            seconds: 1.0,
            left_out: 0,
        }
    }

    fn run(statuses: &[(&str, TestStatus)], ended: Ended) -> TestRun {
        TestRun {
            ended,
            statuses: statuses
                .iter()
                .map(|(id, status)| ((*id).to_owned(), *status))
                .collect(),
            failures: BTreeMap::new(),
            lines: BTreeMap::new(),
            output: String::new(),
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
        let fails = |fate| match fate {
            Fate::Noticed(noticed) => noticed.fails,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            fails(twice(&survey, &[finished(Failed), finished(Error)])),
            ["t3"]
        );
        assert_eq!(
            twice(&survey, &[finished(Passed), finished(Passed)]),
            Fate::Unnoticed
        );
        assert_eq!(
            twice(&survey, &[finished(Failed), finished(Passed)]),
            Fate::Unsteady
        );
        let ended = run(&[], Ended::TimedOut);
        assert_eq!(twice(&survey, &[finished(Failed), ended]), Fate::TimedOut);
        // A test that is not heard of fails.
        let silent = run(&[("t0", Passed)], Ended::Finished);
        assert_eq!(
            twice(&survey, &[silent.clone(), silent]),
            Fate::BreaksTooMuch
        );
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
