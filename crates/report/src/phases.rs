//! Where the time went: seconds by phase, and by part of a step.

use std::collections::BTreeMap;

use journal::Replay;
use serde::Serialize;

use crate::words;

/// Prefix of timings that are seconds of a part of a step.
const PARTS: &str = "timing_s/";
/// The part that is the whole step.
const WHOLE: &str = "step";

/// A bar of a phase or of a part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) seconds: String,
    /// Of the longest bar, in percent.
    pub(crate) width: f64,
    pub(crate) share: String,
    /// `1.2M tokens, 30.1k a second`, or `0.52 s a step`.
    pub(crate) detail: String,
}

/// The parts of the steps of one phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Parts {
    pub(crate) phase: String,
    pub(crate) steps: String,
    pub(crate) bars: Vec<Bar>,
}

/// One bar a phase, in order of their starts.
pub(crate) fn phases(replay: &Replay) -> Vec<Bar> {
    let summary = replay.summary();
    let mut names: Vec<&str> = replay.phases();
    names.extend(summary.seconds.keys().map(String::as_str));
    let mut seen = Vec::new();
    names.retain(|name| {
        !seen.contains(name) && {
            seen.push(*name);
            true
        }
    });
    let timed: Vec<(&str, f64)> = names
        .into_iter()
        .map(|name| (name, summary.seconds.get(name).copied().unwrap_or_default()))
        .collect();
    bars(&timed, |name, seconds| {
        let tokens = summary.tokens.get(name).copied().unwrap_or_default();
        if tokens == 0 {
            return String::new();
        }
        let rate = if seconds > 0.0 {
            format!(", {} a second", words::number(tokens as f64 / seconds))
        } else {
            String::new()
        };
        format!("{} tokens{rate}", words::number(tokens as f64))
    })
}

/// For every phase whose steps are timed: its parts, longest first.
pub(crate) fn parts(replay: &Replay) -> Vec<Parts> {
    let mut phases = Vec::new();
    for phase in replay.phases() {
        let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
        let mut n_steps = 0;
        for step in replay.steps(phase) {
            n_steps += 1;
            for (name, seconds) in &step.timings {
                if let Some(part) = name.strip_prefix(PARTS).filter(|part| *part != WHOLE) {
                    *sums.entry(part).or_default() += seconds;
                }
            }
        }
        if sums.is_empty() {
            continue;
        }
        let mut timed: Vec<(&str, f64)> = sums.into_iter().collect();
        timed.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
        phases.push(Parts {
            phase: phase.to_owned(),
            steps: words::count(n_steps, "step"),
            bars: bars(&timed, |_, seconds| {
                format!("{}\u{a0}s a step", words::number(seconds / n_steps as f64))
            }),
        });
    }
    phases
}

fn bars(timed: &[(&str, f64)], detail: impl Fn(&str, f64) -> String) -> Vec<Bar> {
    let longest = timed
        .iter()
        .map(|(_, seconds)| *seconds)
        .fold(0.0, f64::max);
    let total: f64 = timed.iter().map(|(_, seconds)| seconds).sum();
    let of = |whole: f64, seconds: f64| {
        if whole > 0.0 {
            100.0 * seconds / whole
        } else {
            0.0
        }
    };
    timed
        .iter()
        .map(|&(name, seconds)| Bar {
            name: name.to_owned(),
            seconds: words::duration(seconds),
            width: of(longest, seconds),
            share: format!("{:.0}\u{a0}%", of(total, seconds)),
            detail: detail(name, seconds),
        })
        .collect()
}
