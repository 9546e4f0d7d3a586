//! LoCoMo's scores (arXiv 2402.17753): answers stemmed, every category by its own rule.

use std::collections::BTreeSet;

use super::{
    porter::stem,
    text::{comparable, f1_of_tokens, lower_without_punctuation, tokens, without_words},
};

/// LoCoMo's kinds of questions. Their numbers are those of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    MultiHop = 1,
    Temporal = 2,
    OpenDomain = 3,
    SingleHop = 4,
    Adversarial = 5,
}

impl Category {
    /// Of a question type that names it (`multi_hop`, `single-hop`, …) or ends with its number (`1`,
    /// `category_1`).
    pub fn of(question_type: &str) -> Option<Self> {
        let name = question_type.to_lowercase().replace(['-', ' '], "_");
        let named = [
            ("multi_hop", '1', Self::MultiHop),
            ("temporal", '2', Self::Temporal),
            ("open_domain", '3', Self::OpenDomain),
            ("single_hop", '4', Self::SingleHop),
            ("adversarial", '5', Self::Adversarial),
        ];
        named
            .into_iter()
            .find(|(word, number, _)| name.contains(word) || name.ends_with(*number))
            .map(|(_, _, category)| category)
    }
}

/// The score of a category's questions: of several answers in one the mean of each one's best (1), the gold
/// answer up to a semicolon (3), F1 (2, 4), and for questions without an answer (5) whether the official
/// refusals occur. Questions of no known category are scored by F1.
pub fn score(category: Option<Category>, prediction: &str, gold: &str) -> f64 {
    match category {
        Some(Category::MultiHop) => multi_answer_f1(prediction, gold),
        Some(Category::Adversarial) => refused(prediction),
        _ => f1(prediction, of_category(category, gold)),
    }
}

/// What counts of a gold answer: in category 3 what stands before the first semicolon.
pub fn of_category(category: Option<Category>, gold: &str) -> &str {
    match category {
        Some(Category::OpenDomain) => gold.split(';').next().unwrap_or(gold).trim(),
        _ => gold,
    }
}

/// F1 of stemmed tokens; `and` goes with the articles, commas without a trace. Texts of which nothing is left
/// must be equal before that, and not empty.
pub fn f1(prediction: &str, gold: &str) -> f64 {
    let (prediction, gold) = comparable(prediction, gold, normalize);
    f1_of_tokens(&stems(&prediction), &stems(&gold))
}

/// 1 when both have the same set of tokens, in whatever order and number. Nothing is stemmed. Texts of which
/// nothing is left must be equal before that.
pub fn exact_match(prediction: &str, gold: &str) -> f64 {
    let (prediction, gold) = comparable(prediction, gold, normalize);
    let set = |text: &str| -> BTreeSet<String> { tokens(text).into_iter().collect() };
    f64::from(set(&prediction) == set(&gold))
}

/// Mean over the comma-separated parts of `gold` of the best F1 of a part of `prediction`.
pub fn multi_answer_f1(prediction: &str, gold: &str) -> f64 {
    let golds: Vec<&str> = gold.split(',').collect();
    let best = |gold: &&str| {
        let parts = prediction.split(',');
        parts.map(|part| f1(part, gold)).fold(0.0, f64::max)
    };
    golds.iter().map(best).sum::<f64>() / golds.len() as f64
}

/// 1 when one of the two refusals occurs that the official scorer knows.
pub fn refused(prediction: &str) -> f64 {
    let prediction = prediction.to_lowercase();
    f64::from(
        prediction.contains("no information available") || prediction.contains("not mentioned"),
    )
}

fn normalize(text: &str) -> String {
    without_words(&lower_without_punctuation(text), &["a", "an", "the", "and"])
}

/// Of a text in a normal form.
fn stems(normal: &str) -> Vec<String> {
    let tokens = tokens(normal);
    tokens.iter().map(|token| stem(token)).collect()
}
