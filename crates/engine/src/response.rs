//! A response under way: what it was asked for, what it has so far, and when it ends.

use std::{fmt, sync::Arc};

use rand_chacha::ChaCha8Rng;
use record::{Sampling, StopReason, TokenId};

use crate::{
    cache::KvCache,
    draw::{DrawScratch, Drawn, History, draw, top_logprobs},
};

/// A token as it is sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampled {
    pub token: TokenId,
    /// At temperature 1 over the whole vocabulary.
    pub logprob: f32,
}

/// Whether a response goes on after a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    GoOn,
    /// The response ends with this token, with [`StopReason::Stop`].
    Stop,
}

/// Sees each token of a response as soon as it is sampled: to stream it, or to end the response where
/// its text says so. It is called on a thread of the engine: look and return.
pub struct Watch(Box<dyn FnMut(Sampled) -> Next + Send>);

impl Watch {
    pub fn new(watch: impl FnMut(Sampled) -> Next + Send + 'static) -> Self {
        Self(Box::new(watch))
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

/// The first tokens of a cache, as a part of a sequence.
#[derive(Clone, Debug)]
pub(crate) struct Stretch {
    pub(crate) cache: Arc<KvCache>,
    pub(crate) tokens: usize,
}

/// Tokens of all parts.
pub(crate) fn path_len(path: &[Stretch]) -> usize {
    path.iter().map(|stretch| stretch.tokens).sum()
}

/// A response under way.
#[derive(Debug)]
pub(crate) struct Response {
    /// The prompt without its last token, perhaps shared with other responses.
    pub(crate) path: Vec<Stretch>,
    /// What comes after it.
    pub(crate) own: KvCache,
    pub(crate) own_len: usize,
    /// The token to be fed next: the last of the prompt, then the last that was sampled.
    pub(crate) next: TokenId,
    pub(crate) tokens: Vec<TokenId>,
    pub(crate) logprobs: Vec<f32>,
    /// Empty for plain sampling, where it would be `logprobs` again.
    pub(crate) sampled_logprobs: Vec<f32>,
    pub(crate) top_logprobs: Vec<Vec<(TokenId, f32)>>,
    pub(crate) history: History,
    pub(crate) sampling: Sampling,
    /// How many of the most probable tokens are wanted at each place.
    pub(crate) wanted_top: usize,
    pub(crate) watch: Option<Watch>,
    /// Most response tokens: `max_tokens`, or what the context leaves.
    pub(crate) limit: usize,
    pub(crate) rng: ChaCha8Rng,
    pub(crate) state: ResponseState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseState {
    Running,
    Done(StopReason),
    /// The logits for the next token were not finite.
    Broken,
}

impl Response {
    /// Draws the next token from its logits.
    pub(crate) fn extend(&mut self, logits: &[f32], scratch: &mut DrawScratch) {
        let drawn = draw(
            logits,
            &self.sampling,
            &self.history,
            &mut self.rng,
            scratch,
        );
        let Some(Drawn {
            token,
            logprob,
            sampled_logprob,
        }) = drawn
        else {
            self.state = ResponseState::Broken;
            return;
        };
        self.next = token;
        self.tokens.push(token);
        self.logprobs.push(logprob);
        if !self.sampling.is_plain() {
            self.sampled_logprobs.push(sampled_logprob);
        }
        if self.wanted_top > 0 {
            let top = top_logprobs(logits, self.wanted_top, &mut scratch.order);
            self.top_logprobs.push(top);
        }
        self.history.push(token, &self.sampling);
        let watched = match &mut self.watch {
            Some(Watch(watch)) => watch(Sampled { token, logprob }),
            None => Next::GoOn,
        };
        if watched == Next::Stop || self.sampling.stop.contains(&token) {
            self.state = ResponseState::Done(StopReason::Stop);
        } else if self.tokens.len() >= self.limit {
            self.state = ResponseState::Done(StopReason::Length);
        }
    }
}
