//! Continuous batching: admits requests, shares prompts, decodes all models together, answers.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        mpsc::{Receiver, TryRecvError},
    },
};

use rayon::prelude::*;
use record::{Completion, Sampling, StopReason, TokenId, WeightVersion};

use crate::{
    Engine, Model, SampleError, SampleRequest, SamplerOptions,
    cache::{CacheShape, KvCache},
    decode::{self, Response, ResponseState},
    sampler::Done,
};

/// What a [`crate::Sampler`] tells its thread.
pub(crate) enum Command {
    Publish { model: String, published: Published },
    Submit(SampleRequest),
    Stop,
}

/// Weights and their version.
#[derive(Clone)]
pub(crate) struct Published {
    pub(crate) weights: Arc<Model>,
    pub(crate) version: WeightVersion,
}

/// The state of the sampler's thread.
pub(crate) struct Scheduler {
    engine: Engine,
    options: SamplerOptions,
    commands: Receiver<Command>,
    models: BTreeMap<String, Published>,
    waiting: VecDeque<Waiting>,
    running: Vec<Running>,
    /// Bytes of the caches of `running`.
    cache_bytes: usize,
    /// Caches of answered requests, for the next of the same shape.
    spare: Vec<KvCache>,
}

/// A request that was found to be in order, with the weights that it will use.
struct Waiting {
    published: Published,
    request: SampleRequest,
    limit: usize,
    cache: CacheShape,
}

/// A request under way.
struct Running {
    published: Published,
    prompt: Vec<TokenId>,
    done: Done,
    response: Response,
}

impl Scheduler {
    pub(crate) fn new(
        engine: Engine,
        options: SamplerOptions,
        commands: Receiver<Command>,
    ) -> Self {
        Self {
            engine,
            options,
            commands,
            models: BTreeMap::new(),
            waiting: VecDeque::new(),
            running: Vec::new(),
            cache_bytes: 0,
            spare: Vec::new(),
        }
    }

    /// Works until told to stop, then answers everything still open with [`SampleError::Stopped`].
    pub(crate) fn run(mut self) {
        while self.take_commands() {
            self.admit();
            self.decode();
            self.answer();
        }
        let waiting = self.waiting.into_iter().map(|waiting| waiting.request.done);
        for done in waiting.chain(self.running.into_iter().map(|running| running.done)) {
            done(Err(SampleError::Stopped));
        }
        for command in self.commands.try_iter() {
            if let Command::Submit(request) = command {
                (request.done)(Err(SampleError::Stopped));
            }
        }
    }

    /// Handles all commands that have come, waiting for one if there is nothing else to do; false
    /// when it is time to stop.
    fn take_commands(&mut self) -> bool {
        loop {
            let idle = self.waiting.is_empty() && self.running.is_empty();
            let next = if idle {
                self.commands.recv().map_err(|_| TryRecvError::Disconnected)
            } else {
                self.commands.try_recv()
            };
            match next {
                Ok(Command::Publish { model, published }) => {
                    self.models.insert(model, published);
                }
                Ok(Command::Submit(request)) => self.enqueue(request),
                Ok(Command::Stop) | Err(TryRecvError::Disconnected) => return false,
                Err(TryRecvError::Empty) => return true,
            }
        }
    }

    fn enqueue(&mut self, request: SampleRequest) {
        match self.check(&request) {
            Err(error) => (request.done)(Err(error)),
            Ok((published, 0, _)) => {
                let completion = Completion {
                    prompt: request.prompt,
                    response: Vec::new(),
                    logprobs: Vec::new(),
                    stop: StopReason::Length,
                    sampling: request.sampling,
                    weights: published.version,
                };
                (request.done)(Ok(completion));
            }
            Ok((published, limit, cache)) => {
                self.waiting.push_back(Waiting { published, request, limit, cache });
            }
        }
    }

    /// The weights for a request, the most tokens that it can get and the cache that this takes.
    fn check(&self, request: &SampleRequest) -> Result<(Published, usize, CacheShape), SampleError> {
        let Some(published) = self.models.get(&request.model) else {
            return Err(SampleError::UnknownModel { model: request.model.clone() });
        };
        let config = published.weights.config();
        let (tokens, context, vocab_size) =
            (request.prompt.len(), config.context, config.vocab_size);
        if tokens == 0 {
            return Err(SampleError::EmptyPrompt);
        }
        if tokens >= context {
            return Err(SampleError::PromptTooLong { tokens, context });
        }
        let unknown = |&token: &TokenId| token as usize >= vocab_size;
        if let Some(position) = request.prompt.iter().position(unknown) {
            let token = request.prompt[position];
            return Err(SampleError::UnknownToken { position, token, vocab_size });
        }
        check_sampling(&request.sampling)?;
        let limit = request.sampling.max_tokens.min(context - tokens);
        // The last token of a response is never fed back.
        let cache = CacheShape::new(config, tokens + limit.saturating_sub(1));
        let (needed, budget) = (cache.bytes(), self.options.cache_bytes);
        if needed > budget {
            return Err(SampleError::NoRoom { needed, budget });
        }
        Ok((published.clone(), limit, cache))
    }

    /// Moves requests from `waiting` to `running` while there is room, in order, and brings their
    /// prompts into their caches: copied where another request in flight has the same, else run.
    fn admit(&mut self) {
        let first_new = self.running.len();
        let mut copies = Vec::new();
        let mut prefill_tokens = 0;
        while let Some(next) = self.waiting.front() {
            let full = self.running.len() >= self.options.max_sequences.max(1)
                || self.cache_bytes + next.cache.bytes() > self.options.cache_bytes
                || (prefill_tokens > 0
                    && prefill_tokens + next.request.prompt.len() > self.options.prefill_tokens);
            if full {
                break;
            }
            let Some(next) = self.waiting.pop_front() else { break };
            match self.running.iter().position(|other| other.has_prompt_of(&next)) {
                Some(donor) => copies.push((donor, self.running.len())),
                None => prefill_tokens += next.request.prompt.len(),
            }
            let cache = self.cache(next.cache);
            self.running.push(Running::new(next, cache));
        }
        let copied: Vec<usize> = copies.iter().map(|&(_, to)| to).collect();
        let mut fresh: Vec<&mut Running> = self.running[first_new..]
            .iter_mut()
            .zip(first_new..)
            .filter(|(_, index)| !copied.contains(index))
            .map(|(running, _)| running)
            .collect();
        self.engine.run(|| {
            fresh.par_iter_mut().for_each(|running| {
                let known = running.prompt.len() - 1;
                let prompt = &running.prompt[..known];
                let model = &running.published.weights;
                self.engine.with_workspace(|workspace| {
                    let cache = &mut running.response.cache;
                    decode::prefill(model, &mut [(prompt, cache)], workspace);
                });
            });
        });
        for (donor, to) in copies {
            // A donor always comes before those that copy from it.
            let (donors, receivers) = self.running.split_at_mut(to);
            let response = &mut receivers[0].response;
            response.cache.copy_prefix(&donors[donor].response.cache, response.cached);
        }
    }

    fn cache(&mut self, shape: CacheShape) -> KvCache {
        self.cache_bytes += shape.bytes();
        if let Some(at) = self.spare.iter().position(|cache| cache.shape() == shape) {
            return self.spare.swap_remove(at);
        }
        let mut spare_bytes: usize = self.spare.iter().map(|cache| cache.shape().bytes()).sum();
        while self.cache_bytes + spare_bytes > self.options.cache_bytes
            && let Some(dropped) = self.spare.pop()
        {
            spare_bytes -= dropped.shape().bytes();
        }
        KvCache::new(shape)
    }

    /// One more token for everyone. The running responses are cut into one share per thread; no
    /// share mixes models.
    fn decode(&mut self) {
        if self.running.is_empty() {
            return;
        }
        let share = self.running.len().div_ceil(self.engine.threads());
        let mut groups: Vec<(&Model, Vec<&mut Response>)> = Vec::new();
        for running in &mut self.running {
            let model: &Model = &running.published.weights;
            let group = groups.iter_mut().find(|(other, _)| std::ptr::eq(*other, model));
            match group {
                Some((_, responses)) => responses.push(&mut running.response),
                None => groups.push((model, vec![&mut running.response])),
            }
        }
        let mut shares: Vec<(&Model, &mut [&mut Response])> = Vec::new();
        for (model, responses) in &mut groups {
            shares.extend(responses.chunks_mut(share).map(|part| (*model, part)));
        }
        let engine = &self.engine;
        engine.run(|| {
            shares.into_par_iter().with_max_len(1).for_each(|(model, responses)| {
                engine.with_workspace(|workspace| decode::step(model, responses, workspace));
            });
        });
    }

    /// Hands out what is finished.
    fn answer(&mut self) {
        let mut still_running = Vec::with_capacity(self.running.len());
        for running in self.running.drain(..) {
            if running.response.state == ResponseState::Running {
                still_running.push(running);
                continue;
            }
            self.cache_bytes -= running.response.cache.shape().bytes();
            let (done, cache, answer) = running.finish();
            self.spare.push(cache);
            done(answer);
        }
        self.running = still_running;
    }
}

impl Running {
    fn new(waiting: Waiting, cache: KvCache) -> Self {
        let Waiting { published, request, limit, .. } = waiting;
        let cached = request.prompt.len() - 1;
        let response = Response {
            cache,
            cached,
            last_of_prompt: request.prompt[cached],
            tokens: Vec::with_capacity(limit.min(1024)),
            logprobs: Vec::with_capacity(limit.min(1024)),
            rng: request.seed.rng(),
            sampling: request.sampling,
            limit,
            state: ResponseState::Running,
        };
        Self { published, prompt: request.prompt, done: request.done, response }
    }

    /// Everything that the new request needs cached, this one has at the front of its cache.
    fn has_prompt_of(&self, new: &Waiting) -> bool {
        let needed = &new.request.prompt[..new.request.prompt.len() - 1];
        Arc::ptr_eq(&self.published.weights, &new.published.weights)
            && self.prompt.get(..self.prompt.len() - 1).is_some_and(|own| own.starts_with(needed))
    }

    fn finish(self) -> (Done, KvCache, Result<Completion, SampleError>) {
        let response = self.response;
        let stop = match response.state {
            ResponseState::Done(stop) => stop,
            ResponseState::Running | ResponseState::Broken => {
                let error = SampleError::NotFinite { position: response.tokens.len() };
                return (self.done, response.cache, Err(error));
            }
        };
        let completion = Completion {
            prompt: self.prompt,
            response: response.tokens,
            logprobs: response.logprobs,
            stop,
            sampling: response.sampling,
            weights: self.published.version,
        };
        (self.done, response.cache, Ok(completion))
    }
}

fn check_sampling(sampling: &Sampling) -> Result<(), SampleError> {
    let bad = |parameter, value, expected| {
        Err(SampleError::BadSampling { parameter, value, expected })
    };
    if !(sampling.temperature.is_finite() && sampling.temperature >= 0.0) {
        return bad("temperature", sampling.temperature, "give 0 (greedy) or a positive number");
    }
    if !(sampling.top_p > 0.0 && sampling.top_p <= 1.0) {
        return bad("top_p", sampling.top_p, "give a number above 0 and at most 1");
    }
    Ok(())
}
