//! What types cannot say of a critique recipe, checked before anything is done.

use std::path::Path;

use anyhow::{anyhow, ensure};
use critique::{
    prompts::{critic_lesson, reviser_lesson},
    tiny::{self, CriticMix, CriticRows, ReviserMix, ReviserRows, Split},
};
use record::{Message, Seed};

use super::recipe::Recipe;
use crate::walk::settings::check_seconds;

impl Recipe {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let common = self.common();
        common.check_training()?;
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
        ensure!(
            self.critic.temperature != 0.0,
            "critic.temperature is 0: all critiques of a task would be the same, and reinforcement has \
             nothing to choose from; give it at least a little, as 1.0"
        );
        ensure!(
            self.rl.train.iter().all(|role| role == "critic"),
            "rl.train is {:?}; in this study the critic is trained and nobody else, so leave it out",
            self.rl.train
        );
        self.eval.check()?;
        common.check_sizes(&[
            ("tasks.train", self.tasks.train, 1 << 20),
            ("tasks.eval", self.tasks.eval, 1 << 20),
            ("sft.drafts", self.sft.drafts, 1 << 24),
            ("eval.samples", self.eval.samples as usize, 1 << 16),
        ])?;
        self.check_mixes()?;
        self.check_sandbox()?;
        common.check_rollout()?;
        common.check_policies()?;
        let mut sound: Vec<&Path> = Vec::new();
        for policy in &common.policies {
            let context = policy.config(common.tokenizer)?.context;
            let example = self.example(policy.name)?;
            policy.check_checkpoint(&mut sound, context, policy.name, &example)?;
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
            CriticRows::new(&draft, &stage.mix, seed)
                .map_err(|error| anyhow!("mix of sft.critic stage {}: {error}", index + 1))?;
        }
        for (index, stage) in self.sft.reviser.iter().enumerate() {
            ReviserRows::new(&draft, &stage.mix, seed)
                .map_err(|error| anyhow!("mix of sft.reviser stage {}: {error}", index + 1))?;
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
            _ => reviser_lesson(ReviserRows::new(&draft, &ReviserMix::default(), seed)?.row(0)).0,
        })
    }
}
