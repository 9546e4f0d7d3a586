//! How much of a text another one keeps, as Python's `difflib` measures it.

use std::collections::HashMap;

/// `SequenceMatcher(None, before, after).ratio()` over characters, popular characters of long texts left out
/// of the search as there: twice the matched characters over those of both. 1 for two empty texts.
///
/// Ratcliff and Obershelp's matching: the longest common block, then the same on both sides of it. The ratio
/// is not symmetric.
pub fn ratio(before: &str, after: &str) -> f64 {
    let a: Vec<char> = before.chars().collect();
    let b: Vec<char> = after.chars().collect();
    let length = a.len() + b.len();
    if length == 0 {
        return 1.0;
    }
    2.0 * matched(&a, &b) as f64 / length as f64
}

/// From this length on, characters that make up more than 1 % of the text are popular.
const LONG: usize = 200;

/// Where each character of `b` stands, but for popular ones.
fn places(b: &[char]) -> HashMap<char, Vec<usize>> {
    let mut places: HashMap<char, Vec<usize>> = HashMap::new();
    for (at, one) in b.iter().enumerate() {
        places.entry(*one).or_default().push(at);
    }
    if b.len() >= LONG {
        let most = b.len() / 100 + 1;
        places.retain(|_, found| found.len() <= most);
    }
    places
}

fn matched(a: &[char], b: &[char]) -> usize {
    let places = places(b);
    let mut sum = 0;
    let mut waiting = vec![(0..a.len(), 0..b.len())];
    // Length of the common run that ends at each place of `b`, for the last and for this place of `a`.
    let (mut last, mut now) = (vec![0; b.len()], vec![0; b.len()]);
    while let Some((of_a, of_b)) = waiting.pop() {
        let (mut at_a, mut at_b, mut size) = (of_a.start, of_b.start, 0);
        last[of_b.clone()].fill(0);
        for i in of_a.clone() {
            now[of_b.clone()].fill(0);
            for &j in places.get(&a[i]).map_or(&[][..], Vec::as_slice) {
                if !of_b.contains(&j) {
                    continue;
                }
                let run = 1 + if j > of_b.start { last[j - 1] } else { 0 };
                now[j] = run;
                if run > size {
                    (at_a, at_b, size) = (i + 1 - run, j + 1 - run, run);
                }
            }
            std::mem::swap(&mut last, &mut now);
        }
        // Popular characters begin no block, and lengthen those that were found.
        while at_a > of_a.start && at_b > of_b.start && a[at_a - 1] == b[at_b - 1] {
            (at_a, at_b, size) = (at_a - 1, at_b - 1, size + 1);
        }
        while at_a + size < of_a.end && at_b + size < of_b.end && a[at_a + size] == b[at_b + size] {
            size += 1;
        }
        if size > 0 {
            sum += size;
            waiting.push((of_a.start..at_a, of_b.start..at_b));
            waiting.push((at_a + size..of_a.end, at_b + size..of_b.end));
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Values of Python 3's `difflib.SequenceMatcher(None, before, after).ratio()`.
    #[test]
    fn the_ratios_are_pythons() {
        let long =
            "def f(xs):\n    s = 0\n    for x in xs:\n        s += x\n    return s\n".repeat(5);
        for (before, after, expected) in [
            ("abcd", "bcde", 0.75),
            ("", "", 1.0),
            ("a", "", 0.0),
            ("tide", "diet", 0.25),
            ("diet", "tide", 0.5),
            ("qabxcd", "abycdf", 2.0 * 4.0 / 12.0),
            (&long, &long, 1.0),
            (&long, &long.replace("s += x", "s *= x"), LONG_RATIO),
        ] {
            let found = ratio(before, after);
            assert!(
                (found - expected).abs() < 1e-12,
                "{before:?} {after:?}: {found}"
            );
        }
    }

    /// Every character is popular in the whole, so nothing is found but what lengthens an empty block at the
    /// start: the 48 characters up to the first difference, of 330.
    const LONG_RATIO: f64 = 48.0 / 330.0;

    proptest! {
        #[test]
        fn a_ratio_is_a_share_and_one_of_equal_texts(a in "[ab c]{0,40}", b in "[ab c]{0,40}") {
            let found = ratio(&a, &b);
            prop_assert!((0.0..=1.0).contains(&found));
            prop_assert_eq!(ratio(&a, &a), 1.0);
        }
    }
}
