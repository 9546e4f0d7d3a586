//! What differs between studies: each is a [`Study`] in a module of its own, and this is the list of them.

use journal::Replay;
use minijinja::{Value, value::Serde};
use serde::Serialize;

use crate::{
    comparison::{self, Comparison},
    critique::Critique,
    curves::Panel,
    recall::Recall,
    repair::Repair,
    run_view::RunView,
    words::Wording,
};

/// Metrics of all studies have their words here, in this order.
const STUDIES: [&dyn Study; 3] = [&Critique, &Recall, &Repair];

/// How runs of one study are reported, where it differs from runs of any.
pub(crate) trait Study: Sync {
    /// As the journal has it.
    fn name(&self) -> &'static str;

    /// Words of the evaluation metrics, in the order in which tables show them.
    fn metrics(&self) -> &'static [(&'static str, Wording)] {
        &[]
    }

    /// Curves after the reward.
    fn panels(&self) -> &'static [Panel] {
        &[]
    }

    /// The main result in one sentence; `None` before there is one.
    fn sentence(&self, run: &RunView) -> Option<String> {
        comparison::sentence(&run.replay)
    }

    fn comparison(&self, replay: &Replay) -> Comparison {
        Comparison::of(replay)
    }

    /// What a reader of the comparison has to know.
    fn comparison_about(&self) -> &'static str {
        "Held-out tasks; values with 95 % intervals over tasks. Two intervals that are apart show a \
         real difference; two that overlap leave it open."
    }

    /// Sections of the page after the comparison.
    fn results(&self, _run: &RunView) -> Vec<Part> {
        Vec::new()
    }

    /// Sections of the page with episodes to read.
    fn samples(&self, _run: &RunView) -> Vec<Part> {
        Vec::new()
    }

    /// Further tables for the end of a run in the terminal: rows of cells, headings first.
    fn tables(&self, _run: &RunView) -> Vec<Vec<Vec<String>>> {
        Vec::new()
    }

    /// Up to `n` samples to read in the terminal.
    fn samples_text(&self, _run: &RunView, _n: usize) -> String {
        String::new()
    }

    /// What is compared over seeds.
    fn over_seeds(&self, _runs: &[RunView]) -> OverSeeds {
        OverSeeds {
            pair: REINFORCED,
            metric: "pass_at_1",
            label: "pass@1",
            shown: &["sft", "rl"],
            further: &[],
            beside: false,
        }
    }
}

/// What is compared over runs of several seeds.
pub(crate) struct OverSeeds {
    /// The main metric, a share.
    pub(crate) metric: &'static str,
    pub(crate) label: &'static str,
    /// The two evaluations that are compared: before and after reinforcement, or a baseline and what is evaluated.
    pub(crate) pair: [&'static str; 2],
    /// Evaluations that are shown seed by seed.
    pub(crate) shown: &'static [&'static str],
    /// Metrics beside the main one, of an evaluation or of all its rounds.
    pub(crate) further: &'static [&'static str],
    /// Whether the evaluations beside those shown are compared too.
    pub(crate) beside: bool,
}

/// Before and after reinforcement.
pub(crate) const REINFORCED: [&str; 2] = ["sft", "rl"];

/// Whether no run has trained anybody, so that there is no before and after.
pub(crate) fn only_evaluated(runs: &[RunView]) -> bool {
    let trained = |run: &RunView| {
        REINFORCED
            .iter()
            .any(|name| run.replay.evaluation(name).is_some())
    };
    !runs.is_empty() && !runs.iter().any(trained)
}

/// A section that a study's own template draws.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Part {
    pub(crate) template: &'static str,
    /// What the template knows as `part.data`.
    pub(crate) data: Value,
}

impl Part {
    pub(crate) fn new(template: &'static str, data: &impl Serialize) -> Self {
        Self {
            template,
            data: Value::from(Serde(data)),
        }
    }
}

/// A study that nothing is known of.
struct Unknown;

impl Study for Unknown {
    fn name(&self) -> &'static str {
        ""
    }
}

pub(crate) fn of(replay: &Replay) -> &'static dyn Study {
    let name = replay.started().map(|started| started.study.as_str());
    let known = STUDIES.into_iter().find(|study| Some(study.name()) == name);
    known.unwrap_or(&Unknown)
}

/// Words of the metrics of all studies.
pub(crate) fn metrics() -> impl Iterator<Item = &'static (&'static str, Wording)> {
    STUDIES.into_iter().flat_map(|study| study.metrics())
}
