//! A checkpoint that answers: weights, with the tokenizer and the template that they read and write by.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread,
};

use anyhow::anyhow;
use chat::{Chat, ResponseText, Tokenizer, TokenizerFiles, before_stop};
use engine::{
    Engine, Model, ModelConfig, Next, SampleError, SampleExtras, SampleRequest, Sampler,
    SamplerOptions, Ticket, Watch,
};
use record::{Completion, Sampling, Seed, StopReason, TokenId, WeightVersion};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    failure::{Classify, Failure, Outcome},
    machine,
};

/// A model directory that was looked at; no weights yet.
pub(crate) struct Voice {
    directory: PathBuf,
    config: ModelConfig,
    files: TokenizerFiles,
    /// Of the tokenizer and of the model.
    stop: Vec<TokenId>,
}

/// What happens while responses are sampled.
pub(crate) enum Event {
    /// More text of the response with this number.
    Text(u64, String),
    /// The response with this number has ended.
    Done(u64, Box<Result<Completion, SampleError>>),
    /// A line of the user's, `None` at the end of them.
    Line(io::Result<Option<String>>),
    /// Ctrl-C.
    Interrupted,
}

/// One line of `--json`.
#[derive(Serialize)]
pub(crate) struct Said<'a> {
    /// Counts samples, or answers of a conversation.
    pub(crate) index: u64,
    pub(crate) prompt_ids: &'a [TokenId],
    pub(crate) response_ids: &'a [TokenId],
    /// Of each response token, at temperature 1 over the whole vocabulary.
    pub(crate) logprobs: &'a [f32],
    /// Of each response token under what was drawn from, where that is something else.
    #[serde(skip_serializing_if = "<[f32]>::is_empty")]
    pub(crate) sampled_logprobs: &'a [f32],
    /// For each response token the most probable ones with their log-probs, as `logprobs`.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) top_logprobs: &'a [Vec<(TokenId, f32)>],
    /// Of each prompt token but the first.
    #[serde(skip_serializing_if = "<[f32]>::is_empty")]
    pub(crate) prompt_logprobs: &'a [f32],
    /// Without the token or the text that ended it.
    pub(crate) text: &'a str,
    pub(crate) stop: StopReason,
}

impl<'a> Said<'a> {
    pub(crate) fn new(index: u64, completion: &'a Completion, text: &'a str) -> Self {
        Self {
            index,
            prompt_ids: &completion.prompt,
            response_ids: &completion.response,
            logprobs: &completion.logprobs,
            sampled_logprobs: &completion.sampled_logprobs,
            top_logprobs: &completion.top_logprobs,
            prompt_logprobs: &completion.prompt_logprobs,
            text,
            stop: completion.stop,
        }
    }
}

impl Voice {
    /// Reads all but the weights. `hf:` may stand before the directory, as in recipes.
    pub(crate) fn open(model: &Path) -> Outcome<Self> {
        let bare = model.to_str().and_then(|text| text.strip_prefix("hf:"));
        let directory = bare.map_or(model, Path::new);
        if !directory.is_dir() {
            let shown = directory.display();
            return Err(Failure::Asked(anyhow!(
                "{shown}: no such directory; give a model in the Hugging Face layout (config.json, \
                 model.safetensors, tokenizer.json), such as RUN/checkpoints/critic-rl"
            )));
        }
        let config = ModelConfig::load(directory).asked()?;
        let files = TokenizerFiles::load(directory).asked()?;
        let (vocabulary, rows) = (files.tokenizer.vocabulary(), config.vocab_size);
        if vocabulary > rows {
            return Err(Failure::Asked(anyhow!(
                "{}: tokenizer.json has {vocabulary} tokens, but the model's vocabulary is {rows}; \
                 they do not belong together",
                directory.display()
            )));
        }
        let mut stop = files.stop_tokens.clone();
        stop.extend(&config.eos_tokens);
        Ok(Self {
            directory: directory.to_owned(),
            config,
            files,
            stop,
        })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn tokenizer(&self) -> &Tokenizer {
        &self.files.tokenizer
    }

    /// Tokens that end a turn.
    pub(crate) fn stop(&self) -> &[TokenId] {
        &self.stop
    }

    /// Most tokens of prompt and response together.
    pub(crate) fn context(&self) -> usize {
        self.config.context
    }

    /// The template, which sees today's date.
    pub(crate) fn chat(&self) -> Outcome<Chat> {
        let chat = self.files.clone().chat().asked()?;
        Ok(chat.at(jiff::Zoned::now().datetime()))
    }

    /// Refuses a bias for tokens that there are not.
    pub(crate) fn check(&self, sampling: &Sampling) -> Outcome<()> {
        let size = self.config.vocab_size;
        match sampling.logit_bias.keys().find(|&&id| id as usize >= size) {
            None => Ok(()),
            Some(id) => Err(Failure::Asked(anyhow!(
                "--logit-bias is for token {id}, but the model has the tokens below {size}"
            ))),
        }
    }

    /// Loads the weights; responses may be asked for from now on.
    pub(crate) fn speak(&self) -> Outcome<Speaker> {
        let model = Arc::new(Model::load(&self.directory).asked()?);
        let engine = Engine::new(machine::cores()).failed()?;
        let options = SamplerOptions::default();
        let memory = machine::memory_bytes().unwrap_or_default() / 4;
        let options = SamplerOptions {
            cache_bytes: options.cache_bytes.max(memory as usize),
            ..options
        };
        let sampler = Sampler::start(&engine, options).failed()?;
        let parameters = model.n_parameters();
        sampler.publish(MODEL, model, WeightVersion(0));
        Ok(Speaker {
            sampler,
            tokenizer: Arc::new(self.files.tokenizer.clone()),
            parameters,
        })
    }
}

/// The name that the weights go by in the sampler.
const MODEL: &str = "model";

/// Weights in memory that answer.
pub(crate) struct Speaker {
    sampler: Sampler,
    tokenizer: Arc<Tokenizer>,
    pub(crate) parameters: usize,
}

/// One response that is wanted.
pub(crate) struct Wish {
    /// Stands in its events.
    pub(crate) number: u64,
    pub(crate) prompt: Vec<TokenId>,
    pub(crate) sampling: Sampling,
    pub(crate) seed: Seed,
    pub(crate) top_logprobs: usize,
    pub(crate) prompt_logprobs: bool,
}

impl Speaker {
    /// Asks for a response, whose text is told as it comes.
    pub(crate) fn ask(&self, wish: Wish, tell: &mpsc::Sender<Event>) -> Ticket {
        let Wish {
            number,
            prompt,
            sampling,
            seed,
            top_logprobs,
            prompt_logprobs,
        } = wish;
        let extras = SampleExtras {
            prompt_logprobs,
            top_logprobs,
            watch: Some(self.watch(number, &sampling, tell.clone())),
        };
        let tell = tell.clone();
        let request = SampleRequest {
            model: MODEL.to_owned(),
            prompt,
            sampling,
            seed,
            // Nobody is left to tell when the command ends early.
            done: Box::new(move |answer| drop(tell.send(Event::Done(number, Box::new(answer))))),
        };
        self.sampler.submit_with(request, extras)
    }

    pub(crate) fn cancel(&self, ticket: Ticket) {
        self.sampler.cancel(ticket);
    }

    /// The text of a response without the token or the text that ended it.
    pub(crate) fn text(&self, completion: &Completion) -> Outcome<String> {
        let Completion {
            response, sampling, ..
        } = completion;
        let said = match response.split_last() {
            Some((last, said)) if sampling.stop.contains(last) => said,
            _ => response,
        };
        let text = self.tokenizer.decode(said).failed()?;
        Ok(before_stop(&text, &sampling.stop_strings).to_owned())
    }

    /// Tells the text of a response, and ends it at a stop string.
    fn watch(&self, number: u64, sampling: &Sampling, tell: mpsc::Sender<Event>) -> Watch {
        let tokenizer = Arc::clone(&self.tokenizer);
        let stop = sampling.stop.clone();
        let mut text = ResponseText::new(&sampling.stop_strings);
        Watch::new(move |sampled| {
            if stop.contains(&sampled.token) {
                return Next::GoOn;
            }
            // A token that cannot be read says nothing; the whole text is told again at the end.
            let piece = text.push(&tokenizer, sampled.token).unwrap_or_default();
            if !piece.is_empty() {
                let _ = tell.send(Event::Text(number, piece));
            }
            match text.is_stopped() {
                true => Next::Stop,
                false => Next::GoOn,
            }
        })
    }
}

/// Tells Ctrl-C from now on, in place of ending the process.
pub(crate) fn tell_interrupts(tell: mpsc::Sender<Event>) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .failed()?;
    let mut interrupts = {
        let _entered = runtime.enter();
        signal(SignalKind::interrupt()).failed()?
    };
    let listen = move || {
        runtime.block_on(async {
            while interrupts.recv().await.is_some() && tell.send(Event::Interrupted).is_ok() {}
        });
    };
    let thread = thread::Builder::new().name("interrupts".to_owned());
    thread.spawn(listen).failed()?;
    Ok(())
}

/// What was asked for cannot be sampled, or the model cannot.
pub(crate) fn classify(error: SampleError) -> Failure {
    match error {
        SampleError::NotFinite { .. } | SampleError::Stopped | SampleError::Cancelled => {
            Failure::Failed(error.into())
        }
        _ => Failure::Asked(error.into()),
    }
}

/// Writes text as it comes; false when nobody reads any more.
pub(crate) fn write_text(text: &str) -> Outcome<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).failed(),
    }
}

/// A response on its way to the standard output.
#[derive(Default)]
pub(crate) struct Written {
    text: String,
    /// It is only kept: something else is printed.
    silent: bool,
}

impl Written {
    pub(crate) fn silent(silent: bool) -> Self {
        Self {
            silent,
            ..Self::default()
        }
    }

    /// More of it; false when nobody reads any more.
    pub(crate) fn push(&mut self, piece: &str) -> Outcome<bool> {
        self.text.push_str(piece);
        if self.silent {
            Ok(true)
        } else {
            write_text(piece)
        }
    }

    /// What is missing of the whole text, and the end of its last line.
    pub(crate) fn end(mut self, whole: &str) -> Outcome<bool> {
        let rest = whole.get(self.text.len()..).unwrap_or_default();
        if !self.push(rest)? {
            return Ok(false);
        }
        let (_, goes_on) = self.break_off()?;
        Ok(goes_on)
    }

    /// Ends the line of a response that was broken off; its text.
    pub(crate) fn break_off(self) -> Outcome<(String, bool)> {
        let ended = self.silent || self.text.ends_with('\n');
        let goes_on = ended || write_text("\n")?;
        Ok((self.text, goes_on))
    }
}
