//! The recipe of the repair study: every key that `recipes/repair/*.toml` may have.

use std::{collections::BTreeMap, path::PathBuf};

use repair::{
    RepairConfig, environment::EnvironmentConfig, patch_model::ChatPatcher, planner::PlannerConfig,
    repair_loop::LoopSettings, search::SearchSettings,
};
use rollout::Options as RolloutOptions;
use serde::{Deserialize, Serialize};
use train::ReinforceConfig;

use crate::{
    sandboxes::SandboxSettings,
    walk::settings::{Common, SamplingSettings, Training, is_default, two},
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
    /// Models that play roles, by a name of the recipe's choice.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) policies: BTreeMap<String, Policy>,
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

/// What is evaluated on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tasks {
    /// A file of tasks; without one, bugs planted in the packages that come with the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) eval: Option<PathBuf>,
    /// The first so many of them; absent for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<usize>,
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

/// A model behind an endpoint, and the roles that it plays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Policy {
    /// How each of its roles is sampled.
    pub(super) roles: BTreeMap<String, SamplingSettings>,
    /// `openai:http://HOST:PORT/v1#MODEL`.
    pub(super) model: String,
    /// The environment variable that holds its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) api_key_env: Option<String>,
    /// Of one answer.
    #[serde(default = "ten_minutes")]
    pub(super) timeout_s: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Eval {
    /// Episodes a task.
    pub(super) samples: u32,
}

impl Default for Eval {
    fn default() -> Self {
        Self { samples: 1 }
    }
}

impl Default for Patcher {
    fn default() -> Self {
        Self::Search(SearchSettings::default())
    }
}

impl Recipe {
    pub(super) fn common(&self) -> Common<'_> {
        Common {
            name: &self.name,
            seed: self.seed,
            threads: self.threads,
            training: self.training,
            tokenizer: None,
            policies: Vec::new(),
            rl: self.rl.as_ref(),
            rollout: &self.rollout,
        }
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
