//! Text that remembers where its parts came from while it passes through a template.
//!
//! Three private-use characters carry the memory. Before rendering, [`guard`] puts a [`GUARD`] in
//! front of everything in untrusted text that would read as a special token (and in front of the
//! three characters themselves). While rendering, assistant parts are wrapped in [`BEGIN`] and
//! [`END`]. After rendering, [`MarkedText::parse`] takes all marks out again.

use std::ops::Range;

pub(crate) const BEGIN: char = '\u{E000}';
pub(crate) const END: char = '\u{E001}';
pub(crate) const GUARD: char = '\u{E002}';

pub(crate) fn is_mark(c: char) -> bool {
    matches!(c, BEGIN | END | GUARD)
}

/// Rendered text without its marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MarkedText {
    pub(crate) text: String,
    /// Byte offsets in `text`, ascending, at which no special token may begin.
    pub(crate) guarded: Vec<usize>,
    /// Byte ranges of `text` that the assistant says, ascending and apart.
    pub(crate) assistant: Vec<Range<usize>>,
}

/// `text` with a guard before every place where one of `specials` begins and before every mark.
pub(crate) fn guard<'a>(text: &str, specials: impl Iterator<Item = &'a str> + Clone) -> String {
    let mut guarded = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if is_mark(c)
            || specials
                .clone()
                .any(|special| text[at..].starts_with(special))
        {
            guarded.push(GUARD);
        }
        guarded.push(c);
    }
    guarded
}

impl MarkedText {
    pub(crate) fn parse(rendered: &str) -> Self {
        let mut marked = Self {
            text: String::with_capacity(rendered.len()),
            ..Self::default()
        };
        let mut begun = None;
        let mut chars = rendered.chars();
        while let Some(c) = chars.next() {
            match c {
                GUARD => {
                    marked.guarded.push(marked.text.len());
                    marked.text.extend(chars.next());
                }
                BEGIN => begun = Some(marked.text.len()),
                END => {
                    if let Some(start) = begun.take() {
                        marked.assistant.push(start..marked.text.len());
                    }
                }
                c => marked.text.push(c),
            }
        }
        marked
    }

    pub(crate) fn is_assistant(&self, at: usize) -> bool {
        let after = self.assistant.partition_point(|range| range.end <= at);
        self.assistant
            .get(after)
            .is_some_and(|range| range.contains(&at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn marks_leave_the_text_alone(text in "[<|end>a\u{E000}-\u{E002}]{0,24}") {
            let marked = MarkedText::parse(&guard(&text, ["<|end|>", "<"].into_iter()));
            prop_assert_eq!(&marked.text, &text);
            for (at, c) in text.char_indices() {
                let guarded = marked.guarded.contains(&at);
                prop_assert_eq!(guarded, c == '<' || is_mark(c));
            }
            prop_assert!(marked.assistant.is_empty());
        }
    }
}
