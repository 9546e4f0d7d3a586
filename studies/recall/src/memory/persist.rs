//! A memory as JSON lines, and back.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};

use super::{
    change::content_hash,
    fact::{Fact, FactId},
    manager::{MemoryError, MemoryManager},
    state::{MemoryState, Text, WindowTurn},
};

/// The version of the format, in its first line.
const FORMAT: &str = "etude-memory/1";

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    /// The first one.
    Memory {
        format: String,
        core: String,
        summary: String,
        /// How many there were; the next one has this number.
        records: u32,
        facts: u32,
        turns: u32,
    },
    /// Recent turns, oldest first.
    Turn(WindowTurn),
    /// All facts, by id.
    Fact(Fact),
}

/// A file that is no memory.
#[derive(Debug, thiserror::Error)]
pub enum BadMemory {
    #[error("the memory cannot be read")]
    Io(#[from] io::Error),
    #[error("line {line} of the memory: {fault}")]
    Line { line: usize, fault: String },
    #[error(transparent)]
    Manager(#[from] MemoryError),
}

impl MemoryState {
    /// Writes everything that is remembered, dead facts too, as JSON lines that [`MemoryManager::read`] reads.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut put = |line: &Line| {
            serde_json::to_writer(&mut *out, line)?;
            out.write_all(b"\n")
        };
        put(&Line::Memory {
            format: FORMAT.to_owned(),
            core: self.core().to_owned(),
            summary: self.summary().to_owned(),
            records: self.records,
            facts: self.facts.len() as u32,
            turns: self.window.len() as u32,
        })?;
        for turn in self.window() {
            put(&Line::Turn(turn.clone()))?;
        }
        for fact in self.facts() {
            put(&Line::Fact(fact.clone()))?;
        }
        Ok(())
    }
}

impl MemoryManager {
    /// Reads a memory that was written under the same configuration: it goes on as the written one would.
    ///
    /// # Errors
    ///
    /// A line that is none of such a file, with its number from 1; the embedder failed.
    pub fn read(&self, input: impl BufRead) -> Result<MemoryState, BadMemory> {
        let mut state = self.initialize();
        let mut wanted: Option<(u32, u32)> = None;
        let mut turns = 0;
        let mut living: Vec<Fact> = Vec::new();
        let mut last = 0;
        for (index, line) in input.lines().enumerate() {
            last = index + 1;
            let fault = |fault: String| BadMemory::Line { line: last, fault };
            let line: Line =
                serde_json::from_str(&line?).map_err(|error| fault(error.to_string()))?;
            match (line, wanted) {
                (
                    Line::Memory {
                        format,
                        core,
                        summary,
                        records,
                        facts,
                        turns,
                    },
                    None,
                ) => {
                    if format != FORMAT {
                        return Err(fault(format!("its format is {format}, not {FORMAT}")));
                    }
                    wanted = Some((facts, turns));
                    state.records = records;
                    state.core = self.text(core);
                    state.summary = self.text(summary);
                }
                (Line::Turn(turn), Some(_)) => {
                    turns += 1;
                    state.window_tokens += u64::from(turn.tokens);
                    state.window.enqueue_mut(turn);
                }
                (Line::Fact(fact), Some(_)) => {
                    self.check_fact(&fact, &state).map_err(fault)?;
                    if fact.is_live() {
                        living.push(fact.clone());
                    }
                    state.facts.push_back_mut(fact);
                }
                (Line::Memory { .. }, Some(_)) => {
                    return Err(fault("a second memory begins".to_owned()));
                }
                (Line::Turn(_) | Line::Fact(_), None) => {
                    return Err(fault("its first line is not that of a memory".to_owned()));
                }
            }
        }
        if wanted != Some((state.facts.len() as u32, turns)) {
            return Err(BadMemory::Line {
                line: last + 1,
                fault: "lines are missing at the end".to_owned(),
            });
        }
        // Searches prefer what was written later, so that facts are filed as they were written.
        living.sort_by_key(Fact::last_write);
        for fact in &living {
            state.file(fact);
        }
        let ids: Vec<FactId> = living.iter().map(|fact| fact.id).collect();
        self.embed(&mut state, &ids);
        match &state.fault {
            Some(fault) => Err(fault.clone().into()),
            None => Ok(state),
        }
    }

    fn text(&self, text: String) -> Text {
        Text {
            tokens: self.count(&text) as u32,
            text: text.into(),
        }
    }

    fn check_fact(&self, fact: &Fact, state: &MemoryState) -> Result<(), String> {
        if fact.id.0 as usize != state.facts.len() {
            return Err(format!("{} is not the next fact", fact.id));
        }
        if fact.content_hash != content_hash(&fact.text) {
            return Err(format!(
                "the content hash of {} is not that of its text",
                fact.id
            ));
        }
        if fact.written.is_empty() || fact.last_write() >= state.records {
            return Err(format!("nothing that is on record wrote {}", fact.id));
        }
        Ok(())
    }
}
