//! The postings of a layer: for each term, the places of the documents that have it and how often.

use std::ops::Range;

use crate::layers::{Frozen, Part};

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

impl Document {
    pub(crate) fn new(length: u32, mut terms: Vec<(Term, u32)>) -> Self {
        terms.sort_by(|(a, _), (b, _)| (a.hash, &a.text).cmp(&(b.hash, &b.text)));
        let mut text = String::new();
        let terms = terms
            .iter()
            .map(|(term, count)| {
                text.push_str(&term.text);
                DocumentTerm {
                    hash: term.hash,
                    count: *count,
                    end: text.len(),
                }
            })
            .collect();
        Self {
            length,
            text,
            terms,
        }
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
        for part in parts {
            let lengths = part.content.lengths.iter().zip(&part.places);
            let kept = lengths.filter(|(_, place)| place.is_some());
            postings.lengths.extend(kept.map(|(length, _)| *length));
        }
        // Terms of the parts in step, least first.
        let mut heads = vec![0; parts.len()];
        let head = |part: usize, at: usize| {
            let content = parts[part].content;
            content.hashes.get(at).map(|hash| (*hash, content.text(at)))
        };
        while let Some((hash, text)) = (0..parts.len())
            .filter_map(|part| head(part, heads[part]))
            .min()
        {
            postings.begin_term(hash, text);
            for (part, at) in heads.iter_mut().enumerate() {
                if head(part, *at) != Some((hash, text)) {
                    continue;
                }
                let Part { content, places } = &parts[part];
                for posting in content.postings(*at) {
                    if let Some(place) = places[usize::from(content.places[posting])] {
                        postings.push(place, content.counts[posting]);
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
