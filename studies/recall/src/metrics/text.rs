//! Agreement of two short answers: SQuAD's normalisation, exact match, F1, substring match.

use std::collections::BTreeMap;

/// An answer in SQuAD's normal form (arXiv 1606.05250): lower case, no ASCII punctuation, no `a`, `an`,
/// `the`, single spaces. Beyond it, full-width punctuation of Chinese, Japanese and Korean goes too.
pub fn normalize(text: &str) -> String {
    without_words(&lower_without_punctuation(text), &["a", "an", "the"])
}

/// 1 when both normal forms are equal. Texts of which nothing is left, as the option `A`, must be equal
/// before that: the official scorers call any two of them the same.
pub fn exact_match(prediction: &str, gold: &str) -> f64 {
    let (prediction, gold) = comparable(prediction, gold, normalize);
    f64::from(prediction == gold)
}

/// F1 of the tokens of both normal forms. Where one of them is `yes`, `no` or `noanswer` (HotpotQA's
/// guard) or empty (SQuAD 2.0) only equality counts, as in [`exact_match`].
pub fn f1(prediction: &str, gold: &str) -> f64 {
    if normalize(gold).is_empty() {
        return exact_match(prediction, gold);
    }
    let (prediction, gold) = (normalize(prediction), normalize(gold));
    let closed = |text: &str| matches!(text, "yes" | "no" | "noanswer" | "");
    if closed(&prediction) || closed(&gold) {
        return f64::from(prediction == gold);
    }
    f1_of_tokens(&tokens(&prediction), &tokens(&gold))
}

/// 1 when the normal form of `gold` stands anywhere in that of `prediction`. Where nothing is left of it, both
/// must be equal, as in [`exact_match`].
pub fn substring_exact_match(prediction: &str, gold: &str) -> f64 {
    let normal = normalize(gold);
    if normal.is_empty() {
        return exact_match(prediction, gold);
    }
    f64::from(normalize(prediction).contains(&normal))
}

/// Both texts in a normal form; where it leaves nothing of either, what they are without it.
pub(super) fn comparable(
    prediction: &str,
    gold: &str,
    normalize: impl Fn(&str) -> String,
) -> (String, String) {
    let normal = (normalize(prediction), normalize(gold));
    if normal.0.is_empty() && normal.1.is_empty() {
        (literal(prediction), literal(gold))
    } else {
        normal
    }
}

/// Lower case with single spaces; without punctuation, unless it is nothing else.
fn literal(text: &str) -> String {
    let plain = squeezed(&lower_without_punctuation(text));
    if plain.is_empty() {
        squeezed(&text.to_lowercase())
    } else {
        plain
    }
}

/// Tokens between white space; each letter of a script that is written without spaces is one by itself.
pub fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    for word in text.split_whitespace() {
        let mut run = String::new();
        for letter in word.chars() {
            if is_unspaced(letter) {
                tokens.extend((!run.is_empty()).then(|| std::mem::take(&mut run)));
                tokens.push(letter.to_string());
            } else {
                run.push(letter);
            }
        }
        tokens.extend((!run.is_empty()).then_some(run));
    }
    tokens
}

/// Harmonic mean of precision and recall of the multisets; 0 when they share nothing.
pub(super) fn f1_of_tokens(prediction: &[String], gold: &[String]) -> f64 {
    let shared = shared_tokens(prediction, gold);
    if shared == 0 {
        return 0.0;
    }
    let precision = shared as f64 / prediction.len() as f64;
    let recall = shared as f64 / gold.len() as f64;
    2.0 * precision * recall / (precision + recall)
}

/// Size of the intersection of the multisets.
pub(super) fn shared_tokens(one: &[String], other: &[String]) -> usize {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for token in other {
        *counts.entry(token).or_default() += 1;
    }
    one.iter()
        .filter(|token| match counts.get_mut(token.as_str()) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        })
        .count()
}

pub(super) fn lower_without_punctuation(text: &str) -> String {
    text.to_lowercase()
        .chars()
        .filter(|&c| !c.is_ascii_punctuation() && !is_wide_punctuation(c))
        .collect()
}

/// `text` with single spaces and without these words, a word being a run of letters and digits.
pub(super) fn without_words(text: &str, words: &[&str]) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let in_word = rest.starts_with(is_word);
        let end = rest.find(|c| is_word(c) != in_word).unwrap_or(rest.len());
        let run = &rest[..end];
        kept.push_str(if words.contains(&run) { " " } else { run });
        rest = &rest[end..];
    }
    squeezed(&kept)
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Letters of Chinese and Japanese. Korean is written with spaces.
pub(super) fn is_unspaced(letter: char) -> bool {
    matches!(letter,
        '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}'
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{FF66}'..='\u{FF9F}' | '\u{20000}'..='\u{323AF}')
}

fn is_wide_punctuation(c: char) -> bool {
    matches!(c,
        '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{301F}' | '\u{30FB}'
        | '\u{FF01}'..='\u{FF0F}' | '\u{FF1A}'..='\u{FF20}' | '\u{FF3B}'..='\u{FF40}'
        | '\u{FF5B}'..='\u{FF65}')
}
