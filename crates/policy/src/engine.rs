//! A policy that is a model of the in-process engine.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use chat::{Chat, ResponseText, Tokenizer};
use engine::{Model, Next, SampleError, SampleExtras, SampleRequest, Sampler, Ticket, Watch};
use futures::{channel::oneshot, future::BoxFuture};
use record::{Completion, WeightVersion};

use crate::{Policy, PolicyError, Request};

/// Samples from weights that the process holds; requests of all policies on one [`Sampler`] are
/// batched together. Dropping the future of a request frees its place. The log-probs of its completions
/// are those that a scoring pass gives.
pub struct EnginePolicy {
    sampler: Sampler,
    name: String,
    /// That of `chat`, for the threads that look for stop strings.
    tokenizer: Arc<Tokenizer>,
    chat: Chat,
    version: AtomicU64,
}

impl EnginePolicy {
    /// Publishes `weights` under `name`, which no other policy of this sampler may use.
    ///
    /// # Errors
    /// [`PolicyError::Vocabulary`] when the tokenizer has entries that the model cannot read.
    pub fn new(
        sampler: Sampler,
        name: &str,
        chat: Chat,
        weights: Arc<Model>,
        version: WeightVersion,
    ) -> Result<Self, PolicyError> {
        let (tokenizer, model) = (chat.tokenizer().vocabulary(), weights.config().vocab_size);
        if tokenizer > model {
            return Err(PolicyError::Vocabulary { tokenizer, model });
        }
        let policy = Self {
            sampler,
            name: name.to_owned(),
            tokenizer: Arc::new(chat.tokenizer().clone()),
            chat,
            version: AtomicU64::new(0),
        };
        policy.publish(weights, version);
        Ok(policy)
    }

    /// Requests from now on are sampled from `weights`; those that wait or run keep theirs.
    pub fn publish(&self, weights: Arc<Model>, version: WeightVersion) {
        self.sampler.publish(&self.name, weights, version);
        self.version.store(version.0, Ordering::Release);
    }
}

impl Policy for EnginePolicy {
    fn sample<'a>(&'a self, request: Request) -> BoxFuture<'a, Result<Completion, PolicyError>> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let watch = stop_watch(&self.tokenizer, &request.sampling.stop_strings);
            let submitted = SampleRequest {
                model: self.name.clone(),
                prompt: request.prompt,
                sampling: request.sampling,
                seed: request.seed,
                // Nobody waits any more when the future was dropped.
                done: Box::new(move |completion| drop(answer.send(completion))),
            };
            let extras = SampleExtras {
                prompt_logprobs: request.prompt_logprobs,
                top_logprobs: request.top_logprobs,
                watch,
            };
            let _cancelled_when_dropped = Submitted {
                ticket: self.sampler.submit_with(submitted, extras),
                sampler: &self.sampler,
            };
            match answered.await {
                Ok(completion) => Ok(completion?),
                Err(oneshot::Canceled) => Err(SampleError::Stopped.into()),
            }
        })
    }

    fn chat(&self) -> &Chat {
        &self.chat
    }

    fn weights(&self) -> WeightVersion {
        WeightVersion(self.version.load(Ordering::Acquire))
    }
}

/// A request that is taken back when nobody waits for it any more.
struct Submitted<'a> {
    ticket: Ticket,
    sampler: &'a Sampler,
}

impl Drop for Submitted<'_> {
    fn drop(&mut self) {
        self.sampler.cancel(self.ticket);
    }
}

/// Ends a response with the token that completes one of `strings` in its text; `None` for no strings.
pub fn stop_watch(tokenizer: &Arc<Tokenizer>, strings: &[String]) -> Option<Watch> {
    let mut text = ResponseText::new(strings);
    let tokenizer = Arc::clone(tokenizer);
    (!strings.is_empty()).then(|| {
        Watch::new(move |sampled| {
            // Only what a stop string is looked for in: a token that is no text completes none.
            let _ = text.push(&tokenizer, sampled.token);
            match text.is_stopped() {
                true => Next::Stop,
                false => Next::GoOn,
            }
        })
    })
}

impl From<SampleError> for PolicyError {
    fn from(error: SampleError) -> Self {
        match error {
            SampleError::PromptTooLong { tokens, context } => {
                Self::PromptTooLong { tokens, context }
            }
            SampleError::Stopped | SampleError::Cancelled => Self::Stopped,
            SampleError::NotFinite { .. } | SampleError::UnknownModel { .. } => {
                Self::Infrastructure(error.to_string())
            }
            SampleError::EmptyPrompt
            | SampleError::UnknownToken { .. }
            | SampleError::BadSampling { .. }
            | SampleError::UnknownBias { .. }
            | SampleError::StopStringsUnwatched
            | SampleError::NoRoom { .. } => Self::Refused(error.to_string()),
        }
    }
}

impl fmt::Debug for EnginePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnginePolicy")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
