//! The patch model `search`: program repair that needs no model (spec of the repair study, section 10.5).
//!
//! It runs the tests of the checkout, looks which lines the failing ones run and the passing ones do not,
//! lists small edits of these lines (`code::edit_operators`), and runs the candidates against the tests, the
//! most promising first, until one passes them all or the budget is spent. It proposes at most one patch, and
//! says how many candidates it ran. Where it is asked again in the same episode it goes on with what it has not run
//! ([`Searched`]), in the order of the new plan. It reads tests that are in the checkout and nothing else of a task: where
//! none fails, it has nothing to go by and says so.

mod concern;
mod diff;
mod hints;
mod observation;
mod ranking;
mod searched;
mod settings;
mod spoken;
mod surroundings;
mod suspicion;
mod trial;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use async_trait::async_trait;
use code::{Patch, RelativePath, sites::Source};
use futures::future::try_join_all;
use record::Fault;
use rollout::Cx;

use crate::{
    patch_model::{
        Answered, EXHAUSTED, Effort, NothingLeft, PatchModel, PatchRequest, Proposal, Proposed,
        SPENT,
    },
    workplace::{Testbed, Workplace},
};
pub use concern::{Sought, foremost, of_concern_to, speaks_of_any};
pub(crate) use observation::{Coverage, observe};
pub use observation::{TestsObserved, observe_after};
use ranking::{Ranked, Suspect};
pub use searched::Searched;
pub use settings::SearchSettings;
pub use surroundings::failing_by_surroundings;
pub(crate) use suspicion::spectrum;
use trial::Partial;
pub use trial::{Fate, Tried, WatchTried};

/// The code of an answer without patches (spec, section 1.5).
const EMPTY: &str = "cgm-empty";

/// Lines that are edited at most, the most suspicious ones.
const MAX_LINES: usize = 400;

/// A patch model that searches.
#[derive(Clone)]
pub struct Search {
    settings: SearchSettings,
    watch: Option<Arc<WatchTried>>,
}

impl fmt::Debug for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Search")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Search {
    /// # Errors
    /// Settings that no search can work with, in words.
    pub fn new(settings: SearchSettings) -> Result<Self, String> {
        settings.check()?;
        Ok(Self {
            settings,
            watch: None,
        })
    }

    /// Tells `watch` every candidate that was run.
    pub fn watched(self, watch: Arc<WatchTried>) -> Self {
        Self {
            watch: Some(watch),
            ..self
        }
    }

    /// What [`PatchModel::propose`] answers: a search asks no policy.
    ///
    /// # Errors
    /// Infrastructure faults.
    pub async fn answer(
        &self,
        request: &PatchRequest,
        testbed: &Testbed,
    ) -> Result<Answered, Fault> {
        let slots = self.settings.slots.min(testbed.slots).max(1);
        let mut workplaces = try_join_all((0..slots).map(|_| testbed.open())).await?;
        let answered = self.search(request, &mut workplaces).await;
        try_join_all(workplaces.into_iter().map(Workplace::close)).await?;
        answered
    }

    /// The candidates of a search in the order in which it would run them, without running any: the tests are
    /// run on the checkout as it is.
    ///
    /// # Errors
    /// Infrastructure faults.
    pub async fn candidates(
        &self,
        request: &PatchRequest,
        testbed: &Testbed,
    ) -> Result<Vec<Proposal>, Fault> {
        let mut workplace = testbed.open().await?;
        let prepared = self.prepare(request, &mut workplace).await;
        workplace.close().await?;
        let Prepared {
            suspects, ordered, ..
        } = prepared?;
        let proposals = ordered.iter().map(|ranked| propose(ranked, &suspects));
        proposals.collect::<Result<_, _>>().map_err(Fault::grader)
    }

    async fn prepare(
        &self,
        request: &PatchRequest,
        workplace: &mut Workplace,
    ) -> Result<Prepared, Fault> {
        let searched = request.searched.as_deref();
        let known = searched.and_then(|searched| searched.observed.as_ref());
        let (observed, test_runs) = match request.observed.as_ref().or(known) {
            // Whoever looked has run them.
            Some(observed) => (observed.clone(), 0),
            None => {
                let observed =
                    observation::observe(workplace, &request.issue, &self.settings).await?;
                let test_runs = observed.test_runs;
                (Arc::new(observed), test_runs)
            }
        };
        let observation = concern::of_concern(TestsObserved::clone(&observed), &request.issue);
        let (suspects, unread) = suspects(workplace, &observation, request, &self.settings).await?;
        let hints = hints::hints(&observation, &request.issue);
        let ranked = ranking::rank(&suspects, &hints);
        let left = self
            .settings
            .budget
            .saturating_sub(request.constraints.tried);
        let none = BTreeSet::new();
        let run = searched.map_or(&none, |searched| &searched.programs);
        let ordered = ranking::different(&suspects, ranked, run, left);
        Ok(Prepared {
            observed,
            test_runs,
            observation,
            suspects,
            unread,
            ordered,
        })
    }

    async fn search(
        &self,
        request: &PatchRequest,
        workplaces: &mut [Workplace],
    ) -> Result<Answered, Fault> {
        let (budget, tried) = (self.settings.budget, request.constraints.tried);
        let before = request.searched.as_deref().cloned().unwrap_or_default();
        if tried >= budget && before.unchecked.is_empty() && before.partial.is_none() {
            let detail =
                format!("all {budget} candidates of the budget were run by the repairs before");
            let proposed = Proposed::None {
                code: SPENT,
                detail,
            };
            return Ok(proposed.into());
        }
        let Some(first) = workplaces.first_mut() else {
            return Err(Fault::infra("no workplace is open"));
        };
        let Prepared {
            observed,
            test_runs,
            observation,
            suspects,
            unread,
            ordered,
        } = self.prepare(request, first).await?;
        let mut log = first.take_log();
        for workplace in workplaces.iter_mut() {
            workplace.load_plugins(observed.with_plugins);
        }
        let mut effort = Effort {
            candidates: 0,
            test_runs,
        };
        if observation.failing.is_empty() {
            let detail = format!(
                "none of the {} tests of the checkout fails, so there is nothing to search by",
                observation.passing.len()
            );
            let code = EMPTY;
            return Ok(Answered {
                proposed: Proposed::None { code, detail },
                effort,
                log,
                spent: None,
                searched: Some(Arc::new(Searched {
                    observed: Some(observed),
                    ..before
                })),
            });
        }
        let search = trial::Searching {
            suspects: &suspects,
            observation: &observation,
            settings: &self.settings,
            watch: self.watch.as_deref(),
            before: tried,
        };
        let trials = search
            .try_all(workplaces, &before.unchecked, &ordered)
            .await?;
        effort.candidates += trials.candidates;
        effort.test_runs += trials.test_runs;
        log.extend(trials.log);
        let run = ordered[..trials.candidates].iter();
        let partial = [before.partial, trials.partial].into_iter().flatten();
        let mut searched = Searched {
            observed: Some(observed),
            unchecked: trials.unchecked,
            breaking: before.breaking + trials.breaking,
            // Of those that mend as many the first.
            partial: partial.rev().max_by_key(|partial| partial.mended),
            ..before
        };
        let programs = run.filter_map(|ranked| ranked.program(&suspects));
        searched.programs.extend(programs);
        let failing = observation.failing.len();
        let (proposed, spent) = match trials.found {
            Some(found) => {
                searched.proposed += 1;
                let mut proposal = propose(&found, &suspects).map_err(Fault::grader)?;
                proposal.summary = format!("{}, candidate {}", proposal.summary, trials.number);
                (Proposed::Patches(vec![proposal]), None)
            }
            None => {
                let all = tried + trials.candidates;
                let mut detail = self.spent(all, &searched, failing);
                let code = match all < budget {
                    true => EXHAUSTED,
                    false => SPENT,
                };
                if !unread.is_empty() {
                    detail += &format!("; what it cannot edit: {}", unread.join(", "));
                }
                match searched.partial.take() {
                    Some(partial) => {
                        let mut proposal =
                            propose(&partial.ranked, &suspects).map_err(Fault::grader)?;
                        let Partial { number, mended, .. } = partial;
                        proposal.summary += &format!(
                            ", candidate {number}, which mends {mended} of {failing} failing tests"
                        );
                        proposal.confidence = mended as f64 / failing as f64;
                        let left = NothingLeft { code, detail };
                        (Proposed::Patches(vec![proposal]), Some(left))
                    }
                    // Another plan would lead to the same candidates.
                    None => (Proposed::None { code, detail }, None),
                }
            }
        };
        Ok(Answered {
            proposed,
            effort,
            log,
            spent,
            searched: Some(Arc::new(searched)),
        })
    }

    /// Why there is no candidate any more, after `all` of the episode.
    fn spent(&self, all: usize, searched: &Searched, failing: usize) -> String {
        let no = match searched.proposed {
            0 => "none",
            _ => "no other",
        };
        let were = match all {
            1 => "1 candidate was".to_owned(),
            _ => format!("{all} candidates were"),
        };
        let mends = match failing {
            1 => "mends the failing test".to_owned(),
            _ => format!("mends at least half of the {failing} failing tests"),
        };
        let most = match &searched.partial {
            Some(partial) => format!(
                "; candidate {} mends {} of them and breaks none",
                partial.number, partial.mended
            ),
            None => String::new(),
        };
        let breaking = match searched.breaking {
            0 => String::new(),
            number => format!("; {number} mended some and broke others"),
        };
        let end = match all < self.settings.budget {
            true => "there are no others",
            false => "the budget allows no more",
        };
        format!("{were} run and {no} {mends} without breaking another{most}{breaking}; {end}")
    }
}

/// All that a search knows before it runs a candidate.
struct Prepared {
    observed: Arc<TestsObserved>,
    /// That observing took.
    test_runs: usize,
    /// Of the tests that are the issue's concern.
    observation: TestsObserved,
    suspects: Vec<Suspect>,
    /// Files that failing tests run and that cannot be edited, and why.
    unread: Vec<String>,
    ordered: Vec<Ranked>,
}

#[async_trait]
impl PatchModel for Search {
    async fn propose(
        &self,
        request: &PatchRequest,
        testbed: &Testbed,
        _cx: &mut Cx,
    ) -> Result<Answered, Fault> {
        self.answer(request, testbed).await
    }
}

/// Files with suspicious lines, weighed; second, those that cannot be edited, and why.
async fn suspects(
    workplace: &mut Workplace,
    observation: &TestsObserved,
    request: &PatchRequest,
    settings: &SearchSettings,
) -> Result<(Vec<Suspect>, Vec<String>), Fault> {
    let mut spectrum = suspicion::spectrum(observation);
    if spectrum.is_empty() {
        spectrum = suspicion::frames_alone(observation);
    }
    let (mut suspects, mut unread) = (Vec::new(), Vec::new());
    for (path, mut weights) in spectrum {
        let Ok(path) = RelativePath::new(&path) else {
            continue;
        };
        let read = match workplace.read(&path).await? {
            Some(content) => String::from_utf8(content)
                .map_err(|_| "it is no UTF-8 text".to_owned())
                .and_then(|text| Source::parse(text).map_err(|fault| fault.to_string())),
            None => Err("it is no plain file of the repository".to_owned()),
        };
        let source = match read {
            Ok(source) => source,
            Err(why) => {
                unread.push(format!("{path} ({why})"));
                continue;
            }
        };
        let factor = settings.target_factor;
        suspicion::refine(
            path.as_str(),
            &source,
            &mut weights,
            observation,
            request,
            factor,
        );
        suspects.push(Suspect {
            path,
            source,
            weights,
        });
    }
    keep_heaviest(&mut suspects);
    if suspects.is_empty() && unread.is_empty() {
        let run = observation.failing_lines.values().flat_map(BTreeMap::keys);
        let of_tests = run.filter(|path| observation.is_of_tests(path));
        let of_tests: BTreeSet<&String> = of_tests.collect();
        unread.extend(of_tests.into_iter().map(|path| format!("{path} (a test)")));
    }
    Ok((suspects, unread))
}

/// Drops all lines but the [`MAX_LINES`] most suspicious ones, and those that weigh as much as the last.
fn keep_heaviest(suspects: &mut [Suspect]) {
    let all = suspects.iter().flat_map(|suspect| suspect.weights.values());
    let mut all: Vec<f64> = all.copied().collect();
    all.sort_by(|a, b| b.total_cmp(a));
    let least = all.get(MAX_LINES - 1).copied().unwrap_or(0.0);
    for suspect in suspects {
        suspect.weights.retain(|_, weight| *weight >= least);
    }
}

fn propose(found: &Ranked, suspects: &[Suspect]) -> Result<Proposal, String> {
    let suspect = &suspects[found.file];
    let text = diff::unified(suspect, &found.candidate.edit);
    let patch = Patch::parse(text.as_bytes()).map_err(|error| error.to_string())?;
    Ok(Proposal {
        patch,
        text,
        summary: format!(
            "{} at {}:{}",
            found.candidate.family.name(),
            suspect.path,
            found.candidate.line
        ),
        confidence: 1.0,
        counted: true,
    })
}
