//! A normal form under which equal programs mean the same (spec of the critique study, section 4.4).
//!
//! The form is the token stream without comments, blank lines, spacing and the choice of quotes. No
//! name is changed. Wherever Ruff's lexer and Python's could disagree about what the dropped text
//! means (tabs, form feeds, carriage returns, line continuations, unparsable text), the form is the
//! exact text instead, so equal forms never stand for different programs. So it is for programs that
//! could read their own layout, such as line numbers out of a traceback.

use ruff_python_ast::token::{Token, TokenKind, Tokens};
use ruff_python_parser::parse_module;
use ruff_text_size::{Ranged, TextRange};

use crate::observe::Observer;

/// A program up to layout. Programs of one form do the same; that the lines in their uncaught
/// exceptions have other numbers is seen only from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NormalForm {
    /// BLAKE3 of the form.
    pub digest: [u8; 32],
    /// Whether layout was normalised; otherwise the digest is of the exact text.
    pub normalised: bool,
}

/// The normal form of `source`. Never fails: what cannot be normalised stands for itself.
pub fn normal_form(source: &str) -> NormalForm {
    match canonical_tokens(source) {
        Some(bytes) => NormalForm {
            digest: digest(b"tokens", &bytes),
            normalised: true,
        },
        None => NormalForm::exact(source.as_bytes()),
    }
}

/// The program without comments, blank lines and choices of spacing, for whoever compares texts: its tokens
/// one space apart, each logical line behind four spaces for each level. What cannot be read stays as it is.
pub fn normal_text(source: &str) -> String {
    tokens_as_text(source).unwrap_or_else(|| source.to_owned())
}

fn tokens_as_text(source: &str) -> Option<String> {
    if source.len() > MAX_SOURCE || nesting_bound(source) > SHALLOW {
        return None;
    }
    let parsed = parse_module(source).ok()?;
    let (mut text, mut depth, mut begins) = (String::new(), 0usize, true);
    for token in parsed.tokens() {
        match token.kind() {
            TokenKind::Comment | TokenKind::NonLogicalNewline | TokenKind::EndOfFile => {}
            TokenKind::Indent => depth += 1,
            TokenKind::Dedent => depth = depth.saturating_sub(1),
            TokenKind::Newline => {
                text.push('\n');
                begins = true;
            }
            _ => {
                let indent = if begins { 4 * depth } else { 1 };
                text.extend(std::iter::repeat_n(' ', indent));
                text.push_str(&source[token.range()]);
                begins = false;
            }
        }
    }
    Some(text)
}

impl NormalForm {
    /// The form of a program in another language, or of one that is not text: its exact bytes.
    pub fn exact(source: &[u8]) -> Self {
        Self {
            digest: digest(b"text", source),
            normalised: false,
        }
    }
}

/// Longer programs are taken as they are: the parser recurses, and its depth is bounded by the
/// length of what it reads.
const MAX_SOURCE: usize = 32 << 10;

/// Enough for the deepest nesting that [`MAX_SOURCE`] bytes can spell (a test parses the worst).
const PARSER_STACK: usize = 512 << 20;

/// Programs that cannot nest deeper than this are parsed on the caller's stack.
const SHALLOW: usize = 128;

fn digest(domain: &[u8], bytes: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(domain.len() as u64).to_le_bytes());
    hasher.update(domain);
    hasher.update(bytes);
    *hasher.finalize().as_bytes()
}

fn canonical_tokens(source: &str) -> Option<Vec<u8>> {
    if source.len() > MAX_SOURCE
        || source
            .bytes()
            .any(|byte| byte.is_ascii_control() && byte != b'\n')
    {
        return None;
    }
    // A byte-order mark and the separators that `str.splitlines` knows are not Python line ends,
    // but cheap to stay away from.
    if source.contains(['\u{feff}', '\u{85}', '\u{2028}', '\u{2029}']) {
        return None;
    }
    if nesting_bound(source) <= SHALLOW {
        return tokens_of(source);
    }
    std::thread::scope(|scope| {
        let parser = std::thread::Builder::new().stack_size(PARSER_STACK);
        parser
            .spawn_scoped(scope, || tokens_of(source))
            .ok()?
            .join()
            .ok()?
    })
}

/// An upper bound of how deep the parser can recurse: everything that can open a level.
fn nesting_bound(source: &str) -> usize {
    const KEYWORDS: [&str; 13] = [
        "and", "await", "elif", "else", "for", "if", "in", "is", "lambda", "not", "or", "while",
        "yield",
    ];
    let marks = source
        .bytes()
        .filter(|byte| b"([{+-~*:.=<>&|^%/@".contains(byte))
        .count();
    let words = source
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| KEYWORDS.contains(word))
        .count();
    marks + words
}

fn tokens_of(source: &str) -> Option<Vec<u8>> {
    let parsed = parse_module(source).ok()?;
    canonical(source, parsed.tokens())
}

fn canonical(source: &str, tokens: &Tokens) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(source.len());
    let mut end_of_last = 0;
    let mut interpolated: Vec<Token> = Vec::new();
    let mut observer = Observer::default();
    for token in tokens {
        let (start, end) = (usize::from(token.start()), usize::from(token.end()));
        if source.get(end_of_last..start)?.contains('\\') {
            return None;
        }
        end_of_last = end_of_last.max(end);
        observer.see(token.kind(), &source[token.range()]);
        match token.kind() {
            TokenKind::FStringStart | TokenKind::TStringStart => interpolated.push(*token),
            TokenKind::FStringEnd | TokenKind::TStringEnd => {
                let opening = interpolated.pop()?;
                if interpolated.is_empty() {
                    let range = TextRange::new(opening.start(), token.end());
                    push(&mut bytes, b'f', &source[range]);
                }
            }
            // Spacing within an interpolated string can be part of its value (`f"{x = }"`).
            _ if !interpolated.is_empty() => {}
            TokenKind::Comment | TokenKind::NonLogicalNewline => {}
            TokenKind::Newline => bytes.push(b'n'),
            TokenKind::Indent => bytes.push(b'i'),
            TokenKind::Dedent => bytes.push(b'd'),
            TokenKind::String => push_string(&mut bytes, &source[token.range()]),
            TokenKind::EndOfFile => {}
            _ => push(&mut bytes, b't', &source[token.range()]),
        }
    }
    (interpolated.is_empty() && !observer.could_read_layout()).then_some(bytes)
}

/// Only strings that read the same between any quotes lose them.
fn push_string(bytes: &mut Vec<u8>, literal: &str) {
    let Some(opening) = literal.find(['\'', '"']) else {
        return push(bytes, b's', literal);
    };
    let (prefix, quoted) = literal.split_at(opening);
    let plain = quoted.len() >= 2
        && !quoted.starts_with("'''")
        && !quoted.starts_with("\"\"\"")
        && !quoted.contains('\\');
    if !plain {
        return push(bytes, b's', literal);
    }
    let kind = if prefix.contains(['b', 'B']) {
        b'b'
    } else {
        b'q'
    };
    push(bytes, kind, &quoted[1..quoted.len() - 1]);
}

fn push(bytes: &mut Vec<u8>, kind: u8, text: &str) {
    bytes.push(kind);
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ruff_python_ast::comparable::ComparableModModule;

    #[track_caller]
    fn same(a: &str, b: &str) {
        assert_eq!(normal_form(a), normal_form(b), "{a:?} and {b:?} differ");
    }

    #[track_caller]
    fn different(a: &str, b: &str) {
        assert_ne!(
            normal_form(a).digest,
            normal_form(b).digest,
            "{a:?} and {b:?} collide"
        );
    }

    #[test]
    fn layout_is_dropped() {
        same("x = 1\n", "x=1 # one\n\n\n");
        same(
            "def f(a, b):\n    return a\n",
            "def f(a,b):\n  # first\n\n  return a",
        );
        same("x = 'a'\n", "x = \"a\"\n");
        same("x = u'a'\n", "x = 'a'\n");
        same("f(1,\n  2)\n", "f(1, 2)\n");
        same("x = [\n    1,  # one\n]\n", "x = [1,]\n");
    }

    #[test]
    fn normal_text_drops_layout_and_comments() {
        assert_eq!(
            normal_text("def f(a,b):\n  # first\n\n  return a+b  # sum"),
            "def f ( a , b ) :\n    return a + b\n"
        );
        assert_eq!(normal_text("def f(:"), "def f(:");
    }

    #[test]
    fn meaning_is_kept() {
        different("solve = lambda: 1\n", "slove = lambda: 1\n");
        different("x = 1\n", "x = 1.0\n");
        different("x = 'a'\n", "x = b'a'\n");
        different("x = 'a b'\n", "x = 'ab'\n");
        different("x = '\\n'\n", "x = 'n'\n");
        different("f'{x = }'\n", "f'{x=}'\n");
        different("f'{x}'\n", "'{x}'\n");
        different("if a:\n    b\n    c\n", "if a:\n    b\nc\n");
        different("'a' 'b'\n", "'ab'\n");
        different("x = 1\n", "x = 2\n");
        different("x = a or b\n", "x = aorb\n");
        different("x = 'a' # b\n", "x = 'a # b'\n");
    }

    #[test]
    fn what_could_be_read_in_two_ways_stands_for_itself() {
        for source in [
            "def f(:\n",
            "if a:\n\tb\n",
            "x = 1 + \\\n 2\n",
            "x = 1\r\n",
            "\u{feff}x = 1\n",
        ] {
            assert!(!normal_form(source).normalised, "{source:?}");
            different(source, &format!("{source} "));
        }
    }

    #[test]
    fn what_could_read_its_own_layout_stands_for_itself() {
        for source in [
            "import sys\nx = sys._getframe().f_lineno\n",
            "try:\n    y\nexcept NameError as e:\n    x = e.__traceback__.tb_lineno\n",
            "import traceback\n",
            "import inspect\n",
            "x = f.__code__.co_firstlineno\n",
            "x = getattr(f, '__co' + 'de__')\n",
            "x = '{0.__code__}'.format(f)\n",
            "x = '{0.\\x5f_code__}'.format(f)\n",
            "x = f'{f.__code__}'\n",
            "x = eval('1')\n",
            "x = open(__file__).read()\n",
            "x = open('main.py').read()\n",
            "r = open\n",
            "x = globals()\n",
            "class A(metaclass=B):\n    pass\n",
            "x = ｅval('1')\n",
        ] {
            assert!(!normal_form(source).normalised, "{source:?}");
            different(source, &format!("# first\n{source}"));
        }
        for source in [
            "data = open(0).read().split()\n",
            "x = '{:.2f}'.format(y)\n",
            "x = 'open the code in the system_a'\n",
            "if __name__ == '__main__':\n    main()\n",
            "class A:\n    def __init__(self):\n        self.f_x = 1\n",
        ] {
            assert!(normal_form(source).normalised, "{source:?}");
        }
    }

    #[test]
    fn names_are_never_merged() {
        different(
            "def f(v_0):\n    return v_0\n",
            "def f(v_1):\n    return v_1\n",
        );
        different(
            "def f(v_0):\n    x = 1\n    return v_0\n",
            "def f(v_0):\n    v_0 = 1\n    return v_0\n",
        );
        different(
            "def f():\n    global x\n    x = 1\n",
            "def f():\n    global y\n    y = 1\n",
        );
        different(
            "def f():\n    x = 1\n    return locals()\n",
            "def f():\n    y = 1\n    return locals()\n",
        );
        different("x = 1\ny = [x for x in z]\n", "x = 1\ny = [w for w in z]\n");
    }

    #[test]
    fn the_longest_sums_have_a_form() {
        for terms in [10_000, 100_000] {
            let sum = vec!["1"; terms].join("+");
            normal_form(&sum);
            normal_form(&sum.replace('+', " + "));
            normal_form(&format!("{}1", "-".repeat(terms)));
        }
    }

    #[test]
    fn the_deepest_programs_do_not_exhaust_the_stack() {
        let shapes = [
            "(",
            "[",
            "-",
            "not ",
            "lambda:",
            "a if b else ",
            "f(",
            "a.",
            "a[",
            "{a:",
            "f'{",
            "1**",
            "~",
            "await ",
            "(\n-",
            "a<",
            "*",
            "if 1:",
            "a=",
            "a,",
            "yield ",
            "a|",
        ];
        for opening in shapes {
            let source = opening.repeat((MAX_SOURCE - 2) / opening.len());
            normal_form(&source);
            normal_form(&format!("{source}a"));
        }
        let half = MAX_SOURCE / 2 - 8;
        assert!(normal_form(&format!("{}a{}", "(".repeat(half), ")".repeat(half))).normalised);
        let steps: String = (0..220)
            .map(|depth| format!("{}if a:\n", " ".repeat(depth)))
            .collect();
        normal_form(&steps);
    }

    fn program() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            "[xyf] = [0-9]{1,2}",
            "[xy] = '[ab#]{0,3}'",
            "[xy] = \"[ab']{0,3}\"",
            "# [a-z]{0,5}",
            "",
            "if [xy]:\n  [xy]",
            "    pass",
            "def f\\([xy]?\\):\n  return [xy]( \\+ [xy])?",
            "[xy]\\(\n\\)",
            "f'\\{[xy] ?=?\\}'",
            "'''[a\n]{0,2}'''",
            "[xy] = \\[1,( #.)?\n 2\\]",
            "r?b?'a'",
        ];
        proptest::collection::vec(line, 0..4).prop_map(|lines| lines.join("\n"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn equal_forms_have_equal_syntax_trees(a in program(), b in program()) {
            if normal_form(&a) == normal_form(&b) && a != b {
                let (a, b) = (parse_module(&a).unwrap(), parse_module(&b).unwrap());
                prop_assert_eq!(
                    ComparableModModule::from(a.syntax()),
                    ComparableModModule::from(b.syntax())
                );
            }
        }

        #[test]
        fn a_new_layout_keeps_form_and_tree(source in program()) {
            let relaid = format!("# before\n\n{source}\n# after\n");
            prop_assert_eq!(normal_form(&source).normalised, normal_form(&relaid).normalised);
            if normal_form(&source).normalised {
                prop_assert_eq!(normal_form(&source), normal_form(&relaid));
            }
        }

        #[test]
        fn one_changed_character_never_collides_with_another_tree(
            source in program(),
            at in any::<prop::sample::Index>(),
            with in "[ \n#'\"(x=1]",
        ) {
            if source.is_empty() {
                return Ok(());
            }
            let mut changed: Vec<char> = source.chars().collect();
            let position = at.index(changed.len());
            changed.splice(position..=position, with.chars());
            let changed: String = changed.into_iter().collect();
            if normal_form(&source).digest == normal_form(&changed).digest && source != changed {
                let (a, b) = (parse_module(&source).unwrap(), parse_module(&changed).unwrap());
                prop_assert_eq!(
                    ComparableModModule::from(a.syntax()),
                    ComparableModModule::from(b.syntax())
                );
            }
        }

        #[test]
        fn any_text_has_a_form(text in "\\PC{0,60}") {
            normal_form(&text);
        }
    }
}
