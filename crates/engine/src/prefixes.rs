//! Sequences whose keys and values are at hand: of requests in flight, and of those answered last.
//!
//! A request that begins as one of them does is run from where they part: the samples of one prompt,
//! prompts with one system message, the turns of a growing conversation. What is reused was computed
//! from the same tokens with the same weights by the same additions, so no answer depends on it.

use std::{cmp::Reverse, sync::Arc};

use record::TokenId;

use crate::{
    Model,
    cache_pool::CachePool,
    response::{Stretch, path_len},
};

/// The least number of tokens for which a prompt is cut in two, which must also be a quarter of it.
const WORTH: usize = 16;

/// The known sequences.
#[derive(Debug, Default)]
pub(crate) struct Prefixes {
    known: Vec<Known>,
    /// Counts up with every use.
    now: u64,
}

#[derive(Debug)]
struct Known {
    weights: Arc<Model>,
    tokens: Vec<TokenId>,
    /// As long as `tokens`.
    path: Vec<Stretch>,
    used: u64,
}

impl Known {
    /// Nobody runs on its last part, so that forgetting it frees memory.
    fn is_idle(&self) -> bool {
        let last = self.path.last();
        last.is_none_or(|last| Arc::strong_count(&last.cache) == 1)
    }

    /// Its memory: of what several hold, an equal share, so that nothing is left out and nothing counts twice.
    fn bytes(&self) -> usize {
        let parts = self.path.iter();
        parts
            .map(|part| part.cache.shape().bytes() / Arc::strong_count(&part.cache).max(1))
            .sum()
    }
}

/// Tokens at the beginning of both.
pub(crate) fn common(one: &[TokenId], other: &[TokenId]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// Whether so many tokens of a prompt are worth reusing.
pub(crate) fn is_worth(common: usize, prompt: usize) -> bool {
    common == prompt || (common >= WORTH && 4 * common >= prompt)
}

impl Prefixes {
    /// The longest known beginning of `prompt` under these weights that is worth reusing; empty if
    /// there is none.
    pub(crate) fn longest(&mut self, weights: &Arc<Model>, prompt: &[TokenId]) -> Vec<Stretch> {
        self.now += 1;
        let candidates = self
            .known
            .iter_mut()
            .filter(|known| Arc::ptr_eq(&known.weights, weights));
        let candidates = candidates.map(|known| (common(&known.tokens, prompt), known));
        match candidates.max_by_key(|(common, known)| (*common, Reverse(known.path.len()))) {
            Some((common, known)) if common > 0 && is_worth(common, prompt.len()) => {
                known.used = self.now;
                cut(&known.path, common)
            }
            _ => Vec::new(),
        }
    }

    /// Remembers a sequence, in place of those that it goes on from.
    pub(crate) fn remember(
        &mut self,
        weights: &Arc<Model>,
        tokens: Vec<TokenId>,
        path: Vec<Stretch>,
        pool: &mut CachePool,
    ) {
        self.now += 1;
        let goes_on = |known: &mut Known| {
            Arc::ptr_eq(&known.weights, weights) && tokens.starts_with(&known.tokens)
        };
        let replaced: Vec<Known> = self.known.extract_if(.., goes_on).collect();
        self.known.push(Known {
            weights: Arc::clone(weights),
            tokens,
            path,
            used: self.now,
        });
        for known in replaced {
            pool.release(known.path);
        }
    }

    /// Forgets what nobody uses, the longest unused first, until `enough` says so.
    pub(crate) fn forget(
        &mut self,
        pool: &mut CachePool,
        enough: impl Fn(&CachePool, usize) -> bool,
    ) {
        while !enough(pool, self.idle_bytes()) {
            let idle = self.known.iter().enumerate();
            let idle = idle.filter(|(_, known)| known.is_idle());
            let Some((oldest, _)) = idle.min_by_key(|(_, known)| known.used) else {
                return;
            };
            let known = self.known.swap_remove(oldest);
            pool.release(known.path);
        }
    }

    /// Memory of what nobody uses.
    fn idle_bytes(&self) -> usize {
        let idle = self.known.iter().filter(|known| known.is_idle());
        idle.map(Known::bytes).sum()
    }

    /// Forgets all sequences under other weights than these.
    pub(crate) fn retain(&mut self, pool: &mut CachePool, weights: &[&Arc<Model>]) {
        let outdated =
            |known: &mut Known| !weights.iter().any(|kept| Arc::ptr_eq(kept, &known.weights));
        let outdated: Vec<Known> = self.known.extract_if(.., outdated).collect();
        for known in outdated {
            pool.release(known.path);
        }
    }
}

/// The first `tokens` tokens of a path.
pub(crate) fn cut(path: &[Stretch], tokens: usize) -> Vec<Stretch> {
    let mut rest = tokens;
    let mut beginning = Vec::new();
    for stretch in path {
        if rest == 0 {
            break;
        }
        let tokens = stretch.tokens.min(rest);
        rest -= tokens;
        beginning.push(Stretch {
            cache: Arc::clone(&stretch.cache),
            tokens,
        });
    }
    debug_assert_eq!(path_len(&beginning), tokens);
    beginning
}

#[cfg(test)]
mod tests {
    use record::Seed;

    use super::*;
    use crate::{Initializer, ModelConfig, cache::CacheShape};

    #[test]
    fn all_memory_of_what_nobody_uses_counts_once() {
        let config = ModelConfig::qwen2(64, 32, 2, 2);
        let (asked, said) = (64, 16);
        let [of_prompt, of_answer] =
            [asked, said].map(|tokens| CacheShape::new(&config, tokens).bytes());
        let part = |pool: &mut CachePool, tokens: usize| Stretch {
            cache: Arc::new(pool.take(CacheShape::new(&config, tokens))),
            tokens,
        };
        let weights = Arc::new(Model::new(config.clone(), Initializer::Normal, Seed(0)).unwrap());
        let mut pool = CachePool::new(usize::MAX);
        let mut prefixes = Prefixes::default();
        let prompt = part(&mut pool, asked);
        prefixes.remember(&weights, vec![1; asked], vec![prompt.clone()], &mut pool);
        for answer in [2, 3] {
            let path = vec![prompt.clone(), part(&mut pool, said)];
            let tokens = [vec![1; asked], vec![answer; said]].concat();
            prefixes.remember(&weights, tokens, path, &mut pool);
        }
        drop(prompt);
        assert_eq!(prefixes.idle_bytes(), of_prompt + 2 * of_answer);
        let most = of_prompt + of_answer;
        prefixes.forget(&mut pool, |_, idle| idle <= most);
        assert_eq!(prefixes.idle_bytes(), most);
        prefixes.forget(&mut pool, |_, idle| idle < most);
        assert_eq!(prefixes.idle_bytes(), 0);
    }
}
