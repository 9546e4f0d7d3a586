//! Prompts of the tiny world: statement and program alone, as small models learn to read them.

use record::Message;

use crate::{
    task::{Prompter, Public},
    tiny::{CriticRow, GeneratorRow, ReviserRow},
};

pub(super) fn generation(statement: &str) -> Vec<Message> {
    vec![Message::user(statement)]
}

/// One user turn with the statement and the program.
pub(super) fn critique(task: &Public) -> Vec<Message> {
    vec![Message::user(format!(
        "{}\n{}",
        task.statement, task.program
    ))]
}

pub(super) fn hinted_critique(task: &Public, hint: &str) -> Vec<Message> {
    vec![Message::user(format!(
        "{}\n{}\n{hint}",
        task.statement, task.program
    ))]
}

pub(super) fn revision(task: &Public, critique: &str) -> Vec<Message> {
    vec![
        Message::user(task.statement.clone()),
        Message::assistant(task.program.clone()),
        Message::user(critique.trim()),
    ]
}

/// What a supervised row teaches the critic: a chat and the answer to it.
pub fn critic_lesson(row: CriticRow) -> (Vec<Message>, String) {
    let task = Public {
        statement: row.statement,
        program: row.program,
        prompter: Prompter::Tiny,
    };
    (critique(&task), row.critique)
}

/// What a supervised row teaches the generator.
pub fn generator_lesson(row: GeneratorRow) -> (Vec<Message>, String) {
    (generation(&row.statement), row.program)
}

/// What a supervised row teaches the reviser.
pub fn reviser_lesson(row: ReviserRow) -> (Vec<Message>, String) {
    let task = Public {
        statement: row.statement,
        program: row.program,
        prompter: Prompter::Tiny,
    };
    (revision(&task, &row.critique), row.revision)
}
