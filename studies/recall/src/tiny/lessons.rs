//! What small models are taught before reinforcement, by a teacher who knows the story.
//!
//! The teacher is as good as its recipe says. First lessons show the skill; later ones are uneven, as
//! the demonstrations are that people have, and leave reinforcement something to find.

use std::sync::Arc;

use futures::FutureExt;
use rand::{
    RngExt,
    seq::{IndexedRandom, SliceRandom},
};
use rand_chacha::ChaCha8Rng;
use record::{Fault, Message, Seed, StopReason};
use retrieve::Embedder;
use rollout::Answer;
use serde::{Deserialize, Serialize};

use super::{
    Draft, Split,
    questions::{Asked, NOT_SAID, QuestionType},
    story::{Line, Period, Stated},
};
use crate::{
    config::RecallConfig,
    memory::{
        Baseline, CountTokens, Extraction, Fact, MemoryConfig, MemoryError, MemoryManager, OpFormat,
    },
    play::{ANSWER, Ask, CHUNK_QA, Stage},
    prompts::{answer_prompt, follow_up},
    task::{Granularity, Task},
};

/// How a teacher answers and writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mix {
    /// Chance that a question is answered as a careless reader would: with what once held, with the
    /// latest value alone, with a guess.
    pub careless: f64,
    /// Chance that a statement is not written down.
    pub forget: f64,
    /// Chance that what is said of others is written down as if it were the speaker's own.
    pub gossip: f64,
    /// Chance that a line is written down as it was said.
    pub verbatim: f64,
    /// Chance that `long_mem` writes what is new of somebody over what it knows, and what held before is lost.
    #[serde(skip_serializing_if = "is_zero")]
    pub overwrite: f64,
    /// Chance that the questions of a dialogue are asked over the dialogue itself, in one of the ways that
    /// memories are compared with.
    pub raw: f64,
    /// Whether the questions are asked over what rules would have remembered, whatever the recipe's memory is.
    pub by_rule: bool,
    /// Of lessons in answering, questions asked one after the other over the same notes: many teach more
    /// in the same time. 0: every question over what is retrieved for it, as in an episode.
    pub drill: usize,
    /// Notes of a drill, at most.
    pub drill_notes: usize,
    /// Chance that a drill is about one of the two people alone: the easier half of the skill.
    pub drill_alone: f64,
    /// Chance that the notes of a drill are those that share most words with one of its questions, as
    /// what is retrieved does, and not just any.
    pub drill_near: f64,
}

impl Default for Mix {
    fn default() -> Self {
        Self {
            careless: 0.0,
            forget: 0.0,
            gossip: 0.0,
            verbatim: 0.0,
            overwrite: 0.0,
            raw: 0.0,
            by_rule: false,
            drill: 0,
            drill_notes: 10,
            drill_alone: 0.0,
            drill_near: 0.0,
        }
    }
}

fn is_zero(chance: &f64) -> bool {
    *chance == 0.0
}

/// A chat that ends with what the teacher said; every turn of the assistant is the teacher's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lesson {
    pub role: String,
    pub messages: Vec<Message>,
}

/// Gives lessons in the way in which episodes of a recipe are played.
pub struct Teacher {
    config: RecallConfig,
    manager: MemoryManager,
    /// Memories that are the dialogue itself.
    raw: Vec<MemoryManager>,
    mix: Mix,
    /// Questions a dialogue beside one of every type.
    questions: usize,
    seed: Seed,
}

impl Teacher {
    /// `count` and `embedder` as for [`Recall::new`](crate::Recall::new).
    ///
    /// # Errors
    /// Settings of the memory that contradict each other.
    pub fn new(
        config: &RecallConfig,
        (count, embedder): (CountTokens, Option<Arc<dyn Embedder>>),
        mix: &Mix,
        questions: usize,
        seed: Seed,
    ) -> Result<Self, MemoryError> {
        let manager = |memory| MemoryManager::new(memory, count.clone(), embedder.clone());
        let baselines = [Baseline::FullContext, Baseline::LastK, Baseline::RawChunks];
        let raw = baselines.map(|baseline| manager(config.memory.with_baseline(baseline)));
        let memory = match mix.by_rule {
            true => MemoryConfig {
                extraction: Extraction::Rule,
                ..config.memory.clone()
            },
            false => config.effective_memory(),
        };
        Ok(Self {
            manager: manager(memory)?,
            raw: raw.into_iter().collect::<Result<_, _>>()?,
            config: config.clone(),
            mix: mix.clone(),
            questions,
            seed,
        })
    }

    /// The lessons of `role` that dialogue `index` gives.
    ///
    /// # Errors
    /// Roles that there are no lessons for; what the memory's machinery could not do.
    pub fn lessons(&self, role: &str, index: u64) -> Result<Vec<Lesson>, Fault> {
        // Whoever answers about a turn answers as always.
        let role = if role == CHUNK_QA { ANSWER } else { role };
        let more = self.questions.max(2 * self.mix.drill);
        let draft = Draft::new(self.seed, Split::Lessons, index, more);
        let mut class = Class {
            mix: &self.mix,
            draft: &draft,
            format: self.config.format,
            taught: role,
            rng: self.seed.stream("teacher", index).rng(),
            lessons: Vec::new(),
            step: 0,
        };
        let mut dialogue = draft.dialogue();
        let drills = role == ANSWER && self.mix.drill > 0;
        if drills {
            dialogue.questions.clear();
        } else {
            dialogue
                .questions
                .truncate(self.questions + QuestionType::ALL.len());
        }
        let own = class.rng.random_bool(1.0 - self.mix.raw.clamp(0.0, 1.0));
        let raw = self.raw.choose(&mut class.rng).filter(|_| !own);
        let stage = Stage {
            config: &self.config,
            manager: raw.unwrap_or(&self.manager),
            histories: None,
            judge: None,
        };
        for task in Task::of_dialogue(&dialogue, Granularity::Sample) {
            // The teacher answers at once, so that nothing is ever waited for.
            let notes = stage.play(&task, &mut class).now_or_never();
            let notes =
                notes.unwrap_or_else(|| Err(Fault::grader("the teacher is lost in thought")))?;
            if drills {
                class.drill(&self.config, &notes.facts);
            }
        }
        class.lessons.retain(|lesson| lesson.role == role);
        Ok(class.lessons)
    }
}

/// Lessons about one dialogue.
pub(super) struct Class<'a> {
    pub(super) mix: &'a Mix,
    pub(super) draft: &'a Draft,
    pub(super) format: OpFormat,
    /// The role that the lessons are for.
    pub(super) taught: &'a str,
    pub(super) rng: ChaCha8Rng,
    lessons: Vec<Lesson>,
    step: u32,
}

impl Ask for Class<'_> {
    async fn ask(
        &mut self,
        role: &str,
        turn_id: u32,
        messages: &[Message],
    ) -> Result<Answer, Fault> {
        let seen = messages.last().map_or("", |message| &message.content);
        let text = match role {
            ANSWER => {
                let first = self.draft.story.months.len();
                self.answer(&self.draft.asked[turn_id as usize - first], seen)
            }
            _ => {
                let unknown = || format!("the small world has no lessons for the role {role}");
                self.written(role, turn_id as usize, seen)
                    .ok_or_else(|| Fault::grader(unknown()))?
            }
        };
        self.step += 1;
        let mut messages = messages.to_vec();
        messages.push(Message::assistant(text.clone()));
        self.lessons.push(Lesson {
            role: role.to_owned(),
            messages,
        });
        Ok(Answer {
            text,
            tool_calls: Vec::new(),
            stop: StopReason::Stop,
        })
    }

    async fn likelihood(&self, _: &str, _: &[Message], _: &str) -> Result<Option<f64>, Fault> {
        Ok(None)
    }

    fn next_step(&self) -> u32 {
        self.step
    }
}

impl Class<'_> {
    /// Many questions over a few of the facts.
    fn drill(&mut self, config: &RecallConfig, facts: &[Fact]) {
        let story = &self.draft.story;
        let alone = self.rng.random_bool(self.mix.drill_alone);
        let person = alone.then(|| self.rng.random_range(0..story.people.len()));
        let is_about = |text: &str, person: Option<usize>| {
            person.is_none_or(|person| text.contains(story.people[person]))
        };
        let live = facts.iter().filter(|fact| fact.is_live());
        let mut shown: Vec<&Fact> = live.filter(|fact| is_about(&fact.text, person)).collect();
        shown.shuffle(&mut self.rng);
        if self.rng.random_bool(self.mix.drill_near)
            && let Some(question) = self.draft.asked.choose(&mut self.rng)
        {
            let words: Vec<&str> = words(&question.text).collect();
            let shared = |fact: &Fact| {
                let found = self::words(&fact.text).filter(|word| words.contains(word));
                found.count()
            };
            shown.sort_by_key(|fact| std::cmp::Reverse(shared(fact)));
        }
        shown.truncate(self.mix.drill_notes);
        shown.sort_by_key(|fact| fact.id);
        let lines: Vec<String> = shown
            .iter()
            .map(|fact| config.prompt.reading_line().write(fact))
            .collect();
        let notes = lines.join("\n");
        let about = self.draft.asked.iter();
        let mut asked: Vec<&Asked> = about.filter(|one| is_about(&one.text, person)).collect();
        asked.shuffle(&mut self.rng);
        // Of questions that the notes do not answer, a few are enough.
        let mut unanswerable = 0;
        asked.retain(|question| {
            unanswerable += usize::from(self.known(question, &notes).is_empty());
            !self.known(question, &notes).is_empty() || unanswerable <= self.mix.drill.div_ceil(8)
        });
        asked.truncate(self.mix.drill);
        let mut messages = Vec::new();
        for question in asked {
            messages.extend(match messages.is_empty() {
                true => answer_prompt(&config.prompt, notes.clone(), &question.text, None),
                false => vec![follow_up(&question.text)],
            });
            messages.push(Message::assistant(self.answer(question, &notes)));
        }
        self.lessons.push(Lesson {
            role: ANSWER.to_owned(),
            messages,
        });
    }

    /// What the notes tell of the subject, then the answer that follows, or a careless one.
    fn answer(&mut self, asked: &Asked, seen: &str) -> String {
        let story = &self.draft.story;
        let known = self.known(asked, seen);
        let careless = self.rng.random_bool(self.mix.careless);
        let answer = match careless {
            true => self.careless(asked, &known, seen),
            false => asked.question_type.answer(&known, asked.session),
        };
        let told: Vec<String> = known
            .iter()
            .map(|period| format!("{} {}", story.month(period.session), period.value))
            .collect();
        let told = if told.is_empty() {
            "nothing".to_owned()
        } else {
            told.join(", ")
        };
        let answer = if answer.is_empty() { NOT_SAID } else { &answer };
        format!("{told}.\nAnswer: {answer}")
    }

    /// What the notes tell of the subject of a question.
    fn known(&self, asked: &Asked, notes: &str) -> Vec<Period> {
        let story = &self.draft.story;
        let stated = story.stated(asked.person, asked.attribute);
        let told = stated.filter(|(line, stated)| {
            let name = story.people[line.person];
            let forms = [
                format!("{name}: {}", line.text),
                line.text.replacen("my ", &format!("{name}'s "), 1),
                story.written(asked.person, *stated),
            ];
            forms.iter().any(|form| notes.contains(form))
        });
        let period = |(line, stated): (&Line, Stated)| Period {
            session: line.session,
            value: stated.value,
        };
        told.map(period).collect()
    }

    fn careless(&mut self, asked: &Asked, known: &[Period], seen: &str) -> String {
        let value = |period: Option<&Period>| period.map_or("", |period| period.value).to_owned();
        match asked.question_type {
            QuestionType::SingleSession => String::new(),
            QuestionType::KnowledgeUpdate => value(known.first()),
            QuestionType::Temporal | QuestionType::MultiSession => value(known.last()),
            QuestionType::Abstention => {
                let heard: Vec<&str> = self
                    .draft
                    .story
                    .values(asked.attribute)
                    .filter(|value| seen.contains(value))
                    .collect();
                heard
                    .choose(&mut self.rng)
                    .copied()
                    .unwrap_or_default()
                    .to_owned()
            }
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric())
        .filter(|word| word.len() > 1)
}
