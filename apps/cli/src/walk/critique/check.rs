//! What types cannot say of a critique recipe, checked before anything is done.

use std::path::Path;

use anyhow::{Context, anyhow, ensure};
use critique::{
    CRITIC, GENERATOR, REVISER,
    prompts::{critic_lesson, generator_lesson, reviser_lesson},
    tiny::{
        self, CriticMix, CriticRows, GeneratorMix, GeneratorRows, ReviserMix, ReviserRows, Split,
    },
};
use engine::ModelConfig;
use record::{Message, Seed};

use super::{recipe::Recipe, role::RoleModel};
use crate::walk::{model_source::ModelSource, settings::check_seconds};

impl Recipe {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let common = self.common();
        self.check_declared()?;
        self.check_sizes_declared()?;
        common.check_sizes(&[
            ("tasks.train", self.tasks.train, 1 << 20),
            ("tasks.eval", self.tasks.eval, 1 << 20),
            ("sft.drafts", self.sft.drafts, 1 << 24),
            ("eval.samples", self.eval.samples as usize, 1 << 16),
        ])?;
        common.check_policies()?;
        let mut sound: Vec<&Path> = Vec::new();
        for policy in &common.policies {
            let context = policy.config(common.tokenizer)?.context;
            let example = self.example(policy.name)?;
            policy.check_checkpoint(&mut sound, context, policy.name, &example)?;
        }
        Ok(())
    }

    /// What can be said without any model.
    pub(super) fn check_declared(&self) -> anyhow::Result<()> {
        let common = self.common();
        common.check_training()?;
        ensure!(
            self.tasks.eval >= 1 && (self.tasks.train >= 1 || self.only_evaluates()),
            "tasks.train and tasks.eval must be at least 1"
        );
        ensure!(
            (0.0..=1.0).contains(&self.tasks.share_right),
            "tasks.share_right is {}; a share lies between 0 and 1",
            self.tasks.share_right
        );
        let of_mixes = self.sft.critic.iter().any(|stage| stage.mix.is_some());
        let supervised =
            of_mixes || !(self.sft.reviser.is_empty() && self.sft.generator.is_empty());
        ensure!(
            self.sft.drafts >= 1 || !(supervised || self.tokenizer.is_some()),
            "sft.drafts must be at least 1: supervised stages and a tokenizer are made from drafts"
        );
        ensure!(
            self.rl.is_none() || self.critic.temperature != 0.0,
            "critic.temperature is 0: all critiques of a task would be the same, and reinforcement has \
             nothing to choose from; give it at least a little, as 1.0"
        );
        ensure!(
            self.rl_train().iter().all(|role| role == CRITIC),
            "rl.train is {:?}; in this study the critic is trained and nobody else, so leave it out",
            self.rl_train()
        );
        self.reward
            .check()
            .map_err(|error| anyhow!("reward.{error}"))?;
        self.check_roles()?;
        self.eval.check(self.generator.is_some())?;
        ensure!(
            self.generator.is_some() || self.sft.generator.is_empty(),
            "sft.generator is of a generator, and the recipe has none; add [generator] or leave it out"
        );
        self.plan.check()?;
        self.check_mixes()?;
        self.check_sandbox()?;
        common.check_rollout()
    }

    /// A declared checkpoint that is here has the sizes that were declared.
    pub(super) fn check_sizes_declared(&self) -> anyhow::Result<()> {
        for (name, role) in self.roles() {
            let Some(declared) = &role.declared else {
                continue;
            };
            let Some(ModelSource::Checkpoint(directory)) = role.model.here() else {
                anyhow::bail!(
                    "{name}.declared has the sizes of a checkpoint, and {name}.model is none; leave it out"
                );
            };
            if self.absent().iter().any(|(absent, _)| *absent == name) {
                continue;
            }
            let config = ModelConfig::load(directory).with_context(|| format!("{name}.model"))?;
            let expected = declared.config();
            let sizes = |config: &ModelConfig| {
                [
                    ("vocabulary", config.vocab_size),
                    ("hidden_size", config.hidden_size),
                    ("intermediate_size", config.intermediate_size),
                    ("layers", config.n_layers),
                    ("heads", config.n_heads),
                    ("kv_heads", config.n_kv_heads),
                    ("context", config.context),
                ]
            };
            for ((key, declared), (_, found)) in sizes(&expected).into_iter().zip(sizes(&config)) {
                ensure!(
                    declared == found,
                    "{name}.declared.{key} is {declared}, and {} has {found}",
                    directory.display()
                );
            }
        }
        Ok(())
    }

    fn rl_train(&self) -> &[String] {
        self.rl.as_ref().map_or(&[], |rl| &rl.train)
    }

    /// Who is trained runs here; who is played elsewhere, or by another role, is asked as it is.
    fn check_roles(&self) -> anyhow::Result<()> {
        for (name, role) in self.roles() {
            ensure!(
                name == REVISER || role.model != RoleModel::Critic,
                "{name}.model is \"critic\"; that is for reviser.model, where the reviser is the critic itself"
            );
        }
        let sft = &self.sft;
        let stages = [sft.critic.len(), sft.reviser.len(), sft.generator.len()];
        for ((name, role), stages) in self.roles().into_iter().zip(stages) {
            let elsewhere = match &role.model {
                RoleModel::Here(_) => {
                    ensure!(
                        role.api_key_env.is_none(),
                        "{name}.api_key_env is for models behind endpoints, and {name}.model runs here"
                    );
                    continue;
                }
                RoleModel::Endpoint(model) => model,
                RoleModel::Critic => "the critic",
            };
            ensure!(
                stages == 0 && role.lora.is_none(),
                "{name}.model is {elsewhere}, so it has nothing of its own to train; leave out sft.{name} and \
                 {name}.lora"
            );
            if let Some(endpoint) = role.endpoint() {
                endpoint.check(name)?;
                role.sampling().check().map_err(|bad| {
                    anyhow!(
                        "{name}.{} is {}; {}",
                        bad.parameter,
                        bad.value,
                        bad.expected
                    )
                })?;
                ensure!(
                    name != CRITIC || self.rl.is_none(),
                    "critic.model is {elsewhere}, whose tokens are unknown, and [rl] would train on them; train a \
                     model here, or leave out [rl] to evaluate this one"
                );
            }
        }
        for (key, tokens) in [
            ("critic_tokens", self.prompts.critic_tokens),
            ("reviser_tokens", self.prompts.reviser_tokens),
        ] {
            ensure!(
                tokens != Some(0),
                "prompts.{key} is 0; at least one is needed"
            );
        }
        Ok(())
    }

    /// Every mix must have something to draw.
    fn check_mixes(&self) -> anyhow::Result<()> {
        let seed = Seed(self.seed);
        let draft = [tiny::draft(
            self.tasks.set,
            seed,
            Split::Train,
            0,
            self.tasks.share_right,
        )];
        for (index, stage) in self.sft.critic.iter().enumerate() {
            ensure!(
                stage.mix.is_some() != stage.file.is_some(),
                "sft.critic stage {} needs either `mix`, of the tiny world's rows, or `file`",
                index + 1
            );
            let Some(mix) = &stage.mix else {
                continue;
            };
            CriticRows::new(&draft, mix, seed)
                .map_err(|error| anyhow!("mix of sft.critic stage {}: {error}", index + 1))?;
        }
        for (index, stage) in self.sft.reviser.iter().enumerate() {
            ReviserRows::new(&draft, &stage.mix, seed)
                .map_err(|error| anyhow!("mix of sft.reviser stage {}: {error}", index + 1))?;
        }
        for (index, stage) in self.sft.generator.iter().enumerate() {
            GeneratorRows::new(&draft, &stage.mix, seed)
                .map_err(|error| anyhow!("mix of sft.generator stage {}: {error}", index + 1))?;
        }
        Ok(())
    }

    /// Nothing can be judged in no time or no memory.
    fn check_sandbox(&self) -> anyhow::Result<()> {
        check_seconds("sandbox.wall_s", self.sandbox.wall_s)?;
        check_seconds("sandbox.cpu_s", self.sandbox.cpu_s)?;
        ensure!(
            (16..=1 << 20).contains(&self.sandbox.memory_mb),
            "sandbox.memory_mb is {}; an interpreter needs at least 16",
            self.sandbox.memory_mb
        );
        Ok(())
    }

    /// A chat as the role will be given it.
    fn example(&self, role: &str) -> anyhow::Result<Vec<Message>> {
        let seed = Seed(self.seed);
        let draft = [tiny::draft(
            self.tasks.set,
            seed,
            Split::Train,
            0,
            self.tasks.share_right,
        )];
        Ok(match role {
            "critic" => {
                critic_lesson(CriticRows::new(&draft, &CriticMix::default(), seed)?.row(0)).0
            }
            GENERATOR => {
                let rows = GeneratorRows::new(&draft, &GeneratorMix::default(), seed)?;
                generator_lesson(rows.row(0)).0
            }
            _ => reviser_lesson(ReviserRows::new(&draft, &ReviserMix::default(), seed)?.row(0)).0,
        })
    }
}
