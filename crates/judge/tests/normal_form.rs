//! Programs of one normal form do the same when they are run.

#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use std::collections::BTreeMap;

use judge::{Evaluation, Judge, JudgeConfig, Value};
use rand::{Rng, RngExt, seq::IndexedRandom};
use record::Seed;
use sandbox::{Config, Sandbox};

const PROGRAMS: u64 = 400;
const LAYOUTS: u64 = 4;

#[tokio::test]
async fn programs_of_one_form_return_the_same() {
    let mut sources = Vec::new();
    for at in 0..PROGRAMS {
        let seed = Seed(11).stream("program", at);
        let mut rng = seed.rng();
        let one = program(&mut rng);
        // A name changed in one place, or everywhere.
        let place = rng.random_range(0..8);
        let (from, to) = (pick(&mut rng, &NAMES), pick(&mut rng, &NAMES));
        let renamed = one.replace(from, to);
        let misspelt = one.replacen(from, to, place);
        for source in [one, renamed, misspelt] {
            let layouts =
                (0..LAYOUTS).map(|at| laid_out(&source, &mut seed.stream("layout", at).rng()));
            sources.extend(layouts);
            sources.push(source);
        }
    }
    for source in defects() {
        let mut rng = Seed(12).stream("layout", 0).rng();
        sources.push(laid_out(&source, &mut rng));
        sources.push(source);
    }
    let outcomes = run(&sources).await;
    let mut forms: BTreeMap<[u8; 32], Vec<usize>> = BTreeMap::new();
    for (at, source) in sources.iter().enumerate() {
        let form = code::normal_form(source);
        forms.entry(form.digest).or_default().push(at);
    }
    let (mut merged, mut distinct) = (0, BTreeMap::new());
    for group in forms.values() {
        let first = &outcomes[group[0]];
        *distinct.entry(first.clone()).or_insert(0) += 1;
        for at in &group[1..] {
            merged += usize::from(sources[*at] != sources[group[0]]);
            assert_eq!(
                &outcomes[*at], first,
                "one form, two outcomes:\n{}\n----\n{}",
                sources[group[0]], sources[*at]
            );
        }
    }
    // The property is not vacuous: layouts were merged, and programs differ in what they do.
    assert!(merged > 1_000, "{merged} texts share a form with another");
    assert!(distinct.len() > 100, "{} distinct outcomes", distinct.len());
}

/// What each source's `solve` gives for three arguments, uncaught without addresses and the lines of exceptions.
async fn run(sources: &[String]) -> Vec<String> {
    let judge = Judge::new(
        Sandbox::start(Config::new(2)).unwrap(),
        JudgeConfig::small(),
    );
    let evaluation = |source: &String| Evaluation {
        source: source.clone(),
        entry: "solve".to_owned(),
        args: [0, 1, 5].map(|x| vec![Value::Int(x)]).to_vec(),
    };
    let results = judge
        .evaluate(sources.iter().map(evaluation).collect())
        .await
        .unwrap();
    let shown = results.into_iter().map(|calls| {
        let calls = calls.into_iter().map(|call| match call {
            Ok(value) => without_numbers(&format!("{value:?}"), " at 0x"),
            Err(message) => without_numbers(&without_numbers(&message, "line "), " at 0x"),
        });
        calls.collect::<Vec<String>>().join(" | ")
    });
    shown.collect()
}

/// `text` without the hexadecimal digits behind each `word`: addresses and lines differ.
fn without_numbers(text: &str, word: &str) -> String {
    let mut parts = text.split(word);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + word + part.trim_start_matches(|c: char| c.is_ascii_hexdigit())
    })
}

const NAMES: [&str; 6] = ["aa", "bb", "xx", "yy", "v_0", "hh"];

fn pick<'a>(rng: &mut impl Rng, of: &[&'a str]) -> &'a str {
    of.choose(rng).unwrap()
}

/// A program of nested scopes over few names, so that many of them shadow each other.
fn program(rng: &mut impl Rng) -> String {
    let mut lines: Vec<String> = ["aa = 2", "bb = 7", "xx = 3", "yy = 5", "v_0 = 'g'"]
        .map(str::to_owned)
        .to_vec();
    if rng.random_range(0..3) == 0 {
        lines.push("hh = lambda xx: xx + 1".to_owned());
    } else {
        lines.push("def hh(xx):".to_owned());
        body(rng, 1, 2, &mut lines);
    }
    let parameter = pick(rng, &["xx", "v_0", "aa"]);
    lines.push(format!("def solve({parameter}):"));
    if rng.random_range(0..3) == 0 {
        lines.push(format!("    global {}", pick(rng, &["bb", "yy"])));
    }
    body(rng, 1, 5, &mut lines);
    lines.push(format!(
        "    return [{}, {}]",
        expression(rng, 2),
        expression(rng, 2)
    ));
    lines.join("\n") + "\n"
}

fn body(rng: &mut impl Rng, depth: usize, most: usize, lines: &mut Vec<String>) {
    let indent = "    ".repeat(depth);
    for _ in 0..rng.random_range(1..=most) {
        let name = pick(rng, &NAMES[..5]);
        let value = expression(rng, 2);
        match rng.random_range(0..9) {
            0 => lines.push(format!("{indent}{name} += 1")),
            1 if depth < 3 => {
                lines.push(format!("{indent}if {value}:"));
                body(rng, depth + 1, 2, lines);
            }
            2 if depth < 3 => {
                lines.push(format!("{indent}for {name} in range(3):"));
                body(rng, depth + 1, 2, lines);
            }
            3 if depth < 3 => {
                lines.push(format!("{indent}def yy({name}=1):"));
                if rng.random_range(0..2) == 0 {
                    let outer = pick(rng, &["global aa", "global v_0", "global bb"]);
                    lines.push(format!("{indent}    {outer}"));
                }
                body(rng, depth + 1, 2, lines);
            }
            4 => lines.push(format!("{indent}{name} = lambda aa={value}: aa")),
            5 => lines.push(format!("{indent}return {value}")),
            6 => lines.push(format!("{indent}{}", observation(rng, name))),
            _ => lines.push(format!("{indent}{name} = {value}")),
        }
    }
}

/// Ways to look at names and lines; most are no business of a well-meant program.
fn observation(rng: &mut impl Rng, name: &str) -> String {
    let what = pick(
        rng,
        &[
            "sorted(locals())",
            "sorted(k for k in globals() if len(k) == 2)",
            "eval('aa')",
            "__name__",
            "hh.__code__.co_varnames",
            "hh.__code__.co_firstlineno",
            "hh.__name__",
            "hh.__doc__",
            "__import__('sys')._getframe().f_lineno",
            "__import__('inspect').currentframe().f_lineno",
            "'{0.__code__.co_firstlineno}'.format(hh)",
            "getattr(hh, '__co' + 'de__').co_firstlineno",
            "[n for n in hh.__code__.co_lines()][-1][2]",
            "__import__('traceback').extract_stack()[-1].lineno",
        ],
    );
    format!("{name} = {what}")
}

fn expression(rng: &mut impl Rng, depth: usize) -> String {
    let name = pick(rng, &NAMES[..5]);
    if depth == 0 {
        return match rng.random_range(0..4) {
            0 => rng.random_range(0..4).to_string(),
            1 => format!("'{}'", pick(rng, &["a", "b # c", "aa"])),
            _ => name.to_owned(),
        };
    }
    let (a, b) = (expression(rng, depth - 1), expression(rng, depth - 1));
    match rng.random_range(0..9) {
        0 => format!("[{name} for {name} in range(2)]"),
        1 => format!("({name} := {a})"),
        2 => format!("hh({a})"),
        3 => format!("(lambda {name}: {a})({b})"),
        4 => format!("({a}, {b})"),
        5 => format!("({a} if {b} else {name})"),
        6 => format!("f'{{{name}}} {{{name} = }}'"),
        _ => format!("({a} == {b})"),
    }
}

/// The same tokens in another layout.
fn laid_out(source: &str, rng: &mut impl Rng) -> String {
    let width = rng.random_range(1..9);
    let mut text = String::new();
    for line in source.lines() {
        for _ in 0..rng.random_range(0..3) {
            text += pick(rng, &["\n", "# note\n", "      # v_0 = 'x'\n"]);
        }
        let bare = line.trim_start();
        let depth = (line.len() - bare.len()) / 4;
        text += &" ".repeat(depth * width);
        let plain = !bare.contains("f'") && !bare.contains("# c") && !bare.contains("{0");
        text += &match rng.random_range(0..4) {
            0 if plain => bare.replace(" = ", "="),
            1 if plain && bare.contains(" = [") => {
                bare.replace('[', "[ # x\n").replace(',', "\n ,")
            }
            2 if plain => bare.replace('\'', "\""),
            _ => bare.to_owned(),
        };
        text += pick(rng, &["\n", "  # trailing\n"]);
    }
    text
}

/// What a renaming key once took for equal.
fn defects() -> Vec<String> {
    [
        "solve = lambda x: x\n",
        "slove = lambda x: x\n",
        "def solve(v_0):\n    x = 1\n    return v_0\n",
        "def solve(x):\n    v_0 = 1\n    return x\n",
        "def solve(x):\n    return x\n    x = 2\n",
        "def solve(x):\n    y = x\n    return sorted(locals())\n",
        "def solve(x):\n    z = x\n    return sorted(locals())\n",
        "def solve(x):\n    global counter\n    counter = x\n    return 'counter' in globals()\n",
        "def solve(x):\n    global other\n    other = x\n    return 'counter' in globals()\n",
        "def solve(x, key=1):\n    return dict(key=x)\n",
        "def solve(x, item=1):\n    return dict(item=x)\n",
        "def solve(x):\n    y = 3\n    return eval('y')\n",
        "def solve(x):\n    z = 3\n    return eval('y')\n",
        "def solve(x):\n    y = 1\n    return solve.__code__.co_varnames\n",
        "def solve(x):\n    z = 1\n    return solve.__code__.co_varnames\n",
        "class solve:\n    def __new__(cls, x):\n        return cls.__name__\n",
        "def solve(x):\n    exec('y = 1')\n    return y\n",
        "def solve(x):\n    return undefined\n",
        "def solve(x):\n    return undefine\n",
    ]
    .map(str::to_owned)
    .to_vec()
}
