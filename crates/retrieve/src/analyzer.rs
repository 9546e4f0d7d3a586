//! Text to the terms that are indexed and looked for.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};
use serde::{Deserialize, Serialize};
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// Splits text into terms: Unicode words in lower case, and pairs of neighbouring characters of scripts that are
/// written without spaces.
///
/// - Text is brought to Unicode's NFKC form first: composed and decomposed letters, and full-width and ordinary
///   ones, are equal.
/// - A word is a run of letters and digits. An apostrophe between letters belongs to the word (`don't`), but a
///   final `'s` does not (`Anna's` is `anna`). A point or comma between digits does (`3.14`); every other sign
///   separates.
/// - Runs of Chinese, Japanese, Korean, Thai, Lao, Burmese and Khmer characters become overlapping pairs; a run of
///   one character is a term of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Analyzer {
    pub stemming: Stemming,
    pub unspaced_text: UnspacedText,
}

/// Whether forms of a word count as the same term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stemming {
    #[default]
    None,
    /// Snowball's English stemmer (Porter2), on words of the letters a to z.
    English,
}

/// The terms of scripts written without spaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnspacedText {
    /// Pairs of neighbours; a character by itself only where it stands alone.
    #[default]
    Bigrams,
    /// Pairs, and every character besides, so that one shared character is a match.
    BigramsAndCharacters,
}

impl Analyzer {
    /// The terms in order, repetitions included.
    pub fn terms(&self, text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        self.for_each_term(text, |term| terms.push(term.to_owned()));
        terms
    }

    /// Calls `visit` with each of [`Analyzer::terms`] without keeping them.
    pub fn for_each_term(&self, text: &str, mut visit: impl FnMut(&str)) {
        let stemmer = match self.stemming {
            Stemming::None => None,
            Stemming::English => Some(Stemmer::create(Algorithm::English)),
        };
        let mut finish = |word: &str| match &stemmer {
            Some(stemmer)
                if word
                    .bytes()
                    .all(|it| it.is_ascii_lowercase() || it == b'\'') =>
            {
                visit(&stemmer.stem(word));
            }
            _ => visit(word),
        };
        let characters = self.unspaced_text == UnspacedText::BigramsAndCharacters;
        if text.is_ascii() {
            ascii_words(text, finish);
        } else {
            let folded: String = text.nfkc().flat_map(char::to_lowercase).collect();
            unicode_terms(&folded, characters, &mut finish);
        }
    }
}

fn ascii_words(text: &str, mut visit: impl FnMut(&str)) {
    let lower: Cow<'_, str> = if text.bytes().any(|it| it.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    };
    let bytes = lower.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() {
            let joins = |sign: u8| {
                let (before, after) = (bytes[at - 1], bytes.get(at + 1).copied().unwrap_or(b' '));
                match sign {
                    b'\'' => before.is_ascii_alphabetic() && after.is_ascii_alphabetic(),
                    b'.' | b',' => before.is_ascii_digit() && after.is_ascii_digit(),
                    _ => false,
                }
            };
            if !bytes[at].is_ascii_alphanumeric() && !joins(bytes[at]) {
                break;
            }
            at += 1;
        }
        visit(without_possessive(&lower[start..at]));
    }
}

/// Terms of text in lower case.
fn unicode_terms(text: &str, characters: bool, visit: &mut impl FnMut(&str)) {
    let mut word = String::new();
    // The start of each character of the current unspaced run in `run`, marks with the character they modify.
    let (mut run, mut starts) = (String::new(), Vec::new());
    let mut letters = text.chars().filter(|it| !is_ignorable(*it)).peekable();
    while let Some(letter) = letters.next() {
        let after = letters.peek().copied().unwrap_or(' ');
        let is_mark = is_combining_mark(letter);
        if is_mark && !run.is_empty() {
            run.push(letter);
        } else if is_unspaced(letter) {
            end_word(&mut word, visit);
            starts.push(run.len());
            run.push(letter);
        } else {
            end_run(&mut run, &mut starts, characters, visit);
            let joins = |is_kind: fn(char) -> bool| {
                word.ends_with(is_kind) && is_kind(after) && !is_unspaced(after)
            };
            match letter {
                '\'' | '\u{2019}' if joins(char::is_alphabetic) => word.push('\''),
                '.' | ',' if joins(char::is_numeric) => word.push(letter),
                _ if letter.is_alphanumeric() || (is_mark && !word.is_empty()) => word.push(letter),
                _ => end_word(&mut word, visit),
            }
        }
    }
    end_word(&mut word, visit);
    end_run(&mut run, &mut starts, characters, visit);
}

fn end_word(word: &mut String, visit: &mut impl FnMut(&str)) {
    if !word.is_empty() {
        visit(without_possessive(word));
        word.clear();
    }
}

fn end_run(
    run: &mut String,
    starts: &mut Vec<usize>,
    characters: bool,
    visit: &mut impl FnMut(&str),
) {
    let start = |at: usize| starts.get(at).copied().unwrap_or(run.len());
    for at in 0..starts.len() {
        if characters || starts.len() == 1 {
            visit(&run[start(at)..start(at + 1)]);
        }
        if at + 1 < starts.len() {
            visit(&run[start(at)..start(at + 2)]);
        }
    }
    run.clear();
    starts.clear();
}

fn without_possessive(word: &str) -> &str {
    word.strip_suffix("'s").unwrap_or(word)
}

/// Soft hyphen, joiners and the byte order mark: they change how a word looks, not what it is.
fn is_ignorable(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{200c}' | '\u{200d}' | '\u{2060}' | '\u{feff}'
    )
}

/// Letters of scripts whose words are not separated by spaces, and of Korean, whose particles are written
/// together with the noun.
fn is_unspaced(letter: char) -> bool {
    matches!(u32::from(letter),
        0x0e01..=0x0e30 | 0x0e32..=0x0e33 | 0x0e40..=0x0e46 // Thai
        | 0x0e81..=0x0eb0 | 0x0eb2..=0x0eb3 | 0x0ebd..=0x0ec6 | 0x0edc..=0x0edf // Lao
        | 0x1000..=0x102a | 0x103f | 0x1050..=0x1055 // Burmese
        | 0x1100..=0x11ff // Hangul letters
        | 0x1780..=0x17b3 // Khmer
        | 0x3005..=0x3007 | 0x3031..=0x3035 | 0x303b // repetition marks, zero
        | 0x3041..=0x3096 | 0x309d..=0x309f // Hiragana
        | 0x30a1..=0x30fa | 0x30fc..=0x30ff // Katakana
        | 0x3105..=0x312f | 0x3131..=0x318e | 0x31a0..=0x31bf | 0x31f0..=0x31ff
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff // Han
        | 0xac00..=0xd7a3 | 0xd7b0..=0xd7fb // Hangul
        | 0xf900..=0xfaff
        | 0x1b000..=0x1b16f
        | 0x20000..=0x323af // Han
    )
}
