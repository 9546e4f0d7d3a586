//! Episodes to read: what the planner did, step by step, and what came of it.

use repair::play::{Notes, StepNote};
use serde::Serialize;
use serde_json::Value;

use crate::{comparison, run_view::RunView, words};

/// Episodes of the page at most.
const MOST: usize = 250;
/// Nodes of one search, and patches of one repair, that the page shows.
const NODES: usize = 8;
const TRIED: usize = 12;
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
    /// Patches that were tried and not kept.
    tried: Vec<TriedView>,
    /// Nodes that were found, the first few, and how many there are besides.
    nodes: Vec<String>,
    more_nodes: usize,
    reply: Option<String>,
    fallback: Option<String>,
    observation: String,
    tokens: usize,
}

/// A patch of a repair that was refused or does not mend.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct TriedView {
    patch: Vec<Line>,
    outcome: String,
    detail: String,
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
    let Some((evaluation, groups)) = comparison::with_episodes(run).pop() else {
        return Vec::new();
    };
    let episodes = groups.iter().flat_map(|group| &group.episodes);
    let mut traces: Vec<Trace> = episodes
        .enumerate()
        .filter_map(|(at, episode)| {
            let notes = repair::metrics::notes_of(episode)?;
            let seconds = evaluation.episode_seconds.get(at);
            Some(Trace::of(&episode.task.0, &notes, seconds.copied()))
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

impl Trace {
    fn of(task: &str, notes: &Notes, seconds: Option<f64>) -> Self {
        let steps: Vec<StepView> = notes.steps.iter().map(StepView::of).collect();
        let mut about = format!(
            "{}, {} and {}",
            words::count(steps.len() as u64, "step"),
            words::count(notes.candidates as u64, "candidate"),
            words::count(notes.test_runs as u64, "test run"),
        );
        if let Some(seconds) = seconds {
            about += &format!(", {}", words::duration(seconds));
        }
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
            None if info["kind"] == "timeout" => "no answer in time".to_owned(),
            None => "a reply that is no action".to_owned(),
        };
        const SAID: [&str; 5] = ["type", "op", "intent", "schema_version", "thought"];
        let error = name(&info["error"]).map(|error| match name(&info["detail"]) {
            Some(detail) => format!("{error}: {detail}"),
            None => error,
        });
        const TOLD: [&str; 8] = [
            "message",
            "success",
            "test_runs",
            "applied",
            "replaced",
            "warnings",
            "stop_reason",
            "plan",
        ];
        let mut outcome = fields(info, |key| TOLD.contains(&key));
        if let Some(tests) = tests(&info["tests"]) {
            outcome.push(("tests".to_owned(), tests));
        }
        if let Some(n) = info["candidates"].as_u64() {
            outcome.push(("candidates".to_owned(), n.to_string()));
        }
        let found: Vec<String> = items(&info["candidates"]).filter_map(name).collect();
        let tried = items(&info["feedback"]).take(TRIED).map(|tried| TriedView {
            patch: cut(tried["patch"].as_str().unwrap_or_default())
                .lines()
                .map(Line::of)
                .collect(),
            outcome: name(&tried["outcome"]).unwrap_or_default(),
            detail: cut(tried["detail"].as_str().unwrap_or_default()),
        });
        Self {
            step: step.step,
            what,
            details: action.map_or_else(Vec::new, |action| {
                // A plan stands with what came of it.
                fields(action, |key| !SAID.contains(&key) && key != "plan")
            }),
            reward: format!("{:+.2}", step.reward),
            error,
            outcome,
            tried: tried.collect(),
            more_nodes: found.len().saturating_sub(NODES),
            nodes: found.into_iter().take(NODES).collect(),
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
                other => in_words(other),
            };
            Some((key.replace('_', " "), cut(&text)))
        })
        .collect()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Lists and objects without the marks of JSON.
fn in_words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let between = match items.iter().all(|item| item.is_object() || item.is_array()) {
                true => "; ",
                false => ", ",
            };
            let items: Vec<String> = items.iter().map(in_words).collect();
            items.join(between)
        }
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            let fields: Vec<String> = fields
                .map(|(key, value)| format!("{} {}", key.replace('_', " "), in_words(value)))
                .collect();
            fields.join(", ")
        }
        other => other.to_string(),
    }
}

/// `1 of 2 that failed pass, 5 of 5 others do; AssertionError: 3 != 4`
fn tests(report: &Value) -> Option<String> {
    let of = |key: &str| {
        let passed = report[key]["passed"].as_u64()?;
        Some((passed, report[key]["total"].as_u64()?))
    };
    let (passed, total) = of("fail_to_pass")?;
    let mut text = format!("{passed} of {total} that failed pass");
    if let Some((passed, total)) = of("pass_to_pass").filter(|(_, total)| *total > 0) {
        text += &format!(", {passed} of {total} others do");
    }
    for failure in items(&report["failures"]) {
        let said = |key: &str| failure[key].as_str().unwrap_or_default();
        let message = said("message").lines().next().unwrap_or_default();
        text += &format!("; {}: {message}", said("kind"));
    }
    Some(text)
}

fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(OBSERVATION);
    match text.len() > end {
        true => format!("{} …", &text[..end]),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_repair_is_told_without_marks_of_json() {
        let step = StepNote {
            step: 2,
            action: Some(json!({
                "type": "repair", "plan": ["mend"], "targets": [{"path": "a.py", "start": 1}],
            })),
            info: json!({
                "kind": "repair", "plan": ["mend it"], "candidates": 21, "test_runs": 30,
                "tests": {
                    "fail_to_pass": {"passed": 1, "total": 2}, "pass_to_pass": {"passed": 5, "total": 5},
                    "failures": [{"kind": "KeyError", "message": "'a'\nmore"}],
                },
                "feedback": [{"patch": "-a\n+b\n", "outcome": "build-failed", "detail": "1 of 2"}],
            }),
            ..StepNote::default()
        };
        let view = StepView::of(&step);
        let said = |name: &str| {
            let all = view.details.iter().chain(&view.outcome);
            let mut found = all.filter(|(key, _)| key == name);
            found.next().map(|(_, text)| text.as_str())
        };
        assert_eq!(said("targets"), Some("path a.py, start 1"));
        assert_eq!(said("plan"), Some("mend it"));
        assert_eq!(said("candidates"), Some("21"));
        let tests = "1 of 2 that failed pass, 5 of 5 others do; KeyError: 'a'";
        assert_eq!(said("tests"), Some(tests));
        assert_eq!(view.tried[0].patch[1].kind, "added");
    }

    #[test]
    fn long_lists_of_nodes_are_cut() {
        let ids: Vec<String> = (0..20).map(|n| format!("func:a.py:f{n}:{n}")).collect();
        let step = StepNote {
            info: json!({"kind": "explore", "candidates": ids}),
            ..StepNote::default()
        };
        let view = StepView::of(&step);
        assert_eq!((view.nodes.len(), view.more_nodes), (NODES, 20 - NODES));
        assert!(view.outcome.is_empty());
    }
}
