//! What was resolved, and at what cost, by package and by kind of bug; planners that nobody trained beside; and what
//! ended episodes.

use std::collections::{BTreeMap, BTreeSet};

use journal::{Evaluation, Replay};
use repair::{metrics::notes_of, play::Notes};
use serde::Serialize;

use crate::{
    comparison::{self, Comparison},
    run_view::RunView,
    words,
};

/// What tasks are grouped by, and the group of a task.
const GROUPINGS: [(&str, &str, GroupOf); 2] = [
    ("By package", "repo", |notes| Some(notes.repo.clone())),
    ("By kind of bug", "family", |notes| notes.family.clone()),
];

type GroupOf = fn(&Notes) -> Option<String>;
type Write = fn(f64) -> String;

/// What evaluations of planners that nobody trained begin with.
const BASELINE: &str = "baseline/";
/// What they are compared by.
const COMPARED: [&str; 4] = ["resolved", "candidates", "test_runs", "seconds"];
/// Means a task that stand beside what was resolved.
const COSTS: [(&str, &str, Write); 3] = [
    ("candidates", "candidates", words::number),
    ("test_runs", "test runs", words::number),
    ("seconds", "time", words::duration),
];

const ABOUT_BASELINES: &str = "Planners that nobody trained, on the same tasks with the same number of candidates, \
                               beside those of this run.";
const ABOUT_ENDS: &str = "Share of the episodes; “gave up” is a planner that had nothing left to try, “candidates \
                          exhausted” a search that had none, “timeout” the time limit of episodes.";

/// One table a grouping.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Groups {
    tables: Vec<Grouping>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Grouping {
    title: &'static str,
    about: String,
    comparison: Comparison,
    further: Further,
}

/// Columns after those of evaluations, a row a row.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Further {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Groups {
    pub(super) fn of(run: &RunView) -> Self {
        let tables = baselines(&run.replay).into_iter();
        let tables = tables.chain(
            GROUPINGS
                .iter()
                .filter_map(|grouping| by_group(run, grouping)),
        );
        Self {
            tables: tables.chain(ends(&run.replay)).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }
}

fn by_group(
    run: &RunView,
    &(title, key, group_of): &(&'static str, &str, GroupOf),
) -> Option<Grouping> {
    let evaluations = comparison::shown(&run.replay);
    let last = evaluations.last()?;
    let beginning = format!("resolved/{key}/");
    let mut comparison =
        Comparison::of_some(&evaluations, comparison::compared(&run.replay), |metric| {
            metric.starts_with(&beginning)
        });
    // Rows are in the order of names.
    let names: BTreeSet<&str> = evaluations
        .iter()
        .flat_map(|one| one.measures())
        .filter_map(|metric| metric.strip_prefix(&beginning))
        .collect();
    for row in &mut comparison.rows {
        row.label = part(&row.label);
        row.meaning = "";
    }
    let shares =
        "Share resolved, with 95 % intervals over tasks. Few tasks of a group make wide intervals.";
    let about = match evaluations.len() {
        1 => format!("{shares} Candidates, test runs and time are means a task."),
        _ => format!(
            "{shares} Candidates, test runs and time are means a task, of {}.",
            last.name
        ),
    };
    (!names.is_empty()).then(|| Grouping {
        title,
        about,
        comparison,
        further: costs(run, last, key, group_of, &names),
    })
}

/// Tasks of each group, what they cost in the mean, and their time in all.
fn costs(
    run: &RunView,
    evaluation: &Evaluation,
    key: &str,
    group_of: GroupOf,
    names: &BTreeSet<&str>,
) -> Further {
    let sums = sums(run, evaluation, group_of);
    let is_timed = !evaluation.episode_seconds.is_empty();
    let headings = COSTS.iter().map(|(_, heading, _)| *heading);
    let headings = ["tasks"].into_iter().chain(headings);
    let row = |name: &&str| {
        let sum = sums.get(*name);
        let tasks = sum.map_or_else(String::new, |sum| sum.tasks.len().to_string());
        let means = COSTS.iter().map(|(metric, _, write)| {
            let found = evaluation.measure(&format!("{metric}/{key}/{name}"));
            found.map_or("–".to_owned(), |found| write(found.value))
        });
        let total = sum.filter(|_| is_timed);
        let total = total.map(|sum| words::duration(sum.seconds));
        let row = [tasks].into_iter().chain(means);
        row.chain(is_timed.then(|| total.unwrap_or_default()))
            .collect()
    };
    Further {
        headings: headings.chain(is_timed.then_some("time in all")).collect(),
        rows: names.iter().map(row).collect(),
    }
}

/// Of the episodes of one group that reached their verdicts.
#[derive(Default)]
struct Sum {
    tasks: BTreeSet<String>,
    seconds: f64,
}

fn sums(run: &RunView, evaluation: &Evaluation, group_of: GroupOf) -> BTreeMap<String, Sum> {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    let groups = run.episodes.get(&evaluation.name).into_iter().flatten();
    let episodes = groups.flat_map(|group| &group.episodes);
    let seconds = evaluation.episode_seconds.iter().copied();
    for (episode, seconds) in episodes.zip(seconds.chain(std::iter::repeat(0.0))) {
        if let Some(group) = notes_of(episode).and_then(|notes| group_of(&notes)) {
            let sum = sums.entry(group).or_default();
            sum.tasks.insert(episode.task.0.clone());
            sum.seconds += seconds;
        }
    }
    sums
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
        about: ABOUT_BASELINES.to_owned(),
        comparison,
        further: Further::default(),
    })
}

fn ends(replay: &Replay) -> Option<Grouping> {
    let mut comparison = Comparison::of_some(&comparison::shown(replay), None, |metric| {
        metric.starts_with("ended/")
    });
    for row in &mut comparison.rows {
        row.label = part(&row.label);
        row.meaning = "";
    }
    (!comparison.rows.is_empty()).then(|| Grouping {
        title: "What ended episodes",
        about: ABOUT_ENDS.to_owned(),
        comparison,
        further: Further::default(),
    })
}

/// `resolved: repo toolz` as `toolz`.
fn part(label: &str) -> String {
    let inner = label.split_once(": ").map_or(label, |(_, inner)| inner);
    let name = inner
        .strip_prefix("repo ")
        .or_else(|| inner.strip_prefix("family "));
    name.unwrap_or(inner).to_owned()
}

/// The groups for the end of a run in the terminal.
pub(super) fn tables(run: &RunView) -> Vec<Vec<Vec<String>>> {
    let groupings = GROUPINGS
        .iter()
        .filter_map(|grouping| by_group(run, grouping));
    let table = |grouping: Grouping| {
        let columns = grouping.comparison.columns.iter();
        let heading = [grouping.title.to_lowercase()].into_iter();
        let only = grouping.comparison.columns.len() == 1;
        let heading = heading.chain(columns.map(|column| match only {
            true => "resolved".to_owned(),
            false => column.name.clone(),
        }));
        let further = grouping.further.headings.iter();
        let heading = heading.chain(further.map(|heading| (*heading).to_owned()));
        let rows = grouping.comparison.rows.iter().zip(&grouping.further.rows);
        let rows = rows.map(|(row, further)| {
            let cells = row.cells.iter().map(|cell| {
                cell.as_ref()
                    .map_or_else(|| "–".to_owned(), comparison::Cell::said)
            });
            let label = [row.label.clone()].into_iter();
            label.chain(cells).chain(further.iter().cloned()).collect()
        });
        let rows: Vec<Vec<String>> = rows.collect();
        [vec![heading.collect()], rows].concat()
    };
    groupings.map(table).collect()
}
