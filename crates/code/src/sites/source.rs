//! A Python text, parsed, with its tokens and lines.

use std::ops::Range;

use ruff_python_ast::{
    AnyNodeRef, ModModule,
    comparable::ComparableStmt,
    token::{Token, TokenKind, Tokens},
    visitor::source_order::{SourceOrderVisitor, TraversalSignal, walk_body},
};
use ruff_python_parser::{ParseError, Parsed, parse_module};
use ruff_text_size::{Ranged, TextRange, TextSize};
use thiserror::Error;

use crate::graph::nesting;

/// Deeper expressions and blocks are refused: whoever walks over them recurses, on its caller's stack.
const MAX_DEPTH: usize = 200;

/// Why a text is no source to look for sites in.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SourceFault {
    #[error("line {line}: {message}")]
    Syntax { line: u32, message: String },
    #[error("its code is nested deeper than {MAX_DEPTH} levels")]
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
        let line_ends: Vec<u32> = memchr::memchr_iter(b'\n', text.as_bytes())
            .map(|at| at as u32)
            .collect();
        let bound = nesting::bound(text.as_bytes()).max(block_depth(&text));
        let parsed = match bound <= MAX_DEPTH {
            true => parse_module(&text),
            false => parse_deep(&text)?,
        };
        let parsed = parsed.map_err(|error| SourceFault::Syntax {
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

    /// Whether `other` is the same but for layout: comments, blanks, brackets that change nothing, and how
    /// strings are quoted.
    pub fn is_same_syntax(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.syntax.body.iter(), other.syntax.body.iter());
        mine.map(ComparableStmt::from)
            .eq(theirs.map(ComparableStmt::from))
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

/// Parses what may be nested too deep for the caller's stack, and is kept if it is not.
fn parse_deep(text: &str) -> Result<Result<Parsed<ModModule>, ParseError>, SourceFault> {
    if !nesting::is_parsable(text.as_bytes()) || block_depth(text) > nesting::DEEPEST {
        return Err(SourceFault::TooDeep);
    }
    let parse = || {
        let parsed = match parse_module(text) {
            Ok(parsed) => parsed,
            Err(error) => return Ok(Err(error)),
        };
        let mut depth = Depth::default();
        walk_body(&mut depth, &parsed.syntax().body);
        if depth.is_too_deep {
            // Dropping the tree would recurse as deep; one of these is left lying about instead.
            std::mem::forget(parsed);
            return Err(SourceFault::TooDeep);
        }
        Ok(Ok(parsed))
    };
    std::thread::scope(|scope| {
        let parser = std::thread::Builder::new().stack_size(nesting::STACK);
        let parser = parser.spawn_scoped(scope, parse);
        let parsed = parser.ok().and_then(|parser| parser.join().ok());
        parsed.unwrap_or(Err(SourceFault::TooDeep))
    })
}

/// How deep a tree is, as far as [`MAX_DEPTH`].
#[derive(Default)]
struct Depth {
    at: usize,
    is_too_deep: bool,
}

impl<'a> SourceOrderVisitor<'a> for Depth {
    fn enter_node(&mut self, _node: AnyNodeRef<'a>) -> TraversalSignal {
        self.at += 1;
        self.is_too_deep |= self.at > MAX_DEPTH;
        match self.at > MAX_DEPTH {
            true => TraversalSignal::Skip,
            false => TraversalSignal::Traverse,
        }
    }

    fn leave_node(&mut self, _node: AnyNodeRef<'a>) {
        self.at -= 1;
    }
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
        // Brackets alone make no tree deeper, signs do.
        assert_eq!(parse(brackets(5_000)), None);
        let signs = |count: usize| format!("x = {}1\n", "-".repeat(count));
        assert_eq!(parse(signs(MAX_DEPTH - 3)), None);
        assert_eq!(parse(signs(MAX_DEPTH)), Some(SourceFault::TooDeep));
        let wide = "(a == 'b' and c.d()[0] != f'{e:>{g}}') or ".repeat(400);
        assert_eq!(parse(format!("x = {wide}h\n")), None);
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
