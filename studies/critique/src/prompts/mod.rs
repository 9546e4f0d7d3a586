//! The chats that the roles see, built from the public part of a task alone: one module for each wording
//! (spec of the critique study, section 1.2).

mod code_contests;
mod examples;
mod live_code_bench;
mod mbpp_plus;
mod published;
mod sanitise;
mod tiny;

use record::Message;

pub use examples::{LEFT_OUT, without_examples};
pub use published::SYSTEM;
pub use sanitise::{desanitise, fenced, sanitise};
pub use tiny::{critic_lesson, generator_lesson, reviser_lesson};

use crate::task::{Prompter, Public};

/// Asks the generator for a program that solves the problem.
pub fn generation_prompt(statement: &str, prompter: Prompter) -> Vec<Message> {
    match prompter {
        Prompter::Tiny => tiny::generation(statement),
        _ => published::turn(wording(statement, prompter).generation),
    }
}

/// Asks the critic for a critique of the task's program.
pub fn critique_prompt(task: &Public) -> Vec<Message> {
    match task.prompter {
        Prompter::Tiny => tiny::critique(task),
        prompter => {
            let problem = wording(&task.statement, prompter).problem;
            published::critique(&problem, &fenced(&task.program))
        }
    }
}

/// The same, of a critic that is told `hint`, what came of running the program: gold goes into it, so its answers
/// make rows to learn from and never rewards. LiveCodeBench had no such prompt; here it is worded as the
/// others are.
pub fn hinted_critique_prompt(task: &Public, hint: &str) -> Vec<Message> {
    match task.prompter {
        Prompter::Tiny => tiny::hinted_critique(task, hint),
        prompter => {
            let problem = wording(&task.statement, prompter).problem;
            published::hinted_critique(&problem, &fenced(&task.program), hint)
        }
    }
}

/// Asks the reviser for a program: the generation chat with the program as its answer, then the
/// critique as the user's reply (the revision chat of CTRL).
pub fn revision_prompt(task: &Public, critique: &str) -> Vec<Message> {
    if task.prompter == Prompter::Tiny {
        return tiny::revision(task, critique);
    }
    let mut chat = generation_prompt(&task.statement, task.prompter);
    chat.push(Message::assistant(fenced(&task.program)));
    chat.push(Message::user(published::revision_message(critique)));
    chat
}

/// What a kind of problem is called by.
struct Wording {
    /// The user's turn that asks for a program.
    generation: String,
    /// The problem as critics read it.
    problem: String,
}

fn wording(statement: &str, prompter: Prompter) -> Wording {
    let generation = match prompter {
        Prompter::Tiny => statement.to_owned(),
        Prompter::CodeContests => code_contests::generation(statement),
        Prompter::MbppPlus => mbpp_plus::generation(statement),
        Prompter::LiveCodeBench => live_code_bench::generation(statement),
    };
    let problem = match prompter {
        Prompter::LiveCodeBench => live_code_bench::question(statement),
        _ => statement,
    };
    Wording {
        generation,
        problem: problem.to_owned(),
    }
}

#[cfg(test)]
mod tests;
