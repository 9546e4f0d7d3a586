//! How memories grow over the turns of an episode, and which operations they grow by.

use recall::metrics::memory_over_turns;
use serde::Serialize;

use crate::{
    chart::{Chart, Series},
    comparison::{self, Comparison},
    run_view::RunView,
    words::Unit,
};

/// What the horizontal axes count.
const TURN: &str = "turn";

/// Memory size over turns in the evaluations that are compared, and operations by kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct MemoryGrowth {
    charts: Vec<Chart>,
    operations: Option<Comparison>,
}

impl MemoryGrowth {
    pub(super) fn of(run: &RunView) -> Self {
        let mut sizes: [Vec<Series>; 2] = [Vec::new(), Vec::new()];
        for (evaluation, groups) in comparison::with_episodes(run) {
            let over_turns = memory_over_turns(groups);
            for (place, series) in sizes.iter_mut().enumerate() {
                let points = over_turns.iter().map(|size| {
                    let value = [size.tokens, size.items][place].value;
                    (f64::from(size.turn_id), value)
                });
                series.push(Series {
                    label: evaluation.name.clone(),
                    points: points.collect(),
                    bounds: Vec::new(),
                });
            }
        }
        let about = [
            (
                "Tokens",
                "of the whole memory after a turn, mean over episodes",
            ),
            (
                "Live facts",
                "in the memory after a turn, mean over episodes",
            ),
        ];
        let charts = about
            .iter()
            .zip(&sizes)
            .filter_map(|((title, meaning), series)| {
                // A memory that is never written has nothing to show.
                let points = || series.iter().flat_map(|one| &one.points);
                points().find(|point| point.1 > 0.0)?;
                Chart::over(TURN, title, meaning, Unit::Number, series)
            });
        let operations = Comparison::of_some(
            &comparison::shown(&run.replay),
            comparison::compared(&run.replay),
            |metric| metric.starts_with("ops/"),
        );
        Self {
            charts: charts.collect(),
            operations: (!operations.rows.is_empty()).then(|| without_prefix(operations)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.charts.is_empty() && self.operations.is_none()
    }
}

/// All rows are operations: what remains is the kind and what became of it.
fn without_prefix(mut operations: Comparison) -> Comparison {
    for row in &mut operations.rows {
        if let Some((_, kind)) = row.label.split_once(": ") {
            row.label = kind.to_owned();
        }
        row.meaning = "";
    }
    operations
}
