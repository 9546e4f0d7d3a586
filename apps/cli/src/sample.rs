//! `etude sample`: responses of a checkpoint to one prompt.

use std::{collections::BTreeMap, fs, io::Read, sync::mpsc};

use anyhow::{Context, anyhow};
use record::{Completion, Message, Seed, TokenId};

use crate::{
    args::SampleArgs,
    failure::{Classify, Failure, Outcome},
    report::print_json,
    sampling::Defaults,
    voice::{Event, Said, Speaker, Voice, Wish, Written, classify, tell_interrupts, write_text},
};

/// Prints each sample as soon as those before it are printed: as it comes, or as one line of JSON.
pub(crate) fn run(args: &SampleArgs) -> Outcome<()> {
    let text = prompt(args)?;
    let voice = Voice::open(&args.model)?;
    let defaults = Defaults::default();
    let sampling = args
        .sampling
        .sampling(&defaults, args.max_tokens, voice.stop())?;
    voice.check(&sampling)?;
    let prompt = tokens(args, &voice, text)?;
    let speaker = voice.speak()?;
    let (tell, events) = mpsc::channel();
    tell_interrupts(tell.clone())?;
    for number in 0..u64::from(args.samples) {
        let wish = Wish {
            number,
            prompt: prompt.clone(),
            sampling: sampling.clone(),
            seed: Seed(args.sampling.seed).stream("sample", number),
            top_logprobs: args.top_logprobs,
            prompt_logprobs: args.prompt_logprobs,
        };
        speaker.ask(wish, &tell);
    }
    let mut printer = Printer {
        args,
        speaker: &speaker,
        current: 0,
        written: Written::default(),
        waiting: BTreeMap::new(),
    };
    printer.begin()?;
    while printer.current < u64::from(args.samples) {
        let goes_on = match events.recv().failed()? {
            Event::Text(number, text) => printer.text(number, text)?,
            Event::Done(number, answer) => printer.done(number, (*answer).map_err(classify)?)?,
            Event::Interrupted => return Err(Failure::Stopped),
            Event::Line(_) => true,
        };
        if !goes_on {
            break;
        }
    }
    Ok(())
}

/// Brings samples that come side by side onto the standard output one after the other.
struct Printer<'a> {
    args: &'a SampleArgs,
    speaker: &'a Speaker,
    /// The sample that is printed now.
    current: u64,
    written: Written,
    /// Samples after it.
    waiting: BTreeMap<u64, Waiting>,
}

#[derive(Default)]
struct Waiting {
    text: String,
    whole: Option<Completion>,
}

/// Each method is false when nobody reads any more.
impl Printer<'_> {
    fn text(&mut self, number: u64, text: String) -> Outcome<bool> {
        if self.args.json {
            Ok(true)
        } else if number == self.current {
            self.written.push(&text)
        } else {
            self.waiting.entry(number).or_default().text += &text;
            Ok(true)
        }
    }

    fn done(&mut self, number: u64, completion: Completion) -> Outcome<bool> {
        if number != self.current {
            self.waiting.entry(number).or_default().whole = Some(completion);
            return Ok(true);
        }
        let mut next = Some(completion);
        while let Some(completion) = next.take() {
            if !self.end(&completion)? {
                return Ok(false);
            }
            let waiting = self.waiting.remove(&self.current).unwrap_or_default();
            if self.current < u64::from(self.args.samples) && !self.begin()? {
                return Ok(false);
            }
            if !self.args.json && !self.written.push(&waiting.text)? {
                return Ok(false);
            }
            next = waiting.whole;
        }
        Ok(true)
    }

    fn begin(&mut self) -> Outcome<bool> {
        if self.args.json || self.args.samples == 1 {
            return Ok(true);
        }
        write_text(&format!("--- sample {}\n", self.current))
    }

    fn end(&mut self, completion: &Completion) -> Outcome<bool> {
        let text = self.speaker.text(completion)?;
        let index = self.current;
        self.current += 1;
        if self.args.json {
            print_json(&Said::new(index, completion, &text))?;
            return Ok(true);
        }
        std::mem::take(&mut self.written).end(&text)
    }
}

/// The text of the prompt, and where it came from in errors.
fn prompt(args: &SampleArgs) -> Outcome<String> {
    let text = match (&args.prompt, &args.prompt_file) {
        (Some(text), _) => text.clone(),
        (None, Some(path)) if path.as_os_str() == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .with_context(|| place(args))
                .asked()?;
            text
        }
        (None, Some(path)) => fs::read_to_string(path)
            .with_context(|| place(args))
            .asked()?,
        (None, None) => String::new(),
    };
    if text.is_empty() {
        return Err(Failure::Asked(anyhow!(
            "{}: the prompt is empty",
            place(args)
        )));
    }
    Ok(text)
}

fn place(args: &SampleArgs) -> String {
    match &args.prompt_file {
        Some(path) if path.as_os_str() == "-" => "standard input".to_owned(),
        Some(path) => path.display().to_string(),
        None => "--prompt".to_owned(),
    }
}

fn tokens(args: &SampleArgs, voice: &Voice, text: String) -> Outcome<Vec<TokenId>> {
    let tokens = match args.chat {
        true => {
            let rendered = voice.chat()?.render(&[Message::user(text)], true);
            rendered.asked()?.tokens
        }
        false => {
            let mut tokens = voice.tokenizer().opening().asked()?;
            tokens.extend(voice.tokenizer().encode(&text).asked()?);
            tokens
        }
    };
    let (count, context) = (tokens.len(), voice.context());
    if count == 0 || count >= context {
        return Err(Failure::Asked(anyhow!(
            "{}: the prompt has {count} tokens; at least one is needed, and the context of {} holds \
             {context} with the response",
            place(args),
            voice.directory().display()
        )));
    }
    Ok(tokens)
}
