//! The recipe of the repair study: every key that `recipes/repair/*.toml` may have.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf, absolute},
};

use repair::{
    RepairConfig,
    environment::EnvironmentConfig,
    patch_model::ChatPatcher,
    planner::{PLANNER, PlannerConfig},
    repair_loop::LoopSettings,
    search::SearchSettings,
    tiny::Mix,
};
use rollout::Options as RolloutOptions;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{
        Error, MapAccess, Visitor,
        value::{MapAccessDeserializer, StrDeserializer},
    },
};
use train::ReinforceConfig;

use crate::{
    sandboxes::SandboxSettings,
    walk::{
        adapters::Lora,
        model_source::ModelSource,
        settings::{
            Common, PolicySettings, SamplingSettings, Stage, Tokenizer, Training, is_default, two,
        },
    },
};

/// One run of the repair study.
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
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) training: Training,
    #[serde(default)]
    pub(super) tasks: Tasks,
    #[serde(default)]
    pub(super) sandbox: SandboxSettings,
    #[serde(default)]
    pub(super) planner: PlannerConfig,
    #[serde(default)]
    pub(super) environment: EnvironmentConfig,
    /// How patches are tried.
    #[serde(default)]
    pub(super) repair: LoopSettings,
    #[serde(default)]
    pub(super) patcher: Patcher,
    /// Of the policies whose models begin with random weights; the others bring their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tokenizer: Option<Tokenizer>,
    /// Models that play roles, by a name of the recipe's choice.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) policies: BTreeMap<String, Policy>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) sft: Sft,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rl: Option<ReinforceConfig>,
    #[serde(default)]
    pub(super) eval: Eval,
    #[serde(default = "rollout")]
    pub(super) rollout: RolloutOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StudyName {
    Repair,
}

/// What is evaluated on, and trained on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tasks {
    /// A file of tasks; without one, bugs planted in the packages that come with the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) eval: Option<PathBuf>,
    /// The first so many of them; absent for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<usize>,
    /// Of recipes that train: files of tasks to train on; without one, bugs planted in the training packages that
    /// come with the program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) train: Vec<PathBuf>,
    /// The first so many of them; absent for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) train_limit: Option<usize>,
}

/// Who turns plans into patches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Patcher {
    /// Program repair without a model.
    Search(SearchSettings),
    /// The policy that plays the role `patcher`.
    Model(ChatPatcher),
    /// A service that speaks CodeFuse's `POST /generate`.
    Generate(GenerateSettings),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GenerateSettings {
    /// Up to and without `/generate`.
    pub(super) url: String,
    /// What the service is asked for.
    #[serde(default = "code_fuse")]
    pub(super) model: String,
    /// The environment variable that holds the service's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) api_key_env: Option<String>,
    #[serde(default = "minute")]
    pub(super) timeout_s: f64,
}

/// A model, and the roles that it plays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Policy {
    /// How each of its roles is sampled.
    pub(super) roles: BTreeMap<String, SamplingSettings>,
    pub(super) model: PolicyModel,
    /// The environment variable that holds its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) api_key_env: Option<String>,
    /// Of one answer.
    #[serde(default = "ten_minutes")]
    pub(super) timeout_s: f64,
    /// Train low-rank adapters in place of every weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lora: Option<Lora>,
    /// Supervised stages, each from the end of the one before: lessons in pointing at suspects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) sft: Vec<Stage<Mix>>,
}

/// Where the model of a policy runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PolicyModel {
    /// Behind a chat endpoint: `openai:http://HOST:PORT/v1#MODEL`. It cannot be trained.
    Endpoint(String),
    /// Here.
    Local(ModelSource),
}

impl Serialize for PolicyModel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Endpoint(name) => name.serialize(serializer),
            Self::Local(model) => model.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for PolicyModel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ModelVisitor)
    }
}

struct ModelVisitor;

impl<'de> Visitor<'de> for ModelVisitor {
    type Value = PolicyModel;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the sizes of a new model, \"hf:DIRECTORY\" of a checkpoint, or \"openai:URL#MODEL\" of an endpoint",
        )
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<PolicyModel, E> {
        match text.starts_with("hf:") {
            true => ModelSource::deserialize(StrDeserializer::new(text)).map(PolicyModel::Local),
            false => Ok(PolicyModel::Endpoint(text.to_owned())),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PolicyModel, A::Error> {
        ModelSource::deserialize(MapAccessDeserializer::new(map)).map(PolicyModel::Local)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Sft {
    /// Steps between checkpoints: what a killed run does again at most.
    pub(super) save_every: u64,
}

impl Default for Sft {
    fn default() -> Self {
        Self { save_every: 200 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Eval {
    /// Episodes a task.
    pub(super) samples: u32,
    /// Of all local policies while they are evaluated; as their roles say where it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    /// Of recipes that train: evaluate what planners that nobody trained are worth in the same environment.
    #[serde(skip_serializing_if = "is_default")]
    pub(super) baselines: bool,
}

impl Default for Eval {
    fn default() -> Self {
        Self {
            samples: 1,
            temperature: None,
            baselines: false,
        }
    }
}

impl Default for Patcher {
    fn default() -> Self {
        Self::Search(SearchSettings::default())
    }
}

impl Recipe {
    /// Directories of models and files of training tasks are taken relative to `place`.
    pub(super) fn amend(&mut self, place: &Path) {
        for policy in self.policies.values_mut() {
            if let PolicyModel::Local(model) = &mut policy.model {
                model.resolve(place);
            }
        }
        for file in &mut self.tasks.train {
            let joined = place.join(&*file);
            *file = absolute(&joined).unwrap_or(joined);
        }
    }

    pub(super) fn common(&self) -> Common<'_> {
        let policies = self.policies.iter().filter_map(|(name, policy)| {
            let PolicyModel::Local(model) = &policy.model else {
                return None;
            };
            let key = format!("policies.{name}");
            let samplings = policy
                .roles
                .iter()
                .map(|(role, settings)| (format!("{key}.roles.{role}"), settings.sampling()));
            Some(PolicySettings {
                name,
                model,
                begins_as: None,
                lora: policy.lora.as_ref(),
                samplings: samplings.collect(),
                stages: policy.sft.iter().map(Stage::size).collect(),
                reinforced: self.rl.is_some() && policy.roles.contains_key(PLANNER),
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
            rl: self.rl.as_ref(),
            rollout: &self.rollout,
        }
    }

    /// The recipe trains something.
    pub(super) fn trains(&self) -> bool {
        let taught = |policy: &Policy| !policy.sft.is_empty();
        self.rl.is_some() || self.policies.values().any(taught)
    }

    /// The study as the recipe has it.
    pub(super) fn config(&self) -> RepairConfig {
        RepairConfig {
            planner: self.planner,
            environment: self.environment.clone(),
        }
    }
}

/// An episode runs many tests: fewer at a time, and longer.
fn rollout() -> RolloutOptions {
    RolloutOptions {
        concurrency: 2,
        deadline_s: 1800.0,
        ..RolloutOptions::default()
    }
}
fn code_fuse() -> String {
    "codefuse-cgm".to_owned()
}
fn minute() -> f64 {
    60.0
}
fn ten_minutes() -> f64 {
    600.0
}
