//! Dropout of the inputs of adapters, from named streams.
//!
//! The mask of a token is a function of the seed, of the tokens up to and including it, and of the layer
//! and product: it depends neither on how a batch is cut nor on the number of threads, and rows that
//! begin alike have equal masks there, so that their common beginning can be run once. Matrices that are
//! multiplied as one (`q`, `k`, `v`; `gate`, `up`) share their mask.

use rand_chacha::rand_core::Rng;
use record::Seed;

use super::layout::ProductLayout;
use crate::{batch::Pack, buffer::Buffer};

/// The masks of one pack.
#[derive(Debug)]
pub(crate) struct Dropout {
    /// Of the masks of each token of the pack.
    tokens: Vec<Seed>,
    /// The same for the queries of the pack.
    queries: Vec<Seed>,
    /// A 32-bit draw below it drops.
    threshold: u32,
    /// What is kept is multiplied with it.
    factor: f32,
}

impl Dropout {
    pub(crate) fn new(pack: &Pack, probability: f64, seed: Seed) -> Self {
        let mut tokens: Vec<Seed> = Vec::with_capacity(pack.tokens.len());
        let mut queries = Vec::with_capacity(pack.queries.len());
        for row in &pack.rows {
            // A prefix comes before the rows that share it.
            let mut last = row.prefix.clone().next_back().map_or(seed, |at| tokens[at]);
            for &token in &pack.tokens[row.tokens.clone()] {
                last = last.stream("dropout", u64::from(token));
                tokens.push(last);
            }
            for &position in &pack.queries[row.queries.clone()] {
                let at = row.tokens.start + position as usize - row.prefix.len();
                queries.push(tokens[at]);
            }
        }
        Self {
            tokens,
            queries,
            threshold: (probability * f64::from(u32::MAX)) as u32,
            factor: (1.0 / (1.0 - probability)) as f32,
        }
    }

    /// `out = mask · x / (1 - p)` for rows of inputs of a product.
    pub(crate) fn apply<'a>(
        &self,
        layout: &ProductLayout,
        at_queries: bool,
        x: &[f32],
        out: &'a mut Buffer,
    ) -> &'a [f32] {
        let out = out.sized(x.len());
        out.copy_from_slice(x);
        self.mask(layout, at_queries, out);
        out
    }

    /// `x = mask · x / (1 - p)`
    pub(crate) fn mask(&self, layout: &ProductLayout, at_queries: bool, x: &mut [f32]) {
        const NAMES: [&str; 4] = ["qkv", "output", "gate_up", "down"];
        let name = NAMES[layout.product as usize];
        let seeds = if at_queries {
            &self.queries
        } else {
            &self.tokens
        };
        for (x, seed) in x.chunks_exact_mut(layout.inputs).zip(seeds) {
            let mut rng = seed.stream(name, layout.layer as u64).rng();
            for x in x {
                let kept = rng.next_u32() >= self.threshold;
                *x = if kept { *x * self.factor } else { 0.0 };
            }
        }
    }
}
