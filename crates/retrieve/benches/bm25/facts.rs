//! Facts as a memory of conversations has them, and questions about them, from a seed.

use rand::{RngExt, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use record::Seed;

/// Word lists of a made-up world; words near the front of a list are said more often.
pub(crate) struct World {
    seed: Seed,
    people: Vec<String>,
    places: Vec<String>,
    things: Vec<String>,
    qualities: Vec<String>,
    verbs: Vec<String>,
}

pub(crate) struct Fact {
    pub text: String,
    /// A question that this fact answers.
    pub question: String,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const RELATIONS: [&str; 12] = [
    "sister",
    "brother",
    "mother",
    "father",
    "cousin",
    "neighbour",
    "colleague",
    "teacher",
    "friend",
    "aunt",
    "uncle",
    "daughter",
];

impl World {
    pub(crate) fn new(seed: Seed) -> Self {
        let words = |name: &str, count: usize, syllables: usize| {
            let mut rng = seed.stream(name, 0).rng();
            (0..count).map(|_| word(&mut rng, syllables)).collect()
        };
        Self {
            people: words("people", 800, 2),
            places: words("places", 1500, 3),
            things: words("things", 5000, 3),
            qualities: words("qualities", 600, 2),
            verbs: words("verbs", 400, 2),
            seed,
        }
    }

    pub(crate) fn fact(&self, at: u64) -> Fact {
        let rng = &mut self.seed.stream("fact", at).rng();
        let who = capital(pick(rng, &self.people));
        let other = capital(pick(rng, &self.people));
        let place = capital(pick(rng, &self.places));
        let (thing, second) = (pick(rng, &self.things), pick(rng, &self.things));
        let quality = pick(rng, &self.qualities);
        let verb = pick(rng, &self.verbs);
        let relation = RELATIONS.choose(rng).copied().unwrap_or_default();
        let month = MONTHS.choose(rng).copied().unwrap_or_default();
        let (day, year) = (rng.random_range(1..29), rng.random_range(2019..2027));
        let (text, question) = match rng.random_range(0..6) {
            0 => (
                format!(
                    "{who} bought a {quality} {thing} for {other} at the market in {place} on {day} {month} {year}."
                ),
                format!("What did {who} buy for {other} at the market in {place}?"),
            ),
            1 => (
                format!(
                    "{who}'s {relation} {other} moved to {place} in {month} {year} to work as a {thing}."
                ),
                format!("Where does {who}'s {relation} {other} live?"),
            ),
            2 => (
                format!(
                    "On {day} {month} {year} {who} told {other} that the {quality} {thing} is no longer in the {second}."
                ),
                format!("When did {who} tell {other} about the {quality} {thing}?"),
            ),
            3 => (
                format!("{who} prefers the {thing} to the {second} because it is {quality}."),
                format!("Does {who} prefer the {thing} or the {second}?"),
            ),
            4 => (
                format!(
                    "{who} and {other} {verb} every {thing} near {place} and want to do it again next {month}."
                ),
                format!("What do {who} and {other} want to do again near {place}?"),
            ),
            _ => (
                format!("{who} is allergic to {thing} and keeps a {quality} {second} in the car."),
                format!("What is {who} allergic to, and what is in the car?"),
            ),
        };
        Fact { text, question }
    }
}

/// Zipf's law by inversion: the density of ranks falls as one over the rank.
fn pick<'a>(rng: &mut ChaCha8Rng, words: &'a [String]) -> &'a str {
    let share: f64 = rng.random();
    let rank = (words.len() as f64).powf(share) as usize;
    &words[(rank - 1).min(words.len() - 1)]
}

fn word(rng: &mut ChaCha8Rng, syllables: usize) -> String {
    let mut word = String::new();
    for _ in 0..syllables {
        for letters in ["bcdfghklmnprstvz", "aeiou"] {
            let at = rng.random_range(0..letters.len());
            word.push(char::from(letters.as_bytes()[at]));
        }
    }
    word.push(char::from(b"nrslt"[rng.random_range(0..5)]));
    word
}

fn capital(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}
