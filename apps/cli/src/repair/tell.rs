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
    if let Some(plan) = action.and_then(|action| action["plan"].as_array()) {
        for line in plan.iter().filter_map(Value::as_str) {
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
    let message = text(&info["message"]).filter(|message| *message != detail);
    if let Some(message) = message {
        for line in message.lines() {
            screen.say(format!("     {line}"));
        }
    }
}

/// A diff.
pub(super) fn patch(patch: &str, screen: Screen) {
    for line in patch.lines() {
        screen.say(format!("  {line}"));
    }
}
