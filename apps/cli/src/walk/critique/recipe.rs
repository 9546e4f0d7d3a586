//! The recipe of the critique study: every key that `recipes/critique/*.toml` may have.

use std::path::{Path, PathBuf};

use critique::{
    RewardConfig,
    tiny::{CriticMix, ReviserMix, TaskSet},
};
use record::Sampling;
use rollout::Options as RolloutOptions;
use serde::{Deserialize, Serialize};
use train::ReinforceConfig;

pub(crate) use super::eval_settings::Eval;
use crate::walk::{
    adapters::Lora,
    model_source::ModelSource,
    settings::{
        Common, LONGEST_CONTEXT, PolicySettings, SamplingSettings, Stage, Tokenizer, Training,
        is_default, is_one, one, two,
    },
};

/// One run of the critique study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recipe {
    pub(crate) study: StudyName,
    /// Names the run directory, `runs/<name>`.
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) seed: u64,
    /// Threads of the engine and slots of the sandbox. Changes no result.
    #[serde(default = "two")]
    pub(crate) threads: usize,
    /// Of all models in training.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) training: Training,
    pub(crate) tasks: Tasks,
    /// Of the roles whose models begin with random weights; the others bring their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tokenizer: Option<Tokenizer>,
    pub(crate) critic: Role,
    pub(crate) reviser: Role,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) sft: Sft,
    #[serde(default)]
    pub(crate) reward: RewardConfig,
    pub(crate) rl: ReinforceConfig,
    #[serde(default)]
    pub(crate) eval: Eval,
    #[serde(default)]
    pub(crate) sandbox: Sandbox,
    #[serde(default)]
    pub(crate) rollout: RolloutOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StudyName {
    Critique,
}

/// What is trained and evaluated on: drawn from the tiny world and checked in the sandbox, or read
/// from files that an earlier run made (`tasks/*.jsonl` of its directory).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tasks {
    /// The world that tasks, supervised rows and a vocabulary are drawn from. Left out of the resolved recipe where
    /// it is that of functions.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) set: TaskSet,
    /// Tasks to train on.
    pub(crate) train: usize,
    /// Held-out tasks to evaluate on.
    pub(crate) eval: usize,
    /// Chance that a task's program is right as it stands.
    #[serde(default = "share_right")]
    pub(crate) share_right: f64,
    /// Read the training tasks from here instead; `train` then bounds their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) train_file: Option<PathBuf>,
    /// Read the evaluation tasks from here instead; `eval` then bounds their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) eval_file: Option<PathBuf>,
}

/// A role's model and how it is sampled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Role {
    pub(crate) temperature: f64,
    /// This and what follows is left out of the resolved recipe where it changes nothing, so that
    /// recipes without it keep their hash.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(crate) top_p: f64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) top_k: usize,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) min_p: f64,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(crate) repetition_penalty: f64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) presence_penalty: f64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) frequency_penalty: f64,
    pub(crate) max_tokens: usize,
    pub(crate) model: ModelSource,
    /// Train low-rank adapters in place of every weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lora: Option<Lora>,
}

/// Supervised stages, each from the end of the one before; none for roles that bring what they need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Sft {
    pub(crate) critic: Vec<Stage<CriticMix>>,
    pub(crate) reviser: Vec<Stage<ReviserMix>>,
    /// Steps between checkpoints: what a killed run does again at most.
    pub(crate) save_every: u64,
    /// Distinct drafts that the rows, and a tokenizer, are made from.
    pub(crate) drafts: usize,
}

impl Default for Sft {
    fn default() -> Self {
        Self {
            critic: Vec::new(),
            reviser: Vec::new(),
            save_every: 200,
            drafts: 0,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Sandbox {
    /// Run untrusted code behind weaker walls than namespaces where those cannot be had.
    pub(crate) allow_weak_tier: bool,
    /// The Python to run programs with; found by searching when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) python: Option<PathBuf>,
    /// Wall seconds of one judged program.
    pub(crate) wall_s: f64,
    /// CPU seconds of one judged program.
    pub(crate) cpu_s: f64,
    pub(crate) memory_mb: u64,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self {
            allow_weak_tier: false,
            python: None,
            wall_s: 10.0,
            cpu_s: 1.0,
            memory_mb: 256,
        }
    }
}

impl Recipe {
    /// Directories of models are taken relative to `place`.
    pub(super) fn amend(&mut self, place: &Path) {
        self.critic.model.resolve(place);
        self.reviser.model.resolve(place);
    }

    /// The critic, then the reviser.
    pub(super) fn common(&self) -> Common<'_> {
        let (critic, reviser) = (&self.sft.critic, &self.sft.reviser);
        let critic = PolicySettings {
            stages: critic.iter().map(Stage::size).collect(),
            reinforced: true,
            ..self.critic.policy("critic")
        };
        let reviser = PolicySettings {
            stages: reviser.iter().map(Stage::size).collect(),
            ..self.reviser.policy("reviser")
        };
        Common {
            name: &self.name,
            seed: self.seed,
            threads: self.threads,
            training: self.training,
            tokenizer: self.tokenizer.as_ref(),
            policies: vec![critic, reviser],
            rl: Some(&self.rl),
            rollout: &self.rollout,
        }
    }

    /// How fixed texts are said: whole.
    pub(super) fn scripted(&self) -> Sampling {
        Sampling::greedy(match &self.critic.model {
            ModelSource::Random(model) => model.context,
            ModelSource::Checkpoint(_) => LONGEST_CONTEXT,
        })
    }
}

impl Role {
    pub(super) fn sampling(&self) -> Sampling {
        let settings = SamplingSettings {
            temperature: self.temperature,
            top_p: self.top_p,
            top_k: self.top_k,
            min_p: self.min_p,
            repetition_penalty: self.repetition_penalty,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            max_tokens: self.max_tokens,
        };
        settings.sampling()
    }

    fn policy<'a>(&'a self, name: &'a str) -> PolicySettings<'a> {
        PolicySettings {
            name,
            key: name.to_owned(),
            model: &self.model,
            begins_as: None,
            lora: self.lora.as_ref(),
            samplings: vec![(name.to_owned(), self.sampling())],
            stages: Vec::new(),
            reinforced: false,
        }
    }
}

fn share_right() -> f64 {
    0.3
}
