//! The recipe of the recall study: every key that `recipes/recall/*.toml` may have.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use learn::{AlgorithmConfig, OptimizerConfig, Singleton};
use recall::{
    Granularity, PromptConfig, Reading, RecallConfig, RewardConfig,
    memory::{Baseline, MemoryConfig, OpFormat},
    roles_of,
    step_reward::StepRewards,
    tiny::Mix,
};
use rollout::Options as RolloutOptions;
use serde::{Deserialize, Serialize};
use train::ReinforceConfig;

use super::files::FormatName;
use crate::walk::{
    adapters::Lora,
    model_source::ModelSource,
    settings::{
        Common, PolicySettings, SamplingSettings, Stage, Tokenizer, Training, is_default, two,
    },
};

/// One run of the recall study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recipe {
    pub(super) study: StudyName,
    /// Names the run directory, `runs/<name>`.
    pub(super) name: String,
    #[serde(default)]
    pub(super) seed: u64,
    /// Threads of the engine. Changes no result.
    #[serde(default = "two")]
    pub(super) threads: usize,
    /// Answer from a memory that nobody learnt to write, in place of `memory`'s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) baseline: Option<Baseline>,
    /// How policies write operations.
    #[serde(default)]
    pub(super) format: OpFormat,
    /// Of all models in training.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) training: Training,
    pub(super) tasks: Tasks,
    #[serde(default)]
    pub(super) memory: MemoryConfig,
    #[serde(default)]
    pub(super) prompt: PromptConfig,
    /// How answers are read out of responses.
    #[serde(default)]
    pub(super) answer: Reading,
    /// Of the policies whose models begin with random weights; the others bring their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tokenizer: Option<Tokenizer>,
    /// Every model of the run, by a name of the recipe's choice.
    pub(super) policies: BTreeMap<String, Policy>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) sft: Sft,
    #[serde(default)]
    pub(super) reward: RewardConfig,
    /// What single calls are paid beside it.
    #[serde(default, skip_serializing_if = "StepRewards::is_empty")]
    pub(super) step_rewards: StepRewards,
    pub(super) rl: ReinforceConfig,
    #[serde(default)]
    pub(super) eval: Eval,
    #[serde(default)]
    pub(super) rollout: RolloutOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StudyName {
    Recall,
}

/// What is trained and evaluated on: dialogues of the small world, or of files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tasks {
    /// Tasks to train on.
    pub(super) train: usize,
    /// Held-out tasks to evaluate on.
    pub(super) eval: usize,
    /// Whether a task asks all questions of a dialogue, or one.
    #[serde(default)]
    pub(super) granularity: Granularity,
    /// Questions of a dialogue of the small world, beside one of every kind.
    #[serde(default = "questions")]
    pub(super) questions: usize,
    /// Of training dialogues of the small world, questions about each session alone, for
    /// `step_rewards.chunk_qa.ask`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) chunk_questions: usize,
    /// Read the training tasks from here instead; `train` then bounds their number. Dialogues are divided
    /// by document between training and evaluation where there is no `eval_file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) train_file: Option<PathBuf>,
    /// Read the evaluation tasks from here instead; `eval` then bounds their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) eval_file: Option<PathBuf>,
    /// What the files hold: dialogues in this format; without it, tasks as runs keep them in `tasks/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) format: Option<FormatName>,
    /// Tokens of a history turn where a format has no sessions of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) chunk_tokens: Option<usize>,
    /// Leave out rows of files that do not fit, in place of refusing the file.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) skip_rejected: bool,
}

/// Weights, the roles that they answer for, and how they are supervised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Policy {
    /// How each of its roles is sampled.
    pub(super) roles: BTreeMap<String, SamplingSettings>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<ModelSource>,
    /// In place of a model: begin as this policy is after its supervised stages. Its weights are shared as
    /// long as adapters are all that is trained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) begins_as: Option<String>,
    /// Train low-rank adapters in place of every weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lora: Option<Lora>,
    /// Supervised stages, each from the end of the one before; none for models that bring what they need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) sft: Vec<Stage<Mix>>,
    /// How it is reinforced, where that is not as `[rl]` says.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) rl: OwnRl,
}

/// What a policy has of its own in reinforcement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OwnRl {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) algorithm: Option<AlgorithmConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) optimizer: Option<OptimizerConfig>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Sft {
    /// Steps between checkpoints: what a killed run does again at most.
    pub(super) save_every: u64,
}

impl Default for Sft {
    fn default() -> Self {
        Self { save_every: 200 }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Eval {
    /// Episodes a task.
    pub(super) samples: u32,
    /// Of all roles while they are evaluated; as the policies say where it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    /// Evaluate what memories that nobody learnt to write are worth, and no memory at all, within the
    /// same budget of tokens.
    pub(super) baselines: bool,
}

impl Default for Eval {
    fn default() -> Self {
        Self {
            samples: 1,
            temperature: None,
            baselines: true,
        }
    }
}

impl Recipe {
    /// Directories of models are taken relative to `place`; defaults of new runs alone are written down.
    pub(super) fn amend(&mut self, place: &Path) {
        for model in self
            .policies
            .values_mut()
            .filter_map(|policy| policy.model.as_mut())
        {
            model.resolve(place);
        }
        self.say_what_singletons_are();
        self.leave_out_whom_a_baseline_does_not_ask();
    }

    /// The roles that write the recipe's memory, which a baseline in its place does not ask.
    pub(super) fn unasked_by_baseline(&self) -> Vec<&'static str> {
        let asked = self.asked_roles();
        let own = roles_of(self.memory.extraction).iter().copied();
        own.filter(|role| !asked.contains(role)).collect()
    }

    /// `baseline` alone is then enough to play one: roles that nobody asks are taken from the policies, and
    /// policies that play nothing else are left out.
    fn leave_out_whom_a_baseline_does_not_ask(&mut self) {
        let unasked = self.unasked_by_baseline();
        if self.baseline.is_none() || unasked.is_empty() {
            return;
        }
        let is_asked = |role: &str| !unasked.contains(&role);
        let began = self.policies.values();
        let began: Vec<String> = began.filter_map(|one| one.begins_as.clone()).collect();
        self.policies.retain(|name, policy| {
            let played = !policy.roles.is_empty();
            policy.roles.retain(|role, _| is_asked(role));
            !played || !policy.roles.is_empty() || began.contains(name)
        });
        self.rl.train.retain(|role| is_asked(role));
    }

    /// Writes down what recipes leave out: an episode with nothing to compare it with teaches nothing. Runs
    /// begun by recipes without the key go on as they began.
    fn say_what_singletons_are(&mut self) {
        let own = self.policies.values_mut();
        let own = own.filter_map(|policy| policy.rl.algorithm.as_mut());
        for algorithm in own.chain([&mut self.rl.algorithm]) {
            if algorithm.singleton.is_none() && !algorithm.advantage.is_by_token() {
                algorithm.singleton = Some(Singleton::Zero);
            }
        }
    }

    /// The policies in the order of their names, those after the others that begin as another. A policy
    /// whose model cannot be known is left out; a check says so.
    pub(super) fn common(&self) -> Common<'_> {
        let (later, first): (Vec<_>, Vec<_>) = self
            .policies
            .iter()
            .partition(|(_, policy)| policy.begins_as.is_some());
        let policies = first.into_iter().chain(later).filter_map(|(name, policy)| {
            let key = format!("policies.{name}");
            let samplings = policy
                .roles
                .iter()
                .map(|(role, settings)| (format!("{key}.roles.{role}"), settings.sampling()));
            let trained = |role: &String| self.rl.train.contains(role);
            Some(PolicySettings {
                name,
                model: self.model_of(name).ok()?,
                begins_as: policy.begins_as.as_deref(),
                lora: policy.lora.as_ref(),
                samplings: samplings.collect(),
                stages: policy.sft.iter().map(Stage::size).collect(),
                reinforced: policy.roles.keys().any(trained),
                key,
            })
        });
        Common {
            name: &self.name,
            seed: self.seed,
            threads: self.threads,
            training: self.training,
            tokenizer: self.tokenizer.as_ref(),
            policies: policies.collect(),
            rl: Some(&self.rl),
            rollout: &self.rollout,
        }
    }

    /// What a policy's model is made from: its own, or that of the policy that it begins as.
    pub(super) fn model_of(&self, name: &str) -> anyhow::Result<&ModelSource> {
        let known = || self.policies.keys().map(String::as_str);
        let found = self.policies.get(name);
        let policy = found.with_context(|| format!("no policy is named {name}"))?;
        match (&policy.model, &policy.begins_as) {
            (Some(model), None) => Ok(model),
            (None, None) => bail!(
                "policies.{name} has no `model`; give it one, or say which policy it begins as with \
                 `begins_as`"
            ),
            (Some(_), Some(_)) => bail!(
                "policies.{name} has `model` and `begins_as`; its weights come from one of them"
            ),
            (None, Some(other)) => {
                let source = self.policies.get(other).with_context(|| {
                    let near = recipe::nearest(other, known())
                        .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                    format!("policies.{name}.begins_as: no policy is named `{other}`{near}")
                })?;
                let model = source.model.as_ref();
                model.with_context(|| {
                    format!(
                        "policies.{name}.begins_as is `{other}`, which has no `model` of its own; name a \
                         policy that has"
                    )
                })
            }
        }
    }

    /// How a policy's advantages are made and its loss is.
    pub(super) fn algorithm(&self, policy: &str) -> &AlgorithmConfig {
        let own = self.policies.get(policy);
        own.and_then(|policy| policy.rl.algorithm.as_ref())
            .unwrap_or(&self.rl.algorithm)
    }

    pub(super) fn optimizer(&self, policy: &str) -> &OptimizerConfig {
        let own = self.policies.get(policy);
        own.and_then(|policy| policy.rl.optimizer.as_ref())
            .unwrap_or(&self.rl.optimizer)
    }

    /// The study as the recipe has it.
    pub(super) fn config(&self) -> RecallConfig {
        RecallConfig {
            memory: self.memory.clone(),
            baseline: self.baseline,
            format: self.format,
            prompt: self.prompt.clone(),
            answer: self.answer.clone(),
            reward: self.reward,
            step_rewards: self.step_rewards,
        }
    }
}

fn questions() -> usize {
    4
}
