//! The catalogue of edits mends simple mistakes, and every edit is sound.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;

use code::{
    edit_operators::{Candidate, Family, Hints, Mismatch, candidates},
    sites::Source,
};
use proptest::prelude::*;

fn all(text: &str, hints: &Hints) -> Vec<Candidate> {
    candidates(&Source::parse(text).unwrap(), &|_| 1.0, hints)
}

/// Sources with a mistake, without it, and what kind of mistake it is.
const MISTAKES: &[(&str, &str, Family)] = &[
    (
        "def f(a, b):\n    return not (a and b)\n",
        "def f(a, b):\n    return not (a or b)\n",
        Family::Condition,
    ),
    (
        "def f(a):\n    return a[:-1]\n",
        "def f(a):\n    return a[1:]\n",
        Family::Bounds,
    ),
    (
        "def f(a):\n    return a[1:]\n",
        "def f(a):\n    return a[:-1]\n",
        Family::Bounds,
    ),
    (
        "def f(a, n):\n    while a <= n:\n        a += 1\n",
        "def f(a, n):\n    while a < n:\n        a += 1\n",
        Family::ComparisonBoundary,
    ),
    (
        "def f(a, n):\n    return a not  in n\n",
        "def f(a, n):\n    return a in n\n",
        Family::ComparisonOperator,
    ),
    (
        "def f(a):\n    if a.ready():\n        return 1\n",
        "def f(a):\n    if not a.ready():\n        return 1\n",
        Family::Negation,
    ),
    (
        "def f(a):\n    return [b for b in a if not b]\n",
        "def f(a):\n    return [b for b in a if b]\n",
        Family::Negation,
    ),
    (
        "def f(a, b):\n    if a and b > 1:\n        pass\n",
        "def f(a, b):\n    if a or b > 1:\n        pass\n",
        Family::Condition,
    ),
    (
        "def f(a, b, c):\n    return a - b * c\n",
        "def f(a, b, c):\n    return a + b * c\n",
        Family::Arithmetic,
    ),
    (
        "def f(a, b, c):\n    return (a + b) ** c\n",
        "def f(a, b, c):\n    return (a + b) * c\n",
        Family::Arithmetic,
    ),
    (
        "def f(a, b, c):\n    return a + b % c + 1\n",
        "def f(a, b, c):\n    return a + b // c + 1\n",
        Family::Arithmetic,
    ),
    (
        "def f(a):\n    t = 0\n    for b in a:\n        t = b\n    return t\n",
        "def f(a):\n    t = 0\n    for b in a:\n        t += b\n    return t\n",
        Family::Assignment,
    ),
    (
        "def f(a):\n    return a[1]\n",
        "def f(a):\n    return a[0]\n",
        Family::OffByOne,
    ),
    (
        "def f(a, n):\n    return a[n:]\n",
        "def f(a, n):\n    return a[:n]\n",
        Family::Bounds,
    ),
    (
        "def f(n):\n    return [a for a in range(n)]\n",
        "def f(n):\n    return [a for a in range(1, n)]\n",
        Family::Bounds,
    ),
    (
        "def f(a, b):\n    return g(b, a)\n",
        "def f(a, b):\n    return g(a, b)\n",
        Family::Swap,
    ),
    (
        "def f(a, b):\n    return b if a else a\n",
        "def f(a, b):\n    return a if a else b\n",
        Family::Swap,
    ),
    (
        "def f(low, high):\n    if high > low:\n        return low - low\n",
        "def f(low, high):\n    if high > low:\n        return high - low\n",
        Family::Variable,
    ),
    (
        "class A:\n    def f(self):\n        self.first = self.last\n        return self.first\n",
        "class A:\n    def f(self):\n        self.first = self.last\n        return self.last\n",
        Family::Attribute,
    ),
    (
        "class A:\n    def __init__(self, size):\n        self.name = 1\n    def g(self):\n        return self.size\n",
        "class A:\n    def __init__(self, size):\n        self.name = 1\n        self.size = size\n    def g(self):\n        return self.size\n",
        Family::Insertion,
    ),
    (
        "def f(a):\n    return min(a, key=len)\n",
        "def f(a):\n    return max(a, key=len)\n",
        Family::Callee,
    ),
    (
        "def f(a, key):\n    return g(a)\ndef g(a, key):\n    return a\n",
        "def f(a, key):\n    return g(a, key)\ndef g(a, key):\n    return a\n",
        Family::Argument,
    ),
    (
        "def f(a):\n    return list(a)\n",
        "def f(a):\n    return a\n",
        Family::Conversion,
    ),
    (
        "def f(a):\n    b = a + 1\n",
        "def f(a):\n    b = a + 1\n    return b\n",
        Family::Return,
    ),
    (
        "def f(a):\n    yield a\n",
        "def f(a):\n    yield from a\n",
        Family::Return,
    ),
    (
        "def f(a):\n    for b in a:\n        if b:\n            break\n        yield b\n",
        "def f(a):\n    for b in a:\n        if b:\n            continue\n        yield b\n",
        Family::Jump,
    ),
    (
        "def f(a):\n    a.sort()\n    return a\n",
        "def f(a):\n    return a\n",
        Family::Removal,
    ),
    (
        "def f(a):\n    t = 0\n    for b in a:\n        t += b\n        return t\n",
        "def f(a):\n    t = 0\n    for b in a:\n        t += b\n    return t\n",
        Family::Move,
    ),
    (
        "def f(a, strict=False):\n    pass\ndef g(a, strict=None):\n    pass\n",
        "def f(a, strict=None):\n    pass\ndef g(a, strict=None):\n    pass\n",
        Family::Default,
    ),
    (
        "def f(a):\n    try:\n        return a[0]\n    except KeyError:\n        return None\n",
        "def f(a):\n    try:\n        return a[0]\n    except IndexError:\n        return None\n",
        Family::Exception,
    ),
    (
        "def f(a):\n    for b in a:\n        yield b\n",
        "def f(a):\n    for b in reversed(a):\n        yield b\n",
        Family::Iteration,
    ),
    (
        "class A:\n    def f(cls):\n        pass\n",
        "class A:\n    @classmethod\n    def f(cls):\n        pass\n",
        Family::Decorator,
    ),
    (
        "def f(a):\n    if a:\n        raise ValueError\n    return a\n",
        "def f(a):\n    if a:\n        pass\n    return a\n",
        Family::Guard,
    ),
    (
        "def f(a):\n    return a.get('sizes', 'size')\n",
        "def f(a):\n    return a.get('size', 'size')\n",
        Family::StringConstant,
    ),
    (
        "def f(a):\n    if a:\n        return 1\n        return 2\n",
        "def f(a):\n    if a:\n        return 1\n    return 2\n",
        Family::Move,
    ),
    (
        "class A:\n    def f(self, a):\n        return [b + c for b, c in zip(a)] + self.d\n",
        "class A:\n    def f(self, a):\n        return [b + c for b, c in zip(a, self.d)] + self.d\n",
        Family::Argument,
    ),
    (
        "def f(n):\n    n = int(n)\n    return n % 3\n",
        "def f(n):\n    n = abs(int(n))\n    return n % 3\n",
        Family::Conversion,
    ),
    (
        "def f(n):\n    return n % 10 in (11, 12, 13)\n",
        "def f(n):\n    return n % 100 in (11, 12, 13)\n",
        Family::Constant,
    ),
    (
        "def f(a, b):\n    b.go(a.x)\n    b.go(b.y)\n",
        "def f(a, b):\n    b.go(a.x)\n    b.go(a.x)\n",
        Family::Attribute,
    ),
    (
        "def f(low):\n    if low is None:\n        return 0\n    return low + 1\ndef g(high):\n    return high + 1\n",
        "def f(low):\n    if low is None:\n        return 0\n    return low + 1\ndef g(high):\n    if high is None:\n        return 0\n    return high + 1\n",
        Family::Guard,
    ),
    (
        "def f(a):\n    return g(a, True)\n",
        "def f(a):\n    return g(a, False)\n",
        Family::Constant,
    ),
];

#[test]
fn simple_mistakes_are_mended() {
    for (broken, fixed, family) in MISTAKES {
        let found = all(broken, &Hints::default());
        let mends = found
            .iter()
            .find(|candidate| candidate.edit.apply(broken) == *fixed);
        let mends = mends.unwrap_or_else(|| panic!("nothing makes\n{broken}into\n{fixed}"));
        assert_eq!(mends.family, *family, "{broken}");
    }
}

#[test]
fn nothing_is_added_is_not_written() {
    for (text, without) in [
        ("def f(a, n):\n    return a[(n + 1) % 7]\n", "a[(n) % 7]"),
        ("def f(a, n):\n    b = 0\n    return n - 9\n", "return n\n"),
    ] {
        let edited = all(text, &Hints::default())
            .iter()
            .map(|candidate| candidate.edit.apply(text))
            .collect::<Vec<_>>();
        assert!(
            edited.iter().any(|text| text.contains(without)),
            "{edited:?}"
        );
        let adds_nothing = |text: &&String| text.contains("n + 0") || text.contains("n - 0");
        assert_eq!(edited.iter().find(adds_nothing), None);
    }
}

#[test]
fn values_that_came_and_should_have_lead_to_constants() {
    let hints = Hints {
        mismatches: vec![Mismatch {
            got: "'a;b'".to_owned(),
            expected: "'a, b'".to_owned(),
        }],
        not_raised: vec!["OverflowError".to_owned()],
        ..Hints::default()
    };
    let text = "def f(a):\n    if not a:\n        raise ValueError()\n    return ';'.join(a)\n";
    let found = all(text, &hints);
    let likeliest = |family: Family| {
        let of_family = found.iter().filter(|candidate| candidate.family == family);
        let first = of_family.min_by(|a, b| a.cost.total_cmp(&b.cost)).unwrap();
        first.edit.replacement.clone()
    };
    assert_eq!(likeliest(Family::StringConstant), "', '");
    assert_eq!(likeliest(Family::Exception), "OverflowError");
}

#[test]
fn what_failures_and_names_speak_for_is_likelier() {
    let cost = |broken: &str, fixed: &str, hints: &Hints| {
        let found = all(broken, hints);
        let mends = found.iter().find(|it| it.edit.apply(broken) == fixed);
        mends
            .unwrap_or_else(|| panic!("nothing makes\n{broken}into\n{fixed}"))
            .cost
    };
    let lacking = Hints {
        lacking: vec![("g".to_owned(), vec!["size".to_owned()])],
        ..Hints::default()
    };
    let (broken, fixed) = (
        "def g(a, size):\n    return a\ndef f(a, n):\n    return g(a)\n",
        "def g(a, size):\n    return a\ndef f(a, n):\n    return g(a, n)\n",
    );
    assert!(cost(broken, fixed, &lacking) < 1.5);
    // A value is called like the place that it is kept in, or handed to.
    let none = Hints::default();
    let [key, value, cost_] = ["key", "value", "cost"].map(|name| {
        let class = |kept: &str| {
            format!("class A:\n    def __init__(self, key, value, cost, x):\n        self.value = {kept}\n")
        };
        let broken = class("x");
        cost(&broken, &class(name), &none)
    });
    assert!(value < key && value < cost_);
    let unbound = Hints {
        raised: vec!["UnboundLocalError".to_owned()],
        words: vec!["text".to_owned()],
        ..Hints::default()
    };
    let (broken, fixed) = (
        "def f(a):\n    if a:\n        text = a.name\n        return text\n    return text\n",
        "def f(a):\n    if a:\n        text = a.name\n        return text\n    text = a.name\n    return text\n",
    );
    assert!(cost(broken, fixed, &unbound) < cost(broken, fixed, &none) - 1.0);
}

#[test]
fn what_closes_a_branch_is_less_likely_and_names_are_not_set_to_themselves() {
    let text = "def f(a, b):\n    if a == 1:\n        b = a\n    elif b == 1:\n        return 2\n    return b\n";
    let found = all(text, &Hints::default());
    let cost = |made: &str| {
        let candidate = found.iter().find(|it| it.edit.apply(text).contains(made));
        candidate.map(|it| it.cost)
    };
    let (closed, other) = (cost("elif a == 1:"), cost("elif b != 1:"));
    assert!(
        closed.unwrap() > other.unwrap() + 1.0,
        "{closed:?} {other:?}"
    );
    assert!(cost("if b == 1:\n        b = a").unwrap() > 2.0);
    assert_eq!(cost("b = b\n"), None);
}

#[test]
fn only_lines_that_weigh_something_are_edited() {
    let source =
        Source::parse("def f(a):\n    a = 1\n    if a:\n        a = 2\n    b = 3\n").unwrap();
    let found = candidates(
        &source,
        &|line| f64::from(u8::from(line == 3)),
        &Hints::default(),
    );
    assert!(!found.is_empty());
    for candidate in &found {
        assert_eq!(
            (candidate.line, candidate.weight),
            (3, 1.0),
            "{candidate:?}"
        );
    }
    assert!(candidates(&source, &|_| 0.0, &Hints::default()).is_empty());
}

#[test]
fn names_of_families_are_those_of_files() {
    let families: BTreeSet<Family> = MISTAKES.iter().map(|(_, _, family)| *family).collect();
    for family in families {
        let written = serde_json::to_value(family).unwrap();
        assert_eq!(written, family.name());
    }
}

/// Every edit parses in the whole text, is listed once, changes something, and comes in a fixed order.
fn check(text: &str) {
    let found = all(text, &Hints::default());
    assert_eq!(found, all(text, &Hints::default()));
    let changed: BTreeSet<_> = found.iter().map(|candidate| &candidate.edit).collect();
    assert_eq!(changed.len(), found.len());
    for candidate in &found {
        let edited = candidate.edit.apply(text);
        assert_ne!(edited, text, "{candidate:?}");
        let parsed = Source::parse(edited.as_str());
        assert!(parsed.is_ok(), "{candidate:?}\n{parsed:?}\n{edited}");
        assert!(
            candidate.cost.is_finite() && candidate.cost > -1.0,
            "{candidate:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_edit_is_sound(picked in prop::collection::vec(0..MISTAKES.len(), 1..4)) {
        let text: String = picked.into_iter().map(|place| MISTAKES[place].0).collect();
        check(&text);
    }
}

#[test]
fn edits_of_dense_code_are_sound() {
    check(
        r#"
import os
LIMIT = 3; OTHER = -LIMIT

class Base(dict):
    kind: str = "base"
    def __init__(self, name, *args, size=None, **kwargs):
        super().__init__(*args, **kwargs); self.name = name
        self._size = size if size is not None else len(args) - 1
    async def run(self, items, /, key=lambda item: (item[0], -item[1]), *, deep=True):
        async with self.lock as held, open("a"):
            for index, (left, right) in enumerate(items):
                if (held
                        and left < right <= LIMIT
                        or not deep):
                    continue
                elif left is None: break
                else:
                    yield f"{left!r:>{right}} {index + 1}", right
            else:
                pass
        try:
            value = {**self, 'a': [x for x in items if x if key(x)][1:-1:2]}
        except (KeyError, ValueError) as error:
            raise RuntimeError("no") from error
        finally:
            del held
    @property
    def size(self):
        match self.kind:
            case "base" | "other" if self._size:
                return (self._size)[0]
            case [first, *rest]:
                global LIMIT
                LIMIT = (n := 4) ** -n
        return (yield) or not -self._size // 2 \
            if self else None
"#,
    );
}
