//! How responses are drawn: the flags that `etude sample` and `etude chat` share.

use std::{fs, io::ErrorKind, path::Path};

use anyhow::{Context, anyhow};
use clap::Args;
use record::{Sampling, TokenId};
use serde::Deserialize;

use crate::failure::{Classify, Failure, Outcome};

/// Settings that were not given are those of [`Defaults`].
#[derive(Clone, Debug, Args)]
pub(crate) struct SamplingArgs {
    /// 0 takes the most probable token each time [default: 1; chat: as generation_config.json says]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    temperature: Option<f32>,
    /// Keep the most probable tokens that together reach this probability [default: 1, all; chat: as
    /// generation_config.json says]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    top_p: Option<f32>,
    /// Keep the K most probable tokens [default: 0, all; chat: as generation_config.json says]
    #[arg(long, value_name = "K")]
    top_k: Option<usize>,
    /// Keep tokens at least P times as probable as the most probable one [default: 0, all; chat: as
    /// generation_config.json says]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    min_p: Option<f32>,
    /// Divide the logits of tokens that prompt or response have, negative ones multiply [default: 1,
    /// none; chat: as generation_config.json says]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    repetition_penalty: Option<f32>,
    /// Take X off the logits of tokens that the response has
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    presence_penalty: f32,
    /// Take X off the logit of a token for each time that the response has it
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    frequency_penalty: f32,
    /// Add X to the logit of the token with this id; may be given several times
    #[arg(long, value_name = "ID=X", allow_hyphen_values = true, value_parser = bias)]
    logit_bias: Vec<(TokenId, f32)>,
    /// End a response before this text; may be given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    stop: Vec<String>,
    /// Go on past the tokens that end a turn
    #[arg(long)]
    ignore_eos: bool,
    /// The same seed draws the same responses
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
}

/// What the settings are that were not given.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Defaults {
    do_sample: Option<bool>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    top_k: Option<usize>,
    min_p: Option<f32>,
    repetition_penalty: Option<f32>,
}

impl Defaults {
    /// What `generation_config.json` of a model says; nothing where there is none.
    pub(crate) fn of_model(directory: &Path) -> Outcome<Self> {
        let path = directory.join("generation_config.json");
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            read => read,
        };
        let parsed = text.map_err(anyhow::Error::from).and_then(|text| {
            let defaults: Self = serde_json::from_str(&text)?;
            Ok(defaults)
        });
        parsed.with_context(|| path.display().to_string()).asked()
    }
}

impl SamplingArgs {
    /// The settings as a request has them. A response ends at `end_of_turn` unless that is to be ignored.
    pub(crate) fn sampling(
        &self,
        defaults: &Defaults,
        max_tokens: u32,
        end_of_turn: &[TokenId],
    ) -> Outcome<Sampling> {
        let greedy = defaults.do_sample == Some(false);
        let usual = if greedy {
            Some(0.0)
        } else {
            defaults.temperature
        };
        let temperature = self.temperature.or(usual).unwrap_or(1.0);
        let plain = Sampling::at(temperature, max_tokens as usize);
        if self.stop.iter().any(String::is_empty) {
            return Err(Failure::Asked(anyhow!(
                "--stop is empty, and every text begins with nothing; give some text"
            )));
        }
        let sampling = Sampling {
            top_p: self.top_p.or(defaults.top_p).unwrap_or(plain.top_p),
            top_k: self.top_k.or(defaults.top_k).unwrap_or(plain.top_k),
            min_p: self.min_p.or(defaults.min_p).unwrap_or(plain.min_p),
            repetition_penalty: self
                .repetition_penalty
                .or(defaults.repetition_penalty)
                .unwrap_or(plain.repetition_penalty),
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            logit_bias: self.logit_bias.iter().copied().collect(),
            stop: match self.ignore_eos {
                true => Vec::new(),
                false => end_of_turn.to_vec(),
            },
            stop_strings: self.stop.clone(),
            ..plain
        };
        match sampling.check() {
            Ok(()) => Ok(sampling),
            Err(bad) => Err(Failure::Asked(anyhow!(
                "--{} is {}; {}",
                bad.parameter.replace('_', "-"),
                bad.value,
                bad.expected
            ))),
        }
    }
}

/// The settings that change the model's own distribution, for people.
pub(crate) fn described(sampling: &Sampling) -> String {
    let plain = Sampling::at(1.0, 0);
    let mut said = vec![format!("temperature {}", sampling.temperature)];
    let mut say = |name: &str, value: f64, usual: f64| {
        if value != usual {
            said.push(format!("{name} {}", value as f32));
        }
    };
    let settings = [
        ("top_p", sampling.top_p, plain.top_p),
        ("top_k", sampling.top_k as f32, 0.0),
        ("min_p", sampling.min_p, plain.min_p),
        ("repetition_penalty", sampling.repetition_penalty, 1.0),
        ("presence_penalty", sampling.presence_penalty, 0.0),
        ("frequency_penalty", sampling.frequency_penalty, 0.0),
    ];
    for (name, value, usual) in settings {
        say(name, f64::from(value), f64::from(usual));
    }
    said.join(", ")
}

/// `ID=X`.
fn bias(text: &str) -> Result<(TokenId, f32), String> {
    let parts = text.split_once('=');
    let parsed = parts.and_then(|(id, bias)| Some((id.parse().ok()?, bias.parse().ok()?)));
    parsed.ok_or_else(|| "must be the id of a token, =, and a number".to_owned())
}
