//! The handle to the sampler: publish weights, submit requests, be called back.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Sender, channel},
    },
    thread::{self, JoinHandle},
};

use record::{Completion, Sampling, Seed, TokenId, WeightVersion};

use crate::{
    Engine, EngineError, Model, SampleError, Watch,
    scheduler::{Command, Published, Scheduler},
};

/// Bounds on what runs at once; requests beyond them wait in order of submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplerOptions {
    /// Sequences decoded together, over all models.
    pub max_sequences: usize,
    /// Memory for keys and values. Each request reserves room for its prompt and the most tokens it
    /// may get.
    pub cache_bytes: usize,
    /// The part of it that sequences may keep after their answers, for requests that begin with the
    /// same tokens.
    pub reuse_bytes: usize,
    /// Prompt tokens run between two decoding steps, so that long prompts do not stall responses.
    pub prefill_tokens: usize,
}

impl Default for SamplerOptions {
    fn default() -> Self {
        Self {
            max_sequences: 256,
            cache_bytes: 1 << 30,
            reuse_bytes: 1 << 28,
            prefill_tokens: 8192,
        }
    }
}

/// Called once with the answer, on the sampler's thread: hand it on and return.
pub type Done = Box<dyn FnOnce(Result<Completion, SampleError>) + Send>;

/// One response to be sampled.
pub struct SampleRequest {
    /// Name under which weights were published.
    pub model: String,
    pub prompt: Vec<TokenId>,
    pub sampling: Sampling,
    /// The response depends on weights, prompt, sampling and seed alone: not on other requests, on
    /// timing or on the number of threads.
    pub seed: Seed,
    pub done: Done,
}

/// What else may be wanted of a request. None of it changes what is sampled.
#[derive(Debug, Default)]
pub struct SampleExtras {
    /// Also the log-probabilities of the prompt: one more pass over it, shared by requests for the same
    /// prompt one after the other.
    pub prompt_logprobs: bool,
    /// Also the so many most probable tokens at each place, with their log-probabilities.
    pub top_logprobs: usize,
    /// Sees each token. Whoever gives [`Sampling::stop_strings`] must end the response by it: the engine
    /// knows no text.
    pub watch: Option<Watch>,
}

/// What the prompts of all requests so far took, without their last tokens, which are always run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PromptUsage {
    /// Prompt tokens that were run.
    pub run: u64,
    /// Prompt tokens whose keys and values were there already.
    pub reused: u64,
}

/// The same while it is counted.
#[derive(Debug, Default)]
pub(crate) struct PromptCounters {
    pub(crate) run: AtomicU64,
    pub(crate) reused: AtomicU64,
}

/// Names a request to [`Sampler::cancel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

/// A handle to one thread that batches all requests for several models continuously. Clones share
/// it; when the last is dropped the thread ends and requests still open get
/// [`SampleError::Stopped`].
#[derive(Clone)]
pub struct Sampler {
    shared: Arc<Shared>,
}

struct Shared {
    tickets: AtomicU64,
    usage: Arc<PromptCounters>,
    commands: Sender<Command>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Sampler {
    pub fn start(engine: &Engine, options: SamplerOptions) -> Result<Self, EngineError> {
        let (commands, receiver) = channel();
        let usage = Arc::new(PromptCounters::default());
        let scheduler = Scheduler::new(engine.clone(), options, receiver, Arc::clone(&usage));
        let thread = thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(move || scheduler.run())
            .map_err(|source| EngineError::Sampler { source })?;
        Ok(Self {
            shared: Arc::new(Shared {
                tickets: AtomicU64::new(0),
                usage,
                commands,
                thread: Mutex::new(Some(thread)),
            }),
        })
    }

    /// Requests submitted from now on under this name use these weights; earlier ones keep theirs to
    /// their end.
    pub fn publish(&self, model: &str, weights: Arc<Model>, version: WeightVersion) {
        let published = Published { weights, version };
        self.send(Command::Publish {
            model: model.to_owned(),
            published,
        });
    }

    /// Queues a request. Whatever is wrong with it is told through its callback.
    pub fn submit(&self, request: SampleRequest) -> Ticket {
        self.submit_with(request, SampleExtras::default())
    }

    /// [`Self::submit`], wanting more of the answer.
    pub fn submit_with(&self, request: SampleRequest, extras: SampleExtras) -> Ticket {
        let ticket = Ticket(self.shared.tickets.fetch_add(1, Ordering::Relaxed));
        self.send(Command::Submit {
            ticket,
            request,
            extras,
        });
        ticket
    }

    /// Takes a request back: its place and its memory are free with the next token, and it is answered
    /// with [`SampleError::Cancelled`]. Does nothing to one that was answered already.
    pub fn cancel(&self, ticket: Ticket) {
        self.send(Command::Cancel(ticket));
    }

    /// How much of the prompts did not have to be run.
    pub fn prompt_usage(&self) -> PromptUsage {
        let usage = &self.shared.usage;
        PromptUsage {
            run: usage.run.load(Ordering::Relaxed),
            reused: usage.reused.load(Ordering::Relaxed),
        }
    }

    /// Ends the thread; open and later requests get [`SampleError::Stopped`].
    pub fn shutdown(&self) {
        self.send(Command::Stop);
        self.shared.join();
    }

    fn send(&self, command: Command) {
        if let Err(unsent) = self.shared.commands.send(command)
            && let Command::Submit { request, .. } = unsent.0
        {
            (request.done)(Err(SampleError::Stopped));
        }
    }
}

impl Shared {
    fn join(&self) {
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // A callback may drop the last handle: the thread cannot wait for itself.
        if let Some(thread) = thread
            && thread.thread().id() != thread::current().id()
        {
            // Whatever ended the thread early was already reported by its panic message.
            let _ = thread.join();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Already stopped is as good.
        let _ = self.commands.send(Command::Stop);
        self.join();
    }
}
