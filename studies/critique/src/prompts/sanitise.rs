//! Programs in the answers of models, and back into fences (spec of the critique study, section 4.2).

use code::{Fence, extract_python};

/// An answer brought down to its program: the first fenced block in a fence of its own, as the column
/// `sanitized_solution` holds it. A block that is not closed runs to the end; a text without one stays as it is.
pub fn sanitise(answer: &str) -> String {
    let found = extract_python(answer, Fence::First);
    if found.fenced {
        fenced(found.program)
    } else {
        answer.to_owned()
    }
}

/// The program of an answer: what stands in its first closed fence, trimmed, or all of it.
pub fn desanitise(answer: &str) -> &str {
    let found = extract_python(answer, Fence::First);
    if found.fenced && found.closed {
        found.program.trim()
    } else {
        answer
    }
}

/// A program in the fence that prompts show it in.
pub fn fenced(program: &str) -> String {
    format!("```python\n{program}\n```")
}
