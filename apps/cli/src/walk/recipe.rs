//! The recipe of the critique study: every key that `recipes/critique/*.toml` may have.

use std::path::{Path, PathBuf};

use chat::Chat;
use critique::{
    RewardConfig,
    tiny::{self, CriticMix, CriticRows, ReviserMix, ReviserRows, Split},
};
use engine::{LearnerOptions, ModelConfig};
use learn::{OptimizerConfig, ZeroVariance};
use record::{BadSampling, Sampling, Seed};
use rollout::Options as RolloutOptions;
use serde::{Deserialize, Serialize};
use train::ReinforceConfig;

use super::{
    adapters::Lora,
    model_source::{ModelSource, is_default},
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

/// What bounds the memory of training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Training {
    /// Tokens that one thread runs forward and backward together. Changes results by rounding.
    pub(crate) micro_batch_tokens: usize,
    /// Keep the inputs of layers alone and compute the rest again: more time, less memory, and the same
    /// results.
    pub(crate) gradient_checkpointing: bool,
}

impl Default for Training {
    fn default() -> Self {
        let LearnerOptions {
            micro_batch_tokens,
            gradient_checkpointing,
            ..
        } = LearnerOptions::default();
        Self {
            micro_batch_tokens,
            gradient_checkpointing,
        }
    }
}

impl Training {
    /// Roughly the numbers that all lanes keep from forward to backward.
    fn activations(&self, config: &ModelConfig) -> f64 {
        let (layers, input) = (config.n_layers as f64, config.hidden_size as f64);
        let heads = 2.0 * (config.n_heads + config.n_kv_heads) as f64 * config.head_dim as f64;
        let layer = 2.0 * input + heads + 2.0 * config.intermediate_size as f64;
        let of_token = if self.gradient_checkpointing {
            layers * input + layer
        } else {
            layers * layer
        };
        let lanes = LearnerOptions::default().lanes as f64;
        lanes * self.micro_batch_tokens as f64 * of_token
    }
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

/// Byte-level BPE, trained on the drafts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tokenizer {
    /// Entries in all: 256 bytes, special tokens, merges.
    pub(crate) vocabulary: usize,
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
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) top_k: usize,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) min_p: f64,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(crate) repetition_penalty: f64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) presence_penalty: f64,
    #[serde(default, skip_serializing_if = "is_zero")]
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
#[serde(deny_unknown_fields)]
pub(crate) struct Stage<Mix> {
    pub(crate) rows: usize,
    /// Rows of one optimizer step.
    pub(crate) batch_rows: usize,
    pub(crate) optimizer: OptimizerConfig,
    pub(crate) mix: Mix,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Eval {
    /// Critiques a task, at the critic's temperature.
    pub(crate) samples: u32,
    /// Evaluate the reviser on fixed critiques (empty, malformed, … and the right one).
    #[serde(default = "yes")]
    pub(crate) gates: bool,
}

impl Default for Eval {
    fn default() -> Self {
        Self {
            samples: 1,
            gates: true,
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

/// Longer than any context: what bounds texts that are said whole.
const LONGEST_CONTEXT: usize = 1 << 20;

impl Recipe {
    /// Reads the recipe at `path`. Directories of models are taken relative to it.
    pub(crate) fn load(
        path: &Path,
        set: &[String],
    ) -> Result<recipe::Resolved<Self>, recipe::RecipeError> {
        let place = path.parent().unwrap_or(Path::new(""));
        recipe::load_amended(path, set, |recipe: &mut Self| {
            recipe.critic.model.resolve(place);
            recipe.reviser.model.resolve(place);
        })
    }

    /// The roles by name.
    pub(crate) fn roles(&self) -> [(&'static str, &Role); 2] {
        [("critic", &self.critic), ("reviser", &self.reviser)]
    }

    /// How fixed texts are said: whole.
    pub(crate) fn scripted(&self) -> Sampling {
        Sampling::greedy(match &self.critic.model {
            ModelSource::Random(model) => model.context,
            ModelSource::Checkpoint(_) => LONGEST_CONTEXT,
        })
    }

    /// Checks what types cannot say, before anything is done.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        use anyhow::ensure;
        self.rl
            .algorithm
            .check()
            .map_err(|error| anyhow::anyhow!("rl.algorithm: {error}"))?;
        self.rl
            .optimizer
            .check()
            .map_err(|error| anyhow::anyhow!("rl.optimizer: {error}"))?;
        let stages = self
            .sft
            .critic
            .iter()
            .map(|stage| (&stage.optimizer, stage.rows, stage.batch_rows));
        let stages = stages.chain(
            self.sft
                .reviser
                .iter()
                .map(|stage| (&stage.optimizer, stage.rows, stage.batch_rows)),
        );
        for (optimizer, rows, batch_rows) in stages {
            optimizer
                .check()
                .map_err(|error| anyhow::anyhow!("sft optimizer: {error}"))?;
            ensure!(
                batch_rows >= 1 && batch_rows <= rows,
                "an sft stage has rows = {rows} and batch_rows = {batch_rows}; a batch needs at least one \
                 row and no more than there are"
            );
        }
        ensure!(self.threads >= 1, "threads is 0; at least one is needed");
        ensure!(
            self.training.micro_batch_tokens >= 1,
            "training.micro_batch_tokens is 0; at least one is needed"
        );
        ensure!(
            self.tasks.train >= 1 && self.tasks.eval >= 1,
            "tasks.train and tasks.eval must be at least 1"
        );
        ensure!(
            (0.0..=1.0).contains(&self.tasks.share_right),
            "tasks.share_right is {}; a share lies between 0 and 1",
            self.tasks.share_right
        );
        let supervised = !self.sft.critic.is_empty() || !self.sft.reviser.is_empty();
        ensure!(
            self.sft.drafts >= 1 || !(supervised || self.tokenizer.is_some()),
            "sft.drafts must be at least 1: supervised stages and a tokenizer are made from drafts"
        );
        let advantage = self.rl.algorithm.advantage;
        let least = if advantage.is_by_token() { 1 } else { 2 };
        ensure!(
            self.rl.tasks_per_step >= 1 && self.rl.group_size >= least,
            "rl.tasks_per_step must be at least 1 and rl.group_size at least {least}: with this \
             rl.algorithm.advantage, fewer have nothing to be compared with"
        );
        ensure!(
            advantage.needs_values() == self.rl.value.is_some(),
            "rl.algorithm.advantage = \"gae\" and [rl.value], which says how its value function is trained, \
             go together; this recipe has one of them alone"
        );
        if let Some(value) = &self.rl.value {
            value
                .check()
                .map_err(|error| anyhow::anyhow!("rl.value: {error}"))?;
            ensure!(
                value.head_start < self.rl.steps,
                "rl.value.head_start is {} and rl.steps is {}: the policy would never be trained",
                value.head_start,
                self.rl.steps
            );
        }
        ensure!(
            self.rl.algorithm.zero_variance != ZeroVariance::Resample || self.rl.group_size >= 2,
            "rl.algorithm.zero_variance = \"resample\" needs an rl.group_size of at least 2: a group of \
             one never varies"
        );
        ensure!(
            self.critic.temperature != 0.0,
            "critic.temperature is 0: all critiques of a task would be the same, and reinforcement has \
             nothing to choose from; give it at least a little, as 1.0"
        );
        ensure!(
            self.rl.epochs >= 1 && self.rl.mini_batches >= 1 && self.rl.max_rounds >= 1,
            "rl.epochs, rl.mini_batches and rl.max_rounds must be at least 1"
        );
        ensure!(self.eval.samples >= 1, "eval.samples must be at least 1");
        if let Some(tokenizer) = &self.tokenizer {
            let smallest = 256 + Chat::builtin_special_tokens().len();
            ensure!(
                tokenizer.vocabulary >= smallest,
                "tokenizer.vocabulary is {}; the bytes and the special tokens alone are {smallest}",
                tokenizer.vocabulary
            );
        }
        self.check_sizes()?;
        self.check_mixes()?;
        self.check_budgets()?;
        self.check_lora()?;
        for (role, settings) in self.roles() {
            let config = self.config(role, settings)?;
            ensure!(
                settings.max_tokens >= 1 && settings.max_tokens < config.context,
                "{role}.max_tokens is {}, but the context holds {} tokens, prompt included",
                settings.max_tokens,
                config.context
            );
            settings.sampling().check().map_err(|bad| {
                let BadSampling {
                    parameter,
                    value,
                    expected,
                } = bad;
                anyhow::anyhow!("{role}.{parameter} is {value}; {expected}")
            })?;
        }
        self.check_checkpoints()
    }

    /// The architecture of a role's model; its vocabulary is the largest that it may get.
    pub(super) fn config(&self, role: &str, settings: &Role) -> anyhow::Result<ModelConfig> {
        use anyhow::{Context, ensure};
        let vocabulary = match (&settings.model, &self.tokenizer) {
            (ModelSource::Random(model), tokenizer) => {
                ensure!(
                    model.heads >= 1 && model.hidden_size.is_multiple_of(model.heads),
                    "{role}.model: heads = {} do not divide hidden_size = {}",
                    model.heads,
                    model.hidden_size
                );
                let tokenizer = tokenizer.as_ref().with_context(|| {
                    format!(
                        "`tokenizer` is missing: {role}.model begins with random weights, and its \
                         vocabulary is trained; add [tokenizer] with `vocabulary`"
                    )
                })?;
                tokenizer.vocabulary
            }
            (ModelSource::Checkpoint(_), _) => 0,
        };
        let config = settings.model.config(vocabulary, &[]);
        let config = config.map_err(|error| anyhow::anyhow!("{role}.model: {error}"))?;
        let checked = config.check();
        checked.map_err(|error| anyhow::anyhow!("{role}.model: {error}"))?;
        Ok(config)
    }

    /// Adapters must have something left to train.
    fn check_lora(&self) -> anyhow::Result<()> {
        let (critic, reviser) = (self.sft.critic.len(), self.sft.reviser.len());
        // The critic goes on into reinforcement.
        let roles = [
            ("critic", &self.critic, critic, critic),
            ("reviser", &self.reviser, reviser, reviser.saturating_sub(1)),
        ];
        for (role, settings, stages, most) in roles {
            let Some(lora) = &settings.lora else { continue };
            lora.config()
                .check()
                .map_err(|error| anyhow::anyhow!("{role}.{error}"))?;
            anyhow::ensure!(
                lora.full_stages <= most,
                "{role}.lora.full_stages is {} and there are {stages} supervised stages; at most {most} \
                 leave the adapters something to learn",
                lora.full_stages
            );
        }
        Ok(())
    }

    /// Sizes that no machine of today holds are refused before anything allocates them.
    fn check_sizes(&self) -> anyhow::Result<()> {
        use anyhow::ensure;
        ensure!(
            !self.name.is_empty()
                && !self.name.contains(['/', '\\'])
                && !self.name.starts_with('.'),
            "name is `{}`; it names a directory under runs/, so it has no slash and does not begin with a dot",
            self.name
        );
        let counts = [
            ("threads", self.threads, 1 << 10),
            (
                "training.micro_batch_tokens",
                self.training.micro_batch_tokens,
                1 << 24,
            ),
            ("tasks.train", self.tasks.train, 1 << 20),
            ("tasks.eval", self.tasks.eval, 1 << 20),
            ("sft.drafts", self.sft.drafts, 1 << 24),
            ("rl.tasks_per_step", self.rl.tasks_per_step, 1 << 16),
            ("rl.group_size", self.rl.group_size as usize, 1 << 12),
            ("rl.epochs", self.rl.epochs, 1 << 10),
            ("rl.mini_batches", self.rl.mini_batches, 1 << 16),
            ("rl.max_rounds", self.rl.max_rounds, 1 << 10),
            ("eval.samples", self.eval.samples as usize, 1 << 16),
        ];
        let vocabulary = self.tokenizer.as_ref();
        let vocabulary = vocabulary.map(|tokenizer| {
            let key = "tokenizer.vocabulary".to_owned();
            (key, tokenizer.vocabulary, 1 << 20)
        });
        let contexts = self.roles().into_iter().filter_map(|(role, settings)| {
            let context = settings.model.random()?.context;
            Some((format!("{role}.model.context"), context, LONGEST_CONTEXT))
        });
        let counts = counts.map(|(key, value, most)| (key.to_owned(), value, most));
        for (key, value, most) in counts.into_iter().chain(vocabulary).chain(contexts) {
            ensure!(
                value <= most,
                "{key} is {value}; at most {most} is possible"
            );
        }
        if let Some(memory) = crate::machine::memory_bytes() {
            let needed = self.memory_bytes()?;
            ensure!(
                needed <= memory as f64,
                "the models need about {:.1} GiB of memory and this machine has {:.1}; lower \
                 critic.model or reviser.model",
                needed / (1u64 << 30) as f64,
                memory as f64 / (1u64 << 30) as f64
            );
        }
        Ok(())
    }

    /// What training takes at its peak, roughly. Of every weight: itself and its packed copies,
    /// gradients of four lanes, two moments, the reference; of a value function the same. Under
    /// adapters from the first stage on: itself and its packed copies. Beside them what layers keep
    /// for the gradients of one role at a time, cached keys and values, and the program itself.
    pub(crate) fn memory_bytes(&self) -> anyhow::Result<f64> {
        const COPIES: f64 = 10.0;
        const FROZEN_COPIES: f64 = 4.0;
        const PROGRAM: f64 = 200.0 * (1u64 << 20) as f64;
        let vocabulary = self.tokenizer.as_ref().map_or(0, |own| own.vocabulary);
        let (mut floats, mut activations) = (0.0, 0.0_f64);
        for (role, settings) in self.roles() {
            let kept = self.training.activations(&self.config(role, settings)?);
            activations = activations.max(kept);
            let weights = match &settings.model {
                ModelSource::Random(model) => model.n_parameters(vocabulary),
                ModelSource::Checkpoint(_) => self.config(role, settings)?.n_parameters() as f64,
            };
            let of_role = match &settings.lora {
                Some(lora) if lora.full_stages == 0 => {
                    let config = self.config(role, settings)?;
                    let adapter = lora.config().n_parameters(&config) as f64;
                    FROZEN_COPIES * weights + COPIES * adapter
                }
                _ => COPIES * weights,
            };
            let with_values = role == "critic" && self.rl.value.is_some();
            floats += if with_values { 2.0 * of_role } else { of_role };
        }
        Ok((floats + activations) * 4.0 + PROGRAM)
    }

    /// Every mix must have something to draw.
    fn check_mixes(&self) -> anyhow::Result<()> {
        let seed = Seed(self.seed);
        let draft = [tiny::draft(seed, Split::Train, 0, self.tasks.share_right)];
        for (index, stage) in self.sft.critic.iter().enumerate() {
            CriticRows::new(&draft, &stage.mix, seed).map_err(|error| {
                anyhow::anyhow!("mix of sft.critic stage {}: {error}", index + 1)
            })?;
        }
        for (index, stage) in self.sft.reviser.iter().enumerate() {
            ReviserRows::new(&draft, &stage.mix, seed).map_err(|error| {
                anyhow::anyhow!("mix of sft.reviser stage {}: {error}", index + 1)
            })?;
        }
        Ok(())
    }

    /// Nothing can be played or judged in no time or no memory.
    fn check_budgets(&self) -> anyhow::Result<()> {
        use anyhow::ensure;
        let seconds = [
            ("sandbox.wall_s", self.sandbox.wall_s),
            ("sandbox.cpu_s", self.sandbox.cpu_s),
            ("rollout.deadline_s", self.rollout.deadline_s),
        ];
        for (key, value) in seconds {
            // A day is longer than anything here may take, and any machine can count it.
            ensure!(
                value > 0.0 && value <= 86_400.0,
                "{key} is {value}; it must be more than 0 s and at most a day"
            );
        }
        ensure!(
            (16..=1 << 20).contains(&self.sandbox.memory_mb),
            "sandbox.memory_mb is {}; an interpreter needs at least 16",
            self.sandbox.memory_mb
        );
        ensure!(
            (0.0..=1.0).contains(&self.rollout.max_fault_share),
            "rollout.max_fault_share is {}; a share lies between 0 and 1",
            self.rollout.max_fault_share
        );
        ensure!(
            self.rollout.concurrency >= 1,
            "rollout.concurrency is 0; at least one is needed"
        );
        ensure!(self.rl.steps >= 1, "rl.steps is 0; at least one is needed");
        Ok(())
    }
}

impl Role {
    /// Stop tokens are the chat's own.
    pub(crate) fn sampling(&self) -> Sampling {
        Sampling {
            top_p: self.top_p as f32,
            top_k: self.top_k,
            min_p: self.min_p as f32,
            repetition_penalty: self.repetition_penalty as f32,
            presence_penalty: self.presence_penalty as f32,
            frequency_penalty: self.frequency_penalty as f32,
            ..Sampling::at(self.temperature as f32, self.max_tokens)
        }
    }
}

fn one() -> f64 {
    1.0
}
fn is_one(value: &f64) -> bool {
    *value == 1.0
}
fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
fn two() -> usize {
    2
}
fn yes() -> bool {
    true
}
fn share_right() -> f64 {
    0.3
}
