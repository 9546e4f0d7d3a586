//! The short-term memory: recent turns as they were, and what is kept of those before.

use retrieve::Analyzer;
use rustc_hash::FxHashMap;

use crate::task::TurnSpec;

use super::{
    apply::Author,
    change::Outcome,
    config::Compression,
    extract,
    manager::MemoryManager,
    op::{OpKind, OpRecord, Store},
    sentences::cut_to_tokens,
    state::{MemoryState, WindowTurn},
};

/// The part of the summary that a single turn may take under `rolling`.
const SHARE_OF_A_TURN: usize = 4;

impl MemoryManager {
    /// Adds a history turn to the recent turns; those that are pushed out are folded into the summary, or
    /// forgotten, as `compression` says. Records: an eviction from the window for each turn that leaves, and a
    /// summary for each that was folded.
    pub fn compress_short_term(&self, state: &mut MemoryState, turn: &TurnSpec) -> Vec<OpRecord> {
        self.remember_turn(state, turn, turn.observation())
    }

    pub(super) fn remember_turn(
        &self,
        state: &mut MemoryState,
        turn: &TurnSpec,
        text: String,
    ) -> Vec<OpRecord> {
        let compression = self.config.compression;
        if compression == Compression::None {
            return Vec::new();
        }
        let folds = matches!(compression, Compression::Extractive | Compression::Rolling);
        let sentences = if folds {
            let extracted = extract::extract(
                turn,
                self.config.summary_tokens,
                self.config.resolve_possessive,
                &self.count,
            );
            extracted.into_iter().map(|fact| fact.text).collect()
        } else {
            Vec::new()
        };
        let entering = WindowTurn {
            turn_id: turn.turn_id,
            timestamp: turn.timestamp.clone(),
            tokens: u32::try_from(self.count(&text)).unwrap_or(u32::MAX),
            text,
            sentences,
        };
        state.window_tokens += u64::from(entering.tokens);
        state.window.enqueue_mut(entering);
        let mut by = Author::rule(turn);
        let mut records = Vec::new();
        while state.window.len() > self.config.window_turns {
            let Some(leaving) = state.window.peek().cloned() else {
                break;
            };
            state.window.dequeue_mut();
            state.window_tokens -= u64::from(leaving.tokens);
            let forgotten = Outcome {
                tokens: -i64::from(leaving.tokens),
                ..Outcome::done(OpKind::Evict, Store::Window)
            };
            records.push(state.record(forgotten, &by));
            if folds && !leaving.sentences.is_empty() {
                let summary = match compression {
                    Compression::Rolling => self.rolled(state.summary(), &leaving.sentences),
                    _ => self.condensed(state.summary(), &leaving.sentences),
                };
                by.observation_tokens = leaving.tokens;
                let outcome = self.set_summary(state, &summary, &by);
                records.push(state.record(outcome, &by));
            }
        }
        records
    }

    /// The most central sentences of both, in their order.
    fn condensed(&self, summary: &str, leaving: &[String]) -> String {
        let all: Vec<&str> = summary
            .lines()
            .chain(leaving.iter().map(String::as_str))
            .collect();
        self.central(&all, self.config.summary_tokens).join("\n")
    }

    /// The summary with the most central sentences of the leaving turn behind it, without its oldest lines
    /// where it would be too long.
    fn rolled(&self, summary: &str, leaving: &[String]) -> String {
        let limit = self.config.summary_tokens;
        let leaving: Vec<&str> = leaving.iter().map(String::as_str).collect();
        let mut lines: Vec<&str> = summary.lines().collect();
        lines.extend(self.central(&leaving, limit.div_ceil(SHARE_OF_A_TURN)));
        let mut first = 0;
        let mut tokens = 0;
        for (index, line) in lines.iter().enumerate().rev() {
            tokens += self.count(line) + 1;
            if tokens > limit + 1 {
                first = index + 1;
                break;
            }
        }
        while first < lines.len() && self.count(&lines[first..].join("\n")) > limit {
            first += 1;
        }
        lines[first..].join("\n")
    }

    /// The most central of `sentences` that fit into `limit` tokens together, in their order; if not one of
    /// them fits, the beginning of the most central one.
    fn central<'a>(&self, sentences: &[&'a str], limit: usize) -> Vec<&'a str> {
        let scores = centrality(sentences);
        let mut ranked: Vec<usize> = (0..sentences.len()).collect();
        ranked.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
        let (mut taken, mut tokens) = (Vec::new(), 0);
        for index in &ranked {
            // A line break counts as one.
            let more = self.count(sentences[*index]) + 1;
            if tokens + more <= limit + 1 {
                taken.push(*index);
                tokens += more;
            }
        }
        let in_order = |taken: &[usize]| {
            let mut order = taken.to_vec();
            order.sort_unstable();
            order
                .into_iter()
                .map(|index| sentences[index])
                .collect::<Vec<&str>>()
        };
        while self.count(&in_order(&taken).join("\n")) > limit && taken.pop().is_some() {}
        if taken.is_empty() {
            let first = ranked.first().map(|index| sentences[*index]);
            return first
                .map(|first| cut_to_tokens(first, limit, &|text| self.count(text)))
                .filter(|kept| !kept.is_empty())
                .into_iter()
                .collect();
        }
        in_order(&taken)
    }
}

/// How much each sentence has in common with all: the sum of the cosines of their term vectors, terms weighted
/// by `ln(1 + n / df)` (degree centrality, as LexRank has it without a threshold: Erkan and Radev, 2004).
fn centrality(sentences: &[&str]) -> Vec<f64> {
    let analyzer = Analyzer::default();
    // Terms are numbered as they are first seen.
    let mut numbers: FxHashMap<String, usize> = FxHashMap::default();
    let mut document_frequency: Vec<f64> = Vec::new();
    let mut vectors: Vec<Vec<(usize, f64)>> = Vec::with_capacity(sentences.len());
    for sentence in sentences {
        let mut terms: Vec<usize> = Vec::new();
        analyzer.for_each_term(sentence, |term| {
            let number = numbers.get(term).copied().unwrap_or_else(|| {
                numbers.insert(term.to_owned(), document_frequency.len());
                document_frequency.push(0.0);
                document_frequency.len() - 1
            });
            terms.push(number);
        });
        terms.sort_unstable();
        let counted = terms.chunk_by(|one, next| one == next);
        let vector: Vec<(usize, f64)> = counted.map(|run| (run[0], run.len() as f64)).collect();
        for (term, _) in &vector {
            document_frequency[*term] += 1.0;
        }
        vectors.push(vector);
    }
    let all = sentences.len() as f64;
    let rarity: Vec<f64> = document_frequency
        .iter()
        .map(|frequency| (1.0 + all / frequency).ln())
        .collect();
    let mut sum = vec![0.0; rarity.len()];
    for vector in &mut vectors {
        for (term, weight) in vector.iter_mut() {
            *weight *= rarity[*term];
        }
        let norm = vector.iter().map(|(_, it)| it * it).sum::<f64>().sqrt();
        for (term, weight) in vector {
            *weight /= norm;
            sum[*term] += *weight;
        }
    }
    let central = |vector: &Vec<(usize, f64)>| {
        let products = vector.iter().map(|(term, weight)| weight * sum[*term]);
        products.sum()
    };
    vectors.iter().map(central).collect()
}
