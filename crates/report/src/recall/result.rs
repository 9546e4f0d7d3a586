//! What a run achieved: before and after reinforcement, and against memories that nobody learnt to write.

use std::{cmp::Ordering, collections::BTreeSet};

use journal::{Evaluation, Replay};
use recall::Notes;
use record::Estimate;
use serde::Serialize;

use super::memory::MemoryGrowth;
use crate::{
    comparison::{self, Cell, Change, Comparison, Row},
    run_view::RunView,
    words::{self, Better, Unit},
};

pub(super) const F1: &str = "f1";
pub(super) const SCORE: &str = "score";
const EXACT: &str = "exact_match";

/// The metric that results are judged by: F1, or the score by whatever metric the recipe or the dataset has in
/// its place, where the two differ.
pub(super) fn main_metric(replay: &Replay) -> &'static str {
    let value = |one: &Evaluation, metric: &str| one.metrics.get(metric).map(|found| found.value);
    let mut evaluations = replay.evaluations();
    let differs = |one: &Evaluation| {
        let score = value(one, SCORE);
        score.is_some() && score != value(one, F1)
    };
    if evaluations.any(differs) { SCORE } else { F1 }
}

/// What the table of baselines shows behind the main metric.
const SHOWN: [&str; 7] = [
    F1,
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
    /// What the main metric is called.
    main: String,
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
    /// What the run's own memory is better by, in the main metric; `None` of itself.
    ahead: Option<Change>,
}

impl Results {
    pub(super) fn of(run: &RunView) -> Self {
        let replay = &run.replay;
        let all: Vec<&Evaluation> = replay.evaluations().collect();
        let beside = all.iter().any(|one| one.name.contains('/'));
        Self {
            baselines: Baselines::of(replay),
            by_type: main_then(replay, &[F1, EXACT])
                .into_iter()
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
    let main = main_metric(replay);
    let (Some(old), Some(new)) = (at(before, main), at(after, main)) else {
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
        "{} {} from {} with {} to {} with {}{trained} on {}: {}{paired}, and {}{exact}.{}",
        headline_label(run, main),
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

/// The main metric, of scores with the name of what they are by where episodes tell it.
fn headline_label(run: &RunView, main: &str) -> String {
    if main == F1 {
        return words::label_of(F1);
    }
    let episodes = run.episodes.values().flatten();
    let notes = episodes
        .flat_map(|group| &group.episodes)
        .filter_map(Notes::of);
    let names: BTreeSet<String> = notes
        .flat_map(|notes| notes.events)
        .filter_map(|event| event.grade)
        .map(|grade| match grade.judged {
            Some(_) => "the judge".to_owned(),
            None => grade.metric.to_string(),
        })
        .collect();
    match names.into_iter().collect::<Vec<_>>().join(", ").as_str() {
        "" => "The score".to_owned(),
        names => format!("The score by {names}"),
    }
}

/// The main metric, and those of `others` that are not the same.
fn main_then(replay: &Replay, others: &[&'static str]) -> Vec<&'static str> {
    let main = main_metric(replay);
    let others = others.iter().copied().filter(|other| *other != main);
    [main].into_iter().chain(others).collect()
}

/// What the main metric gained, of evaluations that kept their episodes.
fn paired_gain(run: &RunView, before: &Evaluation, after: &Evaluation) -> Option<Estimate> {
    let episodes = |evaluation: &Evaluation| run.episodes.get(&evaluation.name);
    recall::metrics::paired_gain(
        episodes(before)?,
        episodes(after)?,
        main_metric(&run.replay),
    )
}

/// A sentence about the best baseline that the same policies read; empty without one.
fn best_said(own: &Evaluation, replay: &Replay) -> String {
    let main = main_metric(replay);
    let value = |evaluation: &Evaluation| evaluation.metrics.get(main).copied();
    let (Some(ours), Some(best)) = (value(own), best_baseline(own, replay)) else {
        return String::new();
    };
    let Some(theirs) = value(best) else {
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
    let main = main_metric(replay);
    let value = |one: &Evaluation| one.metrics.get(main).map(|found| found.value);
    let found = baselines_of(own, replay);
    // Of equals the first.
    found
        .into_iter()
        .filter(|one| value(one).is_some())
        .reduce(|best, one| if value(one) > value(best) { one } else { best })
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
        let main = main_metric(replay);
        let measured: Vec<&str> = main_then(replay, &SHOWN)
            .into_iter()
            .filter(|metric| {
                *metric == main || all.iter().any(|one| one.metrics.contains_key(*metric))
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
                        .and_then(|own| ahead(own, one, main)),
                })
                .collect();
            rows.sort_by_key(|row| !row.own);
            Reader {
                name: name.clone(),
                rows,
            }
        });
        Some(Self {
            main: words::label_of(main),
            readers: readers.collect(),
            headings: headings.collect(),
        })
    }
}

/// What `own` is ahead of `other` by.
fn ahead(own: &Evaluation, other: &Evaluation, main: &str) -> Option<Change> {
    let (ours, theirs) = (own.metrics.get(main)?, other.metrics.get(main)?);
    Some(Change::of(*theirs, *ours, Unit::Share, Better::Higher))
}

/// The baselines for the terminal, and the main metric by question type.
pub(super) fn tables(replay: &Replay) -> Vec<Vec<Vec<String>>> {
    let written = |cell: &Option<Cell>| cell.as_ref().map_or("–".to_owned(), Cell::said);
    let mut tables = Vec::new();
    if let Some(baselines) = Baselines::of(replay) {
        for reader in &baselines.readers {
            let mut heading = vec![format!("with {}", reader.name)];
            heading.extend(baselines.headings.iter().map(|it| it.label.clone()));
            heading.insert(2, format!("ahead in {}", baselines.main));
            let mut table = vec![heading];
            for row in &reader.rows {
                let mut cells = vec![row.label.clone()];
                cells.extend(row.cells.iter().map(written));
                let ahead = row.ahead.as_ref().map_or_else(String::new, |ahead| {
                    format!("{}, {}", ahead.difference, ahead.overlap)
                });
                // Beside the main metric, which is the first.
                cells.insert(2, ahead);
                table.push(cells);
            }
            tables.push(table);
        }
    }
    let own = own_evaluations(replay);
    let main = format!("{}/", main_metric(replay));
    let by_type = Comparison::of_some(&own, comparison::compared(replay), |metric| {
        metric.starts_with(&main)
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
