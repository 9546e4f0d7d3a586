//! What the machinery did: faults, sandbox tier, cache, speed, interruptions.

use journal::{Entry, Replay};
use record::Outcome;
use serde::Serialize;

use crate::{run_view::RunView, words};

/// A fact and what it means.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Fact {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) meaning: &'static str,
}

/// Only facts that the run has.
pub(crate) fn facts(run: &RunView) -> Vec<Fact> {
    let replay = &run.replay;
    let mut facts = Vec::new();
    let mut add = |name: &str, value: Option<String>, meaning| {
        facts.extend(value.map(|value| Fact {
            name: name.to_owned(),
            value,
            meaning,
        }));
    };
    let percent = |value: f64| format!("{:.1}\u{a0}%", 100.0 * value);
    let count = |value: f64| words::thousands(value.round() as u64);
    add(
        "sandbox tier",
        tier(replay),
        "how untrusted programs are jailed",
    );
    add(
        "sandbox errors",
        sum(replay, "sandbox/errors").map(count),
        "over all steps; retried once, then left out of the group, never a reward",
    );
    add(
        "sandbox timeouts",
        sum(replay, "sandbox/timeouts").map(count),
        "over all steps",
    );
    add(
        "cached verdicts",
        mean(replay, "cache/hit_rate").map(percent),
        "mean over all steps",
    );
    add(
        "sampling",
        mean(replay, "perf/sample_tokens_per_s").map(words::number),
        "tokens a second, mean over all steps",
    );
    add(
        "training",
        mean(replay, "perf/train_tokens_per_s").map(words::number),
        "tokens a second, mean over all steps",
    );
    add(
        "sandbox behind decoding",
        hidden(replay).map(percent),
        "of the time in which programs ran, how much responses were decoded in as well",
    );
    add(
        "waiting for the sandbox alone",
        sum(replay, "overlap_s/sandbox_alone").map(words::duration),
        "over all steps; no response was being decoded",
    );
    add(
        "faulted episodes",
        faulted(run),
        "in the evaluations kept: no verdict, so in no mean",
    );
    let sittings = replay
        .entries
        .iter()
        .filter(|one| matches!(one.entry, Entry::Resumed(_)));
    add(
        "resumed",
        Some(sittings.count())
            .filter(|n| *n > 0)
            .map(|n| words::count(n as u64, "time")),
        "times that a later process went on with the run",
    );
    if let Some(started) = replay.started() {
        for (name, value) in &started.machine {
            add(name, Some(value.clone()), "");
        }
    }
    facts
}

fn tier(replay: &Replay) -> Option<String> {
    let note = replay.note("sandbox/tier")?;
    Some(
        note.as_str()
            .map_or_else(|| note.to_string(), str::to_owned),
    )
}

/// The share of the sandbox's time that hides behind decoding.
fn hidden(replay: &Replay) -> Option<f64> {
    let sandbox = sum(replay, "overlap_s/sandbox").filter(|seconds| *seconds > 0.0)?;
    Some(sum(replay, "overlap_s/both")? / sandbox)
}

fn sum(replay: &Replay, metric: &str) -> Option<f64> {
    let values = values(replay, metric);
    (!values.is_empty()).then(|| values.iter().sum())
}

fn mean(replay: &Replay, metric: &str) -> Option<f64> {
    let values = values(replay, metric);
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn values(replay: &Replay, metric: &str) -> Vec<f64> {
    let of_step = |step: &journal::Step| {
        step.metrics
            .get(metric)
            .or_else(|| step.timings.get(metric))
            .copied()
    };
    replay.all_steps().filter_map(of_step).collect()
}

fn faulted(run: &RunView) -> Option<String> {
    let episodes = || {
        run.episodes
            .values()
            .flatten()
            .flat_map(|group| &group.episodes)
    };
    let n = episodes().count() as u64;
    let faulted = episodes()
        .filter(|one| !matches!(one.outcome, Outcome::Graded { .. }))
        .count();
    (n > 0).then(|| {
        format!(
            "{} of {}",
            words::thousands(faulted as u64),
            words::count(n, "episode")
        )
    })
}
