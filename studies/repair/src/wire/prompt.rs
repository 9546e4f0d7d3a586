//! What a planner is told before it begins (spec of the repair study, section 1.7).

use serde_json::json;

use super::WireFormat;
use crate::action::{ACTIONS, Signature, TOOLS, tool_schemas};

const IDENTITY: &str = "You plan the repair of an issue in a repository. You decide what to look at, what to \
keep and what is to be changed. You never write a patch or a diff: a patch model writes it from your plan \
and from what you keep in memory, and tests decide.";

const WORLD: &str = "G is the code graph of the whole repository: files, classes, functions and attributes, \
and what contains, imports, extends, calls, references, overrides and tests what. W is the working graph: \
what you have explored. M is the memory graph: what you have committed; the patch model sees M and nothing \
of W. T are your notes, short texts. The source of the tests that decide is never shown; their results are.";

const QUERIES: &str = "A query is words, and any of symbol:NAME, path:PART, +MUST, -NOT and \"a phrase\". \
Words that are written like names find most.";

const RULES: &str = "Rules:\n\
- One query and one anchor at a time.\n\
- Repair only when M holds what is to be changed.\n\
- The plan says in plain words what is wrong, where, and what is to be done.\n\
- Do not do the same thing twice: if a search finds nothing, search for something else.";

const WORKFLOW: &str = "A good way: find, expand or read what was found, commit what matters, repair. If the \
tests still fail, read what they say, keep what was missing, and repair again. Submit when the tests pass.";

/// The system message for planners that write in this format.
pub fn system_prompt(format: WireFormat) -> String {
    prompt(&match format {
        WireFormat::Text => text_format(),
        WireFormat::Tools => tool_format(),
    })
}

/// The system message for planners whose calls come apart from their text: [`tool_schemas`] are listed for them
/// elsewhere.
pub fn calling_prompt() -> String {
    prompt(&format!(
        "Reply with exactly one call of a tool. The tools (* is required):\n{}",
        listed(TOOLS)
    ))
}

fn prompt(how: &str) -> String {
    [IDENTITY, how, WORLD, QUERIES, RULES, WORKFLOW].join("\n\n")
}

fn text_format() -> String {
    format!(
        "Reply with exactly one block and no other text:\n\
         <function=NAME>\n  <param name=\"KEY\">VALUE</param>\n</function>\n\
         Lists and objects are JSON. Put text of several lines, or with < or > in it, in \
         <![CDATA[ and ]]>. Actions and their parameters (* is required):\n{}",
        listed(ACTIONS)
    )
}

fn tool_format() -> String {
    let tools: Vec<String> = tool_schemas().iter().map(|tool| tool.to_string()).collect();
    let example = json!({"name": "NAME", "arguments": {}});
    format!(
        "Reply with exactly one call of a tool, as a JSON object between the tags:\n\
         <tool_call>\n{example}\n</tool_call>\n\
         Tools, in words (* is required):\n{}\nThe same as JSON Schemas:\n<tools>\n{}\n</tools>",
        listed(TOOLS),
        tools.join("\n")
    )
}

fn listed(signatures: &[Signature]) -> String {
    let mut text = String::new();
    for signature in signatures {
        text += &format!("{}: {}\n", signature.name, signature.about);
        for param in signature.params {
            let star = if param.required { "*" } else { "" };
            text += &format!(
                "  {}{star} ({}): {}\n",
                param.name,
                param.kind.words(),
                param.about
            );
        }
    }
    text.truncate(text.trim_end().len());
    text
}
