//! `etude sample`: responses of a checkpoint to one prompt.

use std::{
    fs,
    io::Read,
    path::Path,
    sync::{Arc, mpsc},
};

use anyhow::{Context, anyhow};
use chat::{Chat, Tokenizer};
use engine::{Engine, Model, SampleError, SampleRequest, Sampler, SamplerOptions};
use record::{Completion, Message, Sampling, Seed, StopReason, TokenId, WeightVersion};
use serde::Serialize;

use crate::{
    args::SampleArgs,
    failure::{Classify, Failure, Outcome},
    machine,
    report::{print_json, print_text},
};

/// One line of `--json`.
#[derive(Serialize)]
struct Sample<'a> {
    index: u32,
    prompt_ids: &'a [TokenId],
    response_ids: &'a [TokenId],
    /// Of each response token, at temperature 1 over the whole vocabulary.
    logprobs: &'a [f32],
    /// Without the tokens that end a turn.
    text: String,
    stop: StopReason,
}

/// Prints each sample as soon as those before it are printed.
pub(crate) fn run(args: &SampleArgs) -> Outcome<()> {
    let text = prompt(args)?;
    let voice = Voice::load(&args.model, args.chat)?;
    let prompt = voice.tokens(text)?;
    let sampling = Sampling {
        top_p: args.top_p,
        stop: if args.ignore_eos {
            Vec::new()
        } else {
            voice.stop.clone()
        },
        ..Sampling::at(args.temperature, args.max_tokens as usize)
    };
    let engine = Engine::new(machine::cores()).failed()?;
    let sampler = Sampler::start(&engine, SamplerOptions::default()).failed()?;
    sampler.publish(MODEL, voice.model.clone(), WeightVersion(0));
    let answers: Vec<Answer> = (0..args.samples)
        .map(|index| {
            let seed = Seed(args.seed).stream("sample", index.into());
            ask(&sampler, &prompt, &sampling, seed)
        })
        .collect();
    for (index, answer) in (0..).zip(answers) {
        let completion = answer.recv().failed()?.map_err(classify)?;
        let text = voice.text(&completion.response)?;
        if args.json {
            print_json(&Sample {
                index,
                prompt_ids: &prompt,
                response_ids: &completion.response,
                logprobs: &completion.logprobs,
                text,
                stop: completion.stop,
            })?;
        } else {
            if args.samples > 1 {
                print_text(&format!("--- sample {index}"))?;
            }
            print_text(&text)?;
        }
    }
    Ok(())
}

type Answer = mpsc::Receiver<Result<Completion, SampleError>>;

/// The name that the weights go by in the sampler.
const MODEL: &str = "model";

fn ask(sampler: &Sampler, prompt: &[TokenId], sampling: &Sampling, seed: Seed) -> Answer {
    let (tell, told) = mpsc::channel();
    sampler.submit(SampleRequest {
        model: MODEL.to_owned(),
        prompt: prompt.to_vec(),
        sampling: sampling.clone(),
        seed,
        // Nobody is left to tell when the command ends early.
        done: Box::new(move |answer| drop(tell.send(answer))),
    });
    told
}

/// What was asked for cannot be sampled, or the model cannot.
fn classify(error: SampleError) -> Failure {
    match error {
        SampleError::NotFinite { .. } | SampleError::Stopped => Failure::Failed(error.into()),
        _ => Failure::Asked(error.into()),
    }
}

fn prompt(args: &SampleArgs) -> Outcome<String> {
    let text = match (&args.prompt, &args.prompt_file) {
        (Some(text), _) => text.clone(),
        (None, Some(path)) if path.as_os_str() == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .context("standard input")
                .asked()?;
            text
        }
        (None, Some(path)) => fs::read_to_string(path)
            .with_context(|| path.display().to_string())
            .asked()?,
        (None, None) => String::new(),
    };
    if text.is_empty() {
        return Err(Failure::Asked(anyhow!("the prompt is empty")));
    }
    Ok(text)
}

/// A model with what it reads and writes by.
struct Voice {
    model: Arc<Model>,
    tokenizer: Tokenizer,
    /// Present when the prompt is to be rendered.
    chat: Option<Chat>,
    stop: Vec<TokenId>,
}

impl Voice {
    fn load(directory: &Path, wants_chat: bool) -> Outcome<Self> {
        if !directory.is_dir() {
            let shown = directory.display();
            return Err(Failure::Asked(anyhow!(
                "{shown}: no such directory; give a model in the Hugging Face layout (config.json, \
                 model.safetensors, tokenizer.json), such as RUN/checkpoints/critic-rl"
            )));
        }
        let tokenizer = Tokenizer::load(&directory.join("tokenizer.json")).asked()?;
        let (chat, mut stop) = match Chat::load(directory) {
            Ok(chat) => {
                let stop = chat.stop_tokens().to_vec();
                (wants_chat.then_some(chat), stop)
            }
            Err(error) if wants_chat => return Err(error).asked(),
            // Without a template a text is still gone on from.
            Err(_) => (None, Vec::new()),
        };
        let model = Model::load(directory).asked()?;
        for &id in &model.config().eos_tokens {
            if !stop.contains(&id) {
                stop.push(id);
            }
        }
        let (vocabulary, rows) = (tokenizer.vocabulary(), model.config().vocab_size);
        if vocabulary > rows {
            return Err(Failure::Asked(anyhow!(
                "{}: tokenizer.json has {vocabulary} tokens, but the model's vocabulary is {rows}; \
                 they do not belong together",
                directory.display()
            )));
        }
        Ok(Self {
            model: Arc::new(model),
            tokenizer,
            chat,
            stop,
        })
    }

    fn tokens(&self, text: String) -> Outcome<Vec<TokenId>> {
        match &self.chat {
            Some(chat) => {
                let message = Message::user(text);
                Ok(chat.render(&[message], true).asked()?.tokens)
            }
            None => self.tokenizer.encode(&text).asked(),
        }
    }

    fn text(&self, response: &[TokenId]) -> Outcome<String> {
        let end = match response.split_last() {
            Some((last, rest)) if self.stop.contains(last) => rest,
            _ => response,
        };
        self.tokenizer.decode(end).failed()
    }
}
