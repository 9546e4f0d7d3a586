//! How policies and models write operations on a memory. Reading never fails: what cannot be read is a piece
//! of its own, and every byte of a response belongs to one piece.

mod json;
mod lines;
mod roles;
mod tools;

use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use self::roles::{
    SplitFacts, read_decisions, read_extraction, read_short_memory, read_split, write_extraction,
    write_split,
};

use super::{fact::FactId, op::MemoryOp};

/// How operations are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpFormat {
    /// One a line: `add: TEXT`, `add episodic: TEXT`, `update f000003: TEXT`, `delete f000003`, `core: TEXT`,
    /// `summary: TEXT`, `noop`. Lines that are indented deeper continue the text before. `add` may say
    /// `importance=0.8` and `time="8 May 2023"` before the colon.
    #[default]
    Lines,
    /// The calls `memory_insert`, `memory_update` and `memory_delete` of Mem-alpha as JSON objects between
    /// Qwen's `<tool_call>` markers (spec, section 2.1); repaired where that is plain.
    Tools,
}

/// A part of a response. Spans are in bytes, in order, and leave nothing out.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Op {
        op: MemoryOp,
        span: Range<usize>,
    },
    /// Meant as an operation, as far as one can tell, and none.
    Malformed {
        text: String,
        /// For its writer.
        why: String,
        span: Range<usize>,
    },
    /// Thoughts, blank lines, fences, and words around calls.
    Ignored {
        span: Range<usize>,
    },
}

impl Piece {
    pub fn span(&self) -> Range<usize> {
        match self {
            Self::Op { span, .. } | Self::Malformed { span, .. } | Self::Ignored { span } => {
                span.clone()
            }
        }
    }

    fn malformed(whole: &str, span: Range<usize>, why: impl Into<String>) -> Self {
        Self::Malformed {
            text: whole[span.clone()].trim().to_owned(),
            why: why.into(),
            span,
        }
    }
}

/// Reads a response.
pub fn read(text: &str, format: OpFormat) -> Vec<Piece> {
    read_about(text, format, None)
}

/// An operation as [`read`] reads it. Texts are written without white space at their ends.
pub fn write(op: &MemoryOp, format: OpFormat) -> String {
    match format {
        OpFormat::Lines => lines::write(op),
        OpFormat::Tools => tools::write(op),
    }
}

/// A response of several operations; of none, what says so.
pub fn write_all(ops: &[MemoryOp], format: OpFormat) -> String {
    let written: Vec<String> = match ops {
        [] => vec![write(&MemoryOp::Noop, format)],
        _ => ops.iter().map(|op| write(op, format)).collect(),
    };
    written.join("\n")
}

/// Reads a response in which additions and updates without a text of their own mean `fact`.
fn read_about(text: &str, format: OpFormat, fact: Option<&str>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let Some(start) = without_thoughts(text, &mut pieces) else {
        return pieces;
    };
    match format {
        OpFormat::Lines => lines::read(text, start, fact, &mut pieces),
        OpFormat::Tools => tools::read(text, start, fact, &mut pieces),
    }
    pieces
}

/// Where a response begins behind its thoughts. Nothing if they never end, which is malformed.
fn without_thoughts(text: &str, pieces: &mut Vec<Piece>) -> Option<usize> {
    const END: &str = "</think>";
    match text.find(END) {
        Some(at) => {
            let start = at + END.len();
            pieces.push(Piece::Ignored { span: 0..start });
            Some(start)
        }
        None if text.trim_start().starts_with("<think>") => {
            let why = "the thoughts never end, so that nothing follows them";
            pieces.push(Piece::malformed(text, 0..text.len(), why));
            None
        }
        None => Some(0),
    }
}

/// The id in `f000012`, `F12`, `[f000012]`, `"12"`.
fn id_of(text: &str) -> Option<FactId> {
    let bare = text.trim_matches(|character: char| {
        character.is_whitespace() || "[]()<>\"'`#".contains(character)
    });
    let digits = bare.strip_prefix(['f', 'F']).unwrap_or(bare);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok().map(FactId))?
}
