//! The chats that the roles see. They are made from what is public alone.

use record::Message;
use serde::{Deserialize, Serialize};

use crate::{
    memory::{FactLine, MemoryView, OpFormat, ViewBudget},
    task::TurnSpec,
};

/// How prompts are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PromptConfig {
    /// Most tokens of memory (core, summary, facts, window) in a prompt; every baseline has the same.
    pub context_tokens: usize,
    /// Tell the roles what to do. Small models that were trained for one thing need not be told.
    pub instructions: bool,
    /// Write the ids of facts before them; a role that updates facts is shown them all the same.
    pub show_ids: bool,
    /// Let history turns see the question that comes next. Results with and without it cannot be compared.
    pub query_visible_during_history: bool,
}

impl Default for PromptConfig {
    fn default() -> Self {
        Self {
            context_tokens: 2048,
            instructions: true,
            show_ids: true,
            query_visible_during_history: false,
        }
    }
}

impl PromptConfig {
    /// What the memory may take of the prompt of a target turn.
    pub(crate) fn reading_budget(&self) -> ViewBudget {
        self.budget(self.show_ids)
    }

    /// What it may take where facts are written, and must be called by their names.
    pub(crate) fn writing_budget(&self) -> ViewBudget {
        self.budget(true)
    }

    fn budget(&self, show_ids: bool) -> ViewBudget {
        ViewBudget {
            total: self.context_tokens,
            fact_line: match show_ids {
                true => FactLine::IdAndTime,
                false => FactLine::Time,
            },
            ..ViewBudget::default()
        }
    }

    /// How a target turn sees a fact.
    pub(crate) fn reading_line(&self) -> FactLine {
        self.reading_budget().fact_line
    }
}

const ANSWER: &str = "You answer questions about past conversations from your notes. Answer with the \
shortest text that is right, and nothing else. Where several answers hold, give all of them in the order \
in which they came up, with commas between them. If the notes do not say, answer: not said";

const MEMORY: &str = "You keep notes of a long conversation, to answer questions about it later. You see \
what you have noted and what was just said. Write down what is worth keeping, correct what has changed, \
delete what is wrong.";

const LINES: &str = "Write one operation a line and nothing else:\n\
add: TEXT\nadd episodic: TEXT (for what happened once)\nupdate ID: TEXT\ndelete ID\n\
core: TEXT (replaces the paragraph that is always shown)\nnoop (when nothing is worth a change)";

const TOOLS: &str = "Write your operations as calls, each a JSON object between <tool_call> and </tool_call> \
with \"name\" and \"arguments\":\n\
memory_insert {\"memory_type\": \"semantic\" or \"episodic\", \"content\": TEXT}\n\
memory_update {\"memory_type\": \"core\", \"semantic\" or \"episodic\", \"new_content\": TEXT, \"memory_id\": ID}\n\
memory_delete {\"memory_type\": …, \"memory_id\": ID}";

const EXTRACT: &str = "List what is worth remembering of the conversation below, as a JSON list of objects \
{\"text\": …, \"importance\": a number from 0 to 1, \"timestamp\": when it holds, if it was said}. Each text \
must be understood by itself. Write the list and nothing else.";

const FACT_SPLIT: &str = "Read what was just said and take it apart into short statements that can be \
understood by themselves. Say which of them are worth keeping for a long time.";

const SPLIT_LINES: &str = "Write one statement a line and nothing else: `important: TEXT` or \
`unimportant: TEXT`. If there is none, write: none";

const SPLIT_OBJECT: &str = "Write one JSON object and nothing else: {\"important\": [TEXT, …], \
\"unimportant\": [TEXT, …]}";

const LONG_MEM: &str = "A new statement is to be kept. You see the notes that are most like it, and then the \
statement. Decide whether to add it, to update or delete one of the notes, or to leave the notes as they are.";

const SHORT_MEM: &str = "You keep a short summary of what is going on at the moment. You see the summary \
and what is new; write the new summary, and nothing else.";

/// Asks for an answer from `notes`, what the memory shows.
pub(crate) fn answer_prompt(
    config: &PromptConfig,
    notes: String,
    question: &str,
    timestamp: Option<&str>,
) -> Vec<Message> {
    let question = match timestamp {
        Some(timestamp) => format!("Question ({timestamp}): {question}"),
        None => format!("Question: {question}"),
    };
    chat(config, &[ANSWER], [notes, question])
}

/// Asks one more question about the same notes.
pub(crate) fn follow_up(question: &str) -> Message {
    Message::user(format!("Question: {question}"))
}

/// Asks for the operations of a history turn, written in `format`.
pub(crate) fn memory_prompt(
    config: &PromptConfig,
    view: &MemoryView,
    turn: &TurnSpec,
    format: OpFormat,
    question: Option<&str>,
) -> Vec<Message> {
    let how = match format {
        OpFormat::Lines => LINES,
        OpFormat::Tools => TOOLS,
    };
    let parts = [shown(view), said(turn), asked(question)];
    chat(config, &[MEMORY, how], parts)
}

/// Asks a model for the facts of a history turn as JSON.
pub(crate) fn extract_prompt(
    config: &PromptConfig,
    turn: &TurnSpec,
    question: Option<&str>,
) -> Vec<Message> {
    chat(config, &[EXTRACT], [said(turn), asked(question)])
}

/// Asks for the important and the unimportant facts of a history turn.
pub(crate) fn fact_split_prompt(
    config: &PromptConfig,
    turn: &TurnSpec,
    format: OpFormat,
    question: Option<&str>,
) -> Vec<Message> {
    let how = match format {
        OpFormat::Lines => SPLIT_LINES,
        OpFormat::Tools => SPLIT_OBJECT,
    };
    chat(config, &[FACT_SPLIT, how], [said(turn), asked(question)])
}

/// Asks what becomes of an important fact beside its neighbours.
pub(crate) fn long_mem_prompt(
    config: &PromptConfig,
    fact: &str,
    neighbours: &MemoryView,
    format: OpFormat,
) -> Vec<Message> {
    let how = match format {
        OpFormat::Lines => LINES,
        OpFormat::Tools => TOOLS,
    };
    let parts = [neighbours.facts_text(), format!("New: {fact}")];
    chat(config, &[LONG_MEM, how], parts)
}

/// Asks for the new short-term state.
pub(crate) fn short_mem_prompt(
    config: &PromptConfig,
    summary: &str,
    facts: &[String],
) -> Vec<Message> {
    let news = format!("New:\n{}", facts.join("\n"));
    chat(config, &[SHORT_MEM], [summarized(summary), news])
}

/// One user turn of the parts that are not empty, behind the instructions where they are wanted.
fn chat<const N: usize>(
    config: &PromptConfig,
    instructions: &[&str],
    parts: [String; N],
) -> Vec<Message> {
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let user = Message::user(parts.join("\n"));
    if config.instructions {
        vec![Message::system(instructions.join("\n\n")), user]
    } else {
        vec![user]
    }
}

fn said(turn: &TurnSpec) -> String {
    dated(turn.timestamp.as_deref(), &turn.observation())
}

fn asked(question: Option<&str>) -> String {
    question.map_or_else(String::new, |question| format!("Question: {question}"))
}

fn summarized(summary: &str) -> String {
    match summary {
        "" => String::new(),
        summary => format!("Summary: {summary}"),
    }
}

fn dated(timestamp: Option<&str>, text: &str) -> String {
    match timestamp {
        Some(timestamp) => format!("({timestamp})\n{text}"),
        None => text.to_owned(),
    }
}

/// Core, summary, facts, window, in this order (spec, section 1.6).
pub(crate) fn shown(view: &MemoryView) -> String {
    let turns = view
        .window
        .iter()
        .map(|turn| dated(turn.timestamp.as_deref(), &turn.text));
    let blocks = [
        view.core.clone(),
        summarized(&view.summary),
        view.facts_text(),
    ];
    let blocks: Vec<String> = blocks
        .into_iter()
        .chain(turns)
        .filter(|block| !block.is_empty())
        .collect();
    blocks.join("\n")
}
