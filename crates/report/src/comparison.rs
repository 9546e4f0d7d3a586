//! Evaluations side by side, and what changed between two of them.

use journal::{Evaluation, Replay};
use record::{Estimate, Group};
use serde::Serialize;
use serde_json::Value;

use crate::{
    run_view::RunView,
    words::{self, Better, Unit},
};

/// Note by which a study names the two evaluations to compare: `{"before": name, "after": name}`.
const COMPARE_NOTE: &str = "report/compare";

/// Evaluations whose names begin so are gates; they have a table of their own. So has every other
/// evaluation that is beside the main ones: its name has a `/`.
pub(crate) const GATE_PREFIX: &str = "gate/";

/// What is compared where it is there: reinforcement, else whatever critic against none.
const KNOWN_PAIRS: [(&str, &str); 3] = [
    ("sft", "rl"),
    ("no-critique", "sft"),
    ("no-critique", "critic"),
];

/// Metrics down, evaluations across.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Comparison {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// Heading of the last column, `sft → rl`; `None` with fewer than two evaluations.
    pub(crate) change_heading: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) policy: String,
    pub(crate) n_tasks: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Row {
    pub(crate) label: String,
    pub(crate) meaning: &'static str,
    /// One per column; `None` where the evaluation has no such metric.
    pub(crate) cells: Vec<Option<Cell>>,
    pub(crate) change: Option<Change>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Cell {
    pub(crate) value: String,
    /// Empty where there is no interval.
    pub(crate) bounds: String,
    /// Where value and bounds lie on a track from the least to the greatest bound of the row
    /// (shares: from 0 to 1), in percent.
    pub(crate) at: f64,
    pub(crate) from: f64,
    pub(crate) width: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Change {
    pub(crate) difference: String,
    pub(crate) overlap: &'static str,
    /// `good`, `bad` or `even`, by the metric's direction; `even` unless the intervals are apart.
    pub(crate) tone: &'static str,
}

impl Comparison {
    /// All main evaluations with all their metrics.
    pub(crate) fn of(replay: &Replay) -> Self {
        Self::of_some(&shown(replay), compared(replay), |_| true)
    }

    /// Some evaluations, with the metrics that are wanted.
    pub(crate) fn of_some(
        evaluations: &[&Evaluation],
        compared: Option<(&Evaluation, &Evaluation)>,
        wanted: impl Fn(&str) -> bool,
    ) -> Self {
        let mut metrics: Vec<&str> = evaluations
            .iter()
            .flat_map(|evaluation| evaluation.measures())
            .filter(|metric| wanted(metric))
            .collect();
        metrics.sort_by_key(|metric| words::rank(metric));
        metrics.dedup();
        Self {
            columns: evaluations
                .iter()
                .map(|evaluation| Column::of(evaluation))
                .collect(),
            rows: metrics
                .iter()
                .map(|metric| Row::of(metric, evaluations, compared))
                .collect(),
            change_heading: compared
                .map(|(before, after)| format!("{} → {}", before.name, after.name)),
        }
    }
}

/// The main result in one sentence, from the two evaluations that are compared.
pub(crate) fn sentence(replay: &Replay) -> Option<String> {
    let evaluations = shown(replay);
    let Some((before, after)) = compared(replay) else {
        let only = evaluations.first()?;
        let metric = main_metric(only)?;
        let interval = only.metrics[metric];
        let unit = Unit::of_metric(metric, [&interval].into_iter());
        return Some(format!(
            "{} is {} for {} on {}.",
            words::label_of(metric),
            unit.write_named(interval),
            only.name,
            words::count(only.n_tasks, "held-out task"),
        ));
    };
    let metric = main_metric(after)?;
    let (old, new) = (*before.metrics.get(metric)?, after.metrics[metric]);
    let unit = Unit::of_metric(metric, [&old, &new].into_iter());
    let (verb, overlap) = (verb(old, new), overlap_said(old, new));
    if old.value == new.value {
        return Some(format!(
            "{} is {} with {} and the same with {} on {}.",
            words::label_of(metric),
            unit.write_with_bounds(old),
            before.name,
            after.name,
            words::count(after.n_tasks, "held-out task"),
        ));
    }
    Some(format!(
        "{} {verb} from {} with {} to {} with {} on {}: {}, and {overlap}.",
        words::label_of(metric),
        unit.write_with_bounds(old),
        before.name,
        unit.write_with_bounds(new),
        after.name,
        words::count(after.n_tasks, "held-out task"),
        unit.difference(new.value - old.value),
    ))
}

pub(crate) fn verb(old: Estimate, new: Estimate) -> &'static str {
    if new.value > old.value {
        "rose"
    } else if new.value < old.value {
        "fell"
    } else {
        "stayed"
    }
}

pub(crate) fn overlap_said(old: Estimate, new: Estimate) -> &'static str {
    match old.overlaps(&new) {
        Some(true) => "the 95 % intervals overlap, so this run alone does not settle it",
        Some(false) => "the 95 % intervals do not overlap",
        None => "without intervals this run alone does not settle it",
    }
}

/// The two evaluations to compare: those that the study names, or the first known pair, or the last two.
pub(crate) fn compared(replay: &Replay) -> Option<(&Evaluation, &Evaluation)> {
    let pair = |before: &str, after: &str| replay.evaluation(before).zip(replay.evaluation(after));
    if let Some(named) = replay.note(COMPARE_NOTE)
        && let (Some(before), Some(after)) = (
            named.get("before").and_then(Value::as_str),
            named.get("after").and_then(Value::as_str),
        )
    {
        return pair(before, after);
    }
    let known = KNOWN_PAIRS
        .iter()
        .find_map(|(before, after)| pair(before, after));
    known.or_else(|| match shown(replay)[..] {
        [.., before, after] => Some((before, after)),
        _ => None,
    })
}

fn episodes_of<'a>(
    run: &'a RunView,
    evaluation: &'a Evaluation,
) -> Option<(&'a Evaluation, &'a Vec<Group>)> {
    Some((evaluation, run.episodes.get(&evaluation.name)?))
}

/// The main evaluations.
pub(crate) fn shown(replay: &Replay) -> Vec<&Evaluation> {
    replay
        .evaluations()
        .filter(|evaluation| !evaluation.name.contains('/'))
        .collect()
}

/// The evaluations that are compared, as far as they kept their episodes; or the last main one that did.
pub(crate) fn with_episodes(run: &RunView) -> Vec<(&Evaluation, &Vec<Group>)> {
    let with_episodes = |evaluation| episodes_of(run, evaluation);
    if let Some((before, after)) = compared(&run.replay) {
        let both: Vec<_> = [before, after]
            .into_iter()
            .filter_map(with_episodes)
            .collect();
        if !both.is_empty() {
            return both;
        }
    }
    let last = shown(&run.replay).into_iter().rev().find_map(with_episodes);
    last.into_iter().collect()
}

fn main_metric(evaluation: &Evaluation) -> Option<&str> {
    evaluation
        .metrics
        .keys()
        .map(String::as_str)
        .min_by_key(|metric| words::rank(metric))
}

impl Column {
    fn of(evaluation: &Evaluation) -> Self {
        Self {
            name: evaluation.name.clone(),
            policy: evaluation.policy.clone(),
            n_tasks: words::count(evaluation.n_tasks, "task"),
        }
    }
}

impl Row {
    pub(crate) fn of(
        metric: &str,
        evaluations: &[&Evaluation],
        compared: Option<(&Evaluation, &Evaluation)>,
    ) -> Self {
        let known = words::wording_of(metric);
        let intervals = || evaluations.iter().filter_map(|one| one.measure(metric));
        let unit = Unit::of_metric(metric, intervals());
        let least = intervals()
            .map(|interval| interval.low)
            .fold(f64::INFINITY, f64::min);
        let greatest = intervals()
            .map(|interval| interval.high)
            .fold(f64::NEG_INFINITY, f64::max);
        let (least, greatest) = match unit {
            Unit::Share => (least.min(0.0), 1.0),
            Unit::Number => (least, greatest),
        };
        let cell = |interval: &Estimate| Cell::of(*interval, unit, least, greatest);
        let change = compared.and_then(|(before, after)| {
            let (old, new) = (before.measure(metric)?, after.measure(metric)?);
            Some(Change::of(
                *old,
                *new,
                unit,
                known.map_or(Better::Unknown, |known| known.better),
            ))
        });
        Self {
            label: words::label_of(metric),
            meaning: known.map_or("", |known| known.meaning),
            cells: evaluations
                .iter()
                .map(|one| one.measure(metric).map(cell))
                .collect(),
            change,
        }
    }
}

impl Cell {
    /// The value, with its bounds where there are any.
    pub(crate) fn said(&self) -> String {
        match self.bounds.as_str() {
            "" => self.value.clone(),
            bounds => format!("{} ({bounds})", self.value),
        }
    }

    pub(crate) fn of(interval: Estimate, unit: Unit, least: f64, greatest: f64) -> Self {
        let span = if greatest > least {
            greatest - least
        } else {
            1.0
        };
        let place = |value: f64| (100.0 * (value - least) / span).clamp(0.0, 100.0);
        Self {
            value: unit.write(interval.value),
            bounds: unit.bounds(interval),
            at: place(interval.value),
            from: place(interval.low),
            width: place(interval.high) - place(interval.low),
        }
    }
}

impl Change {
    pub(crate) fn of(old: Estimate, new: Estimate, unit: Unit, better: Better) -> Self {
        let overlap = old.overlaps(&new);
        let rose = new.value > old.value;
        let tone = match better {
            _ if overlap != Some(false) => "even",
            Better::Higher if rose => "good",
            Better::Lower if !rose => "good",
            Better::Higher | Better::Lower => "bad",
            Better::Unknown => "even",
        };
        Self {
            difference: unit.difference(new.value - old.value),
            overlap: match overlap {
                Some(true) => "intervals overlap",
                Some(false) => "intervals apart",
                None => "no interval",
            },
            tone,
        }
    }
}
