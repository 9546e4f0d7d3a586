//! Overlap of longer texts: ROUGE-L and BLEU-1.

use super::{
    porter::stem,
    text::{is_unspaced, shared_tokens},
};

/// ROUGE-L of a prediction against one gold text (Lin 2004): the longest common subsequence of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RougeL {
    pub precision: f64,
    pub recall: f64,
    pub f1: f64,
}

/// As the package `rouge-score` 0.1.2 with stemming has it: tokens are runs of a-z and 0-9 in lower case, those
/// of more than three letters stemmed. Beyond it, letters of Chinese and Japanese are tokens of their own.
pub fn rouge_l(prediction: &str, gold: &str) -> RougeL {
    let stemmed = |text: &str| -> Vec<String> {
        let tokens = alphanumeric_tokens(text, |c| c.is_ascii_alphanumeric());
        let stem_long = |token: String| if token.len() > 3 { stem(&token) } else { token };
        tokens.into_iter().map(stem_long).collect()
    };
    let (prediction, gold) = (stemmed(prediction), stemmed(gold));
    let common = longest_common_subsequence(&prediction, &gold) as f64;
    if common == 0.0 {
        return RougeL::default();
    }
    let precision = common / prediction.len() as f64;
    let recall = common / gold.len() as f64;
    RougeL {
        precision,
        recall,
        f1: 2.0 * precision * recall / (precision + recall),
    }
}

/// BLEU of single tokens (Papineni et al. 2002): clipped precision times the brevity penalty against the gold
/// text of the nearest length, the shorter of two. Tokens are runs of letters and digits in lower case,
/// letters of Chinese and Japanese each by itself; nothing is smoothed.
pub fn bleu_1(prediction: &str, golds: &[String]) -> f64 {
    let tokens = |text: &str| alphanumeric_tokens(text, char::is_alphanumeric);
    let prediction = tokens(prediction);
    let golds: Vec<Vec<String>> = golds.iter().map(|gold| tokens(gold)).collect();
    let length = prediction.len();
    let nearest = golds
        .iter()
        .map(Vec::len)
        .min_by_key(|&gold| (gold.abs_diff(length), gold));
    let Some(nearest) = nearest.filter(|_| length > 0) else {
        return 0.0;
    };
    let precision = shared_tokens(&prediction, &most_of_each(&golds)) as f64 / length as f64;
    let penalty = if length < nearest {
        (1.0 - nearest as f64 / length as f64).exp()
    } else {
        1.0
    };
    penalty * precision
}

/// Every token as often as the text has it that has it most often.
fn most_of_each(texts: &[Vec<String>]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for text in texts {
        let mut known = all.clone();
        for token in text {
            match known.iter().position(|other| other == token) {
                Some(at) => drop(known.swap_remove(at)),
                None => all.push(token.clone()),
            }
        }
    }
    all
}

/// Runs of the letters that `keeps` accepts, in lower case; unspaced letters are tokens of their own.
fn alphanumeric_tokens(text: &str, keeps: impl Fn(char) -> bool) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut run = String::new();
    for letter in text.to_lowercase().chars() {
        if !is_unspaced(letter) && keeps(letter) {
            run.push(letter);
            continue;
        }
        tokens.extend((!run.is_empty()).then(|| std::mem::take(&mut run)));
        if is_unspaced(letter) {
            tokens.push(letter.to_string());
        }
    }
    tokens.extend((!run.is_empty()).then_some(run));
    tokens
}

fn longest_common_subsequence(one: &[String], other: &[String]) -> usize {
    let mut row = vec![0; other.len() + 1];
    for token in one {
        let mut diagonal = 0;
        for (at, candidate) in other.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if token == candidate {
                diagonal + 1
            } else {
                above.max(row[at])
            };
            diagonal = above;
        }
    }
    row[other.len()]
}
