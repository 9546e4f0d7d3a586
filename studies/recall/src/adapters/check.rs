//! Whether a task that was read from a file can be played and graded.

use std::collections::BTreeSet;

use dataset::{Row, RowError};

use crate::task::{Task, TurnRole};

/// What is wrong with a task beyond its types, all of it: no target turn, empty turns, turn ids that are there
/// twice, targets without facts or answers, facts or answers of turns that are no targets, chunk questions about
/// turns that are no history.
pub fn check_task(row: &Row, task: &Task) -> Vec<RowError> {
    let mut errors = Vec::new();
    if task.id.0.trim().is_empty() {
        errors.push(row.error("id", "a task needs a name"));
    }
    let mut turn_ids = BTreeSet::new();
    let mut targets = BTreeSet::new();
    for (index, turn) in task.public.turns.iter().enumerate() {
        let field = |name: &str| format!("public.turns[{index}]{name}");
        if !turn_ids.insert(turn.turn_id) {
            let message = format!("turn {} is there twice", turn.turn_id);
            errors.push(row.error(field(".turn_id"), message));
        }
        let mut said = turn.utterances.iter();
        if said.all(|utterance| utterance.text.trim().is_empty()) {
            errors.push(row.error(field(".utterances"), "empty turn"));
        }
        if turn.turn_role == TurnRole::Target {
            targets.insert(turn.turn_id);
        }
    }
    if targets.is_empty() {
        errors.push(row.error("public.turns", "no target turn"));
    }
    for turn_id in &targets {
        let none = format!("target turn {turn_id} has none");
        if !task.facts.questions.contains_key(turn_id) {
            errors.push(row.error("facts.questions", &none));
        }
        match task.gold.answers.get(turn_id) {
            None => errors.push(row.error("gold.answers", &none)),
            Some(gold) => {
                let mut answers = gold.answers.iter();
                if !gold.abstain && answers.all(|answer| answer.trim().is_empty()) {
                    let field = format!("gold.answers.{turn_id}.answers");
                    errors.push(row.error(field, "missing answer"));
                }
            }
        }
    }
    for turn_id in task.gold.chunk_questions.keys() {
        if targets.contains(turn_id) || !turn_ids.contains(turn_id) {
            let message = format!("turn {turn_id} is no history turn");
            errors.push(row.error("gold.chunk_questions", message));
        }
    }
    let mut no_targets = |field: &str, turn_ids: Vec<&u32>| {
        let strange = turn_ids.into_iter().filter(|id| !targets.contains(id));
        errors.extend(strange.map(|id| row.error(field, format!("turn {id} is no target turn"))));
    };
    no_targets("facts.questions", task.facts.questions.keys().collect());
    no_targets("gold.answers", task.gold.answers.keys().collect());
    errors
}
