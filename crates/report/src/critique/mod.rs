//! Reports of the critique study: critiques to read, before and after.

mod diff;
mod panels;
mod reading;
mod rounds;
mod samples;
mod suspects;
mod words;

use crate::{
    curves::Panel,
    run_view::RunView,
    study::{OverSeeds, Part, Study},
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

    fn over_seeds(&self, _runs: &[RunView]) -> OverSeeds {
        OverSeeds {
            metric: "pass_at_1",
            label: "pass@1",
            shown: &["no-critique", "sft", "rl"],
            further: &rounds::OVER_SEEDS,
            beside: false,
        }
    }
}
