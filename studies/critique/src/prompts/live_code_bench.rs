//! Prompts for LiveCodeBench, whose rows bring a prompt of their own with headings (spec of the critique
//! study, sections 1.1 and 1.2).

const QUESTION: &str = "### Question:";
const FORMAT: &str = "### Format:";

/// The row's prompt as it stands: it says the form of the answer itself.
pub(super) fn generation(content: &str) -> String {
    content.to_owned()
}

/// What stands between the heading of the question and that of the format, trimmed: what a critic is shown.
/// All of a text that lacks the first heading; up to the end of one that lacks the second.
pub(super) fn question(content: &str) -> &str {
    let Some((_, rest)) = content.split_once(QUESTION) else {
        return content;
    };
    rest.split_once(FORMAT)
        .map_or(rest, |(question, _)| question)
        .trim()
}
