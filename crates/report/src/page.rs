//! Everything that the template shows, computed.

use journal::{Entry, Replay};
use serde::Serialize;

use crate::{
    comparison::Comparison,
    curves::Curves,
    gates::{self, Gate, Verdict},
    infrastructure::{self, Fact},
    phases::{self, Bar, Parts},
    run_view::RunView,
    study::{self, Part},
    words,
};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Page {
    pub(crate) title: String,
    /// `finished`, or where the run stands.
    pub(crate) status: String,
    pub(crate) finished: bool,
    /// The main result in one sentence, or what is missing for one.
    pub(crate) headline: String,
    /// Said beside the result when a gate does not hold.
    pub(crate) gate_warning: Option<String>,
    /// `seed 7 · 4 min 12 s · …`
    pub(crate) facts: Vec<String>,
    pub(crate) problems: Vec<String>,
    pub(crate) comparison: Comparison,
    pub(crate) comparison_about: &'static str,
    pub(crate) gates: Vec<Gate>,
    pub(crate) gates_about: String,
    pub(crate) curves: Curves,
    pub(crate) phases: Vec<Bar>,
    pub(crate) parts: Vec<Parts>,
    /// The study's own sections after the comparison, and after the curves.
    pub(crate) results: Vec<Part>,
    pub(crate) samples: Vec<Part>,
    pub(crate) infrastructure: Vec<Fact>,
    pub(crate) recipe: String,
}

impl Page {
    pub(crate) fn of(run: &RunView) -> Self {
        let replay = &run.replay;
        let started = replay.started();
        let gates = gates::gates(replay);
        let study = study::of(replay);
        Self {
            title: started.map_or_else(
                || "A run without a beginning".to_owned(),
                |started| format!("{} · {}", started.study, started.name),
            ),
            status: status(replay),
            finished: replay.finished(),
            headline: study
                .sentence(run)
                .unwrap_or_else(|| "There is no evaluation yet, so there is no result.".to_owned()),
            gate_warning: gate_warning(&gates),
            facts: facts(replay),
            problems: problems(run),
            comparison: study.comparison(replay),
            comparison_about: study.comparison_about(),
            gates_about: gates::about(replay),
            gates,
            curves: Curves::of(replay),
            phases: phases::phases(replay),
            parts: phases::parts(replay),
            results: study.results(run),
            samples: study.samples(run),
            infrastructure: infrastructure::facts(run),
            recipe: run.recipe.clone(),
        }
    }
}

/// `finished`, or the phase and step that the run stands at.
fn status(replay: &Replay) -> String {
    if replay.finished() {
        return "finished".to_owned();
    }
    let Some(phase) = replay.phases().last().map(|phase| (*phase).to_owned()) else {
        return "not finished: no phase has begun".to_owned();
    };
    let ended = if replay.phase_ended(&phase).is_some() {
        "after"
    } else {
        "in"
    };
    match replay.last_step(&phase) {
        Some(step) => format!("not finished: {ended} phase {phase}, step {}", step.step),
        None => format!("not finished: {ended} phase {phase}"),
    }
}

/// What could not be read, and groups of which one episode alone had a verdict.
fn problems(run: &RunView) -> Vec<String> {
    let mut problems = run.problems.clone();
    let steps = run.replay.steps("rl");
    let alone = steps.filter_map(|step| step.metrics.get("rollout/singleton_groups"));
    let (groups, steps) = alone
        .filter(|groups| **groups > 0.0)
        .fold((0.0, 0), |(sum, steps), groups| (sum + groups, steps + 1));
    if steps > 0 {
        problems.push(format!(
            "{} in {} had a single episode with a verdict, which nothing was compared with",
            words::count(groups as u64, "group"),
            words::count(steps, "step"),
        ));
    }
    problems
}

fn gate_warning(gates: &[Gate]) -> Option<String> {
    let broken: Vec<&str> = gates
        .iter()
        .filter(|gate| gate.verdict == Verdict::Broken)
        .map(|gate| gate.name.as_str())
        .collect();
    if broken.is_empty() {
        return None;
    }
    let gates = if broken.len() == 1 {
        "A gate does"
    } else {
        "Gates do"
    };
    Some(format!(
        "{gates} not hold ({}), so the result may come from elsewhere than the critiques.",
        broken.join(", ")
    ))
}

fn facts(replay: &Replay) -> Vec<String> {
    let mut facts = Vec::new();
    if let Some(started) = replay.started() {
        facts.push(format!("seed {}", started.seed));
    }
    let seconds: f64 = replay.summary().seconds.values().sum();
    if seconds > 0.0 {
        facts.push(words::duration(seconds));
    }
    let mut steps: Vec<(&str, u64)> = Vec::new();
    for step in replay.all_steps() {
        match steps.iter_mut().find(|(phase, _)| *phase == step.phase) {
            Some((_, n)) => *n += 1,
            None => steps.push((&step.phase, 1)),
        }
    }
    facts.extend(
        steps
            .iter()
            .map(|(phase, n)| format!("{phase}: {}", words::count(*n, "step"))),
    );
    if let Some(first) = replay.entries.first() {
        facts.push(format!("begun {}", first.at.strftime("%Y-%m-%d %H:%M UTC")));
    }
    if let Some(Entry::RunStarted(started)) = replay.entries.first().map(|one| &one.entry) {
        facts.push(format!("etude {}", started.etude));
        let short: String = started.recipe_hash.chars().take(12).collect();
        facts.push(format!("recipe {short}"));
    }
    facts
}
