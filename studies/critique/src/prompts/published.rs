//! What the three prompters have in common: the critique prompt that the published critic was trained on, its
//! form with a hint, and the message that asks for a revision.
//!
//! [`critique`] is an interface: the checkpoint `CTRL-32B` knows these bytes and no others, as its model card
//! publishes them, and they must not change. The hinted form and the revision message are read by models that
//! were trained on neither, and are worded here.

use record::Message;

use crate::format::critique_body;

/// What Qwen's models are told first where a chat has no system message of its own. Said in full, so that models
/// with other templates are told the same.
pub const SYSTEM: &str = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";

/// Of the critique prompt: what is wanted.
const INSTRUCTION: &str = "You are tasked with analyzing an answer to a problem and providing constructive feedback. \
                           Do NOT provide direct solutions.";

/// Of the critique prompt: the three parts of a critique.
const FORMAT: &str = "\
Structure your response using the following format (without <format> tags):
<format>
Analysis:
{Analysis}

Improvement suggestions:
{Suggestions}

Overall judgment: {Correct/Incorrect}
</format>";

/// A system message and one user turn.
pub(super) fn turn(content: String) -> Vec<Message> {
    vec![Message::system(SYSTEM), Message::user(content)]
}

/// Asks for a critique of `answer`, a program in its fence.
pub(super) fn critique(problem: &str, answer: &str) -> Vec<Message> {
    turn(format!(
        "{INSTRUCTION}\n\n{}\n\n{FORMAT}",
        shown(problem, answer)
    ))
}

/// The same with what is known of the answer.
pub(super) fn hinted_critique(problem: &str, answer: &str, hint: &str) -> Vec<Message> {
    turn(format!(
        "{INSTRUCTION}\n\n{}\n\n\
         What running the answer has shown, for your eyes alone:\n<hint>\n{hint}\n</hint>\n\n\
         Find out from it why the answer behaves as it does, and explain that from the problem and the code, as if \
         you had run nothing: neither mention nor quote what stands between the <hint> tags.\n\n{FORMAT}",
        shown(problem, answer)
    ))
}

/// The user's reply to a program: the critique without the tags that a critic may echo, and what to do with it.
pub(super) fn revision_message(critique: &str) -> String {
    format!(
        "{}\n\nNow give your final answer in the same format as before, revised in the light of this feedback.",
        critique_body(critique)
    )
}

fn shown(problem: &str, answer: &str) -> String {
    format!(
        "Problem description:\n<problem>\n{problem}\n</problem>\n\nAnswer:\n<answer>\n{answer}\n</answer>"
    )
}
