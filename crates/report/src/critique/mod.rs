//! Reports of the critique study: critiques to read, before and after.

mod diff;
mod panels;
mod reading;
mod samples;
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

    fn samples(&self, run: &RunView) -> Vec<Part> {
        let samples = samples::samples(run);
        if samples.is_empty() {
            return Vec::new();
        }
        vec![Part::new("critique.html", &samples)]
    }

    fn samples_text(&self, run: &RunView, n: usize) -> String {
        reading::critiques_text(run, n)
    }

    fn over_seeds(&self, _runs: &[RunView]) -> OverSeeds {
        OverSeeds {
            metric: "pass_at_1",
            label: "pass@1",
            shown: &["no-critique", "sft", "rl"],
            further: &[],
        }
    }
}
