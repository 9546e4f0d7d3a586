//! What a run achieved: before and after reinforcement, and against memories that nobody learnt to write.

use std::{cmp::Ordering, collections::BTreeSet};

use journal::{Evaluation, Replay};
use record::Estimate;
use serde::Serialize;

use super::memory::MemoryGrowth;
use crate::{
    comparison::{self, Cell, Change, Comparison, Row},
    run_view::RunView,
    words::{self, Better, Unit},
};

/// The metric that results are judged by.
pub(super) const MAIN: &str = "f1";
const EXACT: &str = "exact_match";

/// What the table of baselines shows.
const SHOWN: [&str; 7] = [
    MAIN,
    EXACT,
    "abstention_accuracy",
    "retrieval_recall",
    "context_tokens",
    "memory_tokens",
    "memory_items",
];

/// What the page says of results beside the two evaluations that are compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Results {
    baselines: Option<Baselines>,
    by_type: Vec<ByType>,
    memory: MemoryGrowth,
    /// Every evaluation with everything that it measured.
    all: Option<Comparison>,
}

/// One metric by question type.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct ByType {
    label: String,
    meaning: &'static str,
    comparison: Comparison,
}

/// Ways of remembering down, metrics across.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Baselines {
    headings: Vec<Heading>,
    readers: Vec<Reader>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Heading {
    label: String,
    meaning: &'static str,
}

/// All that one stage of the policies was evaluated with.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Reader {
    name: String,
    rows: Vec<Remembering>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Remembering {
    label: String,
    meaning: &'static str,
    /// Whether it is the run's own memory.
    own: bool,
    cells: Vec<Option<Cell>>,
    /// What the run's own memory is better by, in F1; `None` of itself.
    ahead: Option<Change>,
}

impl Results {
    pub(super) fn of(run: &RunView) -> Self {
        let replay = &run.replay;
        let all: Vec<&Evaluation> = replay.evaluations().collect();
        let beside = all.iter().any(|one| one.name.contains('/'));
        Self {
            baselines: Baselines::of(replay),
            by_type: [MAIN, EXACT]
                .iter()
                .filter_map(|metric| ByType::of(metric, replay))
                .collect(),
            memory: MemoryGrowth::of(run),
            all: beside.then(|| Comparison::of_some(&all, None, |_| true)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.baselines.is_none() && self.by_type.is_empty() && self.memory.is_empty()
    }
}

/// The main result in one sentence: what was trained, what came of it, and what the best baseline does.
pub(super) fn sentence(run: &RunView) -> Option<String> {
    let replay = &run.replay;
    let own = own_evaluations(replay);
    let last = own.last()?;
    let Some((before, after)) = comparison::compared(replay) else {
        let said = comparison::sentence(replay)?;
        return Some(format!("{said}{}", best_said(last, replay)));
    };
    let at = |evaluation: &Evaluation, metric: &str| evaluation.metrics.get(metric).copied();
    let (Some(old), Some(new)) = (at(before, MAIN), at(after, MAIN)) else {
        return comparison::sentence(replay);
    };
    let exact = at(before, EXACT).zip(at(after, EXACT));
    let exact = exact.map_or_else(String::new, |(old, new)| {
        format!(
            "; exact match {} from {} to {}",
            comparison::verb(old, new),
            interval(old),
            interval(new)
        )
    });
    let trained = trained(&run.recipe);
    let trained = if trained.is_empty() {
        String::new()
    } else {
        format!(" (trained: {})", trained.join(", "))
    };
    let paired = paired_gain(run, before, after).map_or_else(String::new, |gain| {
        format!(" (paired by document {})", Unit::Share.bounds(gain))
    });
    Some(format!(
        "F1 {} from {} with {} to {} with {}{trained} on {}: {}{paired}, and {}{exact}.{}",
        comparison::verb(old, new),
        interval(old),
        before.name,
        interval(new),
        after.name,
        words::count(after.n_tasks, "held-out task"),
        Unit::Share.difference(new.value - old.value),
        comparison::overlap_said(old, new),
        best_said(after, replay),
    ))
}

/// What the main metric gained, of evaluations that kept their episodes.
fn paired_gain(run: &RunView, before: &Evaluation, after: &Evaluation) -> Option<Estimate> {
    let episodes = |evaluation: &Evaluation| run.episodes.get(&evaluation.name);
    recall::metrics::paired_gain(episodes(before)?, episodes(after)?, MAIN)
}

/// A sentence about the best baseline that the same policies read; empty without one.
fn best_said(own: &Evaluation, replay: &Replay) -> String {
    let f1 = |evaluation: &Evaluation| evaluation.metrics.get(MAIN).copied();
    let (Some(ours), Some(best)) = (f1(own), best_baseline(own, replay)) else {
        return String::new();
    };
    let Some(theirs) = f1(best) else {
        return String::new();
    };
    let apart = match ours.overlaps(&theirs) {
        Some(true) => "the intervals overlap",
        Some(false) => "the intervals are apart",
        None => "without intervals that may be chance",
    };
    let ahead = Unit::Share.difference((ours.value - theirs.value).abs());
    let ahead = ahead.trim_start_matches('+');
    let place = match ours.value.total_cmp(&theirs.value) {
        Ordering::Greater => format!("is {ahead} above it"),
        Ordering::Less => format!("is {ahead} below it"),
        Ordering::Equal => "has the same".to_owned(),
    };
    format!(
        " The best baseline at equal token budget, {}, has {}: {} {place}, and {apart}.",
        label_of(best),
        interval(theirs),
        own.name,
    )
}

fn interval(found: Estimate) -> String {
    Unit::Share.write_with_bounds(found)
}

/// The roles that the recipe reinforces.
fn trained(recipe: &str) -> Vec<String> {
    let table: toml::Table = toml::from_str(recipe).unwrap_or_default();
    let roles = table.get("rl").and_then(|rl| rl.get("train"));
    let roles = roles.and_then(toml::Value::as_array).into_iter().flatten();
    roles
        .filter_map(|role| Some(role.as_str()?.to_owned()))
        .collect()
}

/// Evaluations of the run's own memory, in order.
fn own_evaluations(replay: &Replay) -> Vec<&Evaluation> {
    comparison::shown(replay)
}

/// Evaluations of other memories, read by the policies of `own`; those of the stage before where these were
/// not evaluated again because reading had not changed.
fn baselines_of<'a>(own: &Evaluation, replay: &'a Replay) -> Vec<&'a Evaluation> {
    let of_stage = |stage: &str| -> Vec<&Evaluation> {
        replay
            .evaluations()
            .filter(|one| {
                one.name
                    .strip_prefix(stage)
                    .is_some_and(|rest| rest.starts_with('/'))
            })
            .collect()
    };
    let stages = own_evaluations(replay);
    let place = stages.iter().position(|one| one.name == own.name);
    let until = &stages[..place.map_or(0, |place| place + 1)];
    let stages = until.iter().rev().map(|stage| of_stage(&stage.name));
    stages
        .into_iter()
        .find(|found| !found.is_empty())
        .unwrap_or_default()
}

fn best_baseline<'a>(own: &Evaluation, replay: &'a Replay) -> Option<&'a Evaluation> {
    let f1 = |one: &Evaluation| one.metrics.get(MAIN).map(|found| found.value);
    let found = baselines_of(own, replay);
    // Of equals the first.
    found
        .into_iter()
        .filter(|one| f1(one).is_some())
        .reduce(|best, one| if f1(one) > f1(best) { one } else { best })
}

/// The way of remembering of an evaluation.
fn label_of(evaluation: &Evaluation) -> String {
    let name = &evaluation.name;
    let way = name.split_once('/').map_or(name.as_str(), |(_, way)| way);
    way.replace('_', " ")
}

fn meaning_of(evaluation: &Evaluation) -> &'static str {
    match evaluation.name.split_once('/').map(|(_, way)| way) {
        None => "the memory of the run",
        Some("no_memory") => "the question alone",
        Some("full_context") => "all that was said, as far back as the budget reaches",
        Some("last_k") => "the last turns",
        Some("raw_chunks") => "what was said, searched by the question",
        Some("rule_memory") => "facts written by rule",
        Some(_) => "",
    }
}

impl ByType {
    fn of(metric: &str, replay: &Replay) -> Option<Self> {
        let mut evaluations = own_evaluations(replay);
        if let Some(last) = evaluations.last().copied() {
            evaluations.extend(baselines_of(last, replay));
        }
        let of_type = |name: &str| {
            name.strip_prefix(metric)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        let mut comparison =
            Comparison::of_some(&evaluations, comparison::compared(replay), of_type);
        for (column, evaluation) in comparison.columns.iter_mut().zip(&evaluations) {
            column.name = label_of(evaluation);
            column.policy = column.name.clone();
        }
        for row in &mut comparison.rows {
            // All rows are of one metric: what remains is the type.
            row.label = row.label.split_once(": ")?.1.to_owned();
            row.meaning = "";
        }
        let known = words::wording_of(metric)?;
        (!comparison.rows.is_empty()).then(|| Self {
            label: known.label.to_owned(),
            meaning: known.meaning,
            comparison,
        })
    }
}

impl Baselines {
    fn of(replay: &Replay) -> Option<Self> {
        let all: Vec<&Evaluation> = replay.evaluations().collect();
        all.iter().find(|one| one.name.contains('/'))?;
        let measured: Vec<&str> = SHOWN
            .into_iter()
            .filter(|metric| {
                *metric == MAIN || all.iter().any(|one| one.metrics.contains_key(*metric))
            })
            .collect();
        let columns: Vec<Row> = measured
            .iter()
            .map(|metric| Row::of(metric, &all, None))
            .collect();
        let headings = columns.iter().map(|row| Heading {
            label: row.label.clone(),
            meaning: row.meaning,
        });
        let stage = |one: &Evaluation| one.name.split('/').next().unwrap_or_default().to_owned();
        let mut seen = BTreeSet::new();
        let stages = all
            .iter()
            .map(|one| stage(one))
            .filter(|stage| seen.insert(stage.clone()));
        // The last stage first: it is what the run is about.
        let stages: Vec<String> = stages.collect();
        let readers = stages.iter().rev().map(|name| {
            let own = replay.evaluation(name);
            let mut rows: Vec<Remembering> = all
                .iter()
                .enumerate()
                .filter(|(_, one)| stage(one) == *name)
                .map(|(place, one)| Remembering {
                    label: label_of(one),
                    meaning: meaning_of(one),
                    own: !one.name.contains('/'),
                    cells: columns
                        .iter()
                        .map(|column| column.cells[place].clone())
                        .collect(),
                    ahead: own
                        .filter(|own| own.name != one.name)
                        .and_then(|own| ahead(own, one)),
                })
                .collect();
            rows.sort_by_key(|row| !row.own);
            Reader {
                name: name.clone(),
                rows,
            }
        });
        Some(Self {
            readers: readers.collect(),
            headings: headings.collect(),
        })
    }
}

/// What `own` is ahead of `other` by.
fn ahead(own: &Evaluation, other: &Evaluation) -> Option<Change> {
    let (ours, theirs) = (own.metrics.get(MAIN)?, other.metrics.get(MAIN)?);
    Some(Change::of(*theirs, *ours, Unit::Share, Better::Higher))
}

/// The baselines for the terminal, and F1 by question type.
pub(super) fn tables(replay: &Replay) -> Vec<Vec<Vec<String>>> {
    let written = |cell: &Option<Cell>| cell.as_ref().map_or("–".to_owned(), Cell::said);
    let mut tables = Vec::new();
    if let Some(baselines) = Baselines::of(replay) {
        for reader in &baselines.readers {
            let mut heading = vec![format!("with {}", reader.name)];
            heading.extend(baselines.headings.iter().map(|it| it.label.clone()));
            heading.insert(2, "ahead in F1".to_owned());
            let mut table = vec![heading];
            for row in &reader.rows {
                let mut cells = vec![row.label.clone()];
                cells.extend(row.cells.iter().map(written));
                let ahead = row.ahead.as_ref().map_or_else(String::new, |ahead| {
                    format!("{}, {}", ahead.difference, ahead.overlap)
                });
                // Beside F1, the first of the metrics.
                cells.insert(2, ahead);
                table.push(cells);
            }
            tables.push(table);
        }
    }
    let own = own_evaluations(replay);
    let by_type = Comparison::of_some(&own, comparison::compared(replay), |metric| {
        metric.starts_with("f1/")
    });
    if !by_type.rows.is_empty() {
        let mut heading = vec![String::new()];
        heading.extend(by_type.columns.iter().map(|column| column.name.clone()));
        heading.extend(by_type.change_heading.clone());
        let rows = by_type.rows.iter().map(|row| {
            let mut cells = vec![row.label.clone()];
            cells.extend(row.cells.iter().map(written));
            if let Some(change) = &row.change {
                cells.push(format!("{}, {}", change.difference, change.overlap));
            }
            cells
        });
        tables.push([heading].into_iter().chain(rows).collect());
    }
    tables
}
