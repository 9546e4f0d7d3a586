//! Exact nearest neighbours among unit vectors.

use std::fmt;

use thiserror::Error;

use crate::{
    layers::{Frozen, Layers, Part, Places},
    ranking::{Best, Candidate, DocId, Scored},
};

/// Vectors of live documents, searched by exact dot product.
///
/// Vectors are scaled to length 1 when they enter, so a score is the cosine. A clone is a snapshot, as cheap as
/// that of [`Bm25Index`](crate::Bm25Index). Additions have one order: scores depend neither on the machine's vector
/// width nor on the documents around.
#[derive(Clone)]
pub struct DenseIndex {
    dimension: usize,
    documents: Layers<Vectors>,
}

/// A vector that cannot be indexed or looked for.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum DenseError {
    #[error(
        "a vector has {found} numbers where the index has {expected}; one embedder must make both"
    )]
    Dimension { expected: usize, found: usize },
    #[error("number {position} of a vector is {value}; an embedding must be finite")]
    NotFinite { position: usize, value: f32 },
    #[error(
        "a vector is zero, so it has no direction; the embedder should have reported a failure"
    )]
    Zero,
}

impl fmt::Debug for DenseIndex {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("DenseIndex");
        shown
            .field("dimension", &self.dimension)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl DenseIndex {
    /// An empty index of vectors of `dimension` numbers.
    pub fn new(dimension: usize) -> Self {
        Self {
            dimension,
            documents: Layers::new(),
        }
    }

    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Adds a document as the most recent one, in place of the live document of that id if there is one.
    ///
    /// # Errors
    /// A vector of another dimension, zero, or not finite; the index is as before.
    pub fn insert(&mut self, doc: DocId, vector: &[f32]) -> Result<(), DenseError> {
        let unit = self.unit(vector)?;
        self.documents.insert(doc, unit);
        Ok(())
    }

    /// Removes a document; false if no live one has the id.
    pub fn remove(&mut self, doc: DocId) -> bool {
        self.documents.remove(doc)
    }

    pub fn contains(&self, doc: DocId) -> bool {
        self.documents.contains(doc)
    }

    /// The number of live documents.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `k` documents of highest cosine, best first; among equals the one inserted last.
    ///
    /// # Errors
    /// As [`DenseIndex::insert`].
    pub fn search(&self, vector: &[f32], k: usize) -> Result<Vec<Scored>, DenseError> {
        self.search_where(vector, k, |_| true)
    }

    /// The best `k` of the documents that `keep` accepts.
    ///
    /// # Errors
    /// As [`DenseIndex::insert`].
    pub fn search_where(
        &self,
        vector: &[f32],
        k: usize,
        keep: impl Fn(DocId) -> bool,
    ) -> Result<Vec<Scored>, DenseError> {
        let query = self.unit(vector)?;
        let mut best = Best::new(k);
        let mut offer = |candidate: Candidate| {
            if best.would_take(&candidate) && keep(candidate.doc) {
                best.offer(candidate);
            }
        };
        for document in self.documents.tail() {
            offer(Candidate {
                score: f64::from(dot(&query, &document.entry)),
                sequence: document.sequence,
                doc: document.doc,
            });
        }
        for layer in self.documents.layers() {
            let block = layer.block();
            for (place, row) in (block.content.rows.chunks_exact(self.dimension)).enumerate() {
                if layer.is_live(place) {
                    offer(Candidate {
                        score: f64::from(dot(&query, row)),
                        sequence: block.sequence(place),
                        doc: block.id(place),
                    });
                }
            }
        }
        Ok(best.into_list())
    }

    fn unit(&self, vector: &[f32]) -> Result<Vec<f32>, DenseError> {
        if vector.len() != self.dimension {
            return Err(DenseError::Dimension {
                expected: self.dimension,
                found: vector.len(),
            });
        }
        if let Some(position) = vector.iter().position(|it| !it.is_finite()) {
            return Err(DenseError::NotFinite {
                position,
                value: vector[position],
            });
        }
        unit(vector).ok_or(DenseError::Zero)
    }
}

/// The vector scaled to length 1; `None` of zero.
pub(crate) fn unit(vector: &[f32]) -> Option<Vec<f32>> {
    let square: f64 = vector.iter().map(|it| f64::from(*it).powi(2)).sum();
    let scale = 1.0 / square.sqrt();
    let scaled = |it: &f32| (f64::from(*it) * scale) as f32;
    (0.0 < square).then(|| vector.iter().map(scaled).collect())
}

/// Sixteen running sums, added pairwise at the end: independent chains that compilers turn into vector code of any
/// width without changing a bit.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut sums = [0.0_f32; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a.remainder().iter().zip(b.remainder());
    for (a, b) in a.zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    for (lane, (a, b)) in rest.enumerate() {
        sums[lane] += a * b;
    }
    let mut width = LANES;
    while 1 < width {
        width /= 2;
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
    }
    sums[0]
}

/// The vectors of a layer, one after the other. A vector weighs as its numbers do, which keeps layers small: nothing
/// is gained by large ones, and snapshots that each merge a layer each have a copy of it.
struct Vectors {
    dimension: usize,
    rows: Vec<f32>,
}

impl Frozen for Vectors {
    type Entry = Vec<f32>;

    fn freeze<'a>(entries: impl Iterator<Item = &'a Vec<f32>>) -> Self {
        let mut vectors = Self {
            dimension: 0,
            rows: Vec::new(),
        };
        for entry in entries {
            vectors.dimension = entry.len();
            vectors.rows.extend_from_slice(entry);
        }
        vectors
    }

    fn merge(parts: &[Part<'_, Self>]) -> Self {
        let mut merged = Self {
            dimension: parts.first().map_or(0, |it| it.content.dimension),
            rows: Vec::new(),
        };
        for Part { content, places } in parts {
            match places {
                Places::From(_) => merged.rows.extend_from_slice(&content.rows),
                Places::Each(places) => {
                    let all = content.rows.chunks_exact(content.dimension).zip(places);
                    for (row, _) in all.filter(|(_, place)| place.is_some()) {
                        merged.rows.extend_from_slice(row);
                    }
                }
            }
        }
        merged
    }

    fn weight(&self, _: usize) -> u64 {
        self.dimension as u64
    }

    fn entry_weight(entry: &Vec<f32>) -> u64 {
        entry.len() as u64
    }
}
