//! From waiting to running: which requests fit, and how much of their prompts is known already.

use std::sync::{Arc, atomic::Ordering};

use rayon::prelude::*;
use record::TokenId;

use crate::{
    Model,
    cache::{CacheShape, KvCache},
    decode,
    prefixes::{common, cut, is_worth},
    response::{Stretch, path_len},
    scheduler::{Scheduler, Waiting},
};

/// A prompt to be run behind what is known of it.
struct Fresh {
    weights: Arc<Model>,
    /// The prompt without its last token.
    prompt: Vec<TokenId>,
    known: Vec<Stretch>,
    cache: KvCache,
}

/// Where the prompt of an admitted request is.
enum Prompt {
    Known(Vec<Stretch>),
    /// The first so many tokens of a prompt of this round, by its index.
    Fresh(usize, usize),
}

/// Why a round of admission ended.
#[derive(PartialEq, Eq)]
enum Ended {
    /// Nobody waits, or nobody fits.
    Full,
    /// The next prompt goes on from one that this round runs.
    Dependent,
}

impl Waiting {
    /// The part of the prompt that is run before the response; its last token is fed with it.
    pub(crate) fn known_prompt(&self) -> &[TokenId] {
        let prompt = self.request.prompt.split_last();
        prompt.map_or(&[], |(_, known)| known)
    }

    pub(crate) fn last_of_prompt(&self) -> TokenId {
        self.request.prompt.last().copied().unwrap_or_default()
    }

    /// The response, whose last token is never fed, but the last of the prompt is.
    pub(crate) fn own_shape(&self) -> CacheShape {
        CacheShape::new(self.published.weights.config(), self.limit)
    }

    fn prompt_shape(&self, known: usize) -> CacheShape {
        let tokens = self.known_prompt().len() - known;
        CacheShape::new(self.published.weights.config(), tokens)
    }
}

impl Scheduler {
    /// Moves requests from `waiting` to `running` while there is room, in order, and brings their
    /// prompts into caches: shared where another request has the same, else run.
    pub(crate) fn admit(&mut self) {
        let mut prefill_tokens = 0;
        while self.admit_round(&mut prefill_tokens) == Ended::Dependent {}
    }

    fn admit_round(&mut self, prefill_tokens: &mut usize) -> Ended {
        let mut admitted: Vec<(Waiting, Prompt)> = Vec::new();
        let mut fresh: Vec<Fresh> = Vec::new();
        // Promised to the admitted, so that the next request sees what is left.
        let mut promised = 0;
        let mut ended = Ended::Full;
        while let Some(next) = self.waiting.pop_front() {
            if self.running.len() + admitted.len() >= self.options.max_sequences.max(1) {
                self.waiting.push_front(next);
                break;
            }
            let prompt = next.known_prompt();
            let in_round = best_in_round(&fresh, &next);
            let mut known = match in_round {
                Some((_, common)) if common == prompt.len() => Vec::new(),
                _ => self.prefixes.longest(&next.published.weights, prompt),
            };
            let known_len = path_len(&known);
            let shares = in_round.filter(|&(_, common)| common == prompt.len());
            let depends = in_round.is_some_and(|(_, common)| {
                2 * common.saturating_sub(known_len) >= prompt.len()
                    && is_worth(common, prompt.len())
            });
            if shares.is_none() && depends {
                self.pool.release(known);
                self.waiting.push_front(next);
                ended = Ended::Dependent;
                break;
            }
            let needs_run = shares.is_none() && known_len < prompt.len();
            let run = if needs_run {
                prompt.len() - known_len
            } else {
                0
            };
            let full = *prefill_tokens > 0 && *prefill_tokens + run > self.options.prefill_tokens;
            let mut bytes = next.own_shape().bytes();
            if needs_run {
                bytes += next.prompt_shape(known_len).bytes();
            }
            if full || !self.make_room(promised + bytes) {
                let alone = self.running.is_empty() && admitted.is_empty();
                self.pool.release(std::mem::take(&mut known));
                // What is known of the prompt may hold more memory than it saves.
                if full || !alone || !self.make_room(next.bytes()) {
                    self.waiting.push_front(next);
                    break;
                }
            }
            let (tokens, known_len) = (next.known_prompt().len(), path_len(&known));
            let run = if shares.is_some() {
                0
            } else {
                tokens - known_len
            };
            self.count(run, tokens - run);
            *prefill_tokens += run;
            promised += next.own_shape().bytes();
            let prompt = if let Some((index, common)) = shares {
                Prompt::Fresh(index, common)
            } else if run == 0 {
                Prompt::Known(known)
            } else {
                let cache = self.pool.take(next.prompt_shape(known_len));
                fresh.push(Fresh {
                    weights: Arc::clone(&next.published.weights),
                    prompt: next.known_prompt().to_vec(),
                    known,
                    cache,
                });
                Prompt::Fresh(fresh.len() - 1, tokens)
            };
            admitted.push((next, prompt));
        }
        self.prefill(&mut fresh);
        let paths: Vec<Vec<Stretch>> = fresh.into_iter().map(|fresh| self.enter(fresh)).collect();
        for (next, prompt) in admitted {
            let path = match prompt {
                Prompt::Known(path) => path,
                Prompt::Fresh(index, tokens) => cut(&paths[index], tokens),
            };
            self.begin(next, path);
        }
        ended
    }

    fn count(&self, run: usize, reused: usize) {
        let usage = &self.usage;
        usage.run.fetch_add(run as u64, Ordering::Relaxed);
        usage.reused.fetch_add(reused as u64, Ordering::Relaxed);
    }

    /// Whether so many bytes fit, if need be by forgetting sequences that nobody runs on.
    fn make_room(&mut self, bytes: usize) -> bool {
        self.prefixes
            .forget(&mut self.pool, |pool, _| pool.fits(bytes));
        self.pool.fits(bytes)
    }

    /// Runs the prompts of a round, each on one thread.
    fn prefill(&self, fresh: &mut [Fresh]) {
        let engine = &self.engine;
        engine.run(|| {
            fresh.par_iter_mut().with_max_len(1).for_each(|fresh| {
                let Fresh {
                    weights,
                    prompt,
                    known,
                    cache,
                } = fresh;
                engine.with_workspace(|workspace| match path_len(known) {
                    0 => decode::prefill(weights, &mut [(prompt.as_slice(), cache)], workspace),
                    known_len => {
                        let rest = &prompt[known_len..];
                        decode::prefill_behind(weights, known, rest, cache, workspace);
                    }
                });
            });
        });
    }

    /// The whole path of a prompt that was run, which is remembered.
    fn enter(&mut self, fresh: Fresh) -> Vec<Stretch> {
        let Fresh {
            weights,
            prompt,
            known: mut path,
            cache,
        } = fresh;
        path.push(Stretch {
            tokens: prompt.len() - path_len(&path),
            cache: Arc::new(cache),
        });
        let pool = &mut self.pool;
        self.prefixes.remember(&weights, prompt, path.clone(), pool);
        path
    }
}

impl Waiting {
    /// All that the request takes when nothing is known.
    fn bytes(&self) -> usize {
        self.prompt_shape(0).bytes() + self.own_shape().bytes()
    }
}

/// The prompt of this round that begins most like the next one, and how many tokens are the same.
fn best_in_round(fresh: &[Fresh], next: &Waiting) -> Option<(usize, usize)> {
    let same = |fresh: &&Fresh| Arc::ptr_eq(&fresh.weights, &next.published.weights);
    let alike = |(index, fresh): (usize, &Fresh)| {
        same(&fresh).then(|| (index, common(&fresh.prompt, next.known_prompt())))
    };
    let alike = fresh.iter().enumerate().filter_map(alike);
    alike.max_by_key(|&(index, common)| (common, std::cmp::Reverse(index)))
}
