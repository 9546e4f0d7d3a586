//! Questions about a story, of every kind, with their answers.

use rand::{RngExt, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use record::Seed;

use super::{
    story::{Period, Story},
    world::ATTRIBUTES,
};

/// What answers when nothing was said about it.
pub const NOT_SAID: &str = "not said";

/// What a question asks for; the names are those that results are broken down by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuestionType {
    /// Said once.
    SingleSession,
    /// What holds now, after a change of mind.
    KnowledgeUpdate,
    /// What held in a month before the last change.
    Temporal,
    /// All values over all sessions, in order.
    MultiSession,
    /// Never said of this person.
    Abstention,
}

/// A question and what there is to answer.
pub(super) struct Asked {
    pub(super) question_type: QuestionType,
    pub(super) text: String,
    /// Whom and what it is about: indices of the story's people and of the attributes.
    pub(super) person: usize,
    pub(super) attribute: usize,
    /// The session in whose month something held, for [`QuestionType::Temporal`].
    pub(super) session: usize,
    /// Empty where nothing was said.
    pub(super) answer: String,
    /// Indices of the lines that the answer follows from.
    pub(super) evidence: Vec<usize>,
}

impl QuestionType {
    pub const ALL: [Self; 5] = [
        Self::SingleSession,
        Self::KnowledgeUpdate,
        Self::Temporal,
        Self::MultiSession,
        Self::Abstention,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::SingleSession => "single-session",
            Self::KnowledgeUpdate => "knowledge-update",
            Self::Temporal => "temporal",
            Self::MultiSession => "multi-session",
            Self::Abstention => "abstention",
        }
    }

    /// The answer where these are the values that are known, in order; empty where nothing fits.
    pub(super) fn answer(self, known: &[Period], session: usize) -> String {
        let values: Vec<&str> = match self {
            Self::MultiSession => known.iter().map(|period| period.value).collect(),
            Self::Temporal => {
                let then = known.iter().rfind(|period| period.session <= session);
                then.iter().map(|period| period.value).collect()
            }
            _ => known.last().iter().map(|period| period.value).collect(),
        };
        values.join(", ")
    }
}

impl Story {
    /// One question of every type and `more` of random types; types that the story cannot serve are
    /// left out, and no question comes twice.
    pub(super) fn questions(&self, more: usize, seed: Seed) -> Vec<Asked> {
        let rng = &mut seed.rng();
        let random: Vec<QuestionType> = (0..more)
            .filter_map(|_| QuestionType::ALL.choose(rng).copied())
            .collect();
        let mut asked: Vec<Asked> = Vec::new();
        for question_type in QuestionType::ALL.into_iter().chain(random) {
            let drawn = self.question(question_type, rng);
            asked.extend(drawn.filter(|one| asked.iter().all(|other| other.text != one.text)));
        }
        asked
    }

    fn question(&self, question_type: QuestionType, rng: &mut ChaCha8Rng) -> Option<Asked> {
        let fits = |periods: usize| match question_type {
            QuestionType::SingleSession => periods == 1,
            QuestionType::Abstention => periods == 0,
            _ => periods >= 2,
        };
        let subjects: Vec<(usize, usize)> = (0..self.people.len())
            .flat_map(|person| (0..ATTRIBUTES.len()).map(move |attribute| (person, attribute)))
            .filter(|&(person, attribute)| fits(self.periods(person, attribute).len()))
            .collect();
        let &(person, attribute) = subjects.choose(rng)?;
        let periods = self.periods(person, attribute);
        let wording = &ATTRIBUTES[attribute];
        let mut session = 0;
        let text = match question_type {
            QuestionType::MultiSession => wording.ever.to_owned(),
            QuestionType::Temporal => {
                session = rng.random_range(periods.first()?.session..periods.last()?.session);
                wording.then.replace('#', self.month(session))
            }
            _ => wording.now.to_owned(),
        };
        let about = self.lines.iter().enumerate().filter(|(_, line)| {
            let states = line.states.filter(|stated| stated.attribute == attribute);
            line.person == person && states.is_some()
        });
        let mut evidence: Vec<usize> = about.map(|(index, _)| index).collect();
        if question_type == QuestionType::KnowledgeUpdate {
            evidence.drain(..evidence.len().saturating_sub(1));
        }
        Some(Asked {
            question_type,
            text: text.replace('@', self.people[person]),
            person,
            attribute,
            session,
            answer: question_type.answer(&periods, session),
            evidence,
        })
    }
}
