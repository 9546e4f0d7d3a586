//! What roles are asked beside what their memory shows: what a context must hold on top of a full memory.

use record::Message;

use crate::{
    memory::MemoryView,
    model_judge::{self, JUDGE},
    play::{ANSWER, CHUNK_QA, EXTRACT, FACT_SPLIT, LONG_MEM, MEMORY, SHORT_MEM},
    prompts::{
        answer_prompt, extract_prompt, fact_split_prompt, long_mem_prompt, memory_prompt,
        short_mem_prompt,
    },
    study::Recall,
    task::{Public, TurnRole, TurnSpec},
};

/// A prompt apart from what it shows of the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BarePrompt {
    pub messages: Vec<Message>,
    /// The most tokens of memory that come on top.
    pub shown_tokens: usize,
}

impl Recall {
    /// What `role` is asked in `turn` of a task while the memory is empty; `None` of a role that is not asked
    /// in such a turn.
    pub fn bare_prompt(&self, role: &str, task: &Public, turn: &TurnSpec) -> Option<BarePrompt> {
        let config = self.config();
        let (prompt, format, view) = (&config.prompt, config.format, &MemoryView::default());
        if [ANSWER, CHUNK_QA, JUDGE].contains(&role) != (turn.turn_role == TurnRole::Target) {
            return None;
        }
        let said = turn.observation();
        // The longest of those that may stand there.
        let targets = task
            .turns
            .iter()
            .filter(|turn| turn.turn_role == TurnRole::Target);
        let asked = targets.map(TurnSpec::observation).max_by_key(String::len);
        let question = asked.filter(|_| prompt.query_visible_during_history);
        let question = question.as_deref();
        let messages = match role {
            // Questions about single turns are like the others.
            ANSWER | CHUNK_QA => {
                let timestamp = turn.timestamp.as_deref();
                answer_prompt(prompt, String::new(), &said, timestamp)
            }
            MEMORY => memory_prompt(prompt, view, turn, format, question),
            EXTRACT => extract_prompt(prompt, turn, question),
            FACT_SPLIT => fact_split_prompt(prompt, turn, format, question),
            LONG_MEM => long_mem_prompt(prompt, &said, view, format),
            SHORT_MEM => short_mem_prompt(prompt, "", &[said]),
            JUDGE => model_judge::bare_prompt(&said),
            _ => return None,
        };
        let shows_memory = ![EXTRACT, FACT_SPLIT].contains(&role);
        Some(BarePrompt {
            messages,
            shown_tokens: if shows_memory {
                prompt.context_tokens
            } else {
                0
            },
        })
    }
}
