//! Text cut into sentences, and sentences cut to a number of tokens.

/// Words that end in a full stop without ending a sentence.
const ABBREVIATIONS: &[&str] = &[
    "mr", "mrs", "ms", "dr", "prof", "st", "jr", "sr", "vs", "etc", "inc", "ltd", "co", "dept",
    "approx", "fig", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov",
    "dec",
];

/// The sentences of a text, trimmed, in order; together they hold everything but white space. Latin
/// sentences end in `.`, `!`, `?` or `…` before white space, Chinese and Japanese ones in `。`, `！`, `？`
/// or `；`; lines end sentences too.
pub fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let mut end = at + character.len_utf8();
        let ends = match character {
            '\n' => true,
            '。' | '！' | '？' | '；' => {
                while let Some(&(at, next)) = characters.peek() {
                    if !is_wide_end(next) && !is_closing(next) {
                        break;
                    }
                    end = at + next.len_utf8();
                    characters.next();
                }
                true
            }
            '.' | '!' | '?' | '…' => {
                while let Some(&(at, next)) = characters.peek() {
                    if !matches!(next, '.' | '!' | '?' | '…') && !is_closing(next) {
                        break;
                    }
                    end = at + next.len_utf8();
                    characters.next();
                }
                let sign = &text[at..end];
                let rest = &text[end..];
                let stands_before_space = rest.chars().next().is_none_or(char::is_whitespace);
                // `He said "no!" and left`, `well... maybe`: the sentence goes on.
                let is_inner = sign.len() > 1 && !sign.ends_with(['.', '!', '?']) && goes_on(rest)
                    || (sign.ends_with("..") || sign == "…") && goes_on(rest);
                stands_before_space
                    && !is_inner
                    && !(sign == "." && is_abbreviation(&text[start..at]))
            }
            _ => false,
        };
        if ends {
            push_trimmed(&mut found, &text[start..end]);
            start = end;
        }
    }
    push_trimmed(&mut found, &text[start..]);
    found
}

/// The longest beginning of `text` that is at most `limit` tokens and ends where a word ends, without white
/// space behind it; a first word that is longer than that is cut between characters.
pub(super) fn cut_to_tokens<'a>(
    text: &'a str,
    limit: usize,
    count: &dyn Fn(&str) -> usize,
) -> &'a str {
    let text = text.trim_end();
    if count(text) <= limit {
        return text;
    }
    let ends: Vec<usize> = word_ends(text);
    let fits = longest(&ends, |end| count(&text[..end]) <= limit);
    if fits > 0 {
        return &text[..fits];
    }
    let characters: Vec<usize> = text.char_indices().map(|(at, _)| at).skip(1).collect();
    &text[..longest(&characters, |end| count(&text[..end]) <= limit)]
}

/// Pieces of `text` of at most `limit` tokens each, cut where words end; nothing but white space is lost.
pub(super) fn pieces<'a>(
    text: &'a str,
    limit: usize,
    count: &dyn Fn(&str) -> usize,
) -> Vec<&'a str> {
    let mut rest = text.trim();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let mut piece = cut_to_tokens(rest, limit, count);
        if piece.is_empty() {
            // A character of more tokens than the limit: it is kept whole.
            let first = rest.chars().next().map_or(0, char::len_utf8);
            piece = &rest[..first];
        }
        found.push(piece);
        rest = rest[piece.len()..].trim_start();
    }
    found
}

/// The largest of the ascending `ends` that fits, 0 where none does. Tokens may merge over a cut, so that
/// counts are not quite monotonic: what bisection finds is walked down until it fits.
fn longest(ends: &[usize], fits: impl Fn(usize) -> bool) -> usize {
    let mut index = ends.partition_point(|end| fits(*end));
    while index > 0 {
        if fits(ends[index - 1]) {
            return ends[index - 1];
        }
        index -= 1;
    }
    0
}

/// Where a word ends: before white space, and behind every character of scripts without spaces.
fn word_ends(text: &str) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut before: Option<char> = None;
    for (at, character) in text.char_indices() {
        let ends_here = before.is_some_and(|before| {
            (character.is_whitespace() && !before.is_whitespace()) || is_wide(before)
        });
        if ends_here {
            ends.push(at);
        }
        before = Some(character);
    }
    ends
}

/// Characters that are written without spaces between words.
pub(super) fn is_wide(character: char) -> bool {
    matches!(u32::from(character),
        0x2E80..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0xFF00..=0xFF60
        | 0x20000..=0x3FFFF)
}

fn is_wide_end(character: char) -> bool {
    matches!(character, '。' | '！' | '？' | '；' | '…')
}

fn is_closing(character: char) -> bool {
    matches!(
        character,
        '"' | '\'' | ')' | ']' | '”' | '’' | '」' | '』' | '）' | '》'
    )
}

/// Whether the full stop behind `before` belongs to its last word: `Mr.`, `J.`, `e.g.`, `U.S.`.
fn is_abbreviation(before: &str) -> bool {
    let word = before
        .rsplit(|character: char| character.is_whitespace())
        .next()
        .unwrap_or_default()
        .trim_start_matches(['(', '"', '“', '\'']);
    let mut letters = word.chars();
    let is_initial = matches!((letters.next(), letters.next()), (Some(first), None) if first.is_uppercase() && first != 'I');
    let is_dotted = word.contains('.')
        && word
            .split('.')
            .all(|part| part.chars().count() == 1 && part.chars().all(char::is_alphabetic));
    is_initial || is_dotted || ABBREVIATIONS.contains(&word.to_lowercase().as_str())
}

/// Whether the same line continues in lower case.
fn goes_on(rest: &str) -> bool {
    let next = rest.trim_start_matches([' ', '\t']).chars().next();
    next.is_some_and(char::is_lowercase)
}

fn push_trimmed<'a>(found: &mut Vec<&'a str>, sentence: &'a str) {
    let sentence = sentence.trim();
    if !sentence.is_empty() {
        found.push(sentence);
    }
}
