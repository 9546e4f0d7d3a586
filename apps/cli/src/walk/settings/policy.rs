//! One model of a recipe, with the roles that it plays.

use std::path::Path;

use anyhow::{Context, anyhow, ensure};
use chat::Chat;
use engine::ModelConfig;
use record::{BadSampling, Message, Sampling};

use super::{StageSize, Tokenizer};
use crate::{
    model::Findings,
    walk::{
        adapters::Lora,
        model_source::{ModelSource, RandomModel},
    },
};

/// A policy as a recipe has it.
#[derive(Clone)]
pub(crate) struct PolicySettings<'a> {
    /// Names its phases and checkpoints.
    pub(crate) name: &'a str,
    /// Where the recipe has it, as `critic` or `policies.reader`.
    pub(crate) key: String,
    pub(crate) model: &'a ModelSource,
    /// The policy whose supervised weights it begins with, in place of those of `model`.
    pub(crate) begins_as: Option<&'a str>,
    pub(crate) lora: Option<&'a Lora>,
    /// How each of its roles is sampled, by the key of the recipe that says so.
    pub(crate) samplings: Vec<(String, Sampling)>,
    pub(crate) stages: Vec<StageSize<'a>>,
    /// It goes on into reinforcement.
    pub(crate) reinforced: bool,
}

impl<'a> PolicySettings<'a> {
    /// The architecture; its vocabulary is the largest that it may get.
    pub(crate) fn config(&self, tokenizer: Option<&Tokenizer>) -> anyhow::Result<ModelConfig> {
        let key = &self.key;
        let vocabulary = match self.model {
            ModelSource::Random(model) => {
                ensure!(
                    model.heads >= 1 && model.hidden_size.is_multiple_of(model.heads),
                    "{key}.model: heads = {} do not divide hidden_size = {}",
                    model.heads,
                    model.hidden_size
                );
                let tokenizer = tokenizer.with_context(|| {
                    format!(
                        "`tokenizer` is missing: {key}.model begins with random weights, and its \
                         vocabulary is trained; add [tokenizer] with `vocabulary`"
                    )
                })?;
                tokenizer.vocabulary
            }
            ModelSource::Checkpoint(_) => 0,
        };
        let config = self.model.config(vocabulary, &[]);
        let config = config.map_err(|error| anyhow!("{key}.model: {error}"))?;
        let checked = config.check();
        checked.map_err(|error| anyhow!("{key}.model: {error}"))?;
        Ok(config)
    }

    pub(crate) fn random(&self) -> Option<&'a RandomModel> {
        self.model.random()
    }

    /// Adapters must have something left to train.
    pub(super) fn check_lora(&self) -> anyhow::Result<()> {
        let Some(lora) = self.lora else {
            return Ok(());
        };
        let (key, stages) = (&self.key, self.stages.len());
        let most = if self.reinforced {
            stages
        } else {
            stages.saturating_sub(1)
        };
        lora.config()
            .check()
            .map_err(|error| anyhow!("{key}.{error}"))?;
        ensure!(
            lora.full_stages <= most,
            "{key}.lora.full_stages is {} and there are {stages} supervised stages; at most {most} \
             leave the adapters something to learn",
            lora.full_stages
        );
        Ok(())
    }

    /// Responses must fit, and be drawn by settings that make sense.
    pub(super) fn check_samplings(&self, context: usize) -> anyhow::Result<()> {
        for (key, sampling) in &self.samplings {
            ensure!(
                sampling.max_tokens >= 1 && sampling.max_tokens < context,
                "{key}.max_tokens is {}, but the context holds {context} tokens, prompt included",
                sampling.max_tokens,
            );
            sampling.check().map_err(|bad| {
                let BadSampling {
                    parameter,
                    value,
                    expected,
                } = bad;
                anyhow!("{key}.{parameter} is {value}; {expected}")
            })?;
        }
        Ok(())
    }

    /// Reads every file of a checkpoint, and has its template render `example`, a chat as `role` will be
    /// given it. `sound` are the directories that were found to be.
    pub(crate) fn check_checkpoint(
        &self,
        sound: &mut Vec<&'a Path>,
        context: usize,
        role: &str,
        example: &[Message],
    ) -> anyhow::Result<()> {
        let ModelSource::Checkpoint(directory) = self.model else {
            return Ok(());
        };
        let asked = || format!("{}.model", self.key);
        if !sound.contains(&directory.as_path()) {
            let findings = Findings::of(directory);
            findings
                .and_then(|findings| findings.check())
                .with_context(asked)?;
            sound.push(directory);
        }
        let chat = Chat::load(directory).with_context(asked)?;
        let tokens = prompt_tokens(&chat, example)
            .with_context(|| format!("{}: a prompt of the {role}", directory.display()))
            .with_context(asked)?;
        ensure!(
            tokens < context,
            "{}.model: a prompt of the {role} takes {tokens} tokens and the context of {} is {context}, \
             so there is no room for a response",
            self.key,
            directory.display()
        );
        Ok(())
    }
}

/// Tokens of a prompt.
pub(crate) fn prompt_tokens(chat: &Chat, messages: &[Message]) -> anyhow::Result<usize> {
    Ok(chat.render(messages, true)?.tokens.len())
}
