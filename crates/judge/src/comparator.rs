//! When a printed answer counts as the expected one.

use serde::{Deserialize, Serialize};

/// A rule by which printed answers are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparator {
    /// Byte for byte.
    Exact,
    /// As SandboxFusion's CommonOJ (spec of the critique study, section 9.3): both outputs are
    /// stripped, then compared line by line, each line stripped and in lower case; one empty line at
    /// the end is tolerated; lines that differ may still be equal as numbers, to a relative 1e-5.
    #[default]
    CommonOj,
    /// As LiveCodeBench (same section): the whole output stripped; else its lines stripped; else its
    /// lines that are not empty; else each line's numbers, when not all are integers, to a relative
    /// 1e-5 and an absolute 1e-8.
    LiveCodeBench,
    /// The same words in the same order, whatever stands between them.
    Tokens,
}

impl Comparator {
    /// Whether `actual` counts as `expected`.
    pub fn matches(self, actual: &[u8], expected: &[u8]) -> bool {
        if self == Self::Exact {
            return actual == expected;
        }
        let (actual, expected) = (
            String::from_utf8_lossy(actual),
            String::from_utf8_lossy(expected),
        );
        match self {
            Self::Exact | Self::CommonOj => common_oj(&actual, &expected),
            Self::LiveCodeBench => live_code_bench(&actual, &expected),
            Self::Tokens => actual.split_whitespace().eq(expected.split_whitespace()),
        }
    }
}

fn common_oj(actual: &str, expected: &str) -> bool {
    let close = |a: &str, b: &str| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => (a - b).abs() / b.abs().max(1e-10) < 1e-5,
        _ => false,
    };
    let (actual, expected) = (lines(actual), lines(expected));
    actual.len() == expected.len()
        && actual
            .iter()
            .zip(&expected)
            .all(|(a, b)| a == b || close(a, b))
}

fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text
        .trim()
        .split('\n')
        .map(|line| line.trim().to_lowercase())
        .collect();
    if lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

fn live_code_bench(actual: &str, expected: &str) -> bool {
    if actual.trim() == expected.trim() {
        return true;
    }
    let stripped = |text: &str| -> Vec<String> {
        let lines = text.trim().split('\n').map(str::trim);
        lines
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let (actual, expected) = (stripped(actual), stripped(expected));
    actual.len() == expected.len()
        && actual
            .iter()
            .zip(&expected)
            .all(|(a, b)| a == b || same_numbers(a, b))
}

/// Lines of numbers that are not all integers.
fn same_numbers(actual: &str, expected: &str) -> bool {
    let numbers = |line: &str| -> Option<Vec<f64>> {
        let words = line.split_whitespace();
        words
            .map(|word| word.parse::<f64>().ok().filter(|n| n.is_finite()))
            .collect()
    };
    let (Some(a), Some(b)) = (numbers(actual), numbers(expected)) else {
        return false;
    };
    let whole = |numbers: &[f64]| numbers.iter().all(|n| n.fract() == 0.0);
    a.len() == b.len()
        && !(whole(&a) && whole(&b))
        && a.iter()
            .zip(&b)
            .all(|(a, b)| (a - b).abs() <= 1e-8 + 1e-5 * b.abs())
}

#[cfg(test)]
mod tests {
    use super::Comparator;
    use proptest::prelude::*;

    const ALL: [Comparator; 4] = [
        Comparator::Exact,
        Comparator::CommonOj,
        Comparator::LiveCodeBench,
        Comparator::Tokens,
    ];

    #[test]
    fn each_rule_tolerates_what_it_names() {
        // Actual, expected, and who accepts: exact, CommonOJ, LiveCodeBench, tokens.
        let cases: [(&str, &str, [bool; 4]); 16] = [
            ("1\n2\n", "1\n2\n", [true, true, true, true]),
            ("1\n2\n", "1\n2", [false, true, true, true]),
            ("  YES \n", "yes", [false, true, false, false]),
            ("0.3333333\n", "0.333333333333", [false, true, true, false]),
            ("100000", "100000.5", [false, true, true, false]),
            ("1\r\n2\r\n", "1\n2\n", [false, true, true, true]),
            ("0", "0.0", [false, true, false, false]),
            ("1\n\n2", "1\n2", [false, false, true, true]),
            ("0.3334", "0.3333", [false, false, false, false]),
            ("1 2", "1  2", [false, false, false, true]),
            ("1.0 2.5", "1.0  2.50", [false, false, true, false]),
            ("1", "", [false, false, false, false]),
            ("nan", "1", [false, false, false, false]),
            ("12", "1\n2", [false, false, false, false]),
            ("1 2", "1\n2", [false, false, false, true]),
            ("", "\n", [false, true, true, true]),
        ];
        for (actual, expected, accepted) in cases {
            let found = ALL.map(|rule| rule.matches(actual.as_bytes(), expected.as_bytes()));
            assert_eq!(found, accepted, "{actual:?} {expected:?}");
        }
    }

    proptest! {
        #[test]
        fn every_output_counts_as_itself(output in proptest::collection::vec(any::<u8>(), 0..60)) {
            for rule in ALL {
                prop_assert!(rule.matches(&output, &output), "{rule:?}");
            }
        }

        #[test]
        fn rules_on_words_alone_are_symmetric(a in "[ab1. \n]{0,12}", b in "[ab1. \n]{0,12}") {
            for rule in [Comparator::Exact, Comparator::Tokens] {
                let (a, b) = (a.as_bytes(), b.as_bytes());
                prop_assert_eq!(rule.matches(a, b), rule.matches(b, a));
            }
        }
    }
}
