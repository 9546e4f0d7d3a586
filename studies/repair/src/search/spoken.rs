//! Which failing tests an issue speaks of: by the words of a failure, where it failed, the values that it compared, or
//! the names of the test and of what it tests.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Issue, workplace::Failure};

/// What the words of a failure count or the values that differ, where it failed, its kind, the test's name as it stands
/// in the source, the words of its name, and what it is called after where an issue has that as code.
const WORDS: u32 = 3;
const PLACE: u32 = 2;
const KIND: u32 = 1;
const NAME: u32 = 3;
const NAME_WORDS: u32 = 2;
const TESTED: u32 = 3;
/// A test that counts less is not spoken of.
const SPOKEN_OF: u32 = 3;
/// Shorter words of a failure, and shorter names, stand in many texts.
const MIN_WORDS: usize = 8;
/// Shorter names of what is tested, and pairs of values with fewer letters, do too.
const MIN_TESTED: usize = 3;
const MIN_VALUES: usize = 4;

/// What code of any issue calls, whatever it is about.
const CALLED_ANYWHERE: [&str; 25] = [
    "assert",
    "bool",
    "bytes",
    "dict",
    "float",
    "format",
    "frozenset",
    "import",
    "int",
    "isinstance",
    "iter",
    "len",
    "list",
    "main",
    "next",
    "open",
    "print",
    "raise",
    "range",
    "repr",
    "set",
    "sorted",
    "str",
    "tuple",
    "type",
];

/// Those of `failing` that are `named`; where none is, those that the issue speaks of.
pub(super) fn spoken_of<'a>(
    failing: impl Iterator<Item = &'a String>,
    failures: &BTreeMap<String, Failure>,
    issue: &Issue,
    named: &[String],
) -> BTreeSet<String> {
    if !named.is_empty() {
        return failing.filter(|id| named.contains(id)).cloned().collect();
    }
    let text = format!("{}\n{}", issue.title, issue.body);
    let said = Said::of(&text);
    let of = |id: &&String| {
        let failure = failures.get(*id);
        let shown = failure.map_or(0, |failure| said.shown(failure, issue));
        shown + said.name_of(id) >= SPOKEN_OF
    };
    failing.filter(of).cloned().collect()
}

/// A test's id without its parameters.
pub(super) fn function(id: &str) -> &str {
    id.split('[').next().unwrap_or(id)
}

/// An issue's text, and what is looked for in it.
struct Said<'a> {
    text: &'a str,
    squeezed: String,
    words: BTreeSet<&'a str>,
    /// Names that stand as code, in small letters.
    code: BTreeSet<String>,
}

impl<'a> Said<'a> {
    fn of(text: &'a str) -> Self {
        Self {
            text,
            squeezed: squeezed(text),
            words: text.split(|letter| !is_of_name(letter)).collect(),
            code: names_in_code(text),
        }
    }

    fn shown(&self, failure: &Failure, issue: &Issue) -> u32 {
        let words = failure.message.lines().next().unwrap_or_default().trim();
        let has_words = words.len() >= MIN_WORDS && self.text.contains(words);
        let has_place = issue.failure_frame.as_deref().is_some_and(|place| {
            let mut frames = failure.frames.iter();
            frames.any(|frame| format!("{}:{}", frame.path, frame.line) == place)
        });
        let has_kind = issue.error_kind.as_deref() == Some(&*failure.kind);
        let has_values = compared(words).is_some_and(|(left, right)| {
            self.has_value(left) && self.has_value(right) && left.len() + right.len() >= MIN_VALUES
        });
        WORDS * u32::from(has_words || has_values)
            + PLACE * u32::from(has_place)
            + KIND * u32::from(has_kind)
    }

    /// Whether a value stands in the text by itself.
    fn has_value(&self, value: &str) -> bool {
        let text = self.text;
        text.match_indices(value).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + value.len()..].chars().next();
            !before.is_some_and(is_of_name) && !after.is_some_and(is_of_name)
        })
    }

    fn name_of(&self, id: &str) -> u32 {
        let whole = function(id);
        let mut parts = whole.rsplit([':', '.']).filter(|part| !part.is_empty());
        let name = parts.next().unwrap_or(whole);
        let short = squeezed(name.trim_start_matches("test"));
        match () {
            () if name.len() >= MIN_WORDS && self.words.contains(name) => NAME,
            () if self.has_name_of(name) => NAME,
            () if self.is_tested_by(name) => TESTED,
            () if parts.next().is_some_and(|class| self.is_class(class)) => TESTED,
            () if short.len() >= MIN_WORDS && self.squeezed.contains(&short) => NAME_WORDS,
            () => 0,
        }
    }

    /// Whether the whole name of what a test is for is a word of the text, one that is no everyday word.
    fn has_name_of(&self, name: &str) -> bool {
        let tested = name.strip_prefix("test_").unwrap_or_default();
        tested.len() >= MIN_WORDS && self.words.contains(tested)
    }

    /// Whether a test is called after a name that the issue has as code, or begins so.
    fn is_tested_by(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        let Some(tested) = name.strip_prefix("test") else {
            return false;
        };
        let tested = tested.trim_start_matches('_');
        self.code.iter().any(|code| {
            let rest = tested.strip_prefix(code.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        })
    }

    /// Whether a class of tests, such as `TestOrdinal` or `OrdinalTests`, is called after a name that the issue has as
    /// code.
    fn is_class(&self, class: &str) -> bool {
        if !class.starts_with(char::is_uppercase) {
            return false;
        }
        let class = class.to_lowercase();
        let ends = ["testcase", "tests", "test"];
        let without = ends.iter().find_map(|end| class.strip_suffix(end));
        let tested = without.or_else(|| class.strip_prefix("test"));
        tested.is_some_and(|tested| self.code.iter().any(|code| squeezed(code) == tested))
    }
}

/// Names that are called or are attributes in a text, and those in it that are all of a piece of code between
/// backticks: in small letters, without what code of any issue calls.
fn names_in_code(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut before = None;
    let mut rest = text;
    while let Some(begin) = rest.find(|letter: char| is_of_name(letter)) {
        let behind = rest[..begin].chars().next_back().or(before);
        let from = &rest[begin..];
        let end = from
            .find(|letter| !is_of_name(letter))
            .unwrap_or(from.len());
        let (name, after) = from.split_at(end);
        let is_quoted = behind == Some('`') && after.starts_with('`');
        let is_called = after.starts_with('(');
        let is_attribute = behind == Some('.') && (is_called || after.starts_with('`'));
        let is_name = !name.starts_with(|letter: char| letter.is_ascii_digit());
        let name = name.to_lowercase();
        if (is_quoted || is_called || is_attribute)
            && is_name
            && name.len() >= MIN_TESTED
            && !CALLED_ANYWHERE.contains(&name.as_str())
        {
            names.insert(name);
        }
        before = from[..end].chars().next_back();
        rest = after;
    }
    names
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The two values that an assertion found to differ, without quotes: of pytest's `assert '13rd' == '13th'` and
/// unittest's `'13rd' != '13th'`. None where one of them says nothing of itself.
fn compared(message: &str) -> Option<(&str, &str)> {
    let message = message.strip_prefix("assert ").unwrap_or(message);
    let (left, right) = message
        .split_once(" == ")
        .or_else(|| message.split_once(" != "))?;
    let (left, right) = (bare(left), bare(right));
    let is_plain = |value| ["", "True", "False", "None"].contains(&value);
    if is_plain(left) || is_plain(right) || left == right {
        return None;
    }
    Some((left, right))
}

fn bare(value: &str) -> &str {
    value.trim().trim_matches(['\'', '"'])
}

fn squeezed(text: &str) -> String {
    let letters = text.chars().filter(|letter| letter.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILING: [(&str, &str); 8] = [
        (
            "tests/test_n.py::test_ordinal[13-13th]",
            "assert '13rd' == '13th'",
        ),
        (
            "tests/test_n.py::test_ordinal_of_words[x]",
            "assert 'x' == 'y'",
        ),
        (
            "tests/test_n.py::test_natural_list[a]",
            "assert 'a and b' == 'a, b'",
        ),
        (
            "tests/test_n.py::TestIntWord::test_large",
            "assert None == '1.0 million'",
        ),
        ("test_n.WordTests.test_cut", "'ca' != 'cat'"),
        ("tests/test_n.py::test_one", "assert 1 == 2"),
        ("tests/test_n.py::test_flag", "assert False == True"),
        ("tests/test_n.py::test_keyfilter", "assert {} == {1: 2}"),
    ];

    /// Places in [`FAILING`].
    fn spoken(body: &str) -> Vec<usize> {
        let ids = FAILING.map(|(id, _)| id.to_owned());
        let failure = |message: &str| Failure {
            kind: "AssertionError".to_owned(),
            message: message.to_owned(),
            frames: Vec::new(),
        };
        let failures = FAILING.map(|(id, message)| (id.to_owned(), failure(message)));
        let issue = Issue {
            body: body.to_owned(),
            ..Issue::default()
        };
        let spoken = spoken_of(ids.iter(), &failures.into(), &issue, &[]);
        let places = (0..ids.len()).filter(|place| spoken.contains(&ids[*place]));
        places.collect()
    }

    #[test]
    fn tests_are_spoken_of_by_what_a_person_writes() {
        let cases: [(&str, &[usize]); 20] = [
            ("I get 13rd where I want 13th", &[0]),
            ("I get 13rd, and 113th is right", &[]),
            ("ordinal(13) is wrong", &[0, 1]),
            ("`humanize.ordinal` is wrong", &[0, 1]),
            ("`Ordinal` is wrong", &[0, 1]),
            ("an ordinal is wrong", &[]),
            ("natural_list([1]) raises", &[2]),
            ("natural([1]) raises", &[2]),
            ("intword(10 ** 6) gives None", &[3]),
            ("`word` loses a letter: ca, not cat", &[4]),
            ("I get ca where I want cat", &[4]),
            ("it gives 1, I want 2", &[]),
            ("I want True, it is False", &[]),
            ("print(list(x)) and str(y) are wrong", &[]),
            ("```\nn = ordinal(13)\n```", &[0, 1]),
            ("```\nordinal\n```", &[]),
            ("see test_natural_list", &[2]),
            ("keyfilter asks for the value", &[7]),
            ("keyfilters ask for the value", &[]),
            ("a natural_list of one has a comma", &[2]),
        ];
        for (body, expected) in cases {
            assert_eq!(spoken(body), expected, "{body}");
        }
    }

    #[test]
    fn values_are_those_of_a_comparison() {
        let cases = [
            ("assert '13rd' == '13th'", Some(("13rd", "13th"))),
            ("'ca' != 'cat'", Some(("ca", "cat"))),
            ("assert 12 == 13", Some(("12", "13"))),
            ("assert None == 'x'", None),
            ("assert '' == 'x'", None),
            ("no such thing", None),
        ];
        for (message, expected) in cases {
            assert_eq!(compared(message), expected, "{message}");
        }
    }
}
