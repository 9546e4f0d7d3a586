//! Episodes to read: what the planner did, step by step, and what came of it.

use record::Group;
use repair::play::{Notes, StepNote};
use serde::Serialize;
use serde_json::Value;

use crate::{comparison, run_view::RunView, words};

/// Episodes of the page at most.
const MOST: usize = 250;
/// Characters of an observation that the page shows.
const OBSERVATION: usize = 4000;

/// An episode of the last evaluation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Trace {
    task: String,
    title: String,
    /// `resolved`, `not resolved`.
    verdict: &'static str,
    resolved: bool,
    /// `4 steps, 37 candidates, 52 runs of tests; comparison boundary`
    about: String,
    begin: String,
    steps: Vec<StepView>,
    patch: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct StepView {
    step: u32,
    /// `explore find`, or why there is none.
    what: String,
    /// Its parameters, a line each.
    details: Vec<(String, String)>,
    reward: String,
    error: Option<String>,
    outcome: Vec<(String, String)>,
    reply: Option<String>,
    fallback: Option<String>,
    observation: String,
    tokens: usize,
}

/// A line of a diff.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Line {
    /// `added`, `removed`, `place`, or nothing.
    kind: &'static str,
    text: String,
}

/// Every episode of the last evaluation, those not resolved first.
pub(super) fn traces(run: &RunView) -> Vec<Trace> {
    let mut traces: Vec<Trace> = last(run)
        .iter()
        .flat_map(|group| &group.episodes)
        .filter_map(|episode| {
            Some(Trace::of(
                &episode.task.0,
                &repair::metrics::notes_of(episode)?,
            ))
        })
        .collect();
    traces.sort_by_key(|trace| trace.resolved);
    traces.truncate(MOST);
    traces
}

/// Up to `n` of them for the terminal.
pub(super) fn traces_text(run: &RunView, n: usize) -> String {
    let traces = traces(run);
    let resolved = traces.iter().filter(|trace| trace.resolved);
    let failed = traces.iter().filter(|trace| !trace.resolved);
    let chosen: Vec<&Trace> = resolved
        .take(n.div_ceil(2))
        .chain(failed.take(n / 2))
        .collect();
    let said = chosen.into_iter().map(|trace| {
        let mut lines = vec![
            format!("{}: {}", trace.task, trace.verdict),
            format!("  {}", trace.title),
        ];
        lines.extend(trace.steps.iter().map(|step| {
            let error = step
                .error
                .as_deref()
                .map_or_else(String::new, |error| format!(", {error}"));
            format!("  {:>2}. {}{error}", step.step, step.what)
        }));
        lines.push(format!("  {}", trace.about));
        lines.extend(trace.patch.iter().map(|line| format!("    {}", line.text)));
        lines.join("\n")
    });
    said.collect::<Vec<_>>().join("\n\n")
}

/// The groups of the last evaluation.
fn last(run: &RunView) -> &[Group] {
    let evaluations = comparison::with_episodes(run);
    evaluations
        .last()
        .map_or(&[], |(_, groups)| groups.as_slice())
}

impl Trace {
    fn of(task: &str, notes: &Notes) -> Self {
        let steps: Vec<StepView> = notes.steps.iter().map(StepView::of).collect();
        let mut about = format!(
            "{}, {} and {}",
            words::count(steps.len() as u64, "step"),
            words::count(notes.candidates as u64, "candidate"),
            words::count(notes.test_runs as u64, "test run"),
        );
        if let Some(family) = &notes.family {
            about += &format!("; {}", family.replace(['_', '-'], " "));
        }
        Self {
            task: task.to_owned(),
            title: notes.title.clone(),
            verdict: if notes.resolved {
                "resolved"
            } else {
                "not resolved"
            },
            resolved: notes.resolved,
            about,
            begin: cut(&notes.begin),
            steps,
            patch: notes.patch.lines().map(Line::of).collect(),
        }
    }
}

impl StepView {
    fn of(step: &StepNote) -> Self {
        let info = &step.info;
        let name = |value: &Value| value.as_str().map(str::to_owned);
        let action = step.action.as_ref();
        let what = match action {
            Some(action) => {
                let kind = name(&action["type"]).unwrap_or_default();
                let inner = ["op", "intent"].iter().find_map(|key| name(&action[*key]));
                inner.map_or(kind.clone(), |inner| format!("{kind} {inner}"))
            }
            None => "a reply that is no action".to_owned(),
        };
        const SAID: [&str; 5] = ["type", "op", "intent", "schema_version", "thought"];
        let error = name(&info["error"]).map(|error| match name(&info["detail"]) {
            Some(detail) => format!("{error}: {detail}"),
            None => error,
        });
        const TOLD: [&str; 9] = [
            "message",
            "success",
            "candidates",
            "test_runs",
            "applied",
            "replaced",
            "warnings",
            "stop_reason",
            "tests",
        ];
        Self {
            step: step.step,
            what,
            details: action.map_or_else(Vec::new, |action| {
                fields(action, |key| !SAID.contains(&key))
            }),
            reward: format!("{:+.2}", step.reward),
            error,
            outcome: fields(info, |key| TOLD.contains(&key)),
            reply: step.reply.clone(),
            fallback: step.fallback.clone(),
            observation: cut(&step.observation),
            tokens: step.observation_tokens,
        }
    }
}

impl Line {
    fn of(text: &str) -> Self {
        let kind = match text.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] | [b'@', b'@', ..] => "place",
            [b'+', ..] => "added",
            [b'-', ..] => "removed",
            _ => "",
        };
        Self {
            kind,
            text: text.to_owned(),
        }
    }
}

/// Fields that say something, as text.
fn fields(value: &Value, wanted: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let fields = value.as_object().into_iter().flatten();
    fields
        .filter(|(key, _)| wanted(key))
        .filter_map(|(key, value)| {
            let text = match value {
                Value::Null => return None,
                Value::String(text) if text.is_empty() => return None,
                Value::Array(items) if items.is_empty() => return None,
                Value::Object(fields) if fields.is_empty() => return None,
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            Some((key.replace('_', " "), cut(&text)))
        })
        .collect()
}

fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(OBSERVATION);
    match text.len() > end {
        true => format!("{} …", &text[..end]),
        false => text.to_owned(),
    }
}
