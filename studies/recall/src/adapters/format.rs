//! The formats that there are adapters for.

use std::{fmt, str::FromStr};

use dataset::{Row, RowError};

use super::{
    desk::Desk, hotpotqa, locomo, long_mem_eval, mem_alpha, memory_agent_bench, memory_bench, own,
    qa, reward, squad, verl,
};
use crate::dialogue::Dialogue;

/// How a file writes its dialogues (spec, sections 1.2 and 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Our own: one [`Dialogue`] a row.
    Dialogue,
    /// `prompt` as messages, with `extra_info.turn_roles` beside it.
    Verl,
    /// One question a row with its `chunks`, lists and objects as JSON text.
    Qa,
    MemAlpha,
    LongMemEval,
    Locomo,
    MemoryAgentBench,
    HotpotQa,
    /// 1.1 and 2.0, nested as published or one question a row.
    Squad,
    /// Of THUIR.
    MemoryBench,
    /// MemAgent's RULER-HotpotQA.
    RulerHotpotQa,
    /// Several objectives in one question.
    Mem1,
}

impl Format {
    pub const ALL: [Self; 12] = [
        Self::Dialogue,
        Self::Verl,
        Self::Qa,
        Self::MemAlpha,
        Self::LongMemEval,
        Self::Locomo,
        Self::MemoryAgentBench,
        Self::HotpotQa,
        Self::Squad,
        Self::MemoryBench,
        Self::RulerHotpotQa,
        Self::Mem1,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Dialogue => "dialogue",
            Self::Verl => "verl",
            Self::Qa => "qa",
            Self::MemAlpha => "memalpha",
            Self::LongMemEval => "longmemeval",
            Self::Locomo => "locomo",
            Self::MemoryAgentBench => "memoryagentbench",
            Self::HotpotQa => "hotpotqa",
            Self::Squad => "squad",
            Self::MemoryBench => "memorybench",
            Self::RulerHotpotQa => "rulerhqa",
            Self::Mem1 => "mem1",
        }
    }

    /// The dialogues of one row.
    pub(super) fn read(self, row: &Row, desk: &mut Desk<'_>) -> Result<Vec<Dialogue>, RowError> {
        match self {
            Self::Dialogue => own::read(row, desk),
            Self::Verl => verl::read(row, desk),
            Self::Qa => qa::read(row, desk),
            Self::MemAlpha => mem_alpha::read(row, desk),
            Self::LongMemEval => long_mem_eval::read(row, desk),
            Self::Locomo => locomo::read(row, desk),
            Self::MemoryAgentBench => memory_agent_bench::read(row, desk),
            Self::HotpotQa => hotpotqa::read(row, desk),
            Self::Squad => squad::read(row, desk),
            Self::MemoryBench => memory_bench::read(row, desk),
            Self::RulerHotpotQa => reward::read_ruler(row, desk),
            Self::Mem1 => reward::read_mem1(row, desk),
        }
    }

    /// Whether rows with the same history are one sample that is asked several questions.
    pub(super) fn merges(self) -> bool {
        matches!(self, Self::Qa | Self::Squad)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("no format is called `{name}`; there are {names}")
        })
    }
}
