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
    Adapter, Engine, Model, SampleError, SampleRequest, SamplerOptions,
    cache::{CacheShape, KvCache},
    decode::{self, Response, ResponseState, Row, same_adapter},
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
    /// Bytes of the caches of `running`; a shared one counts once.
    cache_bytes: usize,
    /// Caches of answered requests, for the next of the same shape.
    spare: Vec<KvCache>,
}

/// A request that was found to be in order, with the weights that it will use.
struct Waiting {
    published: Published,
    request: SampleRequest,
    limit: usize,
    cache: CacheShapes,
}

/// The caches of one request: the prompt without its last token, and what comes after.
#[derive(Clone, Copy)]
struct CacheShapes {
    prompt: CacheShape,
    own: CacheShape,
}

impl CacheShapes {
    fn bytes(self) -> usize {
        self.prompt.bytes() + self.own.bytes()
    }
}

/// Where the prompt of a request will be.
#[derive(Clone)]
enum PromptCache {
    InFlight(Arc<KvCache>),
    /// Index among those being run.
    Fresh(usize),
}

/// A request under way.
struct Running {
    published: Published,
    prompt: Vec<TokenId>,
    done: Done,
    response: Response,
}

/// Responses over the same weights, those of each adapter side by side.
struct Group<'a> {
    model: &'a Model,
    adapters: Vec<Vec<Row<'a>>>,
}

impl<'a> Group<'a> {
    fn push(&mut self, adapter: Option<&'a Adapter>, response: &'a mut Response) {
        let same = |of_one: &&mut Vec<Row>| {
            let first = of_one.first();
            first.is_some_and(|other| same_adapter(other.adapter, adapter))
        };
        let row = Row { adapter, response };
        match self.adapters.iter_mut().find(same) {
            Some(of_one) => of_one.push(row),
            None => self.adapters.push(vec![row]),
        }
    }
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
                self.waiting.push_back(Waiting {
                    published,
                    request,
                    limit,
                    cache,
                });
            }
        }
    }

    /// The weights for a request, the most tokens that it can get and the cache that this takes.
    fn check(
        &self,
        request: &SampleRequest,
    ) -> Result<(Published, usize, CacheShapes), SampleError> {
        let Some(published) = self.models.get(&request.model) else {
            return Err(SampleError::UnknownModel {
                model: request.model.clone(),
            });
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
            return Err(SampleError::UnknownToken {
                position,
                token,
                vocab_size,
            });
        }
        check_sampling(&request.sampling)?;
        let limit = request.sampling.max_tokens.min(context - tokens);
        // The last token of the prompt is fed with the response, whose own last is never fed.
        let cache = CacheShapes {
            prompt: CacheShape::new(config, tokens - 1),
            own: CacheShape::new(config, limit),
        };
        let (needed, budget) = (cache.bytes(), self.options.cache_bytes);
        if needed > budget {
            return Err(SampleError::NoRoom { needed, budget });
        }
        Ok((published.clone(), limit, cache))
    }

    /// Moves requests from `waiting` to `running` while there is room, in order, and brings their
    /// prompts into caches: shared where another request in flight has the same, else run.
    fn admit(&mut self) {
        let mut admitted: Vec<(Waiting, PromptCache)> = Vec::new();
        let mut fresh: Vec<(Arc<Model>, Vec<TokenId>, KvCache)> = Vec::new();
        let mut prefill_tokens = 0;
        while let Some(next) = self.waiting.front() {
            let known = self.prompt_in_flight(next, &admitted);
            let (bytes, tokens) = match known {
                Some(_) => (next.cache.own.bytes(), 0),
                None => (next.cache.bytes(), next.request.prompt.len()),
            };
            let full = self.running.len() + admitted.len() >= self.options.max_sequences.max(1)
                || self.cache_bytes + bytes > self.options.cache_bytes
                || (prefill_tokens > 0 && prefill_tokens + tokens > self.options.prefill_tokens);
            if full {
                break;
            }
            let Some(next) = self.waiting.pop_front() else {
                break;
            };
            prefill_tokens += tokens;
            let prompt = known.unwrap_or_else(|| {
                let model = Arc::clone(&next.published.weights);
                fresh.push((
                    model,
                    next.known_prompt().to_vec(),
                    self.cache(next.cache.prompt),
                ));
                PromptCache::Fresh(fresh.len() - 1)
            });
            // Reserved now, so that the next request sees what is left.
            self.cache_bytes += next.cache.own.bytes();
            admitted.push((next, prompt));
        }
        self.engine.run(|| {
            fresh
                .par_iter_mut()
                .with_max_len(1)
                .for_each(|(model, prompt, cache)| {
                    self.engine.with_workspace(|workspace| {
                        decode::prefill(model, &mut [(prompt.as_slice(), cache)], workspace);
                    });
                });
        });
        let fresh: Vec<Arc<KvCache>> = fresh
            .into_iter()
            .map(|(_, _, cache)| Arc::new(cache))
            .collect();
        for (next, prompt) in admitted {
            let prompt = match prompt {
                PromptCache::InFlight(prompt) => prompt,
                PromptCache::Fresh(index) => Arc::clone(&fresh[index]),
            };
            self.cache_bytes -= next.cache.own.bytes();
            let own = self.cache(next.cache.own);
            self.running.push(Running::new(next, prompt, own));
        }
    }

    /// The cache of a request in flight, or of one admitted in this round, whose prompt begins with
    /// everything that the new one needs cached.
    fn prompt_in_flight(
        &self,
        next: &Waiting,
        admitted: &[(Waiting, PromptCache)],
    ) -> Option<PromptCache> {
        let same = |published: &Published, prompt: &[TokenId]| {
            Arc::ptr_eq(&published.weights, &next.published.weights)
                && prompt[..prompt.len() - 1].starts_with(next.known_prompt())
        };
        let running = self
            .running
            .iter()
            .find(|other| same(&other.published, &other.prompt));
        if let Some(running) = running {
            return Some(PromptCache::InFlight(Arc::clone(&running.response.prompt)));
        }
        let admitted = admitted
            .iter()
            .find(|(other, _)| same(&other.published, &other.request.prompt));
        admitted.map(|(_, prompt)| prompt.clone())
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
    /// share mixes the weights of models, but it may mix adapters over the same weights.
    fn decode(&mut self) {
        if self.running.is_empty() {
            return;
        }
        let share = self.running.len().div_ceil(self.engine.threads());
        let mut groups: Vec<Group> = Vec::new();
        for running in &mut self.running {
            let model: &Model = &running.published.weights;
            let at = groups
                .iter()
                .position(|group| group.model.shares_base(model));
            let group = match at {
                Some(at) => &mut groups[at],
                None => groups.push_mut(Group {
                    model,
                    adapters: Vec::new(),
                }),
            };
            group.push(model.adapter().map(Arc::as_ref), &mut running.response);
        }
        let mut groups: Vec<(&Model, Vec<_>)> = groups
            .into_iter()
            .map(|group| (group.model, group.adapters.into_iter().flatten().collect()))
            .collect();
        let mut shares: Vec<(&Model, &mut [Row])> = Vec::new();
        for (model, responses) in &mut groups {
            shares.extend(responses.chunks_mut(share).map(|part| (*model, part)));
        }
        let engine = &self.engine;
        engine.run(|| {
            shares
                .into_par_iter()
                .with_max_len(1)
                .for_each(|(model, responses)| {
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
            let (done, caches, answer) = running.finish();
            for cache in caches {
                self.cache_bytes -= cache.shape().bytes();
                self.spare.push(cache);
            }
            done(answer);
        }
        self.running = still_running;
    }
}

impl Waiting {
    /// The part of the prompt that is run before the response; its last token is fed with it.
    fn known_prompt(&self) -> &[TokenId] {
        self.request
            .prompt
            .split_last()
            .map_or(&[], |(_, known)| known)
    }
}

impl Running {
    fn new(waiting: Waiting, prompt: Arc<KvCache>, own: KvCache) -> Self {
        let prompt_len = waiting.known_prompt().len();
        let Waiting {
            published,
            request,
            limit,
            ..
        } = waiting;
        let response = Response {
            prompt,
            prompt_len,
            own,
            own_len: 0,
            last_of_prompt: request.prompt[prompt_len],
            tokens: Vec::with_capacity(limit.min(1024)),
            logprobs: Vec::with_capacity(limit.min(1024)),
            rng: request.seed.rng(),
            sampling: request.sampling,
            limit,
            state: ResponseState::Running,
        };
        Self {
            published,
            prompt: request.prompt,
            done: request.done,
            response,
        }
    }

    /// The answer, and the caches that nobody else uses.
    fn finish(self) -> (Done, Vec<KvCache>, Result<Completion, SampleError>) {
        let response = self.response;
        let caches = Arc::into_inner(response.prompt)
            .into_iter()
            .chain([response.own])
            .collect();
        let stop = match response.state {
            ResponseState::Done(stop) => stop,
            ResponseState::Running | ResponseState::Broken => {
                let error = SampleError::NotFinite {
                    position: response.tokens.len(),
                };
                return (self.done, caches, Err(error));
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
        (self.done, caches, Ok(completion))
    }
}

fn check_sampling(sampling: &Sampling) -> Result<(), SampleError> {
    let bad = |parameter, value, expected| {
        Err(SampleError::BadSampling {
            parameter,
            value,
            expected,
        })
    };
    if !(sampling.temperature.is_finite() && sampling.temperature >= 0.0) {
        return bad(
            "temperature",
            sampling.temperature,
            "give 0 (greedy) or a positive number",
        );
    }
    if !(sampling.top_p > 0.0 && sampling.top_p <= 1.0) {
        return bad(
            "top_p",
            sampling.top_p,
            "give a number above 0 and at most 1",
        );
    }
    Ok(())
}
