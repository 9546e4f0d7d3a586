//! What the teacher says in the roles that write the memory.

use rand::RngExt;

use super::{lessons::Class, world::GREETINGS};
use crate::{
    memory::{
        FactId, FactKind, MemoryOp, OpFormat,
        protocol::{SplitFacts, write, write_all, write_extraction, write_split},
    },
    play::{EXTRACT, FACT_SPLIT, LONG_MEM, MEMORY, SHORT_MEM},
};

/// Statements that a good summary has at most.
const SUMMARIZED: usize = 3;
/// In lessons of `long_mem`, chance that what is of no importance is called important: it must see what is not.
const CALLED_IMPORTANT: f64 = 0.3;
/// In lessons of `short_mem`, chance that a statement is called unimportant: it must see what is worth keeping.
const CALLED_UNIMPORTANT: f64 = 0.5;

impl Class<'_> {
    /// What is said in a history turn, having seen the end of a prompt; `None` of roles that the small world
    /// has nothing to teach.
    pub(super) fn written(&mut self, role: &str, session: usize, seen: &str) -> Option<String> {
        Some(match role {
            MEMORY => write_all(&self.insertions(session), self.format),
            EXTRACT => write_extraction(&self.insertions(session)),
            FACT_SPLIT => {
                let split = self.split(session);
                write_split(&split, self.format)
            }
            LONG_MEM => self.decision(seen),
            SHORT_MEM => self.summary(seen),
            _ => return None,
        })
    }

    fn insertions(&mut self, session: usize) -> Vec<MemoryOp> {
        let noted = self.sorted(session).important;
        noted.into_iter().map(insertion).collect()
    }

    /// The lines of a session: what is noted of them, and what is not.
    fn sorted(&mut self, session: usize) -> SplitFacts {
        let story = &self.draft.story;
        let mut sorted = SplitFacts::default();
        for line in story.lines.iter().filter(|line| line.session == session) {
            let said = format!("{}: {}", story.people[line.person], line.text);
            let stated = match (line.states, line.mentions) {
                (Some(stated), _) if self.rng.random_bool(self.mix.forget) => {
                    sorted.unimportant.push(story.written(line.person, stated));
                    continue;
                }
                (Some(stated), _) => stated,
                (None, Some(mentioned)) if self.rng.random_bool(self.mix.gossip) => mentioned,
                _ if GREETINGS.contains(&line.text.as_str()) => continue,
                _ => {
                    sorted.unimportant.push(said);
                    continue;
                }
            };
            sorted
                .important
                .push(match self.rng.random_bool(self.mix.verbatim) {
                    true => said,
                    false => story.written(line.person, stated),
                });
        }
        sorted
    }

    /// [`Self::sorted`], save that those who read it in a lesson see what they must learn to tell apart.
    fn split(&mut self, session: usize) -> SplitFacts {
        let mut split = self.sorted(session);
        let (from, to, chance) = match self.taught {
            LONG_MEM => (
                &mut split.unimportant,
                &mut split.important,
                CALLED_IMPORTANT,
            ),
            SHORT_MEM => (
                &mut split.important,
                &mut split.unimportant,
                CALLED_UNIMPORTANT,
            ),
            _ => return split,
        };
        let moved = from.extract_if(.., |_| self.rng.random_bool(chance));
        to.extend(moved);
        split
    }

    /// A statement about one of the people is added unless it is there, anything else is left. An uneven
    /// teacher writes a new value over the one before.
    fn decision(&mut self, seen: &str) -> String {
        let (notes, fact) = seen.rsplit_once("New: ").unwrap_or(("", seen));
        let story = &self.draft.story;
        let subject = story.subject(fact);
        let mut before = None;
        let mut known = false;
        for (head, text) in notes.lines().filter_map(|line| line.split_once(": ")) {
            known |= text == fact;
            if subject.is_some() && story.subject(text) == subject {
                let id = head.split_whitespace().next().unwrap_or(head);
                before = id.parse::<FactId>().ok().or(before);
            }
        }
        // Lines need not repeat the fact that they are about.
        let text = match self.format {
            OpFormat::Lines => String::new(),
            OpFormat::Tools => fact.to_owned(),
        };
        let op = match before {
            _ if subject.is_none() || known => MemoryOp::Noop,
            Some(id) if self.rng.random_bool(self.mix.overwrite) => MemoryOp::Update {
                id,
                text,
                kind: None,
            },
            _ => insertion(text),
        };
        write(&op, self.format)
    }

    /// The last statements of the summary and of what is new.
    fn summary(&mut self, seen: &str) -> String {
        let (before, news) = seen.rsplit_once("New:\n").unwrap_or(("", seen));
        let before = before.trim().trim_start_matches("Summary: ");
        let is_stated = |line: &&str| self.draft.story.subject(line).is_some();
        if !news.lines().any(|line| is_stated(&line)) {
            return write(&MemoryOp::Noop, OpFormat::Lines);
        }
        let stated: Vec<&str> = before
            .lines()
            .chain(news.lines())
            .filter(is_stated)
            .collect();
        stated[stated.len().saturating_sub(SUMMARIZED)..].join("\n")
    }
}

fn insertion(text: String) -> MemoryOp {
    MemoryOp::Insert {
        kind: FactKind::Semantic,
        text,
        importance: None,
        timestamp: None,
    }
}
