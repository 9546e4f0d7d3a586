//! What types cannot say of any study's recipe, checked before anything is done.

use anyhow::{anyhow, ensure};
use chat::Chat;
use learn::ZeroVariance;
use train::ReinforceConfig;

use super::{Common, LONGEST_CONTEXT};
use crate::walk::model_source::ModelSource;

impl Common<'_> {
    /// How things are trained.
    pub(crate) fn check_training(&self) -> anyhow::Result<()> {
        if let Some(rl) = self.rl {
            rl.algorithm
                .check()
                .map_err(|error| anyhow!("rl.algorithm: {error}"))?;
            rl.optimizer
                .check()
                .map_err(|error| anyhow!("rl.optimizer: {error}"))?;
            check_reinforcement(rl)?;
        }
        for stage in self.policies.iter().flat_map(|policy| &policy.stages) {
            stage
                .optimizer
                .check()
                .map_err(|error| anyhow!("sft optimizer: {error}"))?;
            ensure!(
                stage.batch_rows >= 1 && stage.batch_rows <= stage.rows,
                "an sft stage has rows = {} and batch_rows = {}; a batch needs at least one \
                 row and no more than there are",
                stage.rows,
                stage.batch_rows
            );
        }
        ensure!(self.threads >= 1, "threads is 0; at least one is needed");
        ensure!(
            self.training.micro_batch_tokens >= 1,
            "training.micro_batch_tokens is 0; at least one is needed"
        );
        if let Some(tokenizer) = self.tokenizer {
            let smallest = 256 + Chat::builtin_special_tokens().len();
            ensure!(
                tokenizer.vocabulary >= smallest,
                "tokenizer.vocabulary is {}; the bytes and the special tokens alone are {smallest}",
                tokenizer.vocabulary
            );
        }
        Ok(())
    }

    /// Sizes that no machine of today holds are refused before anything allocates them. `counts` are the
    /// study's own: key, value, the most that is possible.
    pub(crate) fn check_sizes(&self, counts: &[(&str, usize, usize)]) -> anyhow::Result<()> {
        ensure!(
            !self.name.is_empty()
                && !self.name.contains(['/', '\\'])
                && !self.name.starts_with('.'),
            "name is `{}`; it names a directory under runs/, so it has no slash and does not begin with a dot",
            self.name
        );
        let shared = [
            ("threads", self.threads, 1 << 10),
            (
                "training.micro_batch_tokens",
                self.training.micro_batch_tokens,
                1 << 24,
            ),
        ];
        let reinforced = self.rl.into_iter().flat_map(|rl| {
            [
                ("rl.tasks_per_step", rl.tasks_per_step, 1 << 16),
                ("rl.group_size", rl.group_size as usize, 1 << 12),
                ("rl.epochs", rl.epochs, 1 << 10),
                ("rl.mini_batches", rl.mini_batches, 1 << 16),
                ("rl.max_rounds", rl.max_rounds, 1 << 10),
            ]
        });
        let vocabulary = self.tokenizer.map(|tokenizer| {
            let key = "tokenizer.vocabulary".to_owned();
            (key, tokenizer.vocabulary, 1 << 20)
        });
        let contexts = self.policies.iter().filter_map(|policy| {
            let context = policy.random()?.context;
            Some((
                format!("{}.model.context", policy.key),
                context,
                LONGEST_CONTEXT,
            ))
        });
        let counts = shared
            .into_iter()
            .chain(reinforced)
            .chain(counts.iter().copied());
        let counts = counts.map(|(key, value, most)| (key.to_owned(), value, most));
        for (key, value, most) in counts.chain(vocabulary).chain(contexts) {
            ensure!(
                value <= most,
                "{key} is {value}; at most {most} is possible"
            );
        }
        if let Some(memory) = crate::machine::memory_bytes() {
            let needed = self.memory_bytes()?;
            let models: Vec<String> = self
                .policies
                .iter()
                .map(|policy| format!("{}.model", policy.key))
                .collect();
            ensure!(
                needed <= memory as f64,
                "the models need about {:.1} GiB of memory and this machine has {:.1}; lower {}",
                needed / (1u64 << 30) as f64,
                memory as f64 / (1u64 << 30) as f64,
                models.join(" or ")
            );
        }
        Ok(())
    }

    /// Nothing can be played in no time.
    pub(crate) fn check_rollout(&self) -> anyhow::Result<()> {
        check_seconds("rollout.deadline_s", self.rollout.deadline_s)?;
        ensure!(
            (0.0..=1.0).contains(&self.rollout.max_fault_share),
            "rollout.max_fault_share is {}; a share lies between 0 and 1",
            self.rollout.max_fault_share
        );
        ensure!(
            self.rollout.concurrency >= 1,
            "rollout.concurrency is 0; at least one is needed"
        );
        Ok(())
    }

    /// Every model, its adapters and how its roles are sampled.
    pub(crate) fn check_policies(&self) -> anyhow::Result<()> {
        for policy in &self.policies {
            policy.check_lora()?;
        }
        for policy in &self.policies {
            let config = policy.config(self.tokenizer)?;
            policy.check_samplings(config.context)?;
        }
        Ok(())
    }

    /// What training takes at its peak, roughly. Of every weight: itself and its packed copies,
    /// gradients of four lanes, two moments, the reference; of a value function the same. Under
    /// adapters from the first stage on: itself and its packed copies. Beside them what layers keep
    /// for the gradients of one model at a time, cached keys and values, and the program itself.
    pub(crate) fn memory_bytes(&self) -> anyhow::Result<f64> {
        const COPIES: f64 = 10.0;
        const FROZEN_COPIES: f64 = 4.0;
        const PROGRAM: f64 = 200.0 * (1u64 << 20) as f64;
        let vocabulary = self.tokenizer.map_or(0, |own| own.vocabulary);
        let (mut floats, mut activations) = (0.0, 0.0_f64);
        for policy in &self.policies {
            let config = policy.config(self.tokenizer)?;
            activations = activations.max(self.training.activations(&config));
            let weights = match policy.model {
                ModelSource::Random(model) => model.n_parameters(vocabulary),
                ModelSource::Checkpoint(_) => config.n_parameters() as f64,
            };
            let of_policy = match policy.lora {
                Some(lora) if lora.full_stages == 0 => {
                    let adapter = lora.config().n_parameters(&config) as f64;
                    let shared = policy.begins_as.is_some();
                    let frozen = if shared { 0.0 } else { FROZEN_COPIES };
                    frozen * weights + COPIES * adapter
                }
                _ => COPIES * weights,
            };
            let with_values = policy.reinforced && self.rl.is_some_and(|rl| rl.value.is_some());
            floats += if with_values {
                2.0 * of_policy
            } else {
                of_policy
            };
        }
        Ok((floats + activations) * 4.0 + PROGRAM)
    }
}

/// A day is longer than anything here may take, and any machine can count it.
pub(crate) fn check_seconds(key: &str, value: f64) -> anyhow::Result<()> {
    ensure!(
        value > 0.0 && value <= 86_400.0,
        "{key} is {value}; it must be more than 0 s and at most a day"
    );
    Ok(())
}

fn check_reinforcement(rl: &ReinforceConfig) -> anyhow::Result<()> {
    let advantage = rl.algorithm.advantage;
    let least = if advantage.is_by_token() { 1 } else { 2 };
    ensure!(
        rl.tasks_per_step >= 1 && rl.group_size >= least,
        "rl.tasks_per_step must be at least 1 and rl.group_size at least {least}: with this \
             rl.algorithm.advantage, fewer have nothing to be compared with"
    );
    ensure!(
        advantage.needs_values() == rl.value.is_some(),
        "rl.algorithm.advantage = \"gae\" and [rl.value], which says how its value function is trained, \
             go together; this recipe has one of them alone"
    );
    if let Some(value) = &rl.value {
        value
            .check()
            .map_err(|error| anyhow!("rl.value: {error}"))?;
        ensure!(
            value.head_start < rl.steps,
            "rl.value.head_start is {} and rl.steps is {}: the policy would never be trained",
            value.head_start,
            rl.steps
        );
    }
    ensure!(
        rl.algorithm.zero_variance != ZeroVariance::Resample || rl.group_size >= 2,
        "rl.algorithm.zero_variance = \"resample\" needs an rl.group_size of at least 2: a group of \
             one never varies"
    );
    ensure!(
        rl.epochs >= 1 && rl.mini_batches >= 1 && rl.max_rounds >= 1,
        "rl.epochs, rl.mini_batches and rl.max_rounds must be at least 1"
    );
    ensure!(rl.steps >= 1, "rl.steps is 0; at least one is needed");
    Ok(())
}
