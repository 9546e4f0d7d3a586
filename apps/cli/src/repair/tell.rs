//! What the user sees of an episode while it is played.

use repair::play::StepNote;
use serde_json::Value;

use crate::screen::Screen;

/// One step of the planner, and what came of it.
pub(super) fn step(step: &StepNote, screen: Screen) {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let action = step.action.as_ref();
    let what = action.map_or_else(
        || "a reply that is no action".to_owned(),
        |action| {
            let kind = text(&action["type"]).unwrap_or_default();
            let inner = ["op", "intent"].iter().find_map(|key| text(&action[*key]));
            inner.map_or(kind.clone(), |inner| format!("{kind} {inner}"))
        },
    );
    screen.say(format!("{:>3}. {what}", step.step));
    let info = &step.info;
    for key in ["subplan", "intent_analysis", "feedback"] {
        let plan = action.and_then(|action| action[key].as_str());
        for line in plan.unwrap_or_default().lines() {
            screen.say(format!("     plan: {line}"));
        }
    }
    if let Some(found) = info["candidates"].as_array() {
        let ids: Vec<&str> = found.iter().filter_map(Value::as_str).take(5).collect();
        if !ids.is_empty() {
            screen.say(format!("     looks at {}", ids.join(", ")));
        }
    }
    let detail = text(&info["detail"]).unwrap_or_default();
    if let Some(error) = text(&info["error"]) {
        screen.say(format!("     {error}: {detail}"));
    }
    let said = ["message", "summary"]
        .iter()
        .find_map(|key| text(&info[*key]));
    for line in said
        .iter()
        .filter(|said| **said != detail)
        .flat_map(|said| said.lines())
    {
        screen.say(format!("     {line}"));
    }
    for tried in info["feedback"].as_array().into_iter().flatten() {
        let first = |key: &str| {
            let text = text(&tried[key]).unwrap_or_default();
            text.lines().next().unwrap_or_default().to_owned()
        };
        screen.say(format!(
            "     candidate: {}: {}",
            first("outcome"),
            first("detail")
        ));
    }
    if info["kind"] == "repair" && info["tests"].is_object() {
        screen.say(format!("     tests: {}", tests(&info["tests"])));
    }
}

/// How many of both kinds pass.
fn tests(report: &Value) -> String {
    let of = |key: &str| {
        let number = |name: &str| report[key][name].as_u64().unwrap_or_default();
        format!("{} of {}", number("passed"), number("total"))
    };
    format!(
        "{} that failed pass now, {} others still do",
        of("fail_to_pass"),
        of("pass_to_pass")
    )
}

/// A diff.
pub(super) fn patch(patch: &str, screen: Screen) {
    for line in patch.lines() {
        screen.say(format!("  {line}"));
    }
}
