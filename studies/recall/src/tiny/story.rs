//! One story: who said what in which session, and what was true when.

use rand::{
    RngExt,
    seq::{IndexedRandom, SliceRandom},
};
use rand_chacha::ChaCha8Rng;
use record::Seed;

use super::world::{ATTRIBUTES, Attribute, CHATTER, GREETINGS, PEOPLE};
use crate::memory::MONTHS;

/// A dialogue of two people before it is text.
pub(super) struct Story {
    pub(super) people: [&'static str; 2],
    /// Of the sessions, in order: indices of [`MONTHS`].
    pub(super) months: Vec<usize>,
    /// In the order in which they are said.
    pub(super) lines: Vec<Line>,
}

/// Something said.
pub(super) struct Line {
    pub(super) session: usize,
    /// Index of the speaker.
    pub(super) person: usize,
    pub(super) text: String,
    /// What it says of its speaker, if anything.
    pub(super) states: Option<Stated>,
    /// A value that it mentions without saying anything of its speaker: what a careless reader writes
    /// down all the same.
    pub(super) mentions: Option<Stated>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stated {
    /// Index of [`ATTRIBUTES`].
    pub(super) attribute: usize,
    pub(super) value: &'static str,
}

/// What held of a person, and from which session on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Period {
    pub(super) session: usize,
    pub(super) value: &'static str,
}

/// Sessions of a story.
const SESSIONS: std::ops::RangeInclusive<usize> = 4..=5;
/// Attributes that each person speaks of.
const SPOKEN_OF: usize = 4;

impl Story {
    pub(super) fn draw(seed: Seed) -> Self {
        let rng = &mut seed.rng();
        let mut people = PEOPLE;
        people.shuffle(rng);
        let people = [people[0], people[1]];
        let n_sessions = rng.random_range(SESSIONS);
        let mut months: Vec<usize> = (0..MONTHS.len()).collect();
        months.shuffle(rng);
        months.truncate(n_sessions);
        months.sort_unstable();
        let mut said: Vec<Vec<Line>> = (0..n_sessions).map(|_| Vec::new()).collect();
        for person in 0..people.len() {
            let mut attributes: Vec<usize> = (0..ATTRIBUTES.len()).collect();
            attributes.shuffle(rng);
            for (place, &attribute) in attributes[..SPOKEN_OF].iter().enumerate() {
                // At least one attribute of everybody changes, so that every kind of question can be asked.
                let changes = if place == 0 {
                    2
                } else {
                    *[1, 1, 1, 2, 3].choose(rng).unwrap_or(&1)
                };
                for (session, value) in periods(n_sessions, changes, &ATTRIBUTES[attribute], rng) {
                    let wording = ATTRIBUTES[attribute].said.choose(rng).unwrap_or(&"");
                    said[session].push(Line {
                        session,
                        person,
                        text: wording.replace("{}", value),
                        states: Some(Stated { attribute, value }),
                        mentions: None,
                    });
                }
            }
        }
        for (session, lines) in said.iter_mut().enumerate() {
            lines.push(beside(session, rng));
            lines.push(plain(session, CHATTER.choose(rng).unwrap_or(&""), rng));
            lines.shuffle(rng);
            lines.insert(0, plain(session, GREETINGS.choose(rng).unwrap_or(&""), rng));
        }
        Self {
            people,
            months,
            lines: said.into_iter().flatten().collect(),
        }
    }

    /// What a person says of themselves in an attribute, in order.
    pub(super) fn stated(
        &self,
        person: usize,
        attribute: usize,
    ) -> impl Iterator<Item = (&Line, Stated)> {
        let of_person = self.lines.iter().filter(move |line| line.person == person);
        of_person.filter_map(move |line| {
            let stated = line.states.filter(|stated| stated.attribute == attribute);
            Some((line, stated?))
        })
    }

    /// What held of a person in an attribute, in order.
    pub(super) fn periods(&self, person: usize, attribute: usize) -> Vec<Period> {
        let stated = self.stated(person, attribute);
        let period = |(line, stated): (&Line, Stated)| Period {
            session: line.session,
            value: stated.value,
        };
        stated.map(period).collect()
    }

    /// Values of an attribute that anybody mentions.
    pub(super) fn values(&self, attribute: usize) -> impl Iterator<Item = &'static str> {
        let mentioned = self
            .lines
            .iter()
            .filter_map(|line| line.states.or(line.mentions));
        mentioned
            .filter(move |stated| stated.attribute == attribute)
            .map(|stated| stated.value)
    }

    pub(super) fn month(&self, session: usize) -> &'static str {
        MONTHS[self.months[session]]
    }

    /// Asks for what holds of a person.
    pub(super) fn question_now(&self, person: usize, attribute: usize) -> String {
        ATTRIBUTES[attribute].now.replace('@', self.people[person])
    }

    /// How a good memory writes a statement down.
    pub(super) fn written(&self, person: usize, stated: Stated) -> String {
        ATTRIBUTES[stated.attribute]
            .written
            .replace('@', self.people[person])
            .replace("{}", stated.value)
    }

    /// The person and the attribute that a text tells the value of: as a good memory writes it, or as it was
    /// said, behind its speaker.
    pub(super) fn subject(&self, text: &str) -> Option<(usize, usize)> {
        let is_written = |person: usize, attribute: usize| {
            let written = ATTRIBUTES[attribute].written;
            let named = written.replace('@', self.people[person]);
            let around = named.split_once("{}");
            around.is_some_and(|(before, after)| {
                let value = text
                    .strip_prefix(before)
                    .and_then(|text| text.strip_suffix(after));
                value.is_some_and(|value| ATTRIBUTES[attribute].values.contains(&value))
            })
        };
        let subjects = (0..self.people.len())
            .flat_map(|person| (0..ATTRIBUTES.len()).map(move |attribute| (person, attribute)));
        let mut written = subjects.filter(|&(person, attribute)| is_written(person, attribute));
        written.next().or_else(|| {
            let (name, said) = text.split_once(": ")?;
            let mut lines = self.lines.iter();
            let line = lines.find(|line| self.people[line.person] == name && line.text == said)?;
            Some((line.person, line.states?.attribute))
        })
    }
}

/// Distinct sessions in order, each with a value unlike the others.
fn periods(
    n_sessions: usize,
    n: usize,
    attribute: &Attribute,
    rng: &mut ChaCha8Rng,
) -> Vec<(usize, &'static str)> {
    let mut sessions: Vec<usize> = (0..n_sessions).collect();
    sessions.shuffle(rng);
    sessions.truncate(n);
    sessions.sort_unstable();
    let mut values = attribute.values;
    values.shuffle(rng);
    sessions.into_iter().zip(values).collect()
}

fn beside(session: usize, rng: &mut ChaCha8Rng) -> Line {
    let attribute = rng.random_range(0..ATTRIBUTES.len());
    let value = ATTRIBUTES[attribute].values.choose(rng).unwrap_or(&"");
    let wording = ATTRIBUTES[attribute].besides.choose(rng).unwrap_or(&"");
    Line {
        mentions: Some(Stated { attribute, value }),
        ..plain(session, &wording.replace("{}", value), rng)
    }
}

fn plain(session: usize, text: &str, rng: &mut ChaCha8Rng) -> Line {
    Line {
        session,
        person: rng.random_range(0..2),
        text: text.to_owned(),
        states: None,
        mentions: None,
    }
}
