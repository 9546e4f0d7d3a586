//! Whether a task that was read from a file can be played and graded.

use std::collections::BTreeSet;

use dataset::{Row, RowError};

use crate::task::{Task, TurnRole};

/// Checks what the types of a task do not say.
///
/// # Errors
/// The first fault: no target turn, empty turns, turn ids that are there twice, targets without facts or
/// answers, facts or answers of turns that are no targets, chunk questions about turns that are no history.
pub fn check_task(row: &Row, task: &Task) -> Result<(), RowError> {
    if task.id.0.trim().is_empty() {
        return Err(row.error("id", "a task needs a name"));
    }
    let mut turn_ids = BTreeSet::new();
    let mut targets = BTreeSet::new();
    for (index, turn) in task.public.turns.iter().enumerate() {
        let field = |name: &str| format!("public.turns[{index}]{name}");
        if !turn_ids.insert(turn.turn_id) {
            let message = format!("turn {} is there twice", turn.turn_id);
            return Err(row.error(field(".turn_id"), message));
        }
        if turn
            .utterances
            .iter()
            .all(|utterance| utterance.text.trim().is_empty())
        {
            return Err(row.error(field(".utterances"), "empty turn"));
        }
        if turn.turn_role == TurnRole::Target {
            targets.insert(turn.turn_id);
        }
    }
    if targets.is_empty() {
        return Err(row.error("public.turns", "no target turn"));
    }
    for turn_id in &targets {
        if !task.facts.questions.contains_key(turn_id) {
            let message = format!("target turn {turn_id} has none");
            return Err(row.error("facts.questions", message));
        }
        let Some(gold) = task.gold.answers.get(turn_id) else {
            let message = format!("target turn {turn_id} has none");
            return Err(row.error("gold.answers", message));
        };
        if !gold.abstain && gold.answers.iter().all(|answer| answer.trim().is_empty()) {
            let field = format!("gold.answers.{turn_id}.answers");
            return Err(row.error(field, "missing answer"));
        }
    }
    let asked_about = task.gold.chunk_questions.keys();
    for turn_id in asked_about {
        if targets.contains(turn_id) || !turn_ids.contains(turn_id) {
            let message = format!("turn {turn_id} is no history turn");
            return Err(row.error("gold.chunk_questions", message));
        }
    }
    for (field, turn_id) in [
        (
            "facts.questions",
            task.facts.questions.keys().find(|id| !targets.contains(id)),
        ),
        (
            "gold.answers",
            task.gold.answers.keys().find(|id| !targets.contains(id)),
        ),
    ] {
        if let Some(turn_id) = turn_id {
            return Err(row.error(field, format!("turn {turn_id} is no target turn")));
        }
    }
    Ok(())
}
