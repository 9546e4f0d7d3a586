//! Continuous batching: takes requests, decodes all models together, answers.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        mpsc::{Receiver, TryRecvError},
    },
};

use rayon::prelude::*;
use record::{Completion, StopReason, TokenId, WeightVersion};

use crate::{
    Adapter, Engine, Model, SampleError, SampleExtras, SampleRequest, SamplerOptions, Ticket,
    cache::KvCache,
    cache_pool::CachePool,
    check::{Checked, check},
    decode::{self, Row, same_adapter},
    draw::History,
    prefixes::Prefixes,
    prompt_scores::PromptScores,
    response::{Response, ResponseState, Stretch},
    sampler::{Done, PromptCounters},
};

/// What a [`crate::Sampler`] tells its thread.
pub(crate) enum Command {
    Publish {
        model: String,
        published: Published,
    },
    Submit {
        ticket: Ticket,
        request: SampleRequest,
        extras: SampleExtras,
    },
    Cancel(Ticket),
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
    pub(crate) engine: Engine,
    pub(crate) options: SamplerOptions,
    commands: Receiver<Command>,
    models: BTreeMap<String, Published>,
    pub(crate) waiting: VecDeque<Waiting>,
    pub(crate) running: Vec<Running>,
    pub(crate) pool: CachePool,
    pub(crate) prefixes: Prefixes,
    prompt_scores: PromptScores,
    pub(crate) usage: Arc<PromptCounters>,
}

/// A request that was found to be in order, with the weights that it will use.
pub(crate) struct Waiting {
    ticket: Ticket,
    pub(crate) published: Published,
    pub(crate) request: SampleRequest,
    extras: SampleExtras,
    pub(crate) limit: usize,
}

/// A request under way.
pub(crate) struct Running {
    ticket: Ticket,
    published: Published,
    prompt: Vec<TokenId>,
    prompt_logprobs: Vec<f32>,
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
        usage: Arc<PromptCounters>,
    ) -> Self {
        Self {
            engine,
            options,
            commands,
            models: BTreeMap::new(),
            waiting: VecDeque::new(),
            running: Vec::new(),
            pool: CachePool::new(options.cache_bytes),
            prefixes: Prefixes::default(),
            prompt_scores: PromptScores::default(),
            usage,
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
            if let Command::Submit { request, .. } = command {
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
                Ok(Command::Publish { model, published }) => self.publish(model, published),
                Ok(Command::Submit {
                    ticket,
                    request,
                    extras,
                }) => self.enqueue(ticket, request, extras),
                Ok(Command::Cancel(ticket)) => self.cancel(ticket),
                Ok(Command::Stop) | Err(TryRecvError::Disconnected) => return false,
                Err(TryRecvError::Empty) => return true,
            }
        }
    }

    fn publish(&mut self, model: String, published: Published) {
        self.models.insert(model, published);
        self.forget_old_weights();
        self.prompt_scores.clear();
    }

    /// Nobody will ask again under weights that were replaced and that no request has.
    fn forget_old_weights(&mut self) {
        let published = self.models.values();
        let waiting = self.waiting.iter().map(|waiting| &waiting.published);
        let running = self.running.iter().map(|running| &running.published);
        let mut current: Vec<&Arc<Model>> = Vec::new();
        for Published { weights, .. } in published.chain(waiting).chain(running) {
            if !current.iter().any(|known| Arc::ptr_eq(known, weights)) {
                current.push(weights);
            }
        }
        self.prefixes.retain(&mut self.pool, &current);
    }

    fn enqueue(&mut self, ticket: Ticket, request: SampleRequest, extras: SampleExtras) {
        let published = self.models.get(&request.model);
        match check(&request, &extras, published, self.options.cache_bytes) {
            Err(error) => (request.done)(Err(error)),
            Ok(Checked {
                published,
                limit: 0,
            }) => {
                let prompt_logprobs = match extras.prompt_logprobs {
                    true => self.score_prompt(&published.weights, &request.prompt),
                    false => Vec::new(),
                };
                let completion = Completion {
                    prompt: request.prompt,
                    response: Vec::new(),
                    logprobs: Vec::new(),
                    sampled_logprobs: Vec::new(),
                    top_logprobs: Vec::new(),
                    prompt_logprobs,
                    stop: StopReason::Length,
                    sampling: request.sampling,
                    weights: published.version,
                };
                (request.done)(Ok(completion));
            }
            Ok(Checked { published, limit }) => {
                self.waiting.push_back(Waiting {
                    ticket,
                    published,
                    request,
                    extras,
                    limit,
                });
            }
        }
    }

    /// Frees what a request holds, and tells it; one that was answered already has gone.
    fn cancel(&mut self, ticket: Ticket) {
        if let Some(at) = self.waiting.iter().position(|at| at.ticket == ticket) {
            if let Some(waiting) = self.waiting.remove(at) {
                (waiting.request.done)(Err(SampleError::Cancelled));
            }
        } else if let Some(at) = self.running.iter().position(|at| at.ticket == ticket) {
            let running = self.running.remove(at);
            self.pool.give(running.response.own);
            self.pool.release(running.response.path);
            (running.done)(Err(SampleError::Cancelled));
        }
    }

    pub(crate) fn score_prompt(&mut self, weights: &Arc<Model>, prompt: &[TokenId]) -> Vec<f32> {
        self.prompt_scores.of(&self.engine, weights, prompt)
    }

    /// Begins the response to a request whose prompt, without its last token, is in `path`.
    pub(crate) fn begin(&mut self, waiting: Waiting, path: Vec<Stretch>) {
        let prompt_logprobs = match waiting.extras.prompt_logprobs {
            true => self.score_prompt(&waiting.published.weights, &waiting.request.prompt),
            false => Vec::new(),
        };
        let own = self.pool.take(waiting.own_shape());
        let running = Running::new(waiting, prompt_logprobs, path, own);
        self.running.push(running);
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
        let step = |(model, responses): (&Model, &mut [Row])| {
            engine.with_workspace(|workspace| decode::step(model, responses, workspace));
        };
        if shares.len() > 1 {
            engine.run(|| shares.into_par_iter().with_max_len(1).for_each(step));
        } else {
            // Waking a thread for it would take as long as a token of a small model.
            shares.into_iter().for_each(step);
        }
    }

    /// Hands out what is finished, and remembers it for requests that go on from there.
    fn answer(&mut self) {
        let finished = |running: &mut Running| running.response.state != ResponseState::Running;
        let finished: Vec<Running> = self.running.extract_if(.., finished).collect();
        if finished.is_empty() {
            return;
        }
        for running in finished {
            let answer = running.answer();
            let Running {
                published,
                prompt,
                done,
                response,
                ..
            } = running;
            let current = self.models.values();
            let current = current.map(|current| &current.weights);
            if answer.is_ok()
                && current
                    .into_iter()
                    .any(|at| Arc::ptr_eq(at, &published.weights))
            {
                let tokens = [&prompt[..], &response.tokens].concat();
                self.keep(&published.weights, tokens, response);
            } else {
                self.pool.give(response.own);
                self.pool.release(response.path);
            }
            done(answer);
        }
        self.forget_old_weights();
        let most = self.options.reuse_bytes;
        self.prefixes.forget(&mut self.pool, |_, idle| idle <= most);
    }

    fn keep(&mut self, weights: &Arc<Model>, mut tokens: Vec<TokenId>, response: Response) {
        let Response {
            mut path,
            own,
            own_len,
            ..
        } = response;
        // The last token was never fed.
        tokens.pop();
        if self.options.reuse_bytes == 0 {
            self.pool.give(own);
            self.pool.release(path);
            return;
        }
        let cache = Arc::new(self.pool.shrink(own, own_len));
        path.push(Stretch {
            cache,
            tokens: own_len,
        });
        let pool = &mut self.pool;
        self.prefixes.remember(weights, tokens, path, pool);
    }
}

impl Running {
    fn new(waiting: Waiting, prompt_logprobs: Vec<f32>, path: Vec<Stretch>, own: KvCache) -> Self {
        let next = waiting.last_of_prompt();
        let Waiting {
            ticket,
            published,
            request,
            extras,
            limit,
        } = waiting;
        let capacity = limit.min(1024);
        let response = Response {
            path,
            own,
            own_len: 0,
            next,
            tokens: Vec::with_capacity(capacity),
            logprobs: Vec::with_capacity(capacity),
            sampled_logprobs: Vec::new(),
            top_logprobs: Vec::new(),
            history: History::of_prompt(&request.prompt, &request.sampling),
            rng: request.seed.rng(),
            sampling: request.sampling,
            wanted_top: extras.top_logprobs,
            watch: extras.watch,
            limit,
            state: ResponseState::Running,
        };
        Self {
            ticket,
            published,
            prompt: request.prompt,
            prompt_logprobs,
            done: request.done,
            response,
        }
    }

    fn answer(&self) -> Result<Completion, SampleError> {
        let response = &self.response;
        match response.state {
            ResponseState::Done(stop) => Ok(Completion {
                prompt: self.prompt.clone(),
                response: response.tokens.clone(),
                logprobs: response.logprobs.clone(),
                sampled_logprobs: response.sampled_logprobs.clone(),
                top_logprobs: response.top_logprobs.clone(),
                prompt_logprobs: self.prompt_logprobs.clone(),
                stop,
                sampling: response.sampling.clone(),
                weights: self.published.version,
            }),
            ResponseState::Running | ResponseState::Broken => Err(SampleError::NotFinite {
                position: response.tokens.len(),
            }),
        }
    }
}
