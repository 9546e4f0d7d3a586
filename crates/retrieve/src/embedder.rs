//! Text to vectors: the trait of embedders, and one that needs no model.

use thiserror::Error;

use crate::{Analyzer, dense::unit};

/// Makes vectors of texts.
pub trait Embedder: Send + Sync {
    /// One vector of [`Embedder::dimension`] numbers for each text, in order.
    ///
    /// # Errors
    /// Whatever keeps a text from its vector. A failure is never a zero vector: that would be found, or not,
    /// as if it were a meaning.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;

    fn dimension(&self) -> usize;
}

/// Why texts have no vectors.
#[derive(Debug, Error)]
pub enum EmbedError {
    #[error("text {position} is empty; there is nothing to embed")]
    Empty { position: usize },
    #[error("the embedder failed: {0}")]
    Failed(#[from] Box<dyn std::error::Error + Send + Sync>),
}

/// An embedder without a model: words and the character trigrams inside them, hashed to signed coordinates.
///
/// It is deterministic and fast, and it sees spelling, not meaning: forms of a word and misspellings lie close
/// together, synonyms do not (feature hashing: Weinberger and others, "Feature Hashing for Large Scale Multitask
/// Learning", 2009). Beside BM25 it adds tolerance to inflection and typing errors. For meaning, bring a model as an
/// [`Embedder`].
#[derive(Clone, Debug)]
pub struct HashedEmbedder {
    dimension: usize,
    analyzer: Analyzer,
}

impl HashedEmbedder {
    /// Vectors of `dimension` numbers, at least 1; 256 and more keep collisions rare in short texts.
    pub fn new(dimension: usize, analyzer: Analyzer) -> Self {
        Self {
            dimension: dimension.max(1),
            analyzer,
        }
    }

    fn embed_one(&self, text: &str) -> Option<Vec<f32>> {
        let mut vector = vec![0.0_f32; self.dimension];
        let mut add = |kind: u8, feature: &[char], weight: f32| {
            let hash = feature_hash(kind, feature);
            // Coordinate and sign from different bits.
            let at = (hash >> 1) as usize % vector.len();
            vector[at] += if hash & 1 == 0 { weight } else { -weight };
        };
        self.analyzer.for_each_term(text, |term| {
            let letters: Vec<char> = format!("^{term}$").chars().collect();
            add(WORD, &letters, 1.0);
            // All trigrams of a word weigh as much as the word itself.
            let trigrams = letters.windows(3);
            let weight = 1.0 / (trigrams.len() as f32).sqrt();
            for trigram in trigrams {
                add(TRIGRAM, trigram, weight);
            }
        });
        // Signs that cancel each other, and texts of signs only, leave nothing: then the text is one feature.
        unit(&vector).or_else(|| {
            let letters: Vec<char> = text.trim().chars().collect();
            let mut vector = vec![0.0; self.dimension];
            vector[(feature_hash(TEXT, &letters) >> 1) as usize % self.dimension] = 1.0;
            (!letters.is_empty()).then_some(vector)
        })
    }
}

impl Embedder for HashedEmbedder {
    /// Unit vectors.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let embedded = texts
            .iter()
            .enumerate()
            .map(|(position, text)| self.embed_one(text).ok_or(EmbedError::Empty { position }));
        embedded.collect()
    }

    fn dimension(&self) -> usize {
        self.dimension
    }
}

const WORD: u8 = 0;
const TRIGRAM: u8 = 1;
const TEXT: u8 = 2;

fn feature_hash(kind: u8, feature: &[char]) -> u64 {
    let mut bytes = vec![kind];
    let mut buffer = [0; 4];
    for letter in feature {
        bytes.extend_from_slice(letter.encode_utf8(&mut buffer).as_bytes());
    }
    crate::hash::hash(&bytes)
}
