//! A change of a text by a byte span.

use std::ops::Range;

use ruff_text_size::{Ranged, TextSize};

use super::source::Source;

/// Replaces the bytes of a span.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edit {
    pub start: usize,
    pub end: usize,
    pub replacement: String,
}

impl Edit {
    pub fn replace(ranged: impl Ranged, replacement: impl Into<String>) -> Self {
        Self::replace_span(ranged.range().into(), replacement)
    }

    pub fn replace_span(span: Range<usize>, replacement: impl Into<String>) -> Self {
        Self {
            start: span.start,
            end: span.end,
            replacement: replacement.into(),
        }
    }

    pub fn insert(at: TextSize, text: impl Into<String>) -> Self {
        Self::replace_span(at.to_usize()..at.to_usize(), text)
    }

    /// The text with the change. The span lies within it, at character borders.
    pub fn apply(&self, text: &str) -> String {
        [&text[..self.start], &self.replacement, &text[self.end..]].concat()
    }

    /// Whether the changed source still is Python. Only the outermost statement around the span is parsed
    /// again, or the whole text when the span is in no single one.
    pub fn parses(&self, source: &Source) -> bool {
        let body = &source.syntax().body;
        let after = body.partition_point(|statement| statement.start().to_usize() <= self.start);
        let around = after.checked_sub(1).map(|index| &body[index]);
        let Some(around) = around.filter(|statement| self.end <= statement.end().to_usize()) else {
            return Source::parse(self.apply(source.text())).is_ok();
        };
        let (first, last) = source.lines(around);
        let lines = source.line_span(first, last);
        let inner = Self {
            start: self.start - lines.start,
            end: self.end - lines.start,
            replacement: self.replacement.clone(),
        };
        Source::parse(inner.apply(&source.text()[lines])).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_parsed_within_its_statement() {
        let source = Source::parse("x = 1\ndef f(a):\n    return a + 1\ny = 2; z = 3\n").unwrap();
        let at = source.text().find('+').unwrap();
        let minus = Edit::replace_span(at..at + 1, "-");
        assert!(minus.parses(&source));
        assert!(minus.apply(source.text()).contains("return a - 1\ny = 2"));
        assert!(!Edit::replace_span(at..at + 1, "").parses(&source));
        let last = source.text().find('3').unwrap();
        assert!(Edit::replace_span(last..last + 1, "4").parses(&source));
        assert!(!Edit::replace_span(last..last + 1, "").parses(&source));
        assert!(!Edit::replace_span(0..source.text().len(), "(").parses(&source));
    }
}
