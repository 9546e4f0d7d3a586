//! Reports of the critique study: critiques to read, before and after.

mod diff;
mod panels;
mod reading;
mod rounds;
mod samples;
mod suspects;
mod words;

use journal::Replay;

use crate::{
    comparison::{self, Comparison},
    curves::Panel,
    run_view::RunView,
    study::{OverSeeds, Part, REINFORCED, Study, only_evaluated},
    words::Wording,
};

pub(crate) struct Critique;

impl Study for Critique {
    fn name(&self) -> &'static str {
        "critique"
    }

    fn metrics(&self) -> &'static [(&'static str, Wording)] {
        &words::METRICS
    }

    fn panels(&self) -> &'static [Panel] {
        &panels::PANELS
    }

    /// Baselines have a table of their own.
    fn comparison(&self, replay: &Replay) -> Comparison {
        let shown: Vec<_> = comparison::shown(replay)
            .into_iter()
            .filter(|one| !rounds::BASELINES.contains(&one.name.as_str()))
            .collect();
        Comparison::of_some(&shown, comparison::compared(replay), |_| true)
    }

    fn sentence(&self, run: &RunView) -> Option<String> {
        rounds::sentence(&run.replay)
    }

    fn results(&self, run: &RunView) -> Vec<Part> {
        let rounds = rounds::Rounds::of(&run.replay);
        let part = rounds.map(|rounds| Part::new("rounds.html", &rounds));
        part.into_iter().collect()
    }

    fn tables(&self, run: &RunView) -> Vec<Vec<Vec<String>>> {
        rounds::table(&run.replay).into_iter().collect()
    }

    fn samples(&self, run: &RunView) -> Vec<Part> {
        let samples = samples::samples(run);
        let read = (!samples.is_empty()).then(|| Part::new("critique.html", &samples));
        let suspects = suspects::section(run).map(|section| Part::new("suspects.html", &section));
        read.into_iter().chain(suspects).collect()
    }

    fn samples_text(&self, run: &RunView, n: usize) -> String {
        reading::critiques_text(run, n)
    }

    fn over_seeds(&self, runs: &[RunView]) -> OverSeeds {
        let (pair, shown): (_, &'static [&'static str]) = if only_evaluated(runs) {
            (["no-critique", "critic"], &["no-critique", "critic"])
        } else {
            (REINFORCED, &["no-critique", "sft", "rl"])
        };
        OverSeeds {
            metric: "pass_at_1",
            label: "pass@1",
            pair,
            shown,
            further: &rounds::OVER_SEEDS,
            beside: false,
        }
    }
}
