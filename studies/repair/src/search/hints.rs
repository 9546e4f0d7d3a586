//! What the words of failures and of an issue say about values.

use code::edit_operators::{Hints, Mismatch};

use super::observation::TestsObserved;
use crate::Issue;

/// Mismatches that are read at most: the catalogue tries every one at every constant.
const MAX_MISMATCHES: usize = 8;
/// Longer values tell nothing about one constant.
const MAX_VALUE: usize = 400;

/// What `observation` and `issue` say.
pub(super) fn hints(observation: &TestsObserved, issue: &Issue) -> Hints {
    let mut hints = Hints::default();
    for failure in observation.failures.values() {
        if failure.kind != "AssertionError" && failure.kind != "Failed" {
            push_new(&mut hints.raised, last_part(&failure.kind));
        }
        for mismatch in mismatches(&failure.message) {
            if hints.mismatches.len() < MAX_MISMATCHES && !hints.mismatches.contains(&mismatch) {
                hints.mismatches.push(mismatch);
            }
        }
        if let Some(name) = not_raised(&failure.message) {
            push_new(&mut hints.not_raised, name);
        }
        if let Some(lacking) = lacking(&failure.message)
            && !hints.lacking.contains(&lacking)
        {
            hints.lacking.push(lacking);
        }
        for name in conversions(&failure.kind, &failure.message) {
            push_new(&mut hints.conversions, name.to_owned());
        }
        for word in quoted(&failure.message) {
            push_new(&mut hints.words, word);
        }
    }
    let told = hints.mismatches.iter();
    let told: Vec<&str> = told
        .flat_map(|mismatch| between(&mismatch.got, &mismatch.expected))
        .collect();
    let is_negative = |mismatch: &Mismatch| has_negative(&mismatch.got);
    let signs = hints.mismatches.iter().any(is_negative).then_some("abs");
    for name in told.into_iter().chain(signs) {
        push_new(&mut hints.conversions, name.to_owned());
    }
    for text in [&issue.title, &issue.body] {
        for word in quoted(text) {
            push_new(&mut hints.words, word);
        }
    }
    hints.words.truncate(40);
    hints
}

/// Pairs of values that differ, both ways around: which one is expected is a habit of whoever wrote the test.
fn mismatches(message: &str) -> Vec<Mismatch> {
    let first = message.lines().next().unwrap_or_default();
    let first = first
        .strip_prefix("AssertionError: ")
        .unwrap_or(first)
        .trim();
    let first = first.strip_prefix("assert ").unwrap_or(first);
    let compared = first
        .split_once(" != ")
        .or_else(|| first.split_once(" == "))
        .or_else(|| first.split_once(" is not "));
    let Some((left, right)) = compared else {
        return Vec::new();
    };
    // "Lists differ: [1] != [2]"
    let left = match left.split_once(" differ: ") {
        Some((_, left)) => left,
        None => left,
    };
    let right = right.split(" : ").next().unwrap_or(right);
    let (left, right) = (left.trim(), right.trim());
    let mut pairs = vec![(left, right)];
    if let Some(inner) = differing(left, right) {
        pairs.push(inner);
    }
    let pairs = pairs
        .into_iter()
        .filter(|(a, b)| a != b && a.len() <= MAX_VALUE && b.len() <= MAX_VALUE);
    pairs
        .flat_map(|(a, b)| [(a, b), (b, a)])
        .map(|(got, expected)| Mismatch {
            got: got.to_owned(),
            expected: expected.to_owned(),
        })
        .collect()
}

/// Where two texts of lists first differ: the items there, if each is a plain one.
fn differing<'a>(left: &'a str, right: &'a str) -> Option<(&'a str, &'a str)> {
    let inside = |text: &'a str| {
        let text = text.strip_prefix(['[', '(', '{'])?;
        text.strip_suffix([']', ')', '}'])
    };
    let (left, right) = (inside(left)?, inside(right)?);
    let pairs = left.split(", ").zip(right.split(", "));
    let mut different = pairs.filter(|(a, b)| a != b);
    let first = different.next()?;
    let is_plain = |text: &str| !text.is_empty() && !text.contains(['[', '(', '{']);
    (is_plain(first.0) && is_plain(first.1)).then_some(first)
}

/// Types whose values can be made of others.
const TYPES: [&str; 9] = [
    "str",
    "int",
    "float",
    "list",
    "tuple",
    "set",
    "frozenset",
    "dict",
    "bytes",
];

/// What the complaint about a value's type says that it should be.
fn conversions(kind: &str, message: &str) -> Vec<&'static str> {
    if kind != "TypeError" && kind != "AttributeError" {
        return Vec::new();
    }
    let first = message.lines().next().unwrap_or_default();
    let mut found = Vec::new();
    if first.contains("non-iterator") || first.contains("is not an iterator") {
        found.push("iter");
    }
    if first.contains("not subscriptable") || first.contains("has no len()") {
        found.push("list");
    }
    if first.contains("unhashable") {
        found.extend(["tuple", "frozenset"]);
    }
    if let Some((_, missed)) = first.split_once("object has no attribute '") {
        found.extend(having(missed.trim_end_matches('\'')));
        return found;
    }
    let words = first.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    for word in words {
        found.extend(TYPES.iter().find(|known| **known == word));
    }
    found
}

/// What was called without arguments that it needs: `a.f() missing 1 required positional argument: 'x'`.
fn lacking(message: &str) -> Option<(String, Vec<String>)> {
    let (called, names) = message.lines().next()?.split_once("() missing ")?;
    let called = called.rsplit(' ').next()?;
    let mut parts = called.rsplit('.');
    let name = match (parts.next()?, parts.next()) {
        // A class is called by its own name.
        ("__init__", Some(class)) => class,
        (name, _) => name,
    };
    let (_, names) = names.split_once("argument")?;
    let names = names.split('\'').skip(1).step_by(2).map(str::to_owned);
    Some((name.to_owned(), names.collect()))
}

/// Whether a number below zero is in a value: some code forgets that there are such.
fn has_negative(value: &str) -> bool {
    let bytes = value.as_bytes();
    (1..bytes.len()).any(|at| {
        let begins = at < 2 || !bytes[at - 2].is_ascii_alphanumeric();
        begins && bytes[at - 1] == b'-' && bytes[at].is_ascii_digit()
    })
}

/// The type whose values have an attribute of this name.
fn having(attribute: &str) -> Option<&'static str> {
    match attribute {
        "lower" | "upper" | "strip" | "lstrip" | "rstrip" | "split" | "startswith" | "endswith"
        | "title" | "capitalize" | "encode" | "join" | "format" | "isdigit" | "replace"
        | "splitlines" => Some("str"),
        "append" | "extend" | "sort" | "reverse" | "insert" => Some("list"),
        "items" | "keys" | "values" | "get" | "setdefault" => Some("dict"),
        "add" | "discard" | "union" | "intersection" | "difference" | "issubset" => Some("set"),
        "decode" => Some("bytes"),
        _ => None,
    }
}

/// What makes the second value of the first, by how they look.
fn between(got: &str, expected: &str) -> Vec<&'static str> {
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Look {
        Text,
        List,
        Tuple,
        Set,
        Whole,
        Fraction,
        Verdict,
        Other,
    }
    let look = |text: &str| match text.as_bytes() {
        [b'\'' | b'"', ..] => Look::Text,
        [b'[', ..] => Look::List,
        [b'(', ..] => Look::Tuple,
        [b'{', ..] => Look::Set,
        b"True" | b"False" => Look::Verdict,
        _ if text.parse::<i64>().is_ok() => Look::Whole,
        _ if text.parse::<f64>().is_ok() => Look::Fraction,
        _ => Look::Other,
    };
    let (came, wanted) = (look(got), look(expected));
    if came != wanted {
        return match wanted {
            Look::Text => vec!["str", "repr"],
            Look::List => vec!["list", "sorted"],
            Look::Tuple => vec!["tuple"],
            Look::Set => vec!["set", "dict"],
            Look::Whole => vec!["int", "len", "round"],
            Look::Fraction => vec!["float"],
            Look::Verdict => vec!["bool"],
            Look::Other => Vec::new(),
        };
    }
    let parts = |text: &str| {
        let inside = text.trim_matches(['[', ']', '(', ')', '{', '}']);
        let mut parts: Vec<String> = inside.split(", ").map(str::to_owned).collect();
        parts.sort_unstable();
        parts
    };
    let is_same = |change: fn(&str) -> String| change(got) == expected;
    let without_blanks = |text: &str| {
        let inside = text.trim_matches(['\'', '"']);
        inside.trim().to_owned()
    };
    match came {
        Look::Text if is_same(|text| text.to_lowercase()) => vec![".lower"],
        Look::Text if is_same(|text| text.to_uppercase()) => vec![".upper"],
        Look::Text if is_same(titled) => vec![".title", ".capitalize"],
        Look::Text if without_blanks(got) == expected.trim_matches(['\'', '"']) => vec![".strip"],
        Look::Whole | Look::Fraction if got.strip_prefix('-') == Some(expected) => vec!["abs"],
        Look::List | Look::Tuple if parts(got) == parts(expected) => vec!["sorted", "reversed"],
        _ => Vec::new(),
    }
}

/// With great letters where words begin.
fn titled(text: &str) -> String {
    let mut begins = true;
    let letters = text.chars().flat_map(|letter| {
        let changed: Vec<char> = match begins {
            true => letter.to_uppercase().collect(),
            false => letter.to_lowercase().collect(),
        };
        begins = !letter.is_alphabetic();
        changed
    });
    letters.collect()
}

/// The exception that should have come.
fn not_raised(message: &str) -> Option<String> {
    let first = message.lines().next()?;
    if let Some(name) = first.strip_suffix(" not raised") {
        let name = name.rsplit([' ', ':']).next()?;
        return Some(last_part(name));
    }
    let before = first.split(" not raised by ").next()?;
    if before != first {
        return Some(last_part(before.rsplit([' ', ':']).next()?));
    }
    let (_, after) = first.split_once("DID NOT RAISE")?;
    let name = after
        .trim()
        .trim_start_matches("<class '")
        .trim_end_matches("'>");
    Some(last_part(name))
}

fn last_part(name: &str) -> String {
    name.rsplit('.').next().unwrap_or(name).trim().to_owned()
}

/// What stands in quotes.
fn quoted(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for quote in ['\'', '"', '`'] {
        let mut parts = text.split(quote).skip(1);
        while let Some(inside) = parts.next() {
            if !inside.is_empty() && inside.len() <= 60 && !inside.contains('\n') {
                found.push(inside.to_owned());
            }
            if parts.next().is_none() {
                break;
            }
        }
    }
    found
}

fn push_new(list: &mut Vec<String>, item: String) {
    if !item.is_empty() && !list.contains(&item) {
        list.push(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_from_what_test_frameworks_say() {
        let first = |message: &str| {
            let found = mismatches(message).into_iter().next();
            found.map(|found| (found.got, found.expected))
        };
        let pair = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        assert_eq!(first("3 != 4"), pair("3", "4"));
        assert_eq!(
            first("AssertionError: 'a' != 'b'\n- a\n+ b\n"),
            pair("'a'", "'b'")
        );
        assert_eq!(first("assert 3 == 4\n +  where 3 = f()"), pair("3", "4"));
        assert_eq!(first("False is not true"), pair("False", "true"));
        let lists =
            mismatches("Lists differ: [1, 2, 3] != [1, 5, 3]\n\nFirst differing element 1:");
        let inner = Mismatch {
            got: "2".to_owned(),
            expected: "5".to_owned(),
        };
        assert!(lists.contains(&inner), "{lists:?}");
        assert!(mismatches("'x' not found in 'abc'").is_empty());
        assert_eq!(
            not_raised("ValueError not raised"),
            Some("ValueError".to_owned())
        );
        assert_eq!(
            not_raised("Failed: DID NOT RAISE <class 'a.b.Missing'>"),
            Some("Missing".to_owned())
        );
        assert_eq!(not_raised("1 != 2"), None);
        let call = |name: &str, of: &[&str]| {
            let of: Vec<String> = of.iter().map(|it| (*it).to_owned()).collect();
            Some((name.to_owned(), of))
        };
        assert_eq!(
            lacking("a.<locals>.f() missing 2 required positional arguments: 'x' and 'y'"),
            call("f", &["x", "y"])
        );
        assert_eq!(
            lacking("TypeError: Stack.__init__() missing 1 required keyword-only argument: 'n'"),
            call("Stack", &["n"])
        );
        assert_eq!(lacking("1 missing"), None);
        assert_eq!(quoted("no 'key' in \"a b\""), ["key", "a b"]);
    }

    #[test]
    fn conversions_are_told_from_types_and_looks() {
        let told = |message: &str| conversions("TypeError", message);
        assert_eq!(
            told("iter() returned non-iterator of type 'tuple'"),
            ["iter", "tuple"]
        );
        assert_eq!(told("object of type 'generator' has no len()"), ["list"]);
        assert_eq!(
            told("unsupported operand type(s) for +: 'int' and 'str'"),
            ["int", "str"]
        );
        assert!(conversions("ValueError", "an int").is_empty());
        assert_eq!(between("'3'", "3"), ["int", "len", "round"]);
        assert_eq!(between("[1, 2]", "(1, 2)"), ["tuple"]);
        assert_eq!(between("-4", "4"), ["abs"]);
        assert_eq!(between("'AB'", "'ab'"), [".lower"]);
        assert_eq!(between("' a'", "'a'"), [".strip"]);
        assert_eq!(between("[2, 1]", "[1, 2]"), ["sorted", "reversed"]);
        assert_eq!(told("'int' object has no attribute 'lower'"), ["str"]);
        assert_eq!(
            between("'an old man'", "'An Old Man'"),
            [".title", ".capitalize"]
        );
        assert_eq!(between("[1]", "True"), ["bool"]);
        assert!(between("1", "2").is_empty());
        assert!(has_negative("'-1th'") && has_negative("-4") && has_negative("[1, -2]"));
        assert!(!has_negative("'2001-02-03'") && !has_negative("'a-1'") && !has_negative("-"));
    }
}
