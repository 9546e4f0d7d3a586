//! Names that nobody has given, and values that nothing has returned.

use rand::{Rng, RngExt, seq::IndexedRandom};

use crate::environment::Suspect;

/// Gives the suspects of a list names and files of a package that there is not, in the order of their places, and
/// gives back the package's name.
pub(super) fn rename(suspects: &mut [Suspect], rng: &mut impl Rng) -> String {
    let package = word(rng);
    let n_files = rng.random_range(1..=4);
    let mut paths: Vec<String> = (0..n_files)
        .map(|_| format!("{package}/{}.py", word(rng)))
        .collect();
    paths.sort();
    let mut files: Vec<usize> = suspects
        .iter()
        .map(|_| rng.random_range(0..n_files))
        .collect();
    files.sort_unstable();
    for (suspect, file) in suspects.iter_mut().zip(files) {
        suspect.path.clone_from(&paths[file]);
        suspect.name = name(rng);
    }
    package
}

/// As functions and methods are named.
fn name(rng: &mut impl Rng) -> String {
    let words = match rng.random_bool(0.5) {
        true => word(rng),
        false => format!("{}_{}", word(rng), word(rng)),
    };
    match rng.random_range(0..10) {
        0..4 => words,
        4..6 => format!("_{words}"),
        6..8 => format!("{}.{words}", class(rng)),
        8 => format!("{}._{words}", class(rng)),
        _ => format!("{}.__{}__", class(rng), word(rng)),
    }
}

fn class(rng: &mut impl Rng) -> String {
    let word = word(rng);
    let (first, rest) = word.split_at(1);
    let private = if rng.random_bool(0.3) { "_" } else { "" };
    format!("{private}{}{rest}", first.to_uppercase())
}

/// One or two syllables: lines are about as long as those of names that people give.
fn word(rng: &mut impl Rng) -> String {
    const ONSETS: &[u8] = b"bcdfghjklmnprstvwxz";
    const VOWELS: &[u8] = b"aeiouy";
    const CODAS: &[u8] = b"dklmnrstx";
    let mut letters = String::new();
    let mut letter = |among: &[u8], rng: &mut _| {
        letters.extend(among.choose(rng).map(|letter| char::from(*letter)));
    };
    for _ in 0..rng.random_range(1..=2) {
        letter(ONSETS, rng);
        letter(VOWELS, rng);
        if rng.random_bool(0.5) {
            letter(CODAS, rng);
        }
    }
    letters
}

/// As failures show them.
pub(super) fn value(rng: &mut impl Rng) -> String {
    match rng.random_range(0..10) {
        0..4 => rng.random_range(0..100).to_string(),
        4 => format!("{}.{}", rng.random_range(0..100), rng.random_range(0..10)),
        5..7 => format!("'{}'", word(rng)),
        7 => "None".to_owned(),
        8 => format!(
            "[{}, {}]",
            rng.random_range(0..100),
            rng.random_range(0..100)
        ),
        _ => format!("{{'{}': {}}}", word(rng), rng.random_range(0..100)),
    }
}
