//! Candidates against tests: in waves over several workplaces, those that mend the failing tests against all.

use std::collections::BTreeMap;

use futures::future::try_join_all;
use judge::pytest::TestStatus;
use record::{Fault, LogLine};
use serde_json::{Value, json};

use super::{
    observation::TestsObserved,
    ranking::{Ranked, Suspect},
    settings::SearchSettings,
};
use crate::workplace::{Ended, TestRequest, TestRun, Workplace};

/// Characters of a failure that are told.
const SAID: usize = 100;

/// Tests of a candidate's run that its line names.
const SELECTED: usize = 20;

/// Candidates that are run together at first, twice as many each time after: where the first mends, few more are run.
const FIRST_WAVE: usize = 4;

/// What became of a search.
#[derive(Debug, Default)]
pub(super) struct Trials {
    /// The first candidate that passes everything.
    pub(super) found: Option<Ranked>,
    /// What it was that passes: its number in the episode.
    pub(super) number: usize,
    /// Candidates that mend a failing test and break another.
    pub(super) breaking: usize,
    /// The one that mends the most tests of those that break none and do not pass.
    pub(super) partial: Option<Partial>,
    /// Those that mend failing tests and were not held to the others, by their numbers.
    pub(super) unchecked: Vec<(usize, Ranked)>,
    pub(super) candidates: usize,
    pub(super) test_runs: usize,
    /// A line a run of tests.
    pub(super) log: Vec<LogLine>,
}

/// A candidate that mends failing tests and breaks none, and does not pass.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Partial {
    pub(super) ranked: Ranked,
    /// In the episode, from 1.
    pub(super) number: usize,
    /// Failing tests that pass with it.
    pub(super) mended: usize,
}

/// A candidate that was run.
#[derive(Clone, Copy, Debug)]
pub struct Tried<'a> {
    /// In the episode, from 1.
    pub number: usize,
    pub path: &'a str,
    /// From 1.
    pub line: u32,
    /// The kind of edit.
    pub family: &'a str,
    pub fate: &'a Fate,
}

/// What became of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A failing test fails still, with this in a line.
    Unmended(String),
    /// The failing tests did not end in time.
    Endless,
    /// The interpreter died.
    Crashed,
    /// It mends failing tests and breaks others.
    Breaking,
    /// It mends so many failing tests and breaks none; they are fewer than half of all, or not all that run its line.
    Partial(usize),
    /// It mends at least half of the failing tests, all that run its line, and breaks none.
    Passing,
    /// It mends failing tests, and one before it passes everything.
    Unchecked,
}

impl Fate {
    fn name(&self) -> &'static str {
        match self {
            Self::Unmended(_) => "unmended",
            Self::Endless => "endless",
            Self::Crashed => "crashed",
            Self::Breaking => "breaking",
            Self::Partial(_) => "partial",
            Self::Passing => "passing",
            Self::Unchecked => "unchecked",
        }
    }
}

/// Is told candidates as they end, a wave at a time.
pub type WatchTried = dyn Fn(&Tried<'_>) + Send + Sync;

/// What candidates are run by.
#[derive(Clone, Copy)]
pub(super) struct Searching<'a> {
    pub(super) suspects: &'a [Suspect],
    pub(super) observation: &'a TestsObserved,
    pub(super) settings: &'a SearchSettings,
    pub(super) watch: Option<&'a WatchTried>,
    /// Candidates of the episode that were run before these.
    pub(super) before: usize,
}

impl Searching<'_> {
    /// Tries candidates in order until one passes: those `unchecked` of a search before, which are not run anew
    /// and not counted again, then others.
    pub(super) async fn try_all(
        &self,
        workplaces: &mut [Workplace],
        unchecked: &[(usize, Ranked)],
        ordered: &[Ranked],
    ) -> Result<Trials, Fault> {
        let mut trials = Trials::default();
        for (place, (number, ranked)) in unchecked.iter().enumerate() {
            let fate = self
                .checked(&mut workplaces[0], &mut trials, ranked)
                .await?;
            let log = workplaces[0].take_log();
            self.note(&mut trials, (*number, ranked), fate, log);
            if trials.found.is_some() {
                trials.unchecked = unchecked[place + 1..].to_vec();
                return Ok(trials);
            }
        }
        let (mut left, mut size) = (ordered, FIRST_WAVE);
        while !left.is_empty() {
            let (wave, after) = left.split_at(left.len().min(size).min(self.settings.wave));
            (left, size) = (after, size * 2);
            let ended = self.run_wave(workplaces, wave).await?;
            // Those of a wave that come after one that passes were run too.
            let first = self.before + trials.candidates + 1;
            trials.candidates += wave.len();
            trials.test_runs += wave.len();
            for ((number, ranked), (fate, mut log)) in (first..).zip(wave).zip(ended) {
                let fate = match fate {
                    _ if trials.found.is_some() => fate.unwrap_or(Fate::Unchecked),
                    Some(fate) => fate,
                    None => {
                        let workplace = &mut workplaces[0];
                        let fate = self.checked(workplace, &mut trials, ranked).await?;
                        log.extend(workplace.take_log());
                        fate
                    }
                };
                self.note(&mut trials, (number, ranked), fate, log);
            }
            if trials.found.is_some() {
                break;
            }
        }
        Ok(trials)
    }

    async fn checked(
        &self,
        workplace: &mut Workplace,
        trials: &mut Trials,
        ranked: &Ranked,
    ) -> Result<Fate, Fault> {
        let checked = self.check(workplace, ranked).await?;
        trials.test_runs += checked.test_runs;
        Ok(checked.fate)
    }

    /// Tells and counts what became of a candidate.
    fn note(
        &self,
        trials: &mut Trials,
        (number, ranked): (usize, &Ranked),
        fate: Fate,
        log: Vec<LogLine>,
    ) {
        for mut line in log {
            self.describe(&mut line, number, ranked, &fate);
            trials.log.push(line);
        }
        self.tell(number, ranked, &fate);
        match fate {
            Fate::Passing => {
                trials.found = Some(ranked.clone());
                trials.number = number;
            }
            Fate::Breaking => trials.breaking += 1,
            Fate::Partial(mended) => {
                let best = trials.partial.as_ref().map_or(0, |best| best.mended);
                if mended > best {
                    trials.partial = Some(Partial {
                        ranked: ranked.clone(),
                        number,
                        mended,
                    });
                }
            }
            Fate::Unchecked => trials.unchecked.push((number, ranked.clone())),
            Fate::Unmended(_) | Fate::Endless | Fate::Crashed => {}
        }
    }

    fn tell(&self, number: usize, ranked: &Ranked, fate: &Fate) {
        if let Some(watch) = self.watch {
            watch(&Tried {
                number,
                path: self.suspects[ranked.file].path.as_str(),
                line: ranked.candidate.line,
                family: ranked.candidate.family.name(),
                fate,
            });
        }
    }

    /// Puts into the line of a run whose run it was. There are thousands of them: what was printed is in the fate,
    /// and of long lists of tests the beginning is enough.
    fn describe(&self, line: &mut LogLine, number: usize, ranked: &Ranked, fate: &Fate) {
        let mut candidate = json!({
            "number": number,
            "edit": ranked.candidate.family.name(),
            "path": self.suspects[ranked.file].path,
            "line": ranked.candidate.line,
            "fate": fate.name(),
        });
        if let Fate::Unmended(said) = fate {
            candidate["said"] = said.as_str().into();
        }
        line.fields.insert("candidate".to_owned(), candidate);
        line.fields.insert("stdout".to_owned(), "".into());
        if let Some(Value::Array(selector)) = line.fields.get_mut("selector") {
            let n_selected = selector.len();
            selector.truncate(SELECTED);
            line.fields
                .insert("n_selected".to_owned(), n_selected.into());
        }
    }

    /// Runs each candidate of a wave against failing tests that its line can change; which workplace runs
    /// which makes no difference. What became of each, `None` of those that mend them, and the line of its run.
    async fn run_wave(
        &self,
        workplaces: &mut [Workplace],
        wave: &[Ranked],
    ) -> Result<Vec<(Option<Fate>, Vec<LogLine>)>, Fault> {
        let slots = workplaces.len().max(1);
        let requests: Vec<TestRequest> = wave.iter().map(|ranked| self.first(ranked)).collect();
        let runs = workplaces.iter_mut().enumerate().map(|(slot, workplace)| {
            let own: Vec<TestRequest> =
                requests.iter().skip(slot).step_by(slots).cloned().collect();
            async move {
                if own.is_empty() {
                    return Ok(Vec::new());
                }
                let runs = workplace.run_tests(&own).await?;
                Ok(runs.into_iter().zip(workplace.take_log()).collect())
            }
        });
        let mut runs: Vec<_> = try_join_all(runs)
            .await?
            .into_iter()
            .map(Vec::into_iter)
            .collect();
        let mut ended = Vec::with_capacity(wave.len());
        for (place, request) in requests.iter().enumerate() {
            let run = runs[place % slots].next();
            let (run, line) = run.ok_or_else(|| Fault::infra("a run of tests has no result"))?;
            let fate = (!passes(&run, &request.ids)).then(|| unmended(&run));
            ended.push((fate, vec![line]));
        }
        Ok(ended)
    }

    /// What a candidate is run against before anything else: leading tests that run its line, or else others.
    fn first(&self, ranked: &Ranked) -> TestRequest {
        let Self {
            observation,
            settings,
            ..
        } = self;
        let mut ids = failing_through(ranked, self.suspects, observation);
        let leading = ids.iter().filter(|id| observation.leading.contains(id));
        let leading: Vec<String> = leading.cloned().collect();
        // How long others take was not measured.
        let mut wall = settings.candidate_wall(f64::MAX);
        if !leading.is_empty() {
            wall = settings.candidate_wall(observation.failing_seconds);
            ids = leading;
        }
        ids.truncate(settings.failing_tests);
        TestRequest {
            writes: writes(ranked, self.suspects),
            ids,
            stop_at_failure: true,
            trace: false,
            wall,
        }
    }

    /// Holds a candidate that mends failing tests to all: it has to mend all that run its line, at least half of all,
    /// and to break none.
    async fn check(&self, workplace: &mut Workplace, ranked: &Ranked) -> Result<Checked, Fault> {
        let (suspects, observation) = (self.suspects, self.observation);
        let request = |ids: Vec<String>, stop: bool| TestRequest {
            writes: writes(ranked, suspects),
            ids,
            stop_at_failure: stop,
            trace: false,
            wall: self.settings.suite_wall(),
        };
        let near = passing_through(ranked, suspects, observation);
        let mut test_runs = 0;
        if !near.is_empty() {
            let run = one(workplace, request(near.clone(), true)).await?;
            test_runs += 1;
            if !passes(&run, &near) {
                // Some pass only after tests that are not among these: then all of them decide.
                let plain = TestRequest {
                    writes: BTreeMap::new(),
                    ..request(near.clone(), false)
                };
                let plain = one(workplace, plain).await?;
                test_runs += 1;
                if passes(&plain, &near) {
                    let fate = Fate::Breaking;
                    return Ok(Checked { fate, test_runs });
                }
            }
        }
        let run = one(workplace, request(Vec::new(), false)).await?;
        test_runs += 1;
        let still = |id: &&String| passed(&run, id);
        let kept = observation.passing.iter().all(|id| passed(&run, id));
        let mended = observation.failing.iter().filter(still).count();
        let own = failing_through(ranked, suspects, observation);
        let whole = own.iter().all(|id| passed(&run, id));
        let fate = match run.ended == Ended::Finished && kept {
            true if whole && 2 * mended >= observation.failing.len() => Fate::Passing,
            true if mended > 0 => Fate::Partial(mended),
            true | false => Fate::Breaking,
        };
        Ok(Checked { fate, test_runs })
    }
}

fn unmended(run: &TestRun) -> Fate {
    match run.ended {
        Ended::TimedOut => Fate::Endless,
        Ended::Crashed => Fate::Crashed,
        Ended::Finished => {
            let first = run.failures.values().next();
            Fate::Unmended(first.map_or_else(String::new, |failure| {
                let line = failure.message.lines().next().unwrap_or_default();
                let line: String = line.chars().take(SAID).collect();
                format!("{}: {line}", failure.kind)
            }))
        }
    }
}

struct Checked {
    fate: Fate,
    test_runs: usize,
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

/// Traced failing tests that run the candidate's line; the leading ones when none does, as for lines that only run
/// at imports.
fn failing_through(
    ranked: &Ranked,
    suspects: &[Suspect],
    observation: &TestsObserved,
) -> Vec<String> {
    let path = suspects[ranked.file].path.as_str();
    let tests = &observation.failing_lines;
    let through = through(path, ranked.candidate.line, tests);
    match through.is_empty() {
        true => observation.leading.clone(),
        false => through,
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
    runs.map(|(id, _)| id.clone()).collect()
}
