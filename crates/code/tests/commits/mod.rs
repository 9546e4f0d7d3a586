//! Made-up commits of Python files as unified diffs, and the ways in which models damage them.

use rand::{Rng, RngExt};
use record::Seed;
use similar::TextDiff;

/// One file before and after, and the diff between the two.
#[derive(Clone, Debug)]
pub(crate) struct Commit {
    pub(crate) before: String,
    pub(crate) after: String,
    pub(crate) patch: String,
}

pub(crate) const PATH: &str = "src/module.py";

/// What a model, or the time since it looked, did to a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    None,
    LinesInsertedAbove,
    NumbersOff,
    OutermostContext,
    CountsWrong,
    BlankContextStripped,
    NoGitLine,
    BareHunks,
}

pub(crate) const DAMAGES: [(Damage, &str); 8] = [
    (Damage::None, "none"),
    (Damage::LinesInsertedAbove, "9 lines inserted above"),
    (Damage::NumbersOff, "header numbers off by 40"),
    (Damage::OutermostContext, "outermost context misremembered"),
    (Damage::CountsWrong, "hunk counts wrong"),
    (Damage::BlankContextStripped, "blank context stripped"),
    (Damage::NoGitLine, "no `diff --git` line"),
    (Damage::BareHunks, "bare `@@ ... @@`"),
];

/// A commit; the same for the same seed. Files repeat themselves as programs do.
pub(crate) fn commit(seed: Seed) -> Commit {
    let mut rng = seed.stream("commit", 0).rng();
    let mut lines = Vec::new();
    for _ in 0..rng.random_range(2..25) {
        function(&mut rng, &mut lines);
    }
    let mut changed = lines.clone();
    for _ in 0..rng.random_range(1..5) {
        let at = rng.random_range(0..changed.len());
        match rng.random_range(0..4) {
            0 => {
                let end = (at + rng.random_range(1..4)).min(changed.len());
                changed.drain(at..end);
            }
            1 => {
                for _ in 0..rng.random_range(1..4) {
                    let line = statement(&mut rng);
                    changed.insert(at, line);
                }
            }
            _ => changed[at] = statement(&mut rng),
        }
        if changed.is_empty() {
            changed.push(statement(&mut rng));
        }
    }
    if changed == lines {
        changed.push(statement(&mut rng));
    }
    let text = |lines: &[String], ended: bool| {
        let text = lines.join("\n");
        if ended { text + "\n" } else { text }
    };
    let ended = rng.random_range(0..10) > 0;
    let before = text(&lines, ended);
    let after = text(&changed, ended || rng.random_range(0..2) > 0);
    let patch = diff(&before, &after);
    Commit {
        before,
        after,
        patch,
    }
}

/// The commit as it is met after `damage`: the file may have changed, or the patch.
pub(crate) fn damaged(commit: &Commit, damage: Damage, seed: Seed) -> Commit {
    let mut commit = commit.clone();
    let mut rng = seed.stream("damage", 0).rng();
    match damage {
        Damage::None => {}
        Damage::LinesInsertedAbove => {
            let above: String = (0..9).map(|at| format!("# note {at}\n")).collect();
            commit.before.insert_str(0, &above);
            commit.after.insert_str(0, &above);
        }
        Damage::NumbersOff => {
            commit.patch = headers(&commit.patch, |[a, b, c, d]| {
                format!("@@ -{},{b} +{},{d} @@", a + 40, c + 40)
            });
        }
        Damage::CountsWrong => {
            commit.patch = headers(&commit.patch, |[a, b, c, d]| {
                let (b, d) = (b + rng.random_range(0..3), d + rng.random_range(1..3));
                format!("@@ -{a},{b} +{c},{d} @@")
            });
        }
        Damage::BareHunks => commit.patch = headers(&commit.patch, |_| "@@ ... @@".to_owned()),
        Damage::BlankContextStripped => {
            let lines = commit.patch.split_inclusive('\n');
            commit.patch = lines
                .map(|line| if line == " \n" { "\n" } else { line })
                .collect();
        }
        Damage::NoGitLine => {
            let (_, rest) = commit.patch.split_once('\n').unwrap();
            commit.patch = rest.to_owned();
        }
        Damage::OutermostContext => commit.patch = misremembered(&commit.patch, &mut rng),
    }
    commit
}

pub(crate) fn diff(before: &str, after: &str) -> String {
    let text = TextDiff::from_lines(before, after);
    let mut unified = text.unified_diff();
    let body = unified
        .header(&format!("a/{PATH}"), &format!("b/{PATH}"))
        .to_string();
    format!("diff --git a/{PATH} b/{PATH}\n{body}")
}

fn headers(patch: &str, mut with: impl FnMut([usize; 4]) -> String) -> String {
    let lines = patch.split_inclusive('\n').map(|line| {
        if !line.starts_with("@@ ") {
            return line.to_owned();
        }
        let words: Vec<&str> = line.split(' ').collect();
        let pair = |word: &str| {
            let (start, count) = word[1..].split_once(',').unwrap_or((&word[1..], "1"));
            (start.parse().unwrap(), count.parse().unwrap())
        };
        let ((a, b), (c, d)) = (pair(words[1]), pair(words[2]));
        with([a, b, c, d]) + "\n"
    });
    lines.collect()
}

/// Every hunk's first line of context, where it has one, becomes another.
fn misremembered(patch: &str, rng: &mut impl Rng) -> String {
    let mut first = false;
    let lines = patch.split_inclusive('\n').map(|line| {
        let change = std::mem::replace(&mut first, line.starts_with("@@ "));
        if change && line.starts_with(' ') {
            return format!("     misremembered = {}\n", rng.random_range(0..1000));
        }
        line.to_owned()
    });
    lines.collect()
}

fn function(rng: &mut impl Rng, lines: &mut Vec<String>) {
    let name = rng.random_range(0..40);
    lines.push(format!("def function_{name}(x, y):"));
    for _ in 0..rng.random_range(1..8) {
        lines.push(statement(rng));
    }
    lines.extend([String::new(), String::new()]);
}

fn statement(rng: &mut impl Rng) -> String {
    let (a, b) = (rng.random_range(0..12), rng.random_range(0..30));
    match rng.random_range(0..9) {
        0 => "    if x > y:".to_owned(),
        1 => "        return None".to_owned(),
        2 => "    else:".to_owned(),
        3 => format!("        x += {a}"),
        4 => "    return x".to_owned(),
        5 => format!("    name_{a} = function_{b}(x, y)"),
        6 => format!("    # “note” {b} – see café"),
        7 => String::new(),
        _ => format!("    total_{b} = x * {b} + y"),
    }
}
