//! What is run: sizes, settings of both sides, and the command line.

use chat::Chat;
use engine::{Initializer, Model, ModelConfig};
use learn::{AlgorithmConfig, KlConfig, OptimizerConfig};
use record::Seed;

pub(crate) const USAGE: &str = "usage: cargo bench -p train --bench grpo -- [tiny] [a] [b] \
    [--python PYTHON] [--rounds 3] [--steps 5] [--threads 2] [--micro-batch ROWS]";

/// Steps at the start of a run that are not counted.
pub(crate) const WARM_UP: u64 = 2;

/// First steps that are done again to see that both sides did the same.
pub(crate) const COMPARED: usize = 3;

/// What was asked for.
pub(crate) struct Arguments {
    pub(crate) sizes: Vec<Size>,
    pub(crate) python: String,
    pub(crate) rounds: usize,
    /// Measured steps of a round.
    pub(crate) steps: u64,
    pub(crate) threads: usize,
    /// Rows that the peer runs forward and backward together; absent, what the size says.
    pub(crate) micro_batch: Option<usize>,
}

/// A model and the batches that it is trained on.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) name: &'static str,
    pub(crate) vocab_size: usize,
    pub(crate) hidden_size: usize,
    pub(crate) intermediate_size: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) groups: usize,
    pub(crate) group_size: u32,
    pub(crate) prompt_tokens: usize,
    pub(crate) response_tokens: usize,
    /// Rows that the peer runs forward and backward together: what was fastest for it.
    pub(crate) micro_batch: usize,
}

/// The critic of `recipes/critique/tiny.toml`, and the two sizes of the engine's measurements.
const SIZES: [Size; 3] = [
    Size {
        name: "tiny",
        vocab_size: 640,
        hidden_size: 128,
        intermediate_size: 384,
        layers: 3,
        heads: 4,
        kv_heads: 4,
        groups: 32,
        group_size: 8,
        prompt_tokens: 62,
        response_tokens: 48,
        micro_batch: 128,
    },
    Size {
        name: "a",
        vocab_size: 512,
        hidden_size: 128,
        intermediate_size: 384,
        layers: 4,
        heads: 4,
        kv_heads: 2,
        groups: 8,
        group_size: 8,
        prompt_tokens: 64,
        response_tokens: 128,
        micro_batch: 64,
    },
    Size {
        name: "b",
        vocab_size: 8192,
        hidden_size: 512,
        intermediate_size: 1408,
        layers: 8,
        heads: 8,
        kv_heads: 4,
        groups: 4,
        group_size: 8,
        prompt_tokens: 64,
        response_tokens: 128,
        micro_batch: 8,
    },
];

impl Size {
    pub(crate) fn rows(&self) -> usize {
        self.groups * self.group_size as usize
    }

    /// Tokens that a step samples.
    pub(crate) fn sampled(&self) -> usize {
        self.rows() * self.response_tokens
    }

    /// Tokens of all rows of a step, prompts included.
    pub(crate) fn trained(&self) -> usize {
        self.rows() * (self.prompt_tokens + self.response_tokens)
    }

    /// The model that both sides begin with.
    pub(crate) fn model(&self, chat: &Chat) -> Model {
        let config = ModelConfig {
            intermediate_size: self.intermediate_size,
            n_kv_heads: self.kv_heads,
            context: 512,
            eos_tokens: chat.stop_tokens().to_vec(),
            pad_token: chat.stop_tokens().first().copied(),
            ..ModelConfig::qwen2(self.vocab_size, self.hidden_size, self.layers, self.heads)
        };
        Model::new(config, Initializer::Induction, Seed(1)).unwrap()
    }
}

/// GRPO as published: advantages over the group's deviation, symmetric clip, k3 KL in the loss.
pub(crate) fn algorithm() -> AlgorithmConfig {
    AlgorithmConfig {
        kl: KlConfig {
            coefficient: 0.05,
            ..KlConfig::default()
        },
        ..AlgorithmConfig::default()
    }
}

/// AdamW at a constant rate, low enough that in no size a token's k3 reaches 10 within the compared
/// steps, where Etude bounds it and TRL does not.
pub(crate) fn optimizer() -> OptimizerConfig {
    OptimizerConfig {
        lr: 1e-5,
        schedule: learn::Schedule::Constant,
        warmup_steps: 0,
        min_lr_ratio: 0.0,
        betas: [0.9, 0.999],
        eps: 1e-8,
        weight_decay: 0.0,
        grad_clip: 1.0,
    }
}

/// How long a step took, in all and by phase. The phases leave a rest.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
pub(crate) struct StepSeconds {
    /// Prompts to responses.
    pub(crate) sample: f64,
    /// Log-probs of the reference.
    pub(crate) score: f64,
    /// Forward, backward and optimizer.
    pub(crate) update: f64,
    /// From the end of the step before to its own end; not a number for the first.
    #[serde(deserialize_with = "nan_when_null")]
    pub(crate) step: f64,
    /// Of all threads, over the same time as `step`: what it would take on one core.
    #[serde(deserialize_with = "nan_when_null")]
    pub(crate) processor: f64,
}

fn nan_when_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let value: Option<f64> = serde::Deserialize::deserialize(deserializer)?;
    Ok(value.unwrap_or(f64::NAN))
}

impl Arguments {
    /// Reads the command line; `--bench`, which cargo adds, is passed over.
    pub(crate) fn read(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self {
            sizes: Vec::new(),
            python: "python3".to_owned(),
            rounds: 3,
            steps: 5,
            threads: 2,
            micro_batch: None,
        };
        let mut words = words.filter(|word| word != "--bench");
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--python" => arguments.python = value()?,
                "--rounds" => arguments.rounds = count(&word, &value()?)?,
                "--steps" => arguments.steps = count(&word, &value()?)? as u64,
                "--threads" => arguments.threads = count(&word, &value()?)?,
                "--micro-batch" => arguments.micro_batch = Some(count(&word, &value()?)?),
                name => match SIZES.iter().find(|size| size.name == name) {
                    Some(size) => arguments.sizes.push(*size),
                    None => return Err(format!("`{name}` is neither a size nor an option")),
                },
            }
        }
        if arguments.sizes.is_empty() {
            arguments.sizes.extend_from_slice(&SIZES[..2]);
        }
        Ok(arguments)
    }

    pub(crate) fn micro_batch(&self, size: &Size) -> usize {
        self.micro_batch.unwrap_or(size.micro_batch)
    }
}

fn count(option: &str, value: &str) -> Result<usize, String> {
    match value.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(format!("{option} takes a number above 0, not `{value}`")),
    }
}
