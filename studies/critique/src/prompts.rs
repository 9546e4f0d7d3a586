//! The chats that the two roles see, built from the public part of a task alone.

use record::Message;

use crate::{
    task::{Prompter, Public},
    tiny::{CriticRow, ReviserRow},
};

/// Asks the critic for a critique: one user turn with the statement and the program.
pub fn critique_prompt(task: &Public) -> Vec<Message> {
    vec![Message::user(format!(
        "{}\n{}",
        task.statement, task.program
    ))]
}

/// Asks the reviser for a program: the generation chat with the program as its answer, then the
/// critique as the user's reply (the revision chat of CTRL).
pub fn revision_prompt(task: &Public, critique: &str) -> Vec<Message> {
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
    (critique_prompt(&task), row.critique)
}

/// What a supervised row teaches the reviser.
pub fn reviser_lesson(row: ReviserRow) -> (Vec<Message>, String) {
    let task = Public {
        statement: row.statement,
        program: row.program,
        prompter: Prompter::Tiny,
    };
    (revision_prompt(&task, &row.critique), row.revision)
}
