//! Reports of the repair study: what was resolved, by package and kind of bug, and every episode step by step.

mod groups;
mod traces;
mod words;

use journal::Replay;

use crate::{
    comparison::{self, Comparison},
    run_view::RunView,
    study::{OverSeeds, Part, REINFORCED, Study, only_evaluated},
    words::Wording,
};

pub(crate) struct Repair;

impl Study for Repair {
    fn name(&self) -> &'static str {
        "repair"
    }

    fn metrics(&self) -> &'static [(&'static str, Wording)] {
        &words::METRICS
    }

    /// Whole metrics alone: packages and kinds of bugs have tables of their own.
    fn comparison(&self, replay: &Replay) -> Comparison {
        Comparison::of_some(
            &comparison::shown(replay),
            comparison::compared(replay),
            |metric| !metric.contains('/'),
        )
    }

    fn results(&self, run: &RunView) -> Vec<Part> {
        let groups = groups::Groups::of(run);
        if groups.is_empty() {
            return Vec::new();
        }
        vec![Part::new("repair.html", &groups)]
    }

    fn samples(&self, run: &RunView) -> Vec<Part> {
        let traces = traces::traces(run);
        if traces.is_empty() {
            return Vec::new();
        }
        vec![Part::new("traces.html", &traces)]
    }

    fn tables(&self, run: &RunView) -> Vec<Vec<Vec<String>>> {
        groups::tables(run)
    }

    fn samples_text(&self, run: &RunView, n: usize) -> String {
        traces::traces_text(run, n)
    }

    fn over_seeds(&self, runs: &[RunView]) -> OverSeeds {
        let (pair, shown): (_, &'static [&'static str]) = if only_evaluated(runs) {
            (["eval", "eval"], &["eval"])
        } else {
            (REINFORCED, &REINFORCED)
        };
        OverSeeds {
            metric: "resolved",
            label: "resolved",
            pair,
            shown,
            further: &["steps", "candidates", "test_runs"],
            beside: true,
        }
    }
}
