//! The words of a text, and the numbers that they begin with.

use std::ops::Range;

/// Runs of letters or digits with their apostrophes; characters of scripts without spaces stand alone.
pub(super) struct Words {
    /// The text, with ASCII letters in lower case: as long as the text.
    lower: String,
    pub(super) spans: Vec<Range<usize>>,
}

impl Words {
    pub(super) fn of(text: &str) -> Self {
        let mut spans: Vec<Range<usize>> = Vec::new();
        let mut joins = false;
        for (at, character) in text.char_indices() {
            let is_wide = !character.is_ascii() && super::super::sentences::is_wide(character);
            if !character.is_alphanumeric() && !matches!(character, '\'' | '’') {
                joins = false;
                continue;
            }
            let end = at + character.len_utf8();
            match spans.last_mut() {
                Some(span) if joins && !is_wide => span.end = end,
                _ => spans.push(at..end),
            }
            joins = !is_wide;
        }
        Self {
            lower: text.to_ascii_lowercase(),
            spans,
        }
    }

    /// A word, empty behind the last one.
    pub(super) fn at(&self, index: usize) -> &str {
        self.spans
            .get(index)
            .map_or("", |span| &self.lower[span.clone()])
    }
}

/// The number that a word begins with: 8 of `8th`.
pub(super) fn number_in_front(word: &str) -> Option<i64> {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let is_ordinal = matches!(&word[digits..], "" | "st" | "nd" | "rd" | "th");
    (is_ordinal && (1..=4).contains(&digits)).then(|| word[..digits].parse().ok())?
}
