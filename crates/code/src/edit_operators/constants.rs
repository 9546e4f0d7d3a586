//! Numbers, booleans, `None` and strings.

use ruff_python_ast::{AnyNodeRef, Expr, ExprNumberLiteral, Number, Operator};
use ruff_text_size::{Ranged, TextRange};

use super::{Family, bench::Bench, hints::Mismatch};
use crate::sites::{Edit, SiteIndex};

pub(super) fn number(bench: &mut Bench<'_, '_>, at: SiteIndex, literal: &ExprNumberLiteral) {
    let text = bench.text(literal);
    let range = literal.range();
    let Some(value) = integer(literal) else {
        if let Number::Float(value) = literal.value {
            for other in [value + 1.0, value - 1.0, value * 2.0, value / 2.0, -value] {
                bench.replace_loose(Family::Constant, 1.8, at, &format!("{other:?}"));
            }
        }
        return near_numbers(bench, at, range, text);
    };
    let is_place = matches!(
        bench.parent(at),
        Some(AnyNodeRef::ExprSubscript(_) | AnyNodeRef::ExprSlice(_))
    );
    // `x + 0` is written `x`, which arithmetic sees to.
    let is_offset = is_offset(bench, at, range);
    for (step, family, cost) in [
        (1, Family::OffByOne, 0.7),
        (-1, Family::OffByOne, 0.6),
        (2, Family::Constant, 2.6),
        (-2, Family::Constant, 2.8),
    ] {
        let other = value.saturating_add(step);
        if other == 0 && is_offset {
            continue;
        }
        let cost = if other < 0 && !is_place {
            cost + 0.6
        } else {
            cost
        };
        bench.replace_loose(family, cost, at, &other.to_string());
    }
    let negated = value.saturating_neg().to_string();
    bench.replace_loose(Family::Constant, 1.8, at, &negated);
    for other in [0, 1].into_iter().skip(usize::from(is_offset)) {
        bench.replace(Family::Constant, 1.4, at, &other.to_string());
    }
    let cost = if is_place { 3.4 } else { 2.4 };
    bench.replace(Family::Constant, cost, at, "None");
    for (other, cost) in scaled(value) {
        bench.replace(Family::Constant, cost, at, &other.to_string());
    }
    if let Some(least) = least_modulus(bench, at, value) {
        for (nth, other) in [next_round(least), least].into_iter().enumerate() {
            let cost = 0.4 + 0.6 * nth as f64;
            bench.replace(Family::Constant, cost, at, &other.to_string());
        }
    }
    for mismatch in &bench.hints.mismatches.clone() {
        let parse = |text: &str| text.trim().parse::<i64>().ok();
        let (Some(got), Some(expected)) = (parse(&mismatch.got), parse(&mismatch.expected)) else {
            continue;
        };
        let shifted = value.saturating_add(expected.saturating_sub(got));
        if shifted == 0 && is_offset {
            continue;
        }
        bench.replace_loose(Family::Constant, 0.8, at, &shifted.to_string());
        if got == value {
            bench.replace_loose(Family::Constant, 0.3, at, &expected.to_string());
        }
    }
    near_numbers(bench, at, range, text);
}

/// The same digits another place to the left or the right, and other units of time.
fn scaled(value: i64) -> Vec<(i64, f64)> {
    const UNITS: [i64; 5] = [7, 12, 24, 60, 3600];
    let mut found = Vec::new();
    if value >= 10 && value % 10 == 0 {
        found.extend([(value / 10, 1.6), (value.saturating_mul(10), 1.6)]);
        found.push((value.saturating_mul(100), 2.6));
        if value % 100 == 0 {
            found.push((value / 100, 2.6));
        }
    }
    if value >= 4 && value.count_ones() == 1 {
        found.extend([(value / 2, 2.0), (value.saturating_mul(2), 2.0)]);
    }
    if UNITS.contains(&value) {
        found.extend(UNITS.iter().filter(|it| **it != value).map(|it| (*it, 2.4)));
    }
    found
}

/// The least modulus `m` in place of `value` with which `x % m` can be what it is compared with; `None` where it
/// can be that already.
fn least_modulus(bench: &Bench<'_, '_>, at: SiteIndex, value: i64) -> Option<i64> {
    let range = bench.node(at).range();
    let mut around = bench.sites.ancestors(at).map(|index| bench.node(index));
    let AnyNodeRef::ExprBinOp(modulo) = around.next()? else {
        return None;
    };
    let AnyNodeRef::ExprCompare(compare) = around.next()? else {
        return None;
    };
    if modulo.op != Operator::Mod || modulo.right.range() != range {
        return None;
    }
    let others = std::iter::once(&*compare.left).chain(&compare.comparators);
    let others = others.filter(|other| !other.range().contains_range(range));
    let mut most = None;
    for other in others {
        let parts = match other {
            Expr::Tuple(tuple) => &tuple.elts[..],
            Expr::List(list) => &list.elts,
            Expr::Set(set) => &set.elts,
            one => std::slice::from_ref(one),
        };
        let numbers = parts
            .iter()
            .filter_map(|part| integer(part.as_number_literal_expr()?));
        most = most.max(numbers.max());
    }
    most.filter(|most| *most >= value)?.checked_add(1)
}

/// The least power of ten that is no less.
fn next_round(least: i64) -> i64 {
    let powers = std::iter::successors(Some(10_i64), |power| power.checked_mul(10));
    powers
        .into_iter()
        .find(|power| *power >= least)
        .unwrap_or(least)
}

/// Whether a number is added or subtracted.
fn is_offset(bench: &Bench<'_, '_>, at: SiteIndex, range: TextRange) -> bool {
    matches!(
        bench.parent(at),
        Some(AnyNodeRef::ExprBinOp(sum))
            if matches!(sum.op, Operator::Add | Operator::Sub) && sum.right.range() == range
    )
}

/// Other numbers of the file, those of the same function first.
fn near_numbers(bench: &mut Bench<'_, '_>, at: SiteIndex, range: TextRange, text: &str) {
    let is_offset = is_offset(bench, at, range);
    let function = bench.function(at).map(|function| function.range);
    let mut known: Vec<(bool, &str)> = Vec::new();
    for (place, number) in &bench.vocabulary.numbers {
        let is_far = function.is_none_or(|function| !function.contains_range(*place));
        if *place != range && *number != text && !(is_offset && *number == "0") {
            match known.iter_mut().find(|(_, other)| other == number) {
                Some((was_far, _)) => *was_far &= is_far,
                None => known.push((is_far, number)),
            }
        }
    }
    known.sort_by_key(|(is_far, _)| *is_far);
    for (place, (is_far, number)) in known.into_iter().take(12).enumerate() {
        let cost = if is_far { 3.6 } else { 2.2 } + 0.1 * place as f64;
        bench.replace(Family::Constant, cost, at, number);
    }
}

fn integer(literal: &ExprNumberLiteral) -> Option<i64> {
    match &literal.value {
        Number::Int(value) => value.as_i64(),
        _ => None,
    }
}

pub(super) fn boolean(bench: &mut Bench<'_, '_>, at: SiteIndex, value: bool) {
    let other = if value { "False" } else { "True" };
    bench.replace(Family::Constant, 0.5, at, other);
    bench.replace(Family::Constant, 2.4, at, "None");
}

/// Where `None` stands, something else may belong.
pub(super) fn none(bench: &mut Bench<'_, '_>, at: SiteIndex) {
    if matches!(bench.parent(at), Some(AnyNodeRef::ExprCompare(_))) {
        return;
    }
    for (value, cost) in [
        ("True", 2.2),
        ("False", 2.0),
        ("0", 2.2),
        ("1", 2.4),
        ("''", 2.6),
        ("()", 2.8),
        ("[]", 2.8),
        ("{}", 3.0),
    ] {
        bench.replace(Family::Constant, cost, at, value);
    }
    super::names::names_instead(bench, at, Family::Constant, 1.6);
    super::returns::values_instead(bench, at, 1.8);
}

/// A string literal that is one plain piece.
struct Literal<'a> {
    prefix: &'a str,
    quote: &'a str,
    content: &'a str,
}

impl<'a> Literal<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let quote_at = text.find(['\'', '"'])?;
        let (prefix, rest) = text.split_at(quote_at);
        let quote = [r#"""""#, "'''", "\"", "'"]
            .into_iter()
            .find(|quote| rest.starts_with(quote) && rest.len() >= 2 * quote.len())?;
        let content = rest.strip_prefix(quote)?.strip_suffix(quote)?;
        let is_raw = prefix.contains(['r', 'R']);
        let is_plain = !content.contains(&quote[..1]) && (is_raw || !content.contains('\\'));
        is_plain.then_some(Self {
            prefix,
            quote,
            content,
        })
    }

    /// The literal with other content; `None` where that needs escapes.
    fn with(&self, content: &str) -> Option<String> {
        let Self { prefix, quote, .. } = self;
        let is_plain = !content.contains(['\\', '\n', '\r']) && !content.contains(&quote[..1]);
        is_plain.then(|| format!("{prefix}{quote}{content}{quote}"))
    }
}

pub(super) fn string(bench: &mut Bench<'_, '_>, at: SiteIndex) {
    let range = bench.node(at).range();
    let text = bench.text(range);
    let Some(literal) = Literal::read(text) else {
        return;
    };
    // A statement that is a string does nothing.
    if matches!(bench.parent(at), Some(AnyNodeRef::StmtExpr(_))) {
        return;
    }
    let content = literal.content;
    let push = |bench: &mut Bench<'_, '_>, cost: f64, content: &str| {
        if let Some(text) = literal.with(content) {
            bench.push(Family::StringConstant, cost, at, Edit::replace(range, text));
        }
    };
    for mismatch in &bench.hints.mismatches.clone() {
        for wanted in instead(content, mismatch) {
            push(bench, 0.3, &wanted);
        }
    }
    let mut shapes = vec![(content.to_lowercase(), 1.6), (content.to_uppercase(), 2.2)];
    shapes.push((capitalised(content), 2.4));
    shapes.push((content.trim().to_owned(), 2.2));
    shapes.push((String::new(), 2.6));
    if let Some(inner) = undecorated(content) {
        shapes.push((inner.to_owned(), 0.6));
    }
    for (shape, cost) in shapes {
        push(bench, cost, &shape);
    }
    // A text in place of itself changes nothing.
    let is_same = matches!(
        bench.parent(at),
        Some(AnyNodeRef::Arguments(arguments))
            if matches!(&*arguments.args, [a, b] if bench.text(a) == bench.text(b))
    );
    if content.chars().count() <= 1 {
        let less = if is_same { 1.6 } else { 0.0 };
        for (other, cost) in [
            (" ", 2.2),
            ("", 2.4),
            (",", 2.4),
            (".", 2.4),
            ("-", 2.5),
            ("_", 2.5),
            ("0", 2.5),
            (":", 2.7),
            ("/", 2.7),
        ] {
            push(bench, cost - less, other);
        }
    }
    let function = bench.function(at).map(|function| function.range);
    let mut known: Vec<(f64, &str)> = Vec::new();
    for (place, other) in &bench.vocabulary.strings {
        let Some(other) = Literal::read(other).map(|literal| literal.content) else {
            continue;
        };
        if *place == range || other == content || known.iter().any(|(_, known)| *known == other) {
            continue;
        }
        let is_near = function.is_some_and(|function| function.contains_range(*place));
        let mentioned = bench.hints.words.iter().any(|word| word == other);
        let cost = 3.4
            - 2.0 * likeness(content, other)
            - if is_near { 0.6 } else { 0.0 }
            - if mentioned { 0.6 } else { 0.0 };
        known.push((cost, other));
    }
    known.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
    for (cost, other) in known.into_iter().take(16) {
        push(bench, cost, other);
    }
    for word in &bench.hints.words.clone() {
        if word != content && likeness(content, word) > 0.5 {
            push(bench, 1.6 - likeness(content, word), word);
        }
    }
}

/// What `content` would have to be for the value that came to be the expected one.
fn instead(content: &str, mismatch: &Mismatch) -> Vec<String> {
    let Mismatch { got, expected } = mismatch;
    if content.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (place, _) in got.match_indices(content) {
        let (before, after) = (&got[..place], &got[place + content.len()..]);
        let inner = expected
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after));
        if let Some(inner) = inner {
            found.push(inner.to_owned());
        }
    }
    // The same replacement all through, as of a separator.
    if found.is_empty() && got.matches(content).count() > 1 {
        let pieces: Vec<&str> = got.split(content).collect();
        let mut rest = expected.as_str();
        let mut between: Option<&str> = None;
        for (place, piece) in pieces.iter().enumerate() {
            let Some(found_at) = rest.find(piece).filter(|_| place == 0 || !piece.is_empty())
            else {
                return found;
            };
            if place > 0 {
                let gap = &rest[..found_at];
                if between.is_some_and(|known| known != gap) {
                    return found;
                }
                between = Some(gap);
            }
            rest = &rest[found_at + piece.len()..];
        }
        found.extend(between.map(str::to_owned));
    }
    found
}

/// The content without the same letters that stand on both sides of it.
fn undecorated(content: &str) -> Option<&str> {
    (1..=3).rev().find_map(|width| {
        let start = content.get(..width)?;
        let end = content.get(content.len().checked_sub(width)?..)?;
        let inner = content.get(width..content.len() - width)?;
        (start == end && !inner.is_empty() && start.chars().all(char::is_alphabetic))
            .then_some(inner)
    })
}

fn capitalised(content: &str) -> String {
    let mut letters = content.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

/// How alike two words are, from 0 to 1: shared pairs of letters (Dice).
pub(super) fn likeness(a: &str, b: &str) -> f64 {
    let pairs = |word: &str| {
        let letters: Vec<char> = word.to_lowercase().chars().collect();
        let mut pairs: Vec<(char, char)> =
            letters.windows(2).map(|pair| (pair[0], pair[1])).collect();
        pairs.sort_unstable();
        pairs
    };
    let (left, right) = (pairs(a), pairs(b));
    if left.is_empty() || right.is_empty() {
        return if a.eq_ignore_ascii_case(b) { 1.0 } else { 0.0 };
    }
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i < left.len() && j < right.len() {
        match left[i].cmp(&right[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                shared += 1;
                i += 1;
                j += 1;
            }
        }
    }
    2.0 * f64::from(shared) / (left.len() + right.len()) as f64
}

/// Whether a value can be told at a glance.
pub(super) fn is_constant(expression: &Expr) -> bool {
    expression.is_literal_expr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_told_from_what_came_and_what_should_have() {
        let mismatch = |got: &str, expected: &str| Mismatch {
            got: got.to_owned(),
            expected: expected.to_owned(),
        };
        assert_eq!(instead("-", &mismatch("'a-b'", "'a, b'")), [", "]);
        assert_eq!(instead("-", &mismatch("'a-b-c'", "'a, b, c'")), [", "]);
        assert!(instead("-", &mismatch("'a-b-c'", "'a, b; c'")).is_empty());
        assert!(instead("x", &mismatch("'a'", "'b'")).is_empty());
    }

    #[test]
    fn words_are_compared_by_pairs_of_letters() {
        assert!(likeness("maximum", "minimum") > 0.3);
        assert!(likeness("start", "stop") > likeness("start", "queue"));
        assert!((likeness("a", "A") - 1.0).abs() < 1e-9);
        assert_eq!(undecorated("abcvalueabc"), Some("value"));
        assert_eq!(undecorated("noon"), Some("oo"));
        assert_eq!(undecorated("value"), None);
    }
}
