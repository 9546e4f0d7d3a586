//! The examples of a statement left out, at a place that is marked: how a prompt is made shorter without being cut.

/// What stands where examples stood.
pub const LEFT_OUT: &str = "[The examples are left out.]";

/// The statement without its sections of examples, each replaced by [`LEFT_OUT`]; `None` where it has none.
///
/// A section begins with a line that is a heading of examples and nothing else (`Examples`, `Sample Input 1:`,
/// `-----Example-----`) and ends before a heading of something else (notes, constraints, a line that begins with
/// `###`), before a fenced block of assertions or of a class or function to complete, which may be all that names the
/// function, or with the statement.
pub fn without_examples(statement: &str) -> Option<String> {
    let mut kept: Vec<&str> = Vec::new();
    let mut inside = false;
    let mut found = false;
    let mut lines = statement.lines().peekable();
    while let Some(line) = lines.next() {
        if is_examples(line) {
            if !inside {
                kept.push(LEFT_OUT);
            }
            (inside, found) = (true, true);
            continue;
        }
        let names_it = line.trim_start().starts_with("```")
            && lines.peek().is_some_and(|next| {
                let begins = ["assert", "class ", "def "];
                begins.iter().any(|word| next.starts_with(word))
            });
        if is_something_else(line) || names_it {
            if inside {
                kept.push("");
            }
            inside = false;
        }
        if !inside {
            kept.push(line);
        }
    }
    found.then(|| kept.join("\n"))
}

/// Words of a line that is a heading, numbers and marks apart.
fn heading(line: &str) -> Option<String> {
    let words = line.trim_matches(|c: char| !c.is_alphanumeric());
    if words.len() > 40 || words.is_empty() {
        return None;
    }
    let words = words.split(|c: char| !c.is_alphabetic());
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    Some(words.join(" "))
}

fn is_examples(line: &str) -> bool {
    const HEADINGS: [&str; 18] = [
        "example",
        "examples",
        "example input",
        "example inputs",
        "example output",
        "example test",
        "example tests",
        "example test case",
        "example test cases",
        "sample",
        "samples",
        "sample input",
        "sample inputs",
        "sample output",
        "sample outputs",
        "sample test",
        "sample tests",
        "sample test cases",
    ];
    heading(line).is_some_and(|words| HEADINGS.contains(&words.as_str()))
}

fn is_something_else(line: &str) -> bool {
    const HEADINGS: [&str; 8] = [
        "note",
        "notes",
        "constraint",
        "constraints",
        "hint",
        "hints",
        "scoring",
        "subtasks",
    ];
    line.starts_with("###") || heading(line).is_some_and(|words| HEADINGS.contains(&words.as_str()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn examples_are_replaced_by_a_line_that_says_so() {
        let cases = [
            (
                "Add.\n\n-----Examples-----\nInput\n1 2\n\nOutput\n3\n",
                Some("Add.\n\n[The examples are left out.]"),
            ),
            (
                "Add.\n\nSample Input 1:\n1 2\n\nSample Output 1:\n3\n\nSample Input 2:\n5\n\nNote\n\nBig numbers.",
                Some("Add.\n\n[The examples are left out.]\n\nNote\n\nBig numbers."),
            ),
            (
                "### Question:\nAdd.\n\nExample 1:\nx\n\n### Format: Read.\n### Answer:",
                Some(
                    "### Question:\nAdd.\n\n[The examples are left out.]\n\n### Format: Read.\n### Answer:",
                ),
            ),
            (
                "Add.\n\nExamples:\nf(1)\n\n```python\nassert f(1) == 2\n```",
                Some("Add.\n\n[The examples are left out.]\n\n```python\nassert f(1) == 2\n```"),
            ),
            (
                "For example, add 1 and 2.\nExample of nothing in particular.",
                None,
            ),
            ("", None),
        ];
        for (statement, expected) in cases {
            assert_eq!(
                without_examples(statement).as_deref(),
                expected,
                "{statement}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_left_was_there_and_has_no_examples(
            statement in "(Examples\n|Note\n|### F\n|a b\n|```\n|assert x\n|\n){0,12}"
        ) {
            match without_examples(&statement) {
                None => prop_assert!(!statement.contains("Examples")),
                Some(shorter) => {
                    prop_assert!(shorter.contains(LEFT_OUT));
                    prop_assert_eq!(without_examples(&shorter), None);
                    let lines: Vec<&str> = statement.lines().collect();
                    for line in shorter.lines().filter(|line| !line.is_empty() && *line != LEFT_OUT) {
                        prop_assert!(lines.contains(&line));
                    }
                }
            }
        }
    }
}
