//! What a memory is told: who writes it, what is kept of the recent turns, how it is searched.

use serde::{Deserialize, Serialize};

/// How the memory of every episode works (spec of the recall study, sections 1.5 and 7). Sizes are in
/// tokens of the answering policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    pub update_policy: UpdatePolicy,
    pub extraction: Extraction,
    pub compression: Compression,
    pub retrieval: Retrieval,
    /// How `hybrid` joins its two lists.
    #[serde(skip_serializing_if = "Fusion::is_default")]
    pub fusion: Fusion,
    /// Of facts that are retrieved for a question: turns in which the worth of one halves, counted from its
    /// last write to the newest fact's. 0: age counts for nothing.
    #[serde(skip_serializing_if = "is_zero")]
    pub half_life_turns: f64,
    /// Only facts whose last write is at most so many turns older than the newest fact's are retrieved for a
    /// question. 0: all are.
    #[serde(skip_serializing_if = "is_none")]
    pub within_turns: usize,
    /// What it counts against a fact that others like it are retrieved already, from 0 to below 1 (maximal
    /// marginal relevance, whose balance is 1 less this). 0: nothing.
    #[serde(skip_serializing_if = "is_zero")]
    pub diversity: f64,
    /// Facts that are retrieved for a question.
    pub top_k: usize,
    /// Longest core paragraph; what is over it is cut at the end of a word.
    pub core_tokens: usize,
    /// Longest summary; what is over it is cut at the end of a word.
    pub summary_tokens: usize,
    /// Recent turns that are kept as they are.
    pub window_turns: usize,
    /// Longest fact; longer ones are refused. 0: no limit.
    pub fact_tokens: usize,
    /// Longest piece of a turn under `extraction = "chunk"`.
    pub chunk_tokens: usize,
    /// Live facts at most: over it, the least important one goes (absent importance counts as 0.5),
    /// among equals the one whose last write is the oldest. 0: no limit.
    pub max_facts: usize,
    /// Overlap (Jaccard) of words and pairs of neighbouring words from which a new fact counts as one that
    /// is there already, unless their numbers differ. From 0.75 to 1; 0: only identical texts do.
    pub near_duplicate: f64,
    /// Whether a text that was learnt at another time is another fact, and no duplicate.
    pub keep_repeats: bool,
    /// Under `extraction = "rule"`, say what speakers say of something of their own by their name: `Ann: my cat
    /// is grey.` is written down as `Ann's cat is grey.` Of English alone.
    pub resolve_possessive: bool,
    /// Stored facts that are shown beside a new one when it is decided what becomes of it.
    pub shown_neighbours: usize,
    /// Whether a question and its answer become part of the recent turns.
    pub remember_answers: bool,
    /// In which order retrieved facts are shown.
    pub fact_order: FactOrder,
}

/// What an update of a fact does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdatePolicy {
    /// Its text is replaced.
    #[default]
    Crud,
    /// A new fact takes its place; the old one stays on record, `superseded_by` the new.
    AppendSupersede,
}

/// Who makes facts out of history turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extraction {
    /// Nobody: there are no facts.
    None,
    /// Turns are cut into pieces of at most `chunk_tokens`, as they are.
    Chunk,
    /// A rule: one fact a sentence, behind its speaker, dates resolved, greetings dropped.
    #[default]
    Rule,
    /// A frozen model, by the JSON contract of `protocol::read_extraction`.
    Model,
    /// The policy that is trained, by operations in one of the formats of `protocol`.
    Policy,
    /// The roles `fact_split`, `long_mem` and `short_mem`.
    FourRoles,
}

/// What becomes of turns that leave the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// No recent turns and no summary.
    None,
    /// They are forgotten.
    #[default]
    Window,
    /// The most central sentences of the summary and of the leaving turn are kept, in their order.
    Extractive,
    /// The most central sentences of each leaving turn are added; the oldest ones go first.
    Rolling,
    /// A policy replaces the summary; nothing is kept by rule.
    Overwrite,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retrieval {
    #[default]
    Bm25,
    Dense,
    /// Both, joined by reciprocal rank.
    Hybrid,
}

/// One list out of BM25's and that of vectors (spec, section 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fusion {
    /// Reciprocal ranks, with the constant 60.
    #[default]
    ReciprocalRank,
    /// The sum of standard scores.
    ZScore,
    /// Cosine of at least 0.1, plus BM25 squeezed into 0 to 1, as Mem0 has it.
    Additive,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactOrder {
    /// As they were written, oldest first.
    #[default]
    Written,
    /// Best first.
    Relevance,
}

/// Memories that nobody learnt to write: what a learned one is compared with at equal token budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Baseline {
    /// The question alone.
    NoMemory,
    /// All turns, as far back as the budget reaches.
    FullContext,
    /// The last `window_turns` turns.
    LastK,
    /// Turns cut into pieces, searched by the question.
    RawChunks,
}

impl Baseline {
    pub const ALL: [Self; 4] = [
        Self::NoMemory,
        Self::FullContext,
        Self::LastK,
        Self::RawChunks,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::NoMemory => "no_memory",
            Self::FullContext => "full_context",
            Self::LastK => "last_k",
            Self::RawChunks => "raw_chunks",
        }
    }
}

fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

impl Fusion {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Retrieval {
    pub fn name(self) -> &'static str {
        match self {
            Self::Bm25 => "bm25",
            Self::Dense => "dense",
            Self::Hybrid => "hybrid",
        }
    }
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            update_policy: UpdatePolicy::default(),
            extraction: Extraction::default(),
            compression: Compression::default(),
            retrieval: Retrieval::default(),
            fusion: Fusion::default(),
            half_life_turns: 0.0,
            within_turns: 0,
            diversity: 0.0,
            top_k: 10,
            core_tokens: 512,
            summary_tokens: 1024,
            window_turns: 4,
            fact_tokens: 256,
            chunk_tokens: 256,
            max_facts: 0,
            near_duplicate: 0.9,
            keep_repeats: false,
            resolve_possessive: false,
            shown_neighbours: 10,
            remember_answers: false,
            fact_order: FactOrder::default(),
        }
    }
}

/// A setting that makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("memory.{field} is {value}: {wanted}")]
pub struct BadSetting {
    pub field: &'static str,
    pub value: String,
    pub wanted: &'static str,
}

impl MemoryConfig {
    /// # Errors
    ///
    /// The first setting that makes no sense.
    pub fn check(&self) -> Result<(), BadSetting> {
        let near = self.near_duplicate;
        let faults = [
            (
                near != 0.0 && !(0.75..=1.0).contains(&near),
                "near_duplicate",
                near.to_string(),
                "0 for identical texts only, else from 0.75 to 1",
            ),
            (
                self.extraction == Extraction::Chunk && self.chunk_tokens == 0,
                "chunk_tokens",
                self.chunk_tokens.to_string(),
                "turns are cut into pieces of at least one token",
            ),
            (
                self.extraction != Extraction::None && self.top_k == 0,
                "top_k",
                self.top_k.to_string(),
                "facts that are never retrieved are of no use; `extraction = \"none\"` keeps none",
            ),
        ];
        let (half_life, diversity) = (self.half_life_turns, self.diversity);
        let retrieval = [
            (
                self.fusion != Fusion::default() && self.retrieval != Retrieval::Hybrid,
                "fusion",
                format!("set, and memory.retrieval is {}", self.retrieval.name()),
                "only `retrieval = \"hybrid\"` has two lists to join",
            ),
            (
                !(half_life >= 0.0 && half_life.is_finite()),
                "half_life_turns",
                half_life.to_string(),
                "a number of turns, or 0 where age counts for nothing",
            ),
            (
                !(0.0..1.0).contains(&diversity),
                "diversity",
                diversity.to_string(),
                "from 0 to below 1: at 1 nothing would depend on the question",
            ),
        ];
        for (is_wrong, field, value, wanted) in faults.into_iter().chain(retrieval) {
            if is_wrong {
                return Err(BadSetting {
                    field,
                    value,
                    wanted,
                });
            }
        }
        Ok(())
    }

    /// These settings, save that the memory is a baseline's.
    pub fn with_baseline(&self, baseline: Baseline) -> Self {
        let (extraction, compression, window_turns) = match baseline {
            Baseline::NoMemory => (Extraction::None, Compression::None, 0),
            Baseline::FullContext => (Extraction::None, Compression::Window, usize::MAX),
            Baseline::LastK => (Extraction::None, Compression::Window, self.window_turns),
            Baseline::RawChunks => (Extraction::Chunk, Compression::None, 0),
        };
        Self {
            extraction,
            compression,
            window_turns,
            max_facts: 0,
            near_duplicate: 0.0,
            remember_answers: false,
            ..self.clone()
        }
    }
}
