//! What was resolved beside planners that nobody trained, by package and by kind of bug.

use journal::{Evaluation, Replay};
use serde::Serialize;

use crate::{
    comparison::{self, Comparison},
    words::Unit,
};

/// What tasks are grouped by, and the metric's beginning.
const GROUPINGS: [(&str, &str); 2] = [
    ("By package", "resolved/repo/"),
    ("By kind of bug", "resolved/family/"),
];

/// What evaluations of planners that nobody trained begin with.
const BASELINE: &str = "baseline/";
/// What they are compared by.
const COMPARED: [&str; 3] = ["resolved", "candidates", "test_runs"];

const ABOUT_BASELINES: &str = "Planners that nobody trained, on the same tasks with the same number of candidates, \
                               beside those of this run.";
const ABOUT_GROUPS: &str =
    "Share resolved, with 95 % intervals over tasks. Few tasks of a group make wide intervals.";

/// One table a grouping.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Groups {
    tables: Vec<Grouping>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Grouping {
    title: &'static str,
    about: &'static str,
    comparison: Comparison,
}

impl Groups {
    pub(super) fn of(replay: &Replay) -> Self {
        let evaluations = comparison::shown(replay);
        let tables = GROUPINGS.iter().filter_map(|&(title, beginning)| {
            let mut comparison =
                Comparison::of_some(&evaluations, comparison::compared(replay), |metric| {
                    metric.starts_with(beginning)
                });
            for row in &mut comparison.rows {
                row.label = part(&row.label);
                row.meaning = "";
            }
            let about = ABOUT_GROUPS;
            (!comparison.rows.is_empty()).then_some(Grouping {
                title,
                about,
                comparison,
            })
        });
        Self {
            tables: baselines(replay).into_iter().chain(tables).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }
}

fn baselines(replay: &Replay) -> Option<Grouping> {
    let all = replay.evaluations();
    let mut evaluations: Vec<&Evaluation> =
        all.filter(|one| one.name.starts_with(BASELINE)).collect();
    if evaluations.is_empty() {
        return None;
    }
    evaluations.extend(comparison::shown(replay));
    let mut comparison =
        Comparison::of_some(&evaluations, None, |metric| COMPARED.contains(&metric));
    for column in &mut comparison.columns {
        if let Some(name) = column.name.strip_prefix(BASELINE) {
            column.name = name.to_owned();
        }
    }
    Some(Grouping {
        title: "Beside planners that nobody trained",
        about: ABOUT_BASELINES,
        comparison,
    })
}

/// `resolved: repo toolz` as `toolz`.
fn part(label: &str) -> String {
    let inner = label.split_once(": ").map_or(label, |(_, inner)| inner);
    let inner = inner
        .strip_prefix("repo ")
        .or_else(|| inner.strip_prefix("family "));
    inner.unwrap_or(label).to_owned()
}

/// The same for the end of a run in the terminal.
pub(super) fn tables(replay: &Replay) -> Vec<Vec<Vec<String>>> {
    let evaluations = comparison::shown(replay);
    let table = |&(title, beginning): &(&str, &str)| {
        let mut names: Vec<&str> = evaluations
            .iter()
            .flat_map(|one| one.metrics.keys())
            .filter_map(|metric| metric.strip_prefix(beginning))
            .collect();
        names.sort_unstable();
        names.dedup();
        let heading = std::iter::once(title.to_lowercase());
        let heading = heading.chain(evaluations.iter().map(|one| one.name.clone()));
        let rows = names.into_iter().map(|name| {
            let cell = |one: &&Evaluation| {
                one.metrics.get(&format!("{beginning}{name}")).map_or_else(
                    || "–".to_owned(),
                    |found| {
                        format!(
                            "{} ({})",
                            Unit::Share.write(found.value),
                            Unit::Share.bounds(*found)
                        )
                    },
                )
            };
            let cells = evaluations.iter().map(cell);
            // Named as in the page.
            std::iter::once(name.replace(['_', '/'], " "))
                .chain(cells)
                .collect()
        });
        let rows: Vec<Vec<String>> = rows.collect();
        let heading: Vec<String> = heading.collect();
        (!rows.is_empty()).then(|| [vec![heading], rows].concat())
    };
    GROUPINGS.iter().filter_map(table).collect()
}
