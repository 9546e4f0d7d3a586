//! Step rewards that need no more than what was done.

use std::collections::BTreeMap;

use crate::{
    event::Event,
    memory::{OpKind, OpStatus},
    metrics::text::tokens,
    play::{FACT_SPLIT, LONG_MEM},
    task::TurnRole,
};

use super::view::{View, asked_for, is_memory_call};

pub(super) fn format(event: &Event) -> Option<f64> {
    if !is_memory_call(event) {
        return None;
    }
    if event.agent_role == FACT_SPLIT {
        // Its facts are others' operations; what cannot be read is recorded as its own.
        let read = !asked_for(event).any(|op| op.kind == OpKind::Malformed);
        let said = event
            .response
            .as_ref()
            .is_some_and(|it| !it.trim().is_empty());
        return Some(f64::from(read && said));
    }
    let done = asked_for(event).map(|op| {
        f64::from(
            op.status == OpStatus::Done
                || (op.kind, op.status) == (OpKind::Noop, OpStatus::Skipped),
        )
    });
    Some(mean(done).unwrap_or(0.0))
}

pub(super) fn duplicate(event: &Event) -> Option<f64> {
    if !is_memory_call(event) {
        return None;
    }
    let writes = asked_for(event).filter(|op| {
        let writes = matches!(op.kind, OpKind::Add | OpKind::Update);
        op.kind == OpKind::DuplicateSkipped || (writes && op.status == OpStatus::Done)
    });
    let repeated = writes.map(|op| f64::from(op.kind == OpKind::DuplicateSkipped));
    mean(repeated).map(|share| 0.0 - share)
}

pub(super) fn compression(view: &View<'_>, event: &Event) -> Option<f64> {
    if !is_memory_call(event) {
        return None;
    }
    let earned = mean(view.answers().map(|(_, grade)| grade.score))?;
    if earned <= 0.0 {
        return Some(0.0);
    }
    // Several calls may read one turn.
    let mut read: BTreeMap<u32, u32> = BTreeMap::new();
    for event in view.events {
        if event.turn_role == TurnRole::History {
            let tokens = read.entry(event.turn_id).or_default();
            *tokens = event.observation_tokens.max(*tokens);
        }
    }
    let read: f64 = read.values().map(|&tokens| f64::from(tokens)).sum();
    let kept = f64::from(view.events.last()?.memory_tokens);
    (read > 0.0).then(|| (1.0 - kept / read).clamp(-1.0, 1.0))
}

pub(super) fn noop_feedback(view: &View<'_>, event: &Event) -> Option<f64> {
    if event.agent_role != FACT_SPLIT {
        return None;
    }
    let decisions = view
        .turn(event.turn_id)
        .filter(|other| other.agent_role == LONG_MEM)
        .flat_map(asked_for);
    let idle =
        decisions.map(|op| f64::from(matches!(op.kind, OpKind::Noop | OpKind::DuplicateSkipped)));
    mean(idle).map(|share| 0.0 - share)
}

pub(super) fn length(event: &Event, limit: u32) -> Option<f64> {
    let words = tokens(event.response.as_ref()?).len() as f64;
    let excess = (words - f64::from(limit)) / f64::from(limit);
    Some(0.0 - excess.clamp(0.0, 1.0))
}

/// `None` of nothing.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    (n > 0.0).then(|| sum / n)
}
