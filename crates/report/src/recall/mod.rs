//! Reports of the recall study: answers against memories that nobody learnt to write, memory size over
//! turns, and episodes to read turn by turn.

mod episodes;
mod facts;
mod memory;
mod panels;
mod reading;
mod result;
mod turns;
mod words;

use journal::Replay;

use crate::{
    comparison::{self, Comparison},
    curves::Panel,
    run_view::RunView,
    study::{OverSeeds, Part, REINFORCED, Study},
    words::Wording,
};

pub(crate) struct Recall;

impl Study for Recall {
    fn name(&self) -> &'static str {
        "recall"
    }

    fn metrics(&self) -> &'static [(&'static str, Wording)] {
        &words::METRICS
    }

    fn panels(&self) -> &'static [Panel] {
        &panels::PANELS
    }

    fn sentence(&self, run: &RunView) -> Option<String> {
        result::sentence(run)
    }

    /// Whole metrics alone: question types and operations have tables of their own.
    fn comparison(&self, replay: &Replay) -> Comparison {
        Comparison::of_some(
            &comparison::shown(replay),
            comparison::compared(replay),
            |metric| metric.starts_with("step_reward/") || !metric.contains('/'),
        )
    }

    fn comparison_about(&self) -> &'static str {
        "Held-out dialogues; values with 95 % intervals over documents. Two intervals that are apart \
         show a real difference; two that overlap leave it open."
    }

    fn results(&self, run: &RunView) -> Vec<Part> {
        let results = result::Results::of(run);
        if results.is_empty() {
            return Vec::new();
        }
        vec![Part::new("recall.html", &results)]
    }

    fn samples(&self, run: &RunView) -> Vec<Part> {
        let episodes = episodes::episodes(run);
        if episodes.is_empty() {
            return Vec::new();
        }
        vec![Part::new("episodes.html", &episodes)]
    }

    fn tables(&self, run: &RunView) -> Vec<Vec<Vec<String>>> {
        result::tables(&run.replay)
    }

    fn samples_text(&self, run: &RunView, n: usize) -> String {
        reading::answers_text(run, n)
    }

    fn over_seeds(&self, runs: &[RunView]) -> OverSeeds {
        let mains = runs.iter().map(|run| result::main_metric(&run.replay));
        let by_score = mains.max().is_some_and(|main| main == result::SCORE);
        let (metric, label) = match by_score {
            true => (result::SCORE, "score"),
            false => (result::F1, "F1"),
        };
        OverSeeds {
            metric,
            label,
            pair: REINFORCED,
            shown: &REINFORCED,
            beside: true,
            further: &[
                "f1",
                "exact_match",
                "abstention_accuracy",
                "retrieval_recall",
                "evidence_remembered",
                "context_tokens",
                "memory_tokens",
                "memory_items",
            ],
        }
    }
}
