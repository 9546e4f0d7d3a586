//! A Python text, parsed, with its tokens and lines.

use std::ops::Range;

use ruff_python_ast::{
    ModModule,
    token::{Token, TokenKind, Tokens},
};
use ruff_python_parser::parse_module;
use ruff_text_size::{Ranged, TextRange, TextSize};
use thiserror::Error;

use crate::graph::nesting;

/// Deeper expressions and blocks are refused: the parser recurses, on its caller's stack.
const MAX_DEPTH: usize = 200;

/// Why a text is no source to look for sites in.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SourceFault {
    #[error("line {line}: {message}")]
    Syntax { line: u32, message: String },
    #[error("its code may be nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    #[error("it is {bytes} bytes long; at most {} are read", u32::MAX)]
    TooLong { bytes: usize },
}

/// A Python module: text and syntax.
#[derive(Clone, Debug)]
pub struct Source {
    text: String,
    syntax: ModModule,
    tokens: Tokens,
    /// Offsets of line feeds.
    line_ends: Vec<u32>,
}

impl Source {
    /// # Errors
    /// Texts that are not Python 3, and those that nest too deep.
    pub fn parse(text: impl Into<String>) -> Result<Self, SourceFault> {
        let text = text.into();
        let bytes = text.len();
        if u32::try_from(bytes).is_err() {
            return Err(SourceFault::TooLong { bytes });
        }
        if nesting::bound(text.as_bytes()).max(block_depth(&text)) > MAX_DEPTH {
            return Err(SourceFault::TooDeep);
        }
        let line_ends: Vec<u32> = memchr::memchr_iter(b'\n', text.as_bytes())
            .map(|at| at as u32)
            .collect();
        let parsed = parse_module(&text).map_err(|error| SourceFault::Syntax {
            line: line_of(&line_ends, error.location.start()),
            message: error.error.to_string(),
        })?;
        let tokens = parsed.tokens().clone();
        Ok(Self {
            syntax: parsed.into_syntax(),
            tokens,
            text,
            line_ends,
        })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn syntax(&self) -> &ModModule {
        &self.syntax
    }

    /// The text of a node, or of any range of this source.
    pub fn slice(&self, ranged: impl Ranged) -> &str {
        &self.text[ranged.range()]
    }

    /// The line of an offset, from 1.
    pub fn line(&self, offset: TextSize) -> u32 {
        line_of(&self.line_ends, offset)
    }

    /// First and last line of a node, from 1, both included.
    pub fn lines(&self, ranged: impl Ranged) -> (u32, u32) {
        let range = ranged.range();
        let last = range.end().max(range.start() + TextSize::from(1)) - TextSize::from(1);
        (self.line(range.start()), self.line(last))
    }

    /// Bytes of whole lines, with the line feed of the last.
    pub fn line_span(&self, first: u32, last: u32) -> Range<usize> {
        let start = match first {
            0 | 1 => 0,
            _ => self.line_end(first - 1),
        };
        start..self.line_end(last)
    }

    /// Blanks that the line of `offset` begins with.
    pub fn indentation(&self, offset: TextSize) -> &str {
        let line = self.line(offset);
        let text = &self.text[self.line_span(line, line)];
        &text[..text.len() - text.trim_start_matches([' ', '\t', '\x0c']).len()]
    }

    /// Tokens that lie wholly in `range`, without comments and line ends inside of expressions.
    pub fn tokens(&self, range: TextRange) -> impl DoubleEndedIterator<Item = Token> + '_ {
        let first = self
            .tokens
            .partition_point(|token| token.start() < range.start());
        self.tokens[first..]
            .iter()
            .take_while(move |token| token.end() <= range.end())
            .filter(|token| !token.kind().is_trivia())
            .copied()
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// The operator between two neighbouring operands: what stands there apart from brackets. `None` for
    /// nodes that are no such neighbours.
    pub fn operator_between(&self, left: impl Ranged, right: impl Ranged) -> Option<TextRange> {
        if left.end() > right.start() {
            return None;
        }
        let between = TextRange::new(left.end(), right.start());
        let is_operator =
            |token: &Token| !matches!(token.kind(), TokenKind::Lpar | TokenKind::Rpar);
        let mut operators = self.tokens(between).filter(is_operator);
        let first = operators.next()?;
        let last = operators.next_back().unwrap_or(first);
        Some(TextRange::new(first.start(), last.end()))
    }

    /// The node with the round brackets around it, at most up to `within`: a range in which no bracket next to
    /// the node belongs to something else, as that of a call does.
    pub fn with_brackets(&self, node: impl Ranged, within: TextRange) -> TextRange {
        let mut range = node.range();
        loop {
            let before = TextRange::new(within.start().min(range.start()), range.start());
            let after = TextRange::new(range.end(), within.end().max(range.end()));
            let opening = self.tokens(before).next_back();
            let closing = self.tokens(after).next();
            match (opening, closing) {
                (Some(opening), Some(closing))
                    if opening.kind() == TokenKind::Lpar && closing.kind() == TokenKind::Rpar =>
                {
                    range = TextRange::new(opening.start(), closing.end());
                }
                _ => return range,
            }
        }
    }

    fn line_end(&self, line: u32) -> usize {
        let end = self.line_ends.get(line.saturating_sub(1) as usize);
        end.map_or(self.text.len(), |end| *end as usize + 1)
    }
}

fn line_of(line_ends: &[u32], offset: TextSize) -> u32 {
    line_ends.partition_point(|end| *end < offset.to_u32()) as u32 + 1
}

/// An upper bound of how deep blocks nest.
fn block_depth(text: &str) -> usize {
    let mut open: Vec<usize> = Vec::new();
    let mut most = 0;
    for line in text.lines() {
        let width = line.len() - line.trim_start_matches([' ', '\t', '\x0c']).len();
        if width == line.len() {
            continue;
        }
        while open.last().is_some_and(|outer| *outer >= width) {
            open.pop();
        }
        open.push(width);
        most = most.max(open.len());
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_spans() {
        let source = Source::parse("a = 1\nb = (\n  2\n)\n").unwrap();
        let second = &source.syntax().body[1];
        assert_eq!(source.lines(second), (2, 4));
        assert_eq!(&source.text()[source.line_span(2, 3)], "b = (\n  2\n");
        assert_eq!(source.line_span(4, 9), 16..18);
        assert_eq!(source.indentation(TextSize::from(14)), "  ");
    }

    #[test]
    fn what_nests_too_deep_is_refused_and_the_deepest_that_is_not_fits_a_small_stack() {
        let parse = |text: String| {
            let thread = std::thread::Builder::new().stack_size(2 << 20);
            let parsed = thread.spawn(move || Source::parse(text).err()).unwrap();
            parsed.join().unwrap()
        };
        let brackets = |count: usize| format!("{}1{}\n", "(".repeat(count), ")".repeat(count));
        assert_eq!(parse(brackets(MAX_DEPTH - 1)), None);
        assert_eq!(parse(brackets(100_000)), Some(SourceFault::TooDeep));
        let blocks = |count: usize| {
            let line = |depth: usize| format!("{}if a:\n", " ".repeat(depth));
            let lines: String = (0..count).map(line).collect();
            format!("{lines}{}a\n", " ".repeat(count))
        };
        assert_eq!(parse(blocks(MAX_DEPTH - 1)), None);
        assert_eq!(parse(blocks(2_000)), Some(SourceFault::TooDeep));
    }

    #[test]
    fn operators_and_brackets_are_found_by_tokens() {
        let source = Source::parse("x = (((a)) # not in\n not  in ((b)))\n").unwrap();
        let assign = source.syntax().body[0].as_assign_stmt().unwrap();
        let compare = assign.value.as_compare_expr().unwrap();
        let operator = source
            .operator_between(&*compare.left, &compare.comparators[0])
            .unwrap();
        assert_eq!(source.slice(operator), "not  in");
        let within = assign.range();
        assert_eq!(
            source.slice(source.with_brackets(&*compare.left, compare.range())),
            "((a))"
        );
        let whole = source.with_brackets(compare, within);
        assert_eq!(source.slice(whole), "(((a)) # not in\n not  in ((b)))");
    }
}
