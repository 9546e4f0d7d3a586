//! The small world: two people talk over several months about where they live, what they eat and what
//! they do, change their minds, and speak of others in between. Everything is drawn from a seed.

mod lessons;
mod questions;
mod story;
mod world;
mod writing;

use record::Seed;
use serde_json::Map;

use self::{
    questions::Asked,
    story::{Line, Story},
};
use crate::dialogue::{ChunkQuestion, Dialogue, Question, Session, Utterance};

pub use lessons::{Lesson, Mix, Teacher};
pub use questions::{NOT_SAID, QuestionType};

/// Which side of the division a dialogue is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    Train,
    HeldOut,
    /// What supervised rows are made from: never played, never evaluated on.
    Lessons,
}

impl Split {
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::HeldOut => "held-out",
            Self::Lessons => "lessons",
        }
    }
}

/// A dialogue with all that is known of it.
pub struct Draft {
    story: Story,
    asked: Vec<Asked>,
    index: u64,
    split: Split,
}

impl Draft {
    /// Dialogue `index` of a split; `more` questions beside one of every type.
    pub fn new(seed: Seed, split: Split, index: u64, more: usize) -> Self {
        let seed = seed.stream(split.name(), index);
        let story = Story::draw(seed.stream("story", 0));
        let asked = story.questions(more, seed.stream("questions", 0));
        Self {
            story,
            asked,
            index,
            split,
        }
    }

    /// Texts that a vocabulary can be trained on.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        let story = &self.story;
        let lines = story.lines.iter().flat_map(|line| {
            let said = format!(
                "({}) {}: {}",
                story.month(line.session),
                story.people[line.person],
                line.text
            );
            let written = line
                .states
                .map(|stated| format!("add: {}", story.written(line.person, stated)));
            [Some(said), written].into_iter().flatten()
        });
        let asked = self.asked.iter().map(|asked| {
            let answer = if asked.answer.is_empty() {
                NOT_SAID
            } else {
                &asked.answer
            };
            format!(
                "Question: {}\nnothing, {answer}.\nAnswer: {answer}",
                asked.text
            )
        });
        lines.chain(asked)
    }

    pub fn dialogue(&self) -> Dialogue {
        let name = format!("{:06}", self.index);
        let sessions = (0..self.story.months.len()).map(|session| self.session(session));
        let questions = self.asked.iter().enumerate().map(|(index, asked)| {
            let answers = if asked.answer.is_empty() {
                Vec::new()
            } else {
                vec![asked.answer.clone()]
            };
            let evidence = asked.evidence.iter().map(|line| source_id(*line));
            Question::new(
                &format!("q{index}"),
                &asked.text,
                asked.question_type.name(),
                answers,
            )
            .with_evidence(evidence.collect())
        });
        Dialogue {
            sample_id: name.clone(),
            data_source: "tiny".to_owned(),
            split: self.split.name().to_owned(),
            document: format!("{}/{name}", self.split.name()),
            metric: None,
            sessions: sessions.collect(),
            questions: questions.collect(),
            chunk_questions: Vec::new(),
            metadata: Map::new(),
        }
    }

    /// Questions about what a session says of the people, at most so many a session; each is answered by one of
    /// its lines.
    pub fn chunk_questions(&self, most: usize) -> Vec<ChunkQuestion> {
        let mut asked = vec![0; self.story.months.len()];
        let mut questions = Vec::new();
        for (index, line) in self.story.lines.iter().enumerate() {
            let Some(stated) = line.states.filter(|_| asked[line.session] < most) else {
                continue;
            };
            asked[line.session] += 1;
            let text = self.story.question_now(line.person, stated.attribute);
            let question = Question::new(
                &format!("c{index}"),
                &text,
                QuestionType::SingleSession.name(),
                vec![stated.value.to_owned()],
            );
            questions.push(ChunkQuestion {
                session: line.session,
                question: question.with_evidence(vec![source_id(index)]),
            });
        }
        questions
    }

    fn session(&self, session: usize) -> Session {
        let lines = self.story.lines.iter().enumerate();
        let of_session = lines.filter(|(_, line)| line.session == session);
        Session {
            session_id: Some(format!("s{session}")),
            timestamp: Some(self.story.month(session).to_owned()),
            utterances: of_session
                .map(|(index, line)| self.utterance(index, line))
                .collect(),
        }
    }

    fn utterance(&self, index: usize, line: &Line) -> Utterance {
        Utterance {
            source_id: Some(source_id(index)),
            speaker: Some(self.story.people[line.person].to_owned()),
            text: line.text.clone(),
        }
    }
}

fn source_id(line: usize) -> String {
    format!("l{line}")
}
