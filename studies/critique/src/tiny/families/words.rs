//! "Read words from one line. Print the number of words that begin with a."

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::condition::Comparison;
use super::{Parts, pick, slot, wrong};
use crate::tiny::arguments::{Arguments, LETTERS};
use crate::tiny::function::{Bug, Slot, Wrong};

/// What is printed of the words, how it begins and is gathered, and how it is not.
const GATHERED: [(&str, [&str; 2], &str, [&str; 2]); 4] = [
    (
        "number of words",
        ["s = 0", "s = 1"],
        "s += 1",
        ["s += 2", "s += len(w)"],
    ),
    (
        "number of letters in the words",
        ["s = 0", "s = 1"],
        "s += len(w)",
        ["s += 1", "s = len(w)"],
    ),
    (
        "first letters, joined, of the words",
        ["s = \"\"", "s = \"-\""],
        "s += w[0]",
        ["s += w[-1]", "s += w"],
    ),
    (
        "last letters, joined from the last word to the first, of the words",
        ["s = \"\"", "s = \"-\""],
        "s = w[-1] + s",
        ["s += w[-1]", "s = w[0] + s"],
    ),
];

/// A condition on a word: what the statement says, what the program says, and what it might say instead.
struct OnWord {
    words: String,
    right: String,
    wrong: Vec<Wrong>,
}

impl OnWord {
    fn draw(rng: &mut ChaCha8Rng) -> Self {
        let letter = *pick(&LETTERS, rng);
        match rng.random_range(0..3u32) {
            0 => Self::length(*pick(&Comparison::ALL, rng), rng.random_range(2..=5i64)),
            1 => {
                let first = rng.random_bool(0.5);
                let (word, place, other) = if first {
                    ("begin", 0, -1)
                } else {
                    ("end", -1, 0)
                };
                let at = |place: i64, sign: &str| format!("w[{place}] {sign} \"{letter}\"");
                Self {
                    words: format!("{word} with {letter}"),
                    right: at(place, "=="),
                    wrong: vec![
                        wrong(Bug::WrongConstant, at(other, "==")),
                        wrong(Bug::MissingNegation, at(place, "!=")),
                    ],
                }
            }
            _ => Self {
                words: format!("contain {letter}"),
                right: format!("\"{letter}\" in w"),
                wrong: vec![
                    wrong(Bug::MissingNegation, format!("\"{letter}\" not in w")),
                    wrong(Bug::WrongExpression, format!("\"{letter}\" in w[1:]")),
                ],
            },
        }
    }

    fn length(comparison: Comparison, length: i64) -> Self {
        let compares =
            |comparison: Comparison, length: i64| format!("len(w) {} {length}", comparison.sign());
        let near = comparison.near();
        Self {
            words: format!("have a length {} {length}", comparison.words()),
            right: compares(comparison, length),
            wrong: vec![
                wrong(Bug::WrongComparison, compares(near[0], length)),
                wrong(Bug::WrongComparison, compares(near[1], length)),
                wrong(Bug::WrongConstant, compares(comparison, length + 1)),
                wrong(Bug::WrongConstant, compares(comparison, length - 1)),
            ],
        }
    }

    fn slot(&self) -> Slot {
        slot("condition", self.right.clone(), self.wrong.clone())
    }
}

pub(super) fn draw(rng: &mut ChaCha8Rng) -> Parts {
    let (words, [initial, other], update, others) = *pick(&GATHERED, rng);
    let condition = OnWord::draw(rng);
    Parts {
        spec: format!("{words}/{}", spec_of(&condition)),
        statement: format!(
            "Read words from one line. Print the {words} that {}.",
            condition.words
        ),
        template: "ws = input().split()\n{initial}\nfor w in ws:\n    if {condition}:\n        {update}\n{result}"
            .to_owned(),
        slots: vec![
            slot("initial", initial, [wrong(Bug::WrongInitialValue, other)]),
            condition.slot(),
            slot("update", update, others.map(|other| wrong(Bug::WrongAccumulator, other))),
            slot(
                "result",
                "print(s)",
                [
                    wrong(Bug::WrongResult, "print(s * 2)"),
                    wrong(Bug::WrongResult, "print(len(ws))"),
                ],
            ),
        ],
        arguments: Arguments::Words,
    }
}

/// "At least 4" and "greater than 3" are one condition on lengths.
fn spec_of(condition: &OnWord) -> String {
    let words = &condition.words;
    let bound = |prefix: &str| words.strip_prefix(prefix)?.trim().parse::<i64>().ok();
    if let Some(bound) = bound("have a length greater than") {
        return format!("have a length at least {}", bound + 1);
    }
    if let Some(bound) = bound("have a length less than") {
        return format!("have a length at most {}", bound - 1);
    }
    words.clone()
}
