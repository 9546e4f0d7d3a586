//! When a printed answer counts as the expected one.
//!
//! The rules of SandboxFusion's CommonOJ (spec of the critique study, section 9.3): both outputs
//! are stripped, then compared line by line, each line stripped and in lower case; one empty line at
//! the end is tolerated; lines that differ may still be equal as numbers.

/// Whether `actual` counts as `expected`.
pub(crate) fn outputs_match(actual: &str, expected: &str) -> bool {
    let actual = lines(actual);
    let expected = lines(expected);
    actual.len() == expected.len()
        && actual
            .iter()
            .zip(&expected)
            .all(|(a, b)| a == b || numbers_match(a, b))
}

const RELATIVE_TOLERANCE: f64 = 1e-5;

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

fn numbers_match(actual: &str, expected: &str) -> bool {
    match (actual.parse::<f64>(), expected.parse::<f64>()) {
        (Ok(a), Ok(b)) => (a - b).abs() / b.abs().max(1e-10) < RELATIVE_TOLERANCE,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::outputs_match;

    #[test]
    fn outputs_are_compared_as_online_judges_do() {
        assert!(outputs_match("1\n2\n", "1\n2"));
        assert!(outputs_match("  YES \n", "yes"));
        assert!(outputs_match("0.3333333\n", "0.333333333333"));
        assert!(outputs_match("100000", "100000.5"));
        assert!(outputs_match("1\r\n2\r\n", "1\n2\n"));
        assert!(outputs_match("", "\n"));
        assert!(outputs_match("0", "0.0"));
        assert!(!outputs_match("1\n\n2", "1\n2"));
        assert!(!outputs_match("0.3334", "0.3333"));
        assert!(!outputs_match("1 2", "1  2"));
        assert!(!outputs_match("1", ""));
        assert!(!outputs_match("nan", "1"));
        assert!(!outputs_match("12", "1\n2"));
    }
}
