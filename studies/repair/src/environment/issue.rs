//! What a planner reads of an issue: all of it where that fits, or else its words, the lines that tell of errors,
//! and some of its blocks.
//!
//! Spec of the repair study, section 1.8.

use crate::{
    Issue,
    markdown::{self, Block, Part},
};

/// Characters of prose.
const PROSE: usize = 2400;
/// Lines that tell of errors, and characters of each.
const ERROR_LINES: usize = 18;
const ERROR_LINE: usize = 220;
/// Fenced blocks, and lines of each: the first and the last half.
const BLOCKS: usize = 2;
const BLOCK_LINES: usize = 160;
/// Characters of a line of a block: longer ones are data and no code.
const BLOCK_LINE: usize = 400;

/// The issue in parts: as it is written where `budget` tokens hold all of it, otherwise the most telling first.
pub(super) fn parts(issue: &Issue, budget: usize, count: &dyn Fn(&str) -> usize) -> Vec<String> {
    let body = markdown::parts(&issue.body);
    let whole = whole(issue, &body);
    let text = whole.concat();
    let may_fit = text.len() / MAX_TOKEN <= budget;
    match may_fit && count(&text) <= budget {
        true => whole,
        false => telling(issue, &body),
    }
}

/// Bytes a token that a text has at most to be counted: longer ones fit no budget.
const MAX_TOKEN: usize = 16;

fn whole(issue: &Issue, body: &[Part]) -> Vec<String> {
    let mut parts = Parts::default();
    parts.add(&issue.title);
    let (mut text, mut quoted) = (String::new(), String::new());
    for part in body {
        match part {
            Part::Prose(prose) => text += prose,
            Part::Block(block) => {
                text += &(shown(block) + "\n");
                quoted += &block.text;
            }
        }
    }
    parts.add(without_blank_lines_around(&text));
    parts.facts(issue, &quoted);
    parts.0
}

fn telling(issue: &Issue, body: &[Part]) -> Vec<String> {
    let mut parts = Parts::default();
    parts.add(&issue.title);
    let mut prose = String::new();
    // With the line that says what they are.
    let mut blocks: Vec<(Option<&str>, &Block)> = Vec::new();
    let mut lead = None;
    for part in body {
        match part {
            Part::Prose(text) => {
                prose += text;
                let last = text.lines().rev().find(|line| !line.trim().is_empty());
                lead = last.filter(|line| line.trim_end().ends_with(':'));
            }
            Part::Block(block) => blocks.push((lead.take(), block)),
        }
    }
    parts.add(&cut(without_blank_lines_around(&prose), PROSE));
    parts.facts(issue, "");
    let lines = blocks.iter().flat_map(|(_, block)| block.text.lines());
    let lines: Vec<String> = lines
        .filter(|line| tells_of_errors(line))
        .take(ERROR_LINES)
        .map(|line| cut(line.trim_end(), ERROR_LINE))
        .collect();
    parts.add(&lines.join("\n"));
    for (lead, block) in blocks.into_iter().take(BLOCKS) {
        let lead = lead.map(|lead| cut(lead.trim(), ERROR_LINE) + "\n");
        parts.add(&(lead.unwrap_or_default() + &shown(block)));
    }
    parts.0
}

#[derive(Default)]
struct Parts(Vec<String>);

impl Parts {
    fn add(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.0.push(text.trim_end().to_owned() + "\n");
        }
    }

    /// What is known of the failure, but for what is quoted.
    fn facts(&mut self, issue: &Issue, quoted: &str) {
        let facts = [
            ("Failure", &issue.failure_frame),
            ("Error", &issue.error_kind),
            ("Assertion", &issue.top_assert),
        ];
        for (name, fact) in facts {
            if let Some(fact) = fact
                && !quoted.contains(fact.as_str())
            {
                // The second line of a statement stands below the first.
                let gap = if fact.contains('\n') { "\n" } else { " " };
                self.add(&format!("{name}:{gap}{fact}"));
            }
        }
    }
}

/// A block with at most so many lines, of at most so many characters.
fn shown(block: &Block) -> String {
    let lines: Vec<String> = block
        .text
        .lines()
        .map(|line| cut(line, BLOCK_LINE))
        .collect();
    let half = BLOCK_LINES / 2;
    let text = match lines.len() > BLOCK_LINES {
        true => {
            let (head, tail) = (&lines[..half], &lines[lines.len() - half..]);
            [head, &["…".to_owned()], tail].concat().join("\n")
        }
        false => lines.join("\n"),
    };
    markdown::fenced(&block.info, &text)
}

/// At most so many characters; what is left out is marked.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => text[..end].trim_end().to_owned() + " …",
        None => text.to_owned(),
    }
}

/// The first line keeps its indentation: it may be one of code.
fn without_blank_lines_around(text: &str) -> &str {
    let start = text.len() - text.trim_start().len();
    let line = text[..start].rfind('\n').map_or(0, |end| end + 1);
    text[line..].trim_end()
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

    const COUNT: fn(&str) -> usize = str::len;

    #[test]
    fn an_issue_is_told_by_its_words_its_errors_and_its_blocks() {
        let long: String = (0..400).map(|n| format!("line {n}\n")).collect();
        let issue = Issue {
            title: "Sorting fails".to_owned(),
            body: format!(
                "Call it:\n```python\nsort([2, 1])\n```\nand see\n```\nTraceback:\n  File \"a.py\", line 3\n\
                 ValueError: no\n{long}```\nThanks\n```\nthird\n```"
            ),
            error_kind: Some("ValueError".to_owned()),
            ..Issue::default()
        };
        let parts = parts(&issue, 100, &COUNT);
        assert_eq!(parts[0], "Sorting fails\n");
        assert_eq!(parts[1], "Call it:\nand see\nThanks\n");
        assert_eq!(parts[2], "Error: ValueError\n");
        assert_eq!(
            parts[3],
            "Traceback:\n  File \"a.py\", line 3\nValueError: no\n"
        );
        assert_eq!(parts[4], "Call it:\n```python\nsort([2, 1])\n```\n");
        assert_eq!(parts[5].lines().count(), BLOCK_LINES + 1 + 2);
        assert!(parts[5].contains("…") && parts[5].contains("line 399"));
        assert_eq!(parts.len(), 6);
    }

    #[test]
    fn an_issue_that_fits_is_shown_as_it_is_written() {
        let issue = Issue {
            title: "`pad` gives a wrong result".to_owned(),
            body: "    indented()\n\nWith tables, this should hold:\r\n\r\n```python\r\nfor a in b:\r\n    assert a\r\n\
                   ```\r\n\r\nWhat comes of it:\n\n- ```\n  AssertionError: no\n"
                .to_owned(),
            failure_frame: Some("tables.py:3".to_owned()),
            top_assert: Some("assert a".to_owned()),
            ..Issue::default()
        };
        assert_eq!(
            parts(&issue, 1000, &COUNT).concat(),
            "`pad` gives a wrong result\n    indented()\n\nWith tables, this should hold:\n\n```python\nfor a in b:\n    \
             assert a\n```\n\nWhat comes of it:\n\n- \n```\nAssertionError: no\n```\nFailure: tables.py:3\n"
        );
        let terse = Issue {
            title: "`pad` fails".to_owned(),
            body: "`ValueError: no`".to_owned(),
            error_kind: Some("ValueError".to_owned()),
            ..Issue::default()
        };
        assert_eq!(
            parts(&terse, 1000, &COUNT),
            ["`pad` fails\n", "`ValueError: no`\n", "Error: ValueError\n"]
        );
        let cut = parts(&issue, 40, &COUNT);
        assert_eq!(
            cut[1],
            "    indented()\n\nWith tables, this should hold:\n\n\nWhat comes of it:\n\n-\n"
        );
    }

    #[test]
    fn what_is_long_is_cut_and_marked() {
        let wide = "x".repeat(5000);
        let issue = Issue {
            title: "Long".to_owned(),
            body: format!("{}\n```json\n{wide}\n```\n", "word ".repeat(1000)),
            top_assert: Some("with raises(E):\n    f()".to_owned()),
            ..Issue::default()
        };
        let parts = parts(&issue, 100, &COUNT);
        assert!(parts[1].ends_with("word …\n") && parts[1].chars().count() <= PROSE + 3);
        assert_eq!(parts[2], "Assertion:\nwith raises(E):\n    f()\n");
        assert_eq!(
            parts[3].lines().nth(1).unwrap().chars().count(),
            BLOCK_LINE + 2
        );
    }
}
