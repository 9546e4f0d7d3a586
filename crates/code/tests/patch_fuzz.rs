//! Thousands of broken patches, the same in every run: what must hold of any patch holds of them.

#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

mod invariants;

use std::{fs, path::Path};

use rand::{Rng, RngExt, seq::IndexedRandom};
use record::Seed;

/// Pieces that mean something in one of the forms.
const PIECES: [&str; 28] = [
    "--- a/f\n",
    "+++ b/f\n",
    "--- /dev/null\n",
    "+++ /dev/null\n",
    "@@ -1,3 +1,4 @@\n",
    "@@\n",
    "@@ -0,0 +1 @@\n",
    "@@ -99999999999999999999 +1 @@\n",
    "diff --git a/f b/f\n",
    "rename from f\n",
    "rename to ../g\n",
    "new file mode 100755\n",
    "deleted file mode 100644\n",
    "old mode 120000\n",
    "\\ No newline at end of file\n",
    "<<<<<<< SEARCH\n",
    "=======\n",
    ">>>>>>> REPLACE\n",
    "*** Begin Patch\n",
    "*** Update File: f\n",
    "*** Add File: .git/config\n",
    "*** End Patch\n",
    "[{\"path\":\"f\",\"start\":1,\"end\":0,\"new_text\":\"x\"}]",
    "\r\n",
    "\u{feff}",
    "\0",
    "\n%%%%\n",
    "-- \n2.47\n",
];

fn mutate(input: &mut Vec<u8>, others: &[Vec<u8>], rng: &mut impl Rng) {
    let place = |rng: &mut dyn Rng, input: &[u8]| rng.random_range(0..=input.len());
    match rng.random_range(0..7) {
        0 if !input.is_empty() => {
            let at = rng.random_range(0..input.len());
            input[at] ^= 1 << rng.random_range(0..8);
        }
        1 if !input.is_empty() => {
            let start = rng.random_range(0..input.len());
            let end = (start + rng.random_range(1..30)).min(input.len());
            input.drain(start..end);
        }
        2 => {
            let at = place(rng, input);
            input.splice(at..at, PIECES.choose(rng).unwrap().bytes());
        }
        3 => {
            let other = others.choose(rng).unwrap();
            let start = rng.random_range(0..=other.len());
            let end = (start + rng.random_range(0..80)).min(other.len());
            let at = place(rng, input);
            input.splice(at..at, other[start..end].iter().copied());
        }
        4 => {
            // A line twice, or in another place.
            let lines: Vec<&[u8]> = input.split_inclusive(|byte| *byte == b'\n').collect();
            let Some(line) = lines.choose(rng).map(|line| line.to_vec()) else {
                return;
            };
            let before: usize = lines[..rng.random_range(0..=lines.len())]
                .iter()
                .map(|line| line.len())
                .sum();
            input.splice(before..before, line);
        }
        5 => {
            let at = place(rng, input);
            input.insert(at, *b"+- @\n\\/\"0a".choose(rng).unwrap());
        }
        _ => {
            let end = place(rng, input);
            input.truncate(end);
        }
    }
}

#[test]
fn broken_patches_break_nothing() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut seeds: Vec<Vec<u8>> = fs::read_dir(cases)
        .unwrap()
        .map(|entry| fs::read(entry.unwrap().path().join("patch.txt")).unwrap())
        .collect();
    seeds.sort();
    let mut applied = 0;
    for round in 0..20_000 {
        let mut rng = Seed(3).stream("patch", round).rng();
        let mut input = seeds.choose(&mut rng).unwrap().clone();
        for _ in 0..rng.random_range(0..6) {
            mutate(&mut input, &seeds, &mut rng);
        }
        applied += u32::from(invariants::check(&input));
    }
    // Many are still patches, so that more than the parser is reached.
    assert!(applied > 2_000, "{applied} were applied");
}

#[test]
fn patches_made_to_be_slow_are_not() {
    let section = "--- a/f\n+++ b/f\n@@\n x\n-y\n+y\n";
    let file = "x\n".repeat(1 << 19);
    for patch in [
        section.repeat(9_000),
        format!("--- a/f\n+++ b/f\n{}", "@@\n x\n-y\n".repeat(15_000)),
        format!("--- a/f\n+++ b/f\n@@\n{}-y\n", " x\n".repeat(1 << 18)),
        "@@ ".repeat(1 << 20),
        "<<<<<<< SEARCH\n".repeat(1 << 17),
        format!(
            "f\n{}",
            "<<<<<<< SEARCH\nx\n=======\n>>>>>>> REPLACE\n".repeat(15_000)
        ),
        "[".repeat(1 << 20),
        "diff --git a/f b/f\nold mode 1\n".repeat(1 << 16),
        "--- ".repeat(1 << 20),
    ] {
        let input = [file.as_bytes(), invariants::DIVIDER, patch.as_bytes()].concat();
        invariants::check(&input);
    }
}
