//! Ranking of short texts (spec of the recall study, section 6): BM25, dense vectors and the fusion of their lists.
//! Indices are values: a clone is a snapshot that shares what is frozen and is never changed by the other. Pure.

mod analyzer;
mod bm25;
mod dense;
mod embedder;
mod fusion;
mod hash;
mod layers;
mod ranking;
mod rerank;

pub use analyzer::{Analyzer, Stemming, UnspacedText};
pub use bm25::{Bm25Config, Bm25Index, ConfigError};
pub use dense::{DenseError, DenseIndex};
pub use embedder::{EmbedError, Embedder, HashedEmbedder};
pub use fusion::{AdditiveFusion, reciprocal_rank_fusion, z_score_fusion};
pub use ranking::{DocId, Scored};
pub use rerank::{maximal_marginal_relevance, recency_decay};
