//! Whether a text is remembered already: identical, or nearly so.

use std::hash::BuildHasherDefault;

use retrieve::Analyzer;
use rpds::HashTrieMapSync;
use rustc_hash::FxHasher;

use super::{
    fact::{Fact, FactId, FactKind},
    state::MemoryState,
};

type Map<K, V> = HashTrieMapSync<K, V, BuildHasherDefault<FxHasher>>;

/// The live facts by what they say.
///
/// Near duplicates are found exactly, without a look at every fact: two sets of Jaccard overlap of at least
/// `t` share at least `t` times the size of either, so that, both sorted alike, the first
/// `size - ceil(t * size) + 2` features of each hold the two smallest that they share (prefix filtering).
/// Facts are therefore filed under every pair of these.
#[derive(Clone)]
pub(super) struct Duplicates {
    threshold: f64,
    keep_repeats: bool,
    analyzer: Analyzer,
    identical: Map<u64, FactId>,
    similar: Map<u64, Vec<FactId>>,
}

/// What a text is compared by.
pub(super) struct Features {
    identity: u64,
    /// Hashes of its words and of its pairs of neighbouring words, ascending, each once.
    shingles: Vec<u64>,
    /// Its terms with digits, ascending.
    numbers: Vec<String>,
    /// What it is filed under among the near duplicates.
    keys: Vec<u64>,
}

impl Duplicates {
    pub(super) fn new(threshold: f64, keep_repeats: bool) -> Self {
        Self {
            threshold,
            keep_repeats,
            analyzer: Analyzer::default(),
            identical: Map::new_with_hasher_and_ptr_kind(BuildHasherDefault::default()),
            similar: Map::new_with_hasher_and_ptr_kind(BuildHasherDefault::default()),
        }
    }

    pub(super) fn features(
        &self,
        kind: FactKind,
        text: &str,
        content_hash: &str,
        timestamp: Option<&str>,
    ) -> Features {
        let timestamp = timestamp.filter(|_| self.keep_repeats).unwrap_or_default();
        let place = hash(&[&[kind as u8], timestamp.as_bytes()]);
        let mut features = Features {
            identity: hash(&[&place.to_le_bytes(), content_hash.as_bytes()]),
            shingles: Vec::new(),
            numbers: Vec::new(),
            keys: Vec::new(),
        };
        if self.threshold == 0.0 {
            return features;
        }
        let mut before = 0_u64;
        self.analyzer.for_each_term(text, |term| {
            let word = hash(&[term.as_bytes()]);
            features.shingles.push(word);
            features
                .shingles
                .push(hash(&[&before.to_le_bytes(), &word.to_le_bytes()]));
            before = word;
            if term.contains(|character: char| character.is_numeric()) {
                features.numbers.push(term.to_owned());
            }
        });
        features.numbers.sort();
        features.shingles.sort_unstable();
        features.shingles.dedup();
        let size = features.shingles.len();
        let prefix = &features.shingles[..prefix_len(size, self.threshold)];
        for (index, first) in prefix.iter().enumerate() {
            for second in &prefix[index + 1..] {
                let key = [place, *first, *second].map(u64::to_le_bytes);
                features.keys.push(hash(&[&key[0], &key[1], &key[2]]));
            }
        }
        features
    }

    /// The fact of `state` that says the same, or nearly the same; the identical one first, else the one of
    /// the highest overlap, among equals the oldest.
    pub(super) fn find(
        &self,
        state: &MemoryState,
        features: &Features,
        kind: FactKind,
        text: &str,
    ) -> Option<FactId> {
        if let Some(id) = self.identical(state, features, kind, text) {
            return Some(id);
        }
        let mut candidates: Vec<FactId> = features
            .keys
            .iter()
            .filter_map(|key| self.similar.get(key))
            .flatten()
            .copied()
            .collect();
        candidates.sort_unstable();
        candidates.dedup();
        let mut best: Option<(f64, FactId)> = None;
        for id in candidates {
            let Some(fact) = state.fact(id) else { continue };
            let other = self.of_fact(fact);
            let overlap = jaccard(&features.shingles, &other.shingles);
            if overlap >= self.threshold
                && other.numbers == features.numbers
                && best.is_none_or(|(highest, _)| overlap > highest)
            {
                best = Some((overlap, id));
            }
        }
        best.map(|(_, id)| id)
    }

    /// The fact of `state` that has this very text.
    pub(super) fn identical(
        &self,
        state: &MemoryState,
        features: &Features,
        kind: FactKind,
        text: &str,
    ) -> Option<FactId> {
        let id = *self.identical.get(&features.identity)?;
        let fact = state.fact(id)?;
        (fact.text == text && fact.kind == kind).then_some(id)
    }

    pub(super) fn insert(&mut self, id: FactId, features: &Features) {
        self.identical.insert_mut(features.identity, id);
        for key in &features.keys {
            match self.similar.get_mut(key) {
                Some(ids) => ids.push(id),
                None => self.similar.insert_mut(*key, vec![id]),
            }
        }
    }

    pub(super) fn remove(&mut self, fact: &Fact) {
        let features = self.of_fact(fact);
        if self.identical.get(&features.identity) == Some(&fact.id) {
            self.identical.remove_mut(&features.identity);
        }
        for key in &features.keys {
            let Some(ids) = self.similar.get_mut(key) else {
                continue;
            };
            ids.retain(|id| *id != fact.id);
            if ids.is_empty() {
                self.similar.remove_mut(key);
            }
        }
    }

    fn of_fact(&self, fact: &Fact) -> Features {
        self.features(
            fact.kind,
            &fact.text,
            &fact.content_hash,
            fact.timestamp.as_deref(),
        )
    }
}

/// How many of the `size` smallest features hold the two smallest that are shared with any set of overlap
/// `threshold` or more. A rounding error of the product would only lengthen it.
fn prefix_len(size: usize, threshold: f64) -> usize {
    let shared = (threshold * size as f64 - 1e-9).ceil() as usize;
    (size - shared.min(size) + 2).min(size)
}

fn jaccard(one: &[u64], other: &[u64]) -> f64 {
    let (mut at, mut shared) = (0, 0_usize);
    for hash in one {
        while at < other.len() && other[at] < *hash {
            at += 1;
        }
        if other.get(at) == Some(hash) {
            shared += 1;
        }
    }
    let all = one.len() + other.len() - shared;
    if all == 0 {
        0.0
    } else {
        shared as f64 / all as f64
    }
}

/// FNV-1a over the parts, finished so that the order of hashes says nothing about that of texts.
fn hash(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in parts.iter().copied().flatten() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
