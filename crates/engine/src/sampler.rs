//! The handle to the sampler: publish weights, submit requests, be called back.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Sender, channel},
    },
    thread::{self, JoinHandle},
};

use record::{Completion, Sampling, Seed, TokenId, WeightVersion};

use crate::{
    Engine, EngineError, Model, SampleError,
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
    /// Prompt tokens run between two decoding steps, so that long prompts do not stall responses.
    pub prefill_tokens: usize,
}

impl Default for SamplerOptions {
    fn default() -> Self {
        Self {
            max_sequences: 256,
            cache_bytes: 1 << 30,
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

/// A handle to one thread that batches all requests for several models continuously. Clones share
/// it; when the last is dropped the thread ends and requests still open get
/// [`SampleError::Stopped`].
#[derive(Clone)]
pub struct Sampler {
    shared: Arc<Shared>,
}

struct Shared {
    commands: Sender<Command>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Sampler {
    pub fn start(engine: &Engine, options: SamplerOptions) -> Result<Self, EngineError> {
        let (commands, receiver) = channel();
        let scheduler = Scheduler::new(engine.clone(), options, receiver);
        let thread = thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(move || scheduler.run())
            .map_err(|source| EngineError::Sampler { source })?;
        Ok(Self {
            shared: Arc::new(Shared {
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
    pub fn submit(&self, request: SampleRequest) {
        self.send(Command::Submit(request));
    }

    /// Ends the thread; open and later requests get [`SampleError::Stopped`].
    pub fn shutdown(&self) {
        self.send(Command::Stop);
        self.shared.join();
    }

    fn send(&self, command: Command) {
        if let Err(unsent) = self.shared.commands.send(command)
            && let Command::Submit(request) = unsent.0
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
