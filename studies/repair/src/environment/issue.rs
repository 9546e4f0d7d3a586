//! What a planner reads of an issue: its words, the lines that tell of errors, and some of its blocks.
//!
//! Spec of the repair study, section 1.8.

use crate::Issue;

/// Characters of prose.
const PROSE: usize = 2400;
/// Lines that tell of errors, and characters of each.
const ERROR_LINES: usize = 18;
const ERROR_LINE: usize = 220;
/// Fenced blocks, and lines of each: the first and the last half.
const BLOCKS: usize = 2;
const BLOCK_LINES: usize = 160;

/// The issue in parts, the most telling first.
pub(super) fn parts(issue: &Issue) -> Vec<String> {
    let (prose, blocks) = divided(&issue.body);
    let mut parts = Vec::new();
    let mut add = |text: String| {
        if !text.trim().is_empty() {
            parts.push(text.trim_end().to_owned() + "\n");
        }
    };
    add(issue.title.clone());
    add(prose.trim().chars().take(PROSE).collect());
    let facts = [
        ("Failure", &issue.failure_frame),
        ("Error", &issue.error_kind),
        ("Assertion", &issue.top_assert),
    ];
    for (name, fact) in facts {
        if let Some(fact) = fact {
            add(format!("{name}: {fact}"));
        }
    }
    let telling = blocks.iter().flat_map(|block| block.lines());
    let telling: Vec<String> = telling
        .filter(|line| tells_of_errors(line))
        .take(ERROR_LINES)
        .map(|line| line.trim_end().chars().take(ERROR_LINE).collect())
        .collect();
    add(telling.join("\n"));
    for block in blocks.iter().take(BLOCKS) {
        let lines: Vec<&str> = block.lines().collect();
        let shown = match lines.len() > BLOCK_LINES {
            true => {
                let (head, tail) = (
                    &lines[..BLOCK_LINES / 2],
                    &lines[lines.len() - BLOCK_LINES / 2..],
                );
                [head, &["…"], tail].concat()
            }
            false => lines,
        };
        add(format!("```\n{}\n```", shown.join("\n")));
    }
    parts
}

/// What stands outside of fenced blocks, and the blocks.
fn divided(body: &str) -> (String, Vec<String>) {
    let (mut prose, mut blocks) = (String::new(), Vec::new());
    let mut block: Option<String> = None;
    for line in body.lines() {
        let is_fence = line.trim_start().starts_with("```");
        match (&mut block, is_fence) {
            (Some(_), true) => blocks.extend(block.take()),
            (None, true) => block = Some(String::new()),
            (Some(text), false) => *text += &format!("{line}\n"),
            (None, false) => prose += &format!("{line}\n"),
        }
    }
    blocks.extend(block);
    (prose, blocks)
}

fn tells_of_errors(line: &str) -> bool {
    let line = line.trim();
    [
        "Error",
        "Exception",
        "Traceback",
        "assert",
        "Warning",
        "FAILED",
    ]
    .iter()
    .any(|word| line.contains(word))
        || line.starts_with("File \"")
        || line.starts_with("E ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issue_is_told_by_its_words_its_errors_and_its_blocks() {
        let long: String = (0..400).map(|n| format!("line {n}\n")).collect();
        let issue = Issue {
            title: "Sorting fails".to_owned(),
            body: format!(
                "Call it:\n```python\nsort([2, 1])\n```\nand see:\n```\nTraceback:\n  File \"a.py\", line 3\n\
                 ValueError: no\n{long}```\nThanks\n```\nthird\n```"
            ),
            error_kind: Some("ValueError".to_owned()),
            ..Issue::default()
        };
        let parts = parts(&issue);
        assert_eq!(parts[0], "Sorting fails\n");
        assert_eq!(parts[1], "Call it:\nand see:\nThanks\n");
        assert_eq!(parts[2], "Error: ValueError\n");
        assert_eq!(
            parts[3],
            "Traceback:\n  File \"a.py\", line 3\nValueError: no\n"
        );
        assert_eq!(parts[4], "```\nsort([2, 1])\n```\n");
        assert_eq!(parts[5].lines().count(), BLOCK_LINES + 1 + 2);
        assert!(parts[5].contains("…") && parts[5].contains("line 399"));
        assert_eq!(parts.len(), 6);
    }
}
