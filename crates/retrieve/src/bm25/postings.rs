//! The postings of a layer: for each term, the places of the documents that have it and how often.

use std::ops::Range;

use crate::{
    Analyzer,
    hash::hash,
    layers::{Frozen, Part, Places},
};

/// The terms of one document as the tail keeps them, ascending by hash, then text.
pub(crate) struct Document {
    /// Terms with repetitions.
    pub(crate) length: u32,
    text: String,
    terms: Vec<DocumentTerm>,
}

struct DocumentTerm {
    hash: u64,
    count: u32,
    end: usize,
}

/// A term to look for.
pub(crate) struct Term {
    pub(crate) hash: u64,
    pub(crate) text: String,
}

pub(crate) struct Postings {
    /// By place, in terms with repetitions.
    lengths: Vec<u32>,
    /// Of each term, ascending; terms of one hash are ascending by text.
    hashes: Vec<u64>,
    /// `directory[top bits of a hash]` is the first term whose hash has at least these bits.
    directory: Vec<usize>,
    /// Of each term: where its text ends in `text`, and its postings in `places` and `counts`.
    text_ends: Vec<usize>,
    posting_ends: Vec<usize>,
    /// Of each term: its highest count in a document, and the least length of a document that has it.
    highest_counts: Vec<u32>,
    least_lengths: Vec<u32>,
    text: String,
    places: Vec<u16>,
    counts: Vec<u32>,
}

/// One term's postings in a layer.
#[derive(Clone, Copy)]
pub(crate) struct PostingList<'a> {
    /// Ascending.
    pub(crate) places: &'a [u16],
    pub(crate) counts: &'a [u32],
    pub(crate) highest_count: u32,
    pub(crate) least_length: u32,
}

impl PostingList<'_> {
    /// How often the document at the place has the term.
    pub(crate) fn count(&self, place: usize) -> u32 {
        let found = u16::try_from(place).map(|place| self.places.binary_search(&place));
        found
            .ok()
            .and_then(Result::ok)
            .map_or(0, |at| self.counts[at])
    }
}

impl Document {
    pub(crate) fn new(analyzer: &Analyzer, text: &str) -> Self {
        // All terms one after the other, then each distinct one once.
        let mut all = String::with_capacity(text.len());
        let mut found: Vec<(u64, Range<usize>)> = Vec::with_capacity(text.len() / 4);
        analyzer.for_each_term(text, |term| {
            let start = all.len();
            all.push_str(term);
            found.push((hash(term.as_bytes()), start..all.len()));
        });
        found.sort_unstable_by(|(a, x), (b, y)| {
            (a.cmp(b)).then_with(|| all[x.clone()].cmp(&all[y.clone()]))
        });
        let mut document = Self {
            length: u32::try_from(found.len()).unwrap_or(u32::MAX),
            text: String::with_capacity(all.len()),
            terms: Vec::with_capacity(found.len()),
        };
        for (hash, range) in found {
            let term = &all[range];
            match document.terms.len().checked_sub(1) {
                Some(last) if document.terms[last].hash == hash && document.text(last) == term => {
                    document.terms[last].count += 1;
                }
                _ => {
                    document.text.push_str(term);
                    document.terms.push(DocumentTerm {
                        hash,
                        count: 1,
                        end: document.text.len(),
                    });
                }
            }
        }
        document
    }

    /// How often the document has the term.
    pub(crate) fn count(&self, term: &Term) -> u32 {
        let start = self.terms.partition_point(|it| it.hash < term.hash);
        (start..self.terms.len())
            .take_while(|at| self.terms[*at].hash == term.hash)
            .find(|at| self.text(*at) == term.text)
            .map_or(0, |at| self.terms[at].count)
    }

    fn text(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(0, |it| self.terms[it].end);
        &self.text[start..self.terms[at].end]
    }
}

impl Postings {
    pub(crate) fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    pub(crate) fn find(&self, term: &Term) -> Option<PostingList<'_>> {
        let bucket = self.bucket(term.hash);
        let range = self.directory[bucket]..self.directory[bucket + 1];
        let at = range
            .into_iter()
            .find(|at| self.hashes[*at] == term.hash && self.text(*at) == term.text)?;
        let postings = self.postings(at);
        Some(PostingList {
            places: &self.places[postings.clone()],
            counts: &self.counts[postings],
            highest_count: self.highest_counts[at],
            least_length: self.least_lengths[at],
        })
    }

    fn new() -> Self {
        Self {
            lengths: Vec::new(),
            hashes: Vec::new(),
            directory: Vec::new(),
            text_ends: Vec::new(),
            posting_ends: Vec::new(),
            highest_counts: Vec::new(),
            least_lengths: Vec::new(),
            text: String::new(),
            places: Vec::new(),
            counts: Vec::new(),
        }
    }

    fn begin_term(&mut self, hash: u64, text: &str) {
        self.hashes.push(hash);
        self.text.push_str(text);
        self.text_ends.push(self.text.len());
        self.posting_ends.push(self.places.len());
        self.highest_counts.push(0);
        self.least_lengths.push(u32::MAX);
    }

    /// Adds a posting to the term begun last.
    fn push(&mut self, place: u16, count: u32) {
        self.places.push(place);
        self.counts.push(count);
        let at = self.hashes.len() - 1;
        self.posting_ends[at] += 1;
        self.highest_counts[at] = self.highest_counts[at].max(count);
        let length = self.lengths[usize::from(place)];
        self.least_lengths[at] = self.least_lengths[at].min(length);
    }

    /// Adds all postings of another's term to the term begun last, `first` places further on.
    fn extend(&mut self, other: &Self, at: usize, first: u16) {
        let postings = other.postings(at);
        let places = &other.places[postings.clone()];
        self.places.extend(places.iter().map(|place| place + first));
        self.counts.extend_from_slice(&other.counts[postings]);
        let last = self.hashes.len() - 1;
        self.posting_ends[last] = self.places.len();
        self.highest_counts[last] = self.highest_counts[last].max(other.highest_counts[at]);
        self.least_lengths[last] = self.least_lengths[last].min(other.least_lengths[at]);
    }

    fn drop_empty_term(&mut self) {
        let empty = self.postings(self.hashes.len() - 1).is_empty();
        if empty {
            self.hashes.pop();
            self.text_ends.pop();
            self.posting_ends.pop();
            self.highest_counts.pop();
            self.least_lengths.pop();
            let end = self.text_ends.last().copied().unwrap_or(0);
            self.text.truncate(end);
        }
    }

    /// To be called when all terms are in.
    fn index_hashes(&mut self) {
        let buckets = self.hashes.len().next_power_of_two();
        self.directory = vec![0; buckets + 1];
        let mut at = 0;
        for bucket in 0..=buckets {
            while at < self.hashes.len() && self.bucket(self.hashes[at]) < bucket {
                at += 1;
            }
            self.directory[bucket] = at;
        }
    }

    fn bucket(&self, hash: u64) -> usize {
        let bits = (self.directory.len() - 1).trailing_zeros();
        // A shift by all 64 bits is none.
        hash.checked_shr(64 - bits).unwrap_or(0) as usize
    }

    fn text(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(0, |it| self.text_ends[it]);
        &self.text[start..self.text_ends[at]]
    }

    fn postings(&self, at: usize) -> Range<usize> {
        let start = at.checked_sub(1).map_or(0, |it| self.posting_ends[it]);
        start..self.posting_ends[at]
    }
}

impl Frozen for Postings {
    type Entry = Document;

    fn freeze<'a>(entries: impl Iterator<Item = &'a Document>) -> Self {
        let mut postings = Self::new();
        let mut all: Vec<(u64, &str, u16, u32)> = Vec::new();
        for (place, document) in (0..=u16::MAX).zip(entries) {
            postings.lengths.push(document.length);
            all.extend(
                (document.terms.iter().enumerate())
                    .map(|(at, term)| (term.hash, document.text(at), place, term.count)),
            );
        }
        all.sort_unstable();
        let mut last = None;
        for (hash, text, place, count) in all {
            if last.replace((hash, text)) != Some((hash, text)) {
                postings.begin_term(hash, text);
            }
            postings.push(place, count);
        }
        postings.index_hashes();
        postings
    }

    fn merge(parts: &[Part<'_, Self>]) -> Self {
        let mut postings = Self::new();
        for Part { content, places } in parts {
            match places {
                Places::From(_) => postings.lengths.extend_from_slice(&content.lengths),
                Places::Each(places) => {
                    let all = content.lengths.iter().zip(places);
                    let kept = all.filter(|(_, place)| place.is_some());
                    postings.lengths.extend(kept.map(|(length, _)| *length));
                }
            }
        }
        // Terms of the parts in step, least first.
        let mut heads = vec![0; parts.len()];
        let hash_at = |part: usize, at: usize| parts[part].content.hashes.get(at).copied();
        while let Some(hash) = (0..parts.len())
            .filter_map(|part| hash_at(part, heads[part]))
            .min()
        {
            let text = (0..parts.len())
                .filter(|part| hash_at(*part, heads[*part]) == Some(hash))
                .map(|part| parts[part].content.text(heads[part]))
                .min()
                .unwrap_or_default();
            postings.begin_term(hash, text);
            for (part, at) in heads.iter_mut().enumerate() {
                let Part { content, places } = &parts[part];
                if hash_at(part, *at) != Some(hash) || content.text(*at) != text {
                    continue;
                }
                match places {
                    Places::From(first) => postings.extend(content, *at, *first),
                    Places::Each(places) => {
                        for posting in content.postings(*at) {
                            if let Some(place) = places[usize::from(content.places[posting])] {
                                postings.push(place, content.counts[posting]);
                            }
                        }
                    }
                }
                *at += 1;
            }
            postings.drop_empty_term();
        }
        postings.index_hashes();
        postings
    }

    fn weight(&self, place: usize) -> u64 {
        u64::from(self.lengths[place])
    }

    fn entry_weight(entry: &Document) -> u64 {
        u64::from(entry.length)
    }
}
