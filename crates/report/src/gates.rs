//! Gates: limits that a part of the system must keep before a result means anything.

use journal::{Evaluation, Replay};
use serde::Serialize;
use serde_json::Value;

use crate::{
    comparison::{Cell, GATE_PREFIX},
    words::{self, Unit},
};

/// Note by which a study sets limits: `{gate: {"metric": name, "max": x, "min": y}}`, every key of
/// the inner object optional.
const LIMITS_NOTE: &str = "gates/limits";

/// Note by which a study says in a sentence or two what its gates are.
const ABOUT_NOTE: &str = "gates/about";

/// The metric that a gate is judged by unless the note names another.
const METRIC: &str = "fix_rate";

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Gate {
    pub(crate) name: String,
    pub(crate) n_tasks: String,
    pub(crate) metric: String,
    pub(crate) cell: Cell,
    /// `at most 15.0 %`; empty without a limit.
    pub(crate) limit: String,
    /// Place of the limit on the cell's track, in percent.
    pub(crate) limit_at: Option<f64>,
    pub(crate) verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Met,
    /// The value keeps the limit and its interval reaches beyond.
    MetNarrowly,
    Broken,
    NoLimit,
}

pub(crate) fn gates(replay: &Replay) -> Vec<Gate> {
    let limits = replay.note(LIMITS_NOTE);
    let gates = replay.evaluations().filter_map(|evaluation| {
        let name = evaluation.name.strip_prefix(GATE_PREFIX)?;
        let limit = limits.and_then(|limits| limits.get(name).or(limits.get(&evaluation.name)));
        Gate::of(name, evaluation, limit)
    });
    gates.collect()
}

pub(crate) fn about(replay: &Replay) -> String {
    let note = replay.note(ABOUT_NOTE).and_then(Value::as_str);
    note.unwrap_or("What must hold for the result to mean what it says.")
        .to_owned()
}

impl Gate {
    fn of(name: &str, evaluation: &Evaluation, limit: Option<&Value>) -> Option<Self> {
        let bound = |side: &str| {
            limit
                .and_then(|limit| limit.get(side))
                .and_then(Value::as_f64)
        };
        let named = limit
            .and_then(|limit| limit.get("metric"))
            .and_then(Value::as_str);
        let metric = [named, Some(METRIC)]
            .into_iter()
            .flatten()
            .find(|metric| evaluation.metrics.contains_key(*metric))
            .or_else(|| evaluation.metrics.keys().next().map(String::as_str))?;
        let interval = evaluation.metrics[metric];
        let unit = Unit::of([&interval].into_iter());
        let (max, min) = (bound("max"), bound("min"));
        let keeps =
            |value: f64| max.is_none_or(|max| value <= max) && min.is_none_or(|min| value >= min);
        let verdict = if max.is_none() && min.is_none() {
            Verdict::NoLimit
        } else if !keeps(interval.value) {
            Verdict::Broken
        } else if keeps(interval.low) && keeps(interval.high) {
            Verdict::Met
        } else {
            Verdict::MetNarrowly
        };
        let limits = [
            max.map(|max| format!("at most {}", unit.write(max))),
            min.map(|min| format!("at least {}", unit.write(min))),
        ];
        let greatest = match unit {
            Unit::Share => 1.0,
            Unit::Number => interval.high.max(max.or(min).unwrap_or(interval.high)),
        };
        Some(Self {
            name: name.replace(['_', '-'], " "),
            n_tasks: words::count(evaluation.n_tasks, "task"),
            metric: words::label_of(metric),
            cell: Cell::of(interval, unit, 0.0, greatest),
            limit: limits.into_iter().flatten().collect::<Vec<_>>().join(", "),
            limit_at: max
                .or(min)
                .map(|limit| (100.0 * limit / greatest).clamp(0.0, 100.0)),
            verdict,
        })
    }
}
