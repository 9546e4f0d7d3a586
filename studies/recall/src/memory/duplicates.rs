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
/// Near duplicates are found exactly, without a look at every fact. Two sets of Jaccard overlap of at least `t`
/// differ in at most `d = (1 - t) / t * size` elements, whichever of the two sizes is taken. So, of `d + 1`
/// parts that elements are divided into by their hashes, one is the same in both; a fact is filed under each
/// of its parts, and whatever may be near it is found under one of its own.
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
    /// Its store, and under `keep_repeats` its time.
    place: u64,
    identity: u64,
    /// Hashes of its words and of its pairs of neighbouring words, ascending, each once.
    shingles: Vec<u64>,
    /// The sum of the hashes of its words with digits.
    numbers: u64,
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
            place,
            identity: hash(&[&place.to_le_bytes(), content_hash.as_bytes()]),
            shingles: Vec::new(),
            numbers: 0,
        };
        if self.threshold == 0.0 {
            return features;
        }
        let mut before = 0_u64;
        self.analyzer.for_each_term(text, |term| {
            let word = hash(&[term.as_bytes()]);
            features.shingles.push(word);
            features.shingles.push(mix(before.rotate_left(1) ^ word));
            before = word;
            if term.contains(char::is_numeric) {
                features.numbers = features.numbers.wrapping_add(mix(word));
            }
        });
        features.shingles.sort_unstable();
        features.shingles.dedup();
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
        let mut candidates = Vec::new();
        let size = features.shingles.len() as f64;
        let (least, most) = (size * self.threshold, size / self.threshold);
        for parts in self.parts(least as usize)..=self.parts(most as usize + 1) {
            for key in features.keys(parts) {
                candidates.extend(self.similar.get(&key).into_iter().flatten().copied());
            }
        }
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
        for key in features.keys(self.parts(features.shingles.len())) {
            match self.similar.get_mut(&key) {
                Some(ids) => ids.push(id),
                None => self.similar.insert_mut(key, vec![id]),
            }
        }
    }

    pub(super) fn remove(&mut self, fact: &Fact) {
        let features = self.of_fact(fact);
        if self.identical.get(&features.identity) == Some(&fact.id) {
            self.identical.remove_mut(&features.identity);
        }
        for key in features.keys(self.parts(features.shingles.len())) {
            let Some(ids) = self.similar.get_mut(&key) else {
                continue;
            };
            ids.retain(|id| *id != fact.id);
            if ids.is_empty() {
                self.similar.remove_mut(&key);
            }
        }
    }

    /// Into how many parts a fact of so many shingles is divided; none where only identical texts count.
    fn parts(&self, size: usize) -> usize {
        if self.threshold == 0.0 || size == 0 {
            return 0;
        }
        let differing = (1.0 - self.threshold) / self.threshold * size as f64;
        // A product that is rounded down would lose a part; one that is rounded up costs little.
        (differing + 1e-9) as usize + 1
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

impl Features {
    /// What it is filed under when it is divided into so many parts.
    fn keys(&self, parts: usize) -> Vec<u64> {
        let mut keys: Vec<u64> = (0..parts as u64)
            .map(|part| mix(self.place ^ mix(((parts as u64) << 32) | part)))
            .collect();
        for shingle in &self.shingles {
            // The high bits of the product say which part, evenly.
            let part = (u128::from(*shingle) * parts as u128) >> 64;
            if let Some(key) = keys.get_mut(part as usize) {
                *key = mix(*key ^ shingle);
            }
        }
        keys
    }
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

/// FNV-1a over the parts, mixed.
fn hash(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in parts.iter().copied().flatten() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    mix(hash)
}

/// Every bit of the result depends on every bit of the value (the finalizer of SplitMix64).
fn mix(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
