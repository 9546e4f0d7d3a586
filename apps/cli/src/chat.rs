//! `etude chat`: a conversation with a checkpoint, line by line.

use std::{
    io::{self, BufRead, IsTerminal, Write},
    path::PathBuf,
    sync::mpsc::{self, Receiver, Sender},
    thread,
};

use anyhow::{Context, anyhow};
use chat::Chat;
use clap::Args;
use engine::SampleError;
use record::{Completion, Message, Sampling, Seed, TokenId};

use crate::{
    failure::{Classify, Failure, Outcome},
    report::print_json,
    sampling::{Defaults, SamplingArgs, described},
    screen::Screen,
    voice::{Event, Said, Speaker, Voice, Wish, Written, classify, tell_interrupts},
};

#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    /// A directory in the Hugging Face layout with a chat template, such as a run's
    /// checkpoints/critic-rl
    model: PathBuf,
    /// What stands before the conversation
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Most tokens of an answer
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: u32,
    #[command(flatten)]
    sampling: SamplingArgs,
    /// Print one JSON object an answer: prompt_ids, response_ids, logprobs, text, stop
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
/reset  forget the conversation
/quit   end, as the end of the input does
/help   this
A line that begins with // is said with one of them. Ctrl-C stops an answer, and between answers the program.";

/// Answers go to stdout, all else to stderr. Ends with the input.
pub(crate) fn run(args: &ChatArgs, screen: Screen) -> Outcome<()> {
    let voice = Voice::open(&args.model)?;
    let chat = voice.chat()?;
    let defaults = Defaults::of_model(voice.directory())?;
    let sampling = args
        .sampling
        .sampling(&defaults, args.max_tokens, voice.stop())?;
    voice.check(&sampling)?;
    let mut conversation = Conversation {
        args,
        chat,
        context: voice.context(),
        sampling,
        system: args.system.clone().map(Message::system),
        turns: Vec::new(),
        answers: 0,
        screen,
        terminal: io::stdin().is_terminal(),
    };
    // Whatever the template refuses, a system message or its length, it refuses before the weights are read.
    conversation.tokens("?")?;
    let speaker = voice.speak()?;
    let (tell, events) = mpsc::channel();
    tell_interrupts(tell.clone())?;
    let lines = read_lines(tell.clone())?;
    if conversation.terminal {
        screen.say(format!(
            "{}: {} parameters, a context of {} tokens, {}. Each line is a message; /help says more.",
            voice.directory().display(),
            speaker.parameters,
            voice.context(),
            described(&conversation.sampling),
        ));
    }
    while let Some(line) = conversation.next_line(&lines, &events)? {
        let message = match line.strip_prefix('/') {
            Some(said) if said.starts_with('/') => said.to_owned(),
            Some("quit") => break,
            Some("reset") => {
                conversation.turns.clear();
                continue;
            }
            Some("help") => {
                screen.say(HELP);
                continue;
            }
            Some(_) => {
                screen.say(format!("{line}: no such command; /help names them"));
                continue;
            }
            None if line.trim().is_empty() => continue,
            None => line,
        };
        if !conversation.answer(message, &speaker, (&tell, &events))? {
            break;
        }
    }
    Ok(())
}

struct Conversation<'a> {
    args: &'a ChatArgs,
    chat: Chat,
    /// Tokens of prompt and answer together.
    context: usize,
    sampling: Sampling,
    system: Option<Message>,
    turns: Vec<Message>,
    /// Answers so far, over all resets.
    answers: u64,
    screen: Screen,
    /// Somebody types, and can type something else.
    terminal: bool,
}

impl Conversation<'_> {
    /// The next line that the user says; `None` when there is no more.
    fn next_line(&self, lines: &Sender<()>, events: &Receiver<Event>) -> Outcome<Option<String>> {
        if self.terminal {
            let mut err = io::stderr().lock();
            // Nobody is left to tell when stderr is gone.
            let _ = write!(err, "> ").and_then(|()| err.flush());
        }
        lines.send(()).failed()?;
        loop {
            match events.recv().failed()? {
                Event::Line(line) => return line.context("standard input").asked(),
                Event::Interrupted => return Err(Failure::Stopped),
                // Of an answer that was stopped.
                Event::Text(..) | Event::Done(..) => {}
            }
        }
    }

    /// The tokens that the answer to `message` goes on from.
    fn tokens(&self, message: &str) -> Outcome<Vec<TokenId>> {
        let before = self.system.iter().chain(&self.turns).cloned();
        let messages: Vec<Message> = before.chain([Message::user(message)]).collect();
        let tokens = self.chat.render(&messages, true).asked()?.tokens;
        let (count, context) = (tokens.len(), self.context);
        if count >= context {
            return Err(Failure::Asked(anyhow!(
                "the conversation has {count} tokens with this message, and the context holds {context} with \
                 the answer; say less, or begin again with /reset"
            )));
        }
        Ok(tokens)
    }

    /// Answers a message; false when nobody reads any more.
    fn answer(
        &mut self,
        message: String,
        speaker: &Speaker,
        (tell, events): (&Sender<Event>, &Receiver<Event>),
    ) -> Outcome<bool> {
        let prompt = match self.tokens(&message) {
            Err(Failure::Asked(error)) if self.terminal => {
                self.screen.say(format!("{error:#}"));
                return Ok(true);
            }
            tokens => tokens?,
        };
        let number = self.answers;
        self.answers += 1;
        let wish = Wish {
            number,
            prompt,
            sampling: self.sampling.clone(),
            seed: Seed(self.args.sampling.seed).stream("answer", number),
            top_logprobs: 0,
            prompt_logprobs: false,
        };
        let ticket = speaker.ask(wish, tell);
        let (mut written, mut stopped) = (Written::silent(self.args.json), false);
        let answer = loop {
            match events.recv().failed()? {
                Event::Text(of, text) if of == number => {
                    if !written.push(&text)? {
                        return Ok(false);
                    }
                }
                Event::Done(of, answer) if of == number => break *answer,
                Event::Interrupted if stopped => return Err(Failure::Stopped),
                Event::Interrupted => {
                    stopped = true;
                    speaker.cancel(ticket);
                }
                Event::Text(..) | Event::Done(..) | Event::Line(_) => {}
            }
        };
        let (text, goes_on) = match answer {
            Err(SampleError::Cancelled) => written.break_off()?,
            answer => {
                let completion = answer.map_err(classify)?;
                self.print(number, &completion, speaker.text(&completion)?, written)?
            }
        };
        if stopped && !self.terminal {
            return Err(Failure::Stopped);
        }
        self.turns.push(Message::user(message));
        self.turns.push(Message::assistant(text));
        Ok(goes_on)
    }

    fn print(
        &self,
        number: u64,
        completion: &Completion,
        text: String,
        written: Written,
    ) -> Outcome<(String, bool)> {
        if self.args.json {
            print_json(&Said::new(number, completion, &text))?;
            return Ok((text, true));
        }
        let goes_on = written.end(&text)?;
        Ok((text, goes_on))
    }
}

/// Reads a line of the standard input each time that one is asked for.
fn read_lines(tell: Sender<Event>) -> Outcome<Sender<()>> {
    let (ask, asked) = mpsc::channel();
    let read = move || {
        let mut lines = io::stdin().lock().lines();
        while asked.recv().is_ok() && tell.send(Event::Line(lines.next().transpose())).is_ok() {}
    };
    let thread = thread::Builder::new().name("input".to_owned());
    thread.spawn(read).failed()?;
    Ok(ask)
}
