//! The patch model `search`: program repair that needs no model (spec of the repair study, section 10.5).
//!
//! It runs the tests of the checkout, looks which lines the failing ones run and the passing ones do not,
//! lists small edits of these lines (`code::edit_operators`), and runs the candidates against the tests, the
//! most promising first, until one passes them all or the budget is spent. It proposes at most one patch, and
//! says how many candidates it ran. It reads tests that are in the checkout and nothing else of a task: where
//! none fails, it has nothing to go by and says so.

mod concern;
mod diff;
mod hints;
mod observation;
mod ranking;
mod settings;
mod suspicion;
mod trial;

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use code::{Patch, RelativePath, sites::Source};
use futures::future::try_join_all;
use record::Fault;
use rollout::Cx;

use crate::{
    patch_model::{Answered, Effort, PatchModel, PatchRequest, Proposal, Proposed, SPENT},
    workplace::{Testbed, Workplace},
};
pub use observation::TestsObserved;
pub(crate) use observation::{Coverage, observe};
use ranking::{Ranked, Suspect};
pub use settings::SearchSettings;
pub(crate) use suspicion::spectrum;
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
        let observation = match &request.observed {
            Some(observed) => TestsObserved {
                // Whoever looked has run them.
                test_runs: 0,
                ..TestsObserved::clone(observed)
            },
            None => observation::observe(workplace, &self.settings).await?,
        };
        let observation = concern::of_concern(observation, &request.issue);
        let suspects = suspects(workplace, &observation, request, &self.settings).await?;
        let hints = hints::hints(&observation, &request.issue);
        let ranked = untried(ranking::rank(&suspects, &hints), &suspects, request);
        let left = self
            .settings
            .budget
            .saturating_sub(request.constraints.tried);
        let ordered = ranking::different(&suspects, ranked, left);
        Ok(Prepared {
            observation,
            suspects,
            ordered,
        })
    }

    async fn search(
        &self,
        request: &PatchRequest,
        workplaces: &mut [Workplace],
    ) -> Result<Answered, Fault> {
        let (budget, tried) = (self.settings.budget, request.constraints.tried);
        if tried >= budget {
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
            observation,
            suspects,
            ordered,
        } = self.prepare(request, first).await?;
        let mut log = first.take_log();
        let mut effort = Effort {
            candidates: 0,
            test_runs: observation.test_runs,
        };
        if observation.failing.is_empty() {
            let detail = format!(
                "none of the {} tests of the checkout fails, so there is nothing to search by",
                observation.passing.len()
            );
            let code = EMPTY;
            let proposed = Proposed::None { code, detail };
            return Ok(Answered {
                proposed,
                effort,
                log,
            });
        }
        let search = trial::Searching {
            suspects: &suspects,
            observation: &observation,
            settings: &self.settings,
            watch: self.watch.as_deref(),
            before: tried,
        };
        let trials = search.try_all(workplaces, &ordered).await?;
        effort.candidates += trials.candidates;
        effort.test_runs += trials.test_runs;
        log.extend(trials.log);
        let Some(found) = trials.found else {
            let detail = format!(
                "{} candidates were run and none mends the {} failing tests without breaking another; {} broke one; {}",
                trials.candidates,
                observation.failing.len(),
                trials.breaking,
                match tried + trials.candidates < budget {
                    true => "there are no others",
                    false => "the budget allows no more",
                }
            );
            // Another plan would lead to the same candidates.
            let code = SPENT;
            let proposed = Proposed::None { code, detail };
            return Ok(Answered {
                proposed,
                effort,
                log,
            });
        };
        let mut proposal = propose(&found, &suspects).map_err(Fault::grader)?;
        proposal.summary = format!(
            "{}, found among {} candidates",
            proposal.summary, trials.candidates
        );
        Ok(Answered {
            proposed: Proposed::Patches(vec![proposal]),
            effort,
            log,
        })
    }
}

/// All that a search knows before it runs a candidate.
struct Prepared {
    observation: TestsObserved,
    suspects: Vec<Suspect>,
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

/// Files with suspicious lines, weighed.
async fn suspects(
    workplace: &mut Workplace,
    observation: &TestsObserved,
    request: &PatchRequest,
    settings: &SearchSettings,
) -> Result<Vec<Suspect>, Fault> {
    let mut spectrum = suspicion::spectrum(observation);
    if spectrum.is_empty() {
        spectrum = suspicion::frames_alone(observation);
    }
    let mut suspects = Vec::new();
    for (path, mut weights) in spectrum {
        let Ok(path) = RelativePath::new(&path) else {
            continue;
        };
        let Some(content) = workplace.read(&path).await? else {
            continue;
        };
        let Some(source) = String::from_utf8(content)
            .ok()
            .and_then(|text| Source::parse(text).ok())
        else {
            continue;
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
    Ok(suspects)
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

/// Without what was proposed before and failed.
fn untried(ranked: Vec<Ranked>, suspects: &[Suspect], request: &PatchRequest) -> Vec<Ranked> {
    if request.feedback.is_empty() {
        return ranked;
    }
    let is_new = |ranked: &Ranked| {
        let text = diff::unified(&suspects[ranked.file], &ranked.candidate.edit);
        request.feedback.iter().all(|tried| tried.patch != text)
    };
    ranked.into_iter().filter(is_new).collect()
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
