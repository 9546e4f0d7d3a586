//! Text that remembers where its parts came from while it passes through a template.
//!
//! Three private-use characters carry the memory. Before rendering, [`guard`] puts a [`GUARD`] in
//! front of everything in untrusted text that would read as a special token, or whose end could go on to
//! be one with what stands after it (and in front of the three characters themselves). While rendering,
//! assistant parts are wrapped in [`BEGIN`] and [`END`]. After rendering, [`MarkedText::parse`] takes all
//! marks out again.
//!
//! Templates compare, cut and sort the texts that they are given, so no other text carries a mark: words
//! such as `python`, which stand inside special tokens, stay what they are. A template that itself writes
//! the first part of a special token in front of a text makes the token on purpose.

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
    /// Byte offsets in `text`, ascending, that no special token may cover.
    pub(crate) guarded: Vec<usize>,
    /// Byte ranges of `text` that the assistant says, ascending and apart.
    pub(crate) assistant: Vec<Range<usize>>,
}

/// `text` with a guard before every mark, before every place where one of `specials` begins, and where
/// its end could go on to be one.
pub(crate) fn guard(text: &str, specials: &[&str]) -> String {
    // Most characters begin no special token.
    let mut first = [false; 256];
    for byte in specials.iter().filter_map(|special| special.bytes().next()) {
        first[usize::from(byte)] = true;
    }
    let mut guarded = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let rest = &text[at..];
        let suspect = first[usize::from(rest.as_bytes()[0])];
        // A template may strip the white space around a text.
        let begins = |special: &&str| {
            rest.starts_with(*special)
                || special.starts_with(rest)
                || special.starts_with(rest.trim_end())
        };
        if is_mark(c) || (suspect && specials.iter().any(begins)) {
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

    #[test]
    fn words_inside_special_tokens_are_words() {
        let specials = ["<|im_start|>", "<|python_tag|>", "<repo_name>"];
        for word in ["python", "start", "name", "tag|>", "> a quote", "im"] {
            assert_eq!(guard(word, &specials), word);
        }
        assert_eq!(guard("a <|im", &specials), "a \u{E002}<|im");
    }

    proptest! {
        #[test]
        fn marks_leave_the_text_alone(text in "[<|end>a\u{E000}-\u{E002}]{0,24}") {
            let marked = MarkedText::parse(&guard(&text, &["<|end|>", "<"]));
            prop_assert_eq!(&marked.text, &text);
            for (at, c) in text.char_indices() {
                let guarded = marked.guarded.contains(&at);
                prop_assert_eq!(guarded, c == '<' || is_mark(c));
            }
            prop_assert!(marked.assistant.is_empty());
        }

        /// Whatever other texts stand before and whatever stands after: no special token covers a part of
        /// the text.
        #[test]
        fn no_special_token_reaches_into_guarded_text(
            before in "[<|endab>/ ]{0,6}",
            text in "[<|endab>/ ]{0,9}",
            after in "[<|endab>/ ]{0,6}",
            strip: bool,
        ) {
            let specials = ["<|end|>", "<", "</b>", "<|a|>", "ab"];
            let [shown_before, shown] = [&before, &text].map(|text| guard(text, &specials));
            let [before, text, shown_before, shown] =
                [&before, &text, &shown_before, &shown].map(|text| if strip { text.trim() } else { text });
            let marked = MarkedText::parse(&format!("{shown_before}{shown}{after}"));
            let inside = before.len()..before.len() + text.len();
            for special in specials {
                for (at, _) in marked.text.match_indices(special) {
                    let covers = at..at + special.len();
                    let reaches = covers.start.max(inside.start) < covers.end.min(inside.end);
                    let held = marked.guarded.iter().any(|guard| covers.contains(guard));
                    prop_assert!(!reaches || held, "{special} at {at} of {:?}", marked.text);
                }
            }
        }
    }
}
