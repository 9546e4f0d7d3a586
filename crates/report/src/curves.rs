//! Which metrics make which chart.

use std::collections::BTreeMap;

use journal::Replay;
use serde::Serialize;

use crate::{
    chart::{Chart, Series},
    study,
    words::{self, Unit},
};

/// A chart of known meaning. A metric belongs to the first panel that has its name.
pub(crate) struct Panel {
    pub(crate) title: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) unit: Unit,
    /// Metric and the name of its line. Metrics of one name of line are one thing, as reward and score are:
    /// the first that a phase has is shown.
    /// Of several policies in training, each has a line of its own. All metrics in a directory, as those
    /// of `f1/`, have lines of their own names.
    pub(crate) metrics: &'static [(&'static str, &'static str)],
}

const REWARD: Panel = Panel {
    title: "Reward",
    meaning: "mean over the episodes of a step",
    unit: Unit::Number,
    metrics: &[
        ("critic/rewards/mean", "reward"),
        ("critic/score/mean", "reward"),
    ],
};

/// After the reward and the study's own panels.
const PANELS: [Panel; 13] = [
    Panel {
        title: "KL to the start",
        meaning: "per token, against the frozen reference",
        unit: Unit::Number,
        metrics: &[("actor/kl", "KL"), ("actor/kl_loss", "KL")],
    },
    Panel {
        title: "KL coefficient",
        meaning: "the weight of the pull to the start",
        unit: Unit::Number,
        metrics: &[("actor/kl_coef", "coefficient")],
    },
    Panel {
        title: "Value loss",
        meaning: "half the clipped squared distance of values to returns",
        unit: Unit::Number,
        metrics: &[("critic/vf_loss", "loss")],
    },
    Panel {
        title: "Explained variance",
        meaning: "of the returns, by the values before the step's update; 0 is no better than a constant",
        unit: Unit::Number,
        metrics: &[("critic/vf_explained_var", "share")],
    },
    Panel {
        title: "Values and returns",
        meaning: "means over tokens; the values of before the step's update, and what they are fitted to",
        unit: Unit::Number,
        metrics: &[
            ("critic/values/mean", "values"),
            ("critic/returns/mean", "returns"),
        ],
    },
    Panel {
        title: "Entropy",
        meaning: "of the next token, in nats",
        unit: Unit::Number,
        metrics: &[
            ("actor/entropy", "entropy"),
            ("actor/entropy_loss", "entropy"),
        ],
    },
    Panel {
        title: "Response length",
        meaning: "sampled tokens of a call",
        unit: Unit::Number,
        metrics: &[("response_length/mean", "mean")],
    },
    Panel {
        title: "Groups without contrast",
        meaning: "all rewards equal, so comparing them teaches nothing",
        unit: Unit::Share,
        metrics: &[("rollout/zero_variance_share", "share")],
    },
    Panel {
        title: "Gradient norm",
        meaning: "before clipping",
        unit: Unit::Number,
        metrics: &[
            ("actor/grad_norm", "norm"),
            ("critic/grad_norm", "value function"),
            ("sft/grad_norm", "norm"),
        ],
    },
    Panel {
        title: "Supervised loss",
        meaning: "nats per trained token",
        unit: Unit::Number,
        metrics: &[("sft/loss", "loss")],
    },
    Panel {
        title: "Sandbox faults",
        meaning: "counted, retried once, never a reward",
        unit: Unit::Number,
        metrics: &[
            ("sandbox/errors", "errors"),
            ("sandbox/timeouts", "timeouts"),
        ],
    },
    Panel {
        title: "Cached verdicts",
        meaning: "programs whose verdict was known",
        unit: Unit::Share,
        metrics: &[("cache/hit_rate", "hit rate")],
    },
    Panel {
        title: "Tokens a second",
        meaning: "while sampling and while training",
        unit: Unit::Number,
        metrics: &[
            ("perf/sample_tokens_per_s", "sampling"),
            ("perf/train_tokens_per_s", "training"),
        ],
    },
];

/// The charts of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Curves {
    /// Charts of known meaning.
    pub(crate) main: Vec<Chart>,
    /// Every other metric, in name order.
    pub(crate) others: Vec<Chart>,
}

/// Points by metric, then by phase in order of appearance.
type Logged<'a> = BTreeMap<&'a str, Vec<PhasePoints<'a>>>;

/// A phase and its points.
type PhasePoints<'a> = (&'a str, Vec<(f64, f64)>);

impl Curves {
    pub(crate) fn of(replay: &Replay) -> Self {
        let mut logged = logged(replay);
        let own = study::of(replay).panels();
        let main = [REWARD]
            .iter()
            .chain(own)
            .chain(&PANELS)
            .flat_map(|panel| panel.charts(&mut logged))
            .collect();
        let others = logged.iter().filter_map(|(metric, by_phase)| {
            // Seconds are in a table of their own.
            if metric.starts_with("timing_") {
                return None;
            }
            let meaning = words::wording_of(metric).map_or("", |known| known.meaning);
            Chart::of(metric, meaning, Unit::Number, &series("", by_phase))
        });
        Self {
            main,
            others: others.collect(),
        }
    }
}

impl Panel {
    /// Takes the panel's metrics out of `logged`. Phases of one kind (`sft/clean`, `sft/mixed`) share
    /// a chart; another kind counts other steps, so it gets a chart of its own.
    fn charts(&self, logged: &mut Logged) -> Vec<Chart> {
        let mut by_kind: BTreeMap<&str, Vec<Series>> = BTreeMap::new();
        for (name, label) in self.metrics {
            for (label, by_phase) in taken(name, label, logged) {
                for same_kind in by_phase.chunk_by(|a, b| kind_of(a.0) == kind_of(b.0)) {
                    let lines = by_kind.entry(kind_of(same_kind[0].0)).or_default();
                    for line in series(&label, same_kind) {
                        if lines.iter().all(|other| other.label != line.label) {
                            lines.push(line);
                        }
                    }
                }
            }
        }
        let alone = by_kind.len() == 1;
        let charts = by_kind.into_iter().filter_map(|(kind, lines)| {
            let mut values = lines
                .iter()
                .flat_map(|line| &line.points)
                .map(|point| point.1);
            // Some studies log a count where others log a share.
            let unit = if values.any(|value| value > 1.0) {
                Unit::Number
            } else {
                self.unit
            };
            let title = if alone {
                self.title.to_owned()
            } else {
                format!("{}, {kind}", self.title)
            };
            Chart::of(&title, self.meaning, unit, &lines)
        });
        charts.collect()
    }
}

/// Takes a metric out of `logged`, with the names of its lines: `actor/kl`, the same of each of several
/// policies (`reader/actor/kl`), or all of a directory (`f1/`).
fn taken<'a>(
    name: &str,
    label: &str,
    logged: &mut Logged<'a>,
) -> Vec<(String, Vec<PhasePoints<'a>>)> {
    let line_of = |metric: &str| {
        if metric == name {
            return Some(label.to_owned());
        }
        if name.ends_with('/') {
            let part = metric.strip_prefix(name)?;
            return Some(part.replace(['_', '/'], " "));
        }
        let policy = metric.strip_suffix(name)?.strip_suffix('/')?;
        (name.contains('/') && !policy.contains('/')).then(|| format!("{label}, {policy}"))
    };
    let named: Vec<(&str, String)> = logged
        .keys()
        .filter_map(|metric| Some((*metric, line_of(metric)?)))
        .collect();
    named
        .into_iter()
        .filter_map(|(metric, label)| Some((label, logged.remove(metric)?)))
        .collect()
}

/// `sft` for `sft/clean`.
fn kind_of(phase: &str) -> &str {
    phase.split('/').next().unwrap_or(phase)
}

fn series(label: &str, by_phase: &[PhasePoints]) -> Vec<Series> {
    let line = |(phase, points): &PhasePoints| {
        let label = match (label, by_phase.len()) {
            ("", _) => (*phase).to_owned(),
            (_, 1) => label.to_owned(),
            _ => format!("{label}, {phase}"),
        };
        Series {
            label,
            points: points.clone(),
            bounds: Vec::new(),
        }
    };
    by_phase.iter().map(line).collect()
}

fn logged(replay: &Replay) -> Logged<'_> {
    let mut logged = Logged::new();
    for step in replay.all_steps() {
        for (metric, value) in step.metrics.iter().chain(&step.timings) {
            let by_phase = logged.entry(metric).or_default();
            let point = (step.step as f64, *value);
            match by_phase.iter_mut().find(|(phase, _)| *phase == step.phase) {
                Some((_, points)) => points.push(point),
                None => by_phase.push((&step.phase, vec![point])),
            }
        }
    }
    logged
}
