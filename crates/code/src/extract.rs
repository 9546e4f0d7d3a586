//! Finds the Python program in a model's answer (spec of the critique study, section 4.2).

use std::ops::Range;

/// Which fenced block of an answer is the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fence {
    /// The first block; an unclosed one runs to the end of the text.
    First,
    /// The last closed block; when none is closed, as [`Fence::First`]. Safer when the answer
    /// quotes snippets before the whole program.
    LastComplete,
}

/// A program and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extracted<'a> {
    /// The block's content without its fences; the whole text unchanged when there is no fence.
    pub program: &'a str,
    /// Whether the program stood in a fenced block.
    pub fenced: bool,
    /// Whether that block was closed.
    pub closed: bool,
}

/// Extracts the program from `text`. A fence is three backticks anywhere; directly behind the
/// opening one `python` is skipped, in any case. Another language's tag becomes the program's first
/// line, as in the original system.
pub fn extract_python(text: &str, which: Fence) -> Extracted<'_> {
    let blocks = blocks(text);
    let chosen = match which {
        Fence::First => blocks.first(),
        Fence::LastComplete => blocks
            .iter()
            .rev()
            .find(|block| block.closed)
            .or(blocks.first()),
    };
    match chosen {
        Some(block) => Extracted {
            program: text[block.content.clone()].trim_matches(['\n', '\r']),
            fenced: true,
            closed: block.closed,
        },
        None => Extracted {
            program: text,
            fenced: false,
            closed: false,
        },
    }
}

const TICKS: &str = "```";
const TAG: &str = "python";

struct Block {
    content: Range<usize>,
    closed: bool,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut at = 0;
    while let Some(open) = text[at..].find(TICKS) {
        let mut start = at + open + TICKS.len();
        let tagged = text
            .get(start..start + TAG.len())
            .is_some_and(|tag| tag.eq_ignore_ascii_case(TAG));
        if tagged {
            start += TAG.len();
        }
        let Some(length) = text[start..].find(TICKS) else {
            blocks.push(Block {
                content: start..text.len(),
                closed: false,
            });
            break;
        };
        blocks.push(Block {
            content: start..start + length,
            closed: true,
        });
        at = start + length + TICKS.len();
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, first: &str, last_complete: &str) {
        assert_eq!(extract_python(text, Fence::First).program, first);
        assert_eq!(
            extract_python(text, Fence::LastComplete).program,
            last_complete
        );
    }

    #[test]
    fn blocks_are_found_in_answers() {
        check("no fence\n", "no fence\n", "no fence\n");
        check("a\n```python\nx = 1\n```\nb", "x = 1", "x = 1");
        check("```PYTHON\n  x = 1\n```", "  x = 1", "  x = 1");
        check("```\nx\n```", "x", "x");
        check("```py\nx\n```", "py\nx", "py\nx");
        check(
            "```python\nfirst\n```\n```python\nlast\n```",
            "first",
            "last",
        );
        check(
            "```python\nfirst\n```\nthen\n```python\ncut off",
            "first",
            "first",
        );
        check("```python\ncut off", "cut off", "cut off");
        check("```python", "", "");
        check("```pythön\nx```", "pythön\nx", "pythön\nx");
    }

    #[test]
    fn says_whether_the_block_was_closed() {
        assert!(!extract_python("x", Fence::First).fenced);
        assert!(!extract_python("```x", Fence::First).closed);
        assert!(extract_python("```x```", Fence::First).closed);
    }

    proptest! {
        #[test]
        fn any_text_has_a_program_within_it(text in "(```|python|\\PC|\n){0,20}") {
            for which in [Fence::First, Fence::LastComplete] {
                prop_assert!(text.contains(extract_python(&text, which).program));
            }
        }

        #[test]
        fn a_wrapped_program_comes_back(program in "[a-z =\n]{0,40}", before in "[a-z\n]{0,10}") {
            let text = format!("{before}```python\n{program}\n```");
            let found = extract_python(&text, Fence::First).program;
            prop_assert_eq!(found, program.trim_matches('\n'));
        }
    }
}
