//! The recipe of the critique study: every key that `recipes/critique/*.toml` may have.

use std::path::{Path, PathBuf, absolute};

use critique::{
    CRITIC, GENERATOR, REVISER, RewardConfig,
    tiny::{CriticMix, GeneratorMix, ReviserMix, TaskSet},
};
use learn::OptimizerConfig;
use record::Sampling;
use rollout::Options as RolloutOptions;
use serde::{Deserialize, Serialize};
use train::ReinforceConfig;

pub(crate) use super::eval_settings::Eval;
use super::{
    declared::{Assumed, Declared},
    role::RoleModel,
};
use crate::walk::{
    adapters::Lora,
    endpoint::NamedEndpoint,
    model_source::ModelSource,
    settings::{
        Common, LONGEST_CONTEXT, PolicySettings, SamplingSettings, Stage, StageSize, Tokenizer,
        Training, is_default, is_one, one, two,
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
    /// Who writes the programs that evaluations begin with, in place of those of the tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) generator: Option<Role>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) sft: Sft,
    /// Prompts that leave too little room.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) prompts: Prompts,
    #[serde(default)]
    pub(crate) reward: RewardConfig,
    /// Of recipes that reinforce their critic; the others evaluate it as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rl: Option<ReinforceConfig>,
    /// What a plan is reckoned with where models are not here.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) plan: Assumed,
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
    /// Tasks to train on; 0, or left out, in recipes that only evaluate.
    #[serde(default)]
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
    /// Of a model behind an endpoint: the environment variable that holds its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) api_key_env: Option<String>,
    /// Of a model behind an endpoint: seconds for one answer.
    #[serde(default = "ten_minutes", skip_serializing_if = "is_ten_minutes")]
    pub(crate) timeout_s: f64,
    pub(crate) model: RoleModel,
    /// Sizes of the checkpoint: what a plan goes by where it is not here, and what it must have where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) declared: Option<Declared>,
    /// Train low-rank adapters in place of every weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lora: Option<Lora>,
}

/// Supervised stages, each from the end of the one before; none for roles that bring what they need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Sft {
    pub(crate) critic: Vec<CriticStage>,
    pub(crate) reviser: Vec<Stage<ReviserMix>>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) generator: Vec<Stage<GeneratorMix>>,
    /// Steps between checkpoints: what a killed run does again at most.
    pub(crate) save_every: u64,
    /// Distinct drafts that the rows, and a tokenizer, are made from.
    pub(crate) drafts: usize,
}

/// A supervised stage of the critic, on rows of the tiny world or of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CriticStage {
    pub(crate) rows: usize,
    /// Rows of one optimizer step.
    pub(crate) batch_rows: usize,
    /// Rows with `critic_instruction` and `critique`; where there are fewer than `rows`, they come again in another
    /// order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<PathBuf>,
    pub(crate) optimizer: OptimizerConfig,
    /// Of the tiny world's rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mix: Option<CriticMix>,
}

impl CriticStage {
    pub(crate) fn size(&self) -> StageSize<'_> {
        StageSize {
            rows: self.rows,
            batch_rows: self.batch_rows,
            optimizer: &self.optimizer,
        }
    }
}

/// What is done with tasks whose prompts are too long for a role. No prompt is ever cut by its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Prompts {
    pub(crate) over_long: OverLong,
    /// Most tokens of a critic's prompt; of models here never more than leave room for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) critic_tokens: Option<usize>,
    /// Most tokens of a reviser's prompt, a critique of `critic.max_tokens` included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reviser_tokens: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OverLong {
    /// Nothing runs, and the tasks are counted.
    #[default]
    Refuse,
    /// They are left out and counted.
    LeaveOut,
    /// The examples of their statements are left out, and a line says so; tasks that are too long all the same are
    /// left out. Both are counted.
    Shorten,
}

impl Default for Sft {
    fn default() -> Self {
        Self {
            critic: Vec::new(),
            reviser: Vec::new(),
            generator: Vec::new(),
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
    /// Directories of models are taken relative to `place`. Files of supervised rows, as those of tasks, are taken
    /// relative to the working directory, which no longer matters from here on.
    pub(super) fn amend(&mut self, place: &Path) {
        self.critic.model.resolve(place);
        self.reviser.model.resolve(place);
        if let Some(generator) = &mut self.generator {
            generator.model.resolve(place);
        }
        let stages = self.sft.critic.iter_mut();
        for file in stages.filter_map(|stage| stage.file.as_mut()) {
            *file = absolute(&*file).unwrap_or_else(|_| file.clone());
        }
    }

    /// The critic, then the reviser, then the generator, as far as they are models here.
    pub(super) fn common(&self) -> Common<'_> {
        let (critic, reviser) = (&self.sft.critic, &self.sft.reviser);
        let critic = self.critic.policy("critic").map(|policy| PolicySettings {
            stages: critic.iter().map(CriticStage::size).collect(),
            reinforced: self.rl.is_some(),
            ..policy
        });
        let reviser = self.reviser.policy("reviser").map(|policy| PolicySettings {
            stages: reviser.iter().map(Stage::size).collect(),
            ..policy
        });
        let generator = self.generator.as_ref();
        let generator = generator.and_then(|role| role.policy(GENERATOR));
        let generator = generator.map(|policy| PolicySettings {
            stages: self.sft.generator.iter().map(Stage::size).collect(),
            ..policy
        });
        Common {
            name: &self.name,
            seed: self.seed,
            threads: self.threads,
            training: self.training,
            tokenizer: self.tokenizer.as_ref(),
            policies: critic.into_iter().chain(reviser).chain(generator).collect(),
            rl: self.rl.as_ref(),
            rollout: &self.rollout,
        }
    }

    /// How fixed texts are said: whole.
    pub(super) fn scripted(&self) -> Sampling {
        Sampling::greedy(match self.critic.model.here() {
            Some(ModelSource::Random(model)) => model.context,
            _ => LONGEST_CONTEXT,
        })
    }

    /// Every role's name and settings.
    pub(super) fn roles(&self) -> Vec<(&'static str, &Role)> {
        let generator = self.generator.as_ref().map(|role| (GENERATOR, role));
        let roles = [(CRITIC, &self.critic), (REVISER, &self.reviser)];
        roles.into_iter().chain(generator).collect()
    }

    /// The roles whose checkpoints are declared and not here, with their directories.
    pub(super) fn absent(&self) -> Vec<(&'static str, &Path)> {
        let absent = self.roles().into_iter().filter_map(|(name, role)| {
            let ModelSource::Checkpoint(directory) = role.model.here()? else {
                return None;
            };
            let declared = role.declared.is_some() && !directory.join("config.json").exists();
            declared.then_some((name, directory.as_path()))
        });
        absent.collect()
    }

    /// Whether there is nothing to train.
    pub(super) fn only_evaluates(&self) -> bool {
        self.rl.is_none()
            && self.sft.critic.is_empty()
            && self.sft.reviser.is_empty()
            && self.sft.generator.is_empty()
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

    /// The model that plays the role, where it is one of its own and runs here.
    fn policy<'a>(&'a self, name: &'a str) -> Option<PolicySettings<'a>> {
        Some(PolicySettings {
            name,
            key: name.to_owned(),
            model: self.model.here()?,
            begins_as: None,
            lora: self.lora.as_ref(),
            samplings: vec![(name.to_owned(), self.sampling())],
            stages: Vec::new(),
            reinforced: false,
        })
    }

    /// The endpoint that plays the role.
    pub(super) fn endpoint(&self) -> Option<NamedEndpoint<'_>> {
        let RoleModel::Endpoint(model) = &self.model else {
            return None;
        };
        Some(NamedEndpoint {
            model,
            api_key_env: self.api_key_env.as_deref(),
            timeout_s: self.timeout_s,
        })
    }
}

fn share_right() -> f64 {
    0.3
}
fn ten_minutes() -> f64 {
    600.0
}
fn is_ten_minutes(seconds: &f64) -> bool {
    *seconds == ten_minutes()
}
