//! The memory of all key-value caches: what is in use, what is kept for the next request.

use std::sync::Arc;

use crate::{
    cache::{CacheShape, KvCache},
    response::Stretch,
};

/// Hands out caches within a budget and takes them back.
#[derive(Debug)]
pub(crate) struct CachePool {
    budget: usize,
    /// Bytes of the caches that are out; a shared one counts once.
    used: usize,
    /// Caches that came back, for the next of the same shape.
    spare: Vec<KvCache>,
}

impl CachePool {
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            budget,
            used: 0,
            spare: Vec::new(),
        }
    }

    pub(crate) fn fits(&self, bytes: usize) -> bool {
        self.used + bytes <= self.budget
    }

    /// An empty cache: whatever it holds is overwritten before it is read.
    pub(crate) fn take(&mut self, shape: CacheShape) -> KvCache {
        self.used += shape.bytes();
        if let Some(at) = self.spare.iter().position(|cache| cache.shape() == shape) {
            return self.spare.swap_remove(at);
        }
        let mut spare: usize = self.spare.iter().map(|cache| cache.shape().bytes()).sum();
        while self.used + spare > self.budget
            && let Some(dropped) = self.spare.pop()
        {
            spare -= dropped.shape().bytes();
        }
        KvCache::new(shape)
    }

    pub(crate) fn give(&mut self, cache: KvCache) {
        self.used -= cache.shape().bytes();
        self.spare.push(cache);
    }

    /// Takes back those caches of a path that nobody else holds.
    pub(crate) fn release(&mut self, path: Vec<Stretch>) {
        for cache in path.into_iter().filter_map(|at| Arc::into_inner(at.cache)) {
            self.give(cache);
        }
    }

    /// The same first tokens in a cache that has no more room than they need.
    pub(crate) fn shrink(&mut self, cache: KvCache, tokens: usize) -> KvCache {
        let shape = cache.shape().with_tokens(tokens);
        if shape == cache.shape() {
            return cache;
        }
        let mut small = self.take(shape);
        cache.copy_into(&mut small);
        self.give(cache);
        small
    }
}
