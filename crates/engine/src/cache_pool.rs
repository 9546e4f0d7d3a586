//! The memory of all key-value caches: what is in use, what is kept for the next request.

use std::{collections::VecDeque, sync::Arc};

use crate::{
    cache::{CacheShape, KvCache},
    response::Stretch,
};

/// Hands out caches within a budget and takes them back. Prompts come in many lengths, and so do caches:
/// those in use and those kept for the next request together take no more memory than ever was in use at once.
#[derive(Debug)]
pub(crate) struct CachePool {
    budget: usize,
    /// Bytes of the caches that are out; a shared one counts once.
    used: usize,
    /// The largest that `used` has been.
    most: usize,
    /// Caches that came back, for the next of the same shape; those that came first stand first.
    spare: VecDeque<KvCache>,
}

impl CachePool {
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            budget,
            used: 0,
            most: 0,
            spare: VecDeque::new(),
        }
    }

    pub(crate) fn fits(&self, bytes: usize) -> bool {
        self.used + bytes <= self.budget
    }

    /// An empty cache: whatever it holds is overwritten before it is read.
    pub(crate) fn take(&mut self, shape: CacheShape) -> KvCache {
        self.used += shape.bytes();
        self.most = self.most.max(self.used);
        let same = self.spare.iter().position(|cache| cache.shape() == shape);
        if let Some(cache) = same.and_then(|at| self.spare.remove(at)) {
            return cache;
        }
        let mut spare = self.spare_bytes();
        while self.used + spare > self.most
            && let Some(dropped) = self.spare.pop_front()
        {
            spare -= dropped.shape().bytes();
        }
        KvCache::new(shape)
    }

    fn spare_bytes(&self) -> usize {
        let bytes = self.spare.iter().map(|cache| cache.shape().bytes());
        bytes.sum()
    }

    pub(crate) fn give(&mut self, cache: KvCache) {
        self.used -= cache.shape().bytes();
        self.spare.push_back(cache);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelConfig;

    #[test]
    fn caches_of_many_lengths_take_no_more_than_was_in_use_at_once() {
        let config = ModelConfig::qwen2(64, 32, 2, 2);
        let shape = |tokens: usize| CacheShape::new(&config, tokens);
        let mut pool = CachePool::new(usize::MAX);
        for tokens in (64..4096).step_by(64) {
            let caches = [tokens, tokens / 2].map(|tokens| pool.take(shape(tokens)));
            assert_eq!(pool.most, pool.used);
            assert!(pool.used + pool.spare_bytes() <= pool.most);
            caches.into_iter().for_each(|cache| pool.give(cache));
            assert_eq!(pool.used, 0);
        }
        let most = pool.most;
        // What came back is used again, the longest unused of other shapes goes first.
        let kept = shape(2016);
        assert!(pool.spare.iter().any(|cache| cache.shape() == kept));
        let before = pool.spare.len();
        let cache = pool.take(kept);
        assert_eq!(pool.spare.len(), before - 1);
        pool.give(cache);
        let other = pool.take(shape(100));
        assert!(pool.used + pool.spare_bytes() <= most);
        pool.give(other);
        assert_eq!(pool.most, most);
    }
}
