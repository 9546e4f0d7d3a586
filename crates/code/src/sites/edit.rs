//! A change of a text by a byte span.

use std::ops::Range;

use ruff_python_ast::Stmt;
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

    /// Whether the changed source still is Python. Only its [`definition`](Self::definition) is parsed again.
    pub fn parses(&self, source: &Source) -> bool {
        Source::parse(self.definition(source)).is_ok()
    }

    /// The innermost definition around the span as the edit makes it, as a program of its own; the whole text
    /// when the span is in none.
    pub fn definition(&self, source: &Source) -> String {
        let Some(around) = definition_around(&source.syntax().body, self) else {
            return self.apply(source.text());
        };
        let (first, last) = source.lines(around);
        let lines = source.line_span(first, last);
        let inner = Self {
            start: self.start - lines.start,
            end: self.end - lines.start,
            replacement: self.replacement.clone(),
        };
        let text = inner.apply(&source.text()[lines]);
        if text.starts_with([' ', '\t']) {
            format!("if 1:\n{text}")
        } else {
            text
        }
    }
}

/// The innermost function or class that stands in a class or in a function and that a span is within.
fn definition_around<'a>(mut body: &'a [Stmt], edit: &Edit) -> Option<&'a Stmt> {
    let mut around = None;
    loop {
        let after = body.partition_point(|statement| statement.start().to_usize() <= edit.start);
        let Some(statement) = after.checked_sub(1).map(|index| &body[index]) else {
            return around;
        };
        let inside = edit.end <= statement.end().to_usize();
        body = match statement {
            Stmt::FunctionDef(function) if inside => &function.body,
            Stmt::ClassDef(class) if inside => &class.body,
            _ => return around,
        };
        around = Some(statement);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_parsed_within_its_definition() {
        let text = "x = 1\nclass C:\n    def f(a):\n        return a + 1\ny = 2; z = 3\n";
        let source = Source::parse(text).unwrap();
        let at = source.text().find('+').unwrap();
        let minus = Edit::replace_span(at..at + 1, "-");
        assert!(minus.parses(&source));
        assert!(
            minus
                .apply(source.text())
                .contains("        return a - 1\ny = 2")
        );
        assert!(!Edit::replace_span(at..at + 1, "").parses(&source));
        let last = source.text().find('3').unwrap();
        assert!(Edit::replace_span(last..last + 1, "4").parses(&source));
        assert!(!Edit::replace_span(last..last + 1, "").parses(&source));
        assert!(!Edit::replace_span(0..source.text().len(), "(").parses(&source));
    }
}
