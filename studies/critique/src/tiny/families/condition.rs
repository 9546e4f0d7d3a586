//! Conditions on one integer: "at least 4", "odd", "divisible by 5".

use std::ops::RangeInclusive;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::{pick, wrong};
use crate::tiny::function::{Bug, Wrong};

/// A condition on one integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    Compares(Comparison, i64),
    Even,
    Odd,
    Divisible(i64),
}

/// How an integer is compared with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    Greater,
    Less,
    AtLeast,
    AtMost,
    Equal,
    Different,
}

impl Comparison {
    pub(super) const ALL: [Self; 6] = [
        Self::Greater,
        Self::Less,
        Self::AtLeast,
        Self::AtMost,
        Self::Equal,
        Self::Different,
    ];

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Greater => "greater than",
            Self::Less => "less than",
            Self::AtLeast => "at least",
            Self::AtMost => "at most",
            Self::Equal => "equal to",
            Self::Different => "different from",
        }
    }

    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Greater => ">",
            Self::Less => "<",
            Self::AtLeast => ">=",
            Self::AtMost => "<=",
            Self::Equal => "==",
            Self::Different => "!=",
        }
    }

    /// The comparisons that are most easily written instead.
    pub(super) fn near(self) -> [Self; 2] {
        match self {
            Self::Greater => [Self::AtLeast, Self::Less],
            Self::Less => [Self::AtMost, Self::Greater],
            Self::AtLeast => [Self::Greater, Self::AtMost],
            Self::AtMost => [Self::Less, Self::AtLeast],
            Self::Equal => [Self::Different, Self::AtLeast],
            Self::Different => [Self::Equal, Self::AtLeast],
        }
    }
}

/// The constants that conditions may name.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub(super) compared: RangeInclusive<i64>,
    pub(super) divisors: RangeInclusive<i64>,
}

impl Scope {
    /// For items that are asked about one by one.
    pub(super) const EACH: Self = Self {
        compared: 1..=11,
        divisors: 3..=7,
    };
    /// For items that are gathered. Small constants would make different words mean the same: a
    /// product does not notice a 1, and the number of ones is their sum.
    pub(super) const GATHERED: Self = Self {
        compared: 3..=9,
        divisors: 3..=7,
    };
    /// For gathered digits, of which none is above 9 and only 0 and 5 are divisible by 5.
    pub(super) const DIGITS: Self = Self {
        compared: 3..=8,
        divisors: 3..=4,
    };
}

impl Condition {
    /// One of the conditions: six of ten compare with a constant, the others ask for a divisor.
    pub(super) fn draw(scope: Scope, rng: &mut ChaCha8Rng) -> Self {
        match rng.random_range(0..10u32) {
            0..6 => Self::draw_comparison(scope.compared, rng),
            6 | 7 => *pick(&[Self::Even, Self::Odd], rng),
            _ => Self::Divisible(rng.random_range(scope.divisors)),
        }
    }

    pub(super) fn draw_comparison(constants: RangeInclusive<i64>, rng: &mut ChaCha8Rng) -> Self {
        Self::Compares(*pick(&Comparison::ALL, rng), rng.random_range(constants))
    }

    /// As [`Condition::draw`], or no condition in 15 of 100 draws.
    pub(super) fn draw_optional(scope: Scope, rng: &mut ChaCha8Rng) -> Option<Self> {
        (rng.random_range(0..100u32) >= 15).then(|| Self::draw(scope, rng))
    }

    /// As the statement says it.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Compares(comparison, constant) => format!("{} {constant}", comparison.words()),
            Self::Even => "even".to_owned(),
            Self::Odd => "odd".to_owned(),
            Self::Divisible(divisor) => format!("divisible by {divisor}"),
        }
    }

    /// The same for conditions that hold for the same integers.
    pub(super) fn spec(&self) -> String {
        match self {
            Self::Compares(Comparison::Greater, constant) => format!("at-least-{}", constant + 1),
            Self::Compares(Comparison::Less, constant) => format!("at-most-{}", constant - 1),
            _ => self.words().replace(' ', "-"),
        }
    }

    /// As the program says it of `variable`.
    pub(super) fn fragment(&self, variable: &str) -> String {
        match self {
            Self::Compares(comparison, constant) => compares(variable, *comparison, *constant),
            Self::Even => format!("{variable} % 2 == 0"),
            Self::Odd => format!("{variable} % 2 == 1"),
            Self::Divisible(divisor) => format!("{variable} % {divisor} == 0"),
        }
    }

    /// Wrong ways to say it of `variable`.
    pub(super) fn wrong(&self, variable: &str) -> Vec<Wrong> {
        match self {
            Self::Compares(comparison, constant) => {
                let [first, second] = comparison.near();
                vec![
                    wrong(Bug::WrongComparison, compares(variable, first, *constant)),
                    wrong(Bug::WrongComparison, compares(variable, second, *constant)),
                    wrong(
                        Bug::WrongConstant,
                        compares(variable, *comparison, constant + 1),
                    ),
                    wrong(
                        Bug::WrongConstant,
                        compares(variable, *comparison, constant - 1),
                    ),
                ]
            }
            Self::Even => vec![
                wrong(Bug::WrongConstant, format!("{variable} % 2 == 1")),
                wrong(Bug::WrongConstant, format!("{variable} % 3 == 0")),
            ],
            Self::Odd => vec![
                wrong(Bug::WrongConstant, format!("{variable} % 2 == 0")),
                wrong(Bug::WrongConstant, format!("{variable} % 3 == 1")),
            ],
            Self::Divisible(divisor) => vec![
                wrong(Bug::WrongConstant, format!("{variable} % {divisor} == 1")),
                wrong(Bug::WrongOperator, format!("{variable} // {divisor} == 0")),
                wrong(
                    Bug::WrongConstant,
                    format!("{variable} % {} == 0", divisor + 1),
                ),
            ],
        }
    }

    /// Whether it holds, with Python's remainder (never negative here: every divisor is positive).
    pub(crate) fn holds(&self, value: i64) -> bool {
        match self {
            Self::Compares(comparison, constant) => match comparison {
                Comparison::Greater => value > *constant,
                Comparison::Less => value < *constant,
                Comparison::AtLeast => value >= *constant,
                Comparison::AtMost => value <= *constant,
                Comparison::Equal => value == *constant,
                Comparison::Different => value != *constant,
            },
            Self::Even => value.rem_euclid(2) == 0,
            Self::Odd => value.rem_euclid(2) == 1,
            Self::Divisible(divisor) => value.rem_euclid(*divisor) == 0,
        }
    }

    /// An integer near which the condition changes.
    pub(crate) fn border(&self) -> i64 {
        match self {
            Self::Compares(_, constant) | Self::Divisible(constant) => *constant,
            Self::Even | Self::Odd => 0,
        }
    }
}

fn compares(variable: &str, comparison: Comparison, constant: i64) -> String {
    format!("{variable} {} {constant}", comparison.sign())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn all() -> Vec<Condition> {
        let mut all = vec![Condition::Even, Condition::Odd];
        all.extend((3..=7).map(Condition::Divisible));
        for comparison in Comparison::ALL {
            all.extend((1..=9).map(|constant| Condition::Compares(comparison, constant)));
        }
        all
    }

    #[test]
    fn conditions_share_a_spec_exactly_when_they_hold_for_the_same_integers() {
        let mut by_truth = BTreeMap::new();
        for condition in all() {
            let truth: Vec<bool> = (-20..200).map(|value| condition.holds(value)).collect();
            let spec = by_truth.entry(truth).or_insert_with(|| condition.spec());
            assert_eq!(*spec, condition.spec());
        }
        let specs: std::collections::BTreeSet<_> = by_truth.values().collect();
        assert_eq!(specs.len(), by_truth.len());
    }
}
