//! Candidates against tests: in waves over several workplaces, those that mend the failing tests against all.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::try_join_all;
use judge::pytest::TestStatus;
use record::Fault;

use super::{
    observation::TestsObserved,
    ranking::{Ranked, Suspect},
    settings::SearchSettings,
};
use crate::workplace::{Ended, TestRequest, TestRun, Workplace};

/// What became of a search.
#[derive(Debug, Default)]
pub(super) struct Trials {
    /// The first candidate that passes everything.
    pub(super) found: Option<Ranked>,
    /// Candidates that mend a failing test and break another.
    pub(super) breaking: usize,
    pub(super) candidates: usize,
    pub(super) test_runs: usize,
}

/// Tries candidates in order until one passes.
pub(super) async fn try_all(
    workplaces: &mut [Workplace],
    suspects: &[Suspect],
    ordered: &[Ranked],
    observation: &TestsObserved,
    settings: &SearchSettings,
) -> Result<Trials, Fault> {
    let mut trials = Trials::default();
    for wave in ordered.chunks(settings.wave) {
        let mends = run_wave(workplaces, suspects, wave, observation, settings).await?;
        trials.candidates += wave.len();
        trials.test_runs += wave.len();
        for (ranked, mends) in wave.iter().zip(mends) {
            if !mends {
                continue;
            }
            let checked =
                check(&mut workplaces[0], suspects, ranked, observation, settings).await?;
            trials.test_runs += checked.test_runs;
            if checked.passes {
                trials.found = Some(ranked.clone());
                return Ok(trials);
            }
            trials.breaking += 1;
        }
    }
    Ok(trials)
}

/// Runs each candidate of a wave against the failing tests that its line can change; which workplace runs
/// which makes no difference.
async fn run_wave(
    workplaces: &mut [Workplace],
    suspects: &[Suspect],
    wave: &[Ranked],
    observation: &TestsObserved,
    settings: &SearchSettings,
) -> Result<Vec<bool>, Fault> {
    let slots = workplaces.len().max(1);
    let requests: Vec<TestRequest> = wave
        .iter()
        .map(|ranked| TestRequest {
            writes: writes(ranked, suspects),
            ids: failing_through(ranked, suspects, observation),
            stop_at_failure: true,
            trace: false,
            wall: settings.candidate_wall(observation.failing_seconds),
        })
        .collect();
    let runs = workplaces.iter_mut().enumerate().map(|(slot, workplace)| {
        let own: Vec<TestRequest> = requests.iter().skip(slot).step_by(slots).cloned().collect();
        async move {
            if own.is_empty() {
                return Ok(Vec::new());
            }
            workplace.run_tests(&own).await
        }
    });
    let mut runs: Vec<_> = try_join_all(runs)
        .await?
        .into_iter()
        .map(Vec::into_iter)
        .collect();
    let mut mends = Vec::with_capacity(wave.len());
    for (place, request) in requests.iter().enumerate() {
        let run = runs[place % slots].next();
        let run = run.ok_or_else(|| Fault::infra("a run of tests has no result"))?;
        mends.push(passes(&run, &request.ids));
    }
    Ok(mends)
}

struct Checked {
    passes: bool,
    test_runs: usize,
}

/// Whether a candidate mends all failing tests that run its line, at least half of all, and breaks none.
async fn check(
    workplace: &mut Workplace,
    suspects: &[Suspect],
    ranked: &Ranked,
    observation: &TestsObserved,
    settings: &SearchSettings,
) -> Result<Checked, Fault> {
    let request = |ids: Vec<String>, stop: bool| TestRequest {
        writes: writes(ranked, suspects),
        ids,
        stop_at_failure: stop,
        trace: false,
        wall: settings.suite_wall(),
    };
    let near = passing_through(ranked, suspects, observation);
    let mut test_runs = 0;
    if !near.is_empty() {
        let run = one(workplace, request(near.clone(), true)).await?;
        test_runs += 1;
        if !passes(&run, &near) {
            return Ok(Checked {
                passes: false,
                test_runs,
            });
        }
    }
    let run = one(workplace, request(Vec::new(), false)).await?;
    test_runs += 1;
    let still = |id: &&String| passed(&run, id);
    let kept = observation.passing.iter().all(|id| passed(&run, id));
    let mended = observation.failing.iter().filter(still).count();
    let own = failing_through(ranked, suspects, observation);
    let passes = run.ended == Ended::Finished
        && kept
        && own.iter().all(|id| passed(&run, id))
        && 2 * mended >= observation.failing.len();
    Ok(Checked { passes, test_runs })
}

async fn one(workplace: &mut Workplace, request: TestRequest) -> Result<TestRun, Fault> {
    let mut runs = workplace.run_tests(std::slice::from_ref(&request)).await?;
    runs.pop()
        .ok_or_else(|| Fault::infra("a run of tests has no result"))
}

fn writes(ranked: &Ranked, suspects: &[Suspect]) -> BTreeMap<code::RelativePath, Option<Vec<u8>>> {
    let content = ranked.content(suspects).into_bytes();
    BTreeMap::from([(suspects[ranked.file].path.clone(), Some(content))])
}

fn passes(run: &TestRun, ids: &[String]) -> bool {
    run.ended == Ended::Finished && ids.iter().all(|id| passed(run, id))
}

fn passed(run: &TestRun, id: &str) -> bool {
    matches!(
        run.statuses.get(id),
        Some(TestStatus::Passed | TestStatus::ExpectedFailure)
    )
}

/// Traced failing tests that run the candidate's line; all of them when none does, as for lines that only run
/// at imports.
fn failing_through(
    ranked: &Ranked,
    suspects: &[Suspect],
    observation: &TestsObserved,
) -> Vec<String> {
    let path = suspects[ranked.file].path.as_str();
    let tests = &observation.failing_lines;
    let through = through(path, ranked.candidate.line, tests);
    if through.is_empty() {
        observation.traced_failing()
    } else {
        through
    }
}

fn passing_through(
    ranked: &Ranked,
    suspects: &[Suspect],
    observation: &TestsObserved,
) -> Vec<String> {
    let path = suspects[ranked.file].path.as_str();
    through(path, ranked.candidate.line, &observation.passing_lines)
}

fn through(
    path: &str,
    line: u32,
    tests: &BTreeMap<String, super::observation::Coverage>,
) -> Vec<String> {
    let runs = tests.iter().filter(|(_, lines)| {
        lines
            .get(path)
            .is_some_and(|lines| lines.binary_search(&line).is_ok())
    });
    let ids: BTreeSet<&String> = runs.map(|(id, _)| id).collect();
    ids.into_iter().cloned().collect()
}
