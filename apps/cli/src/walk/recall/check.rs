//! What types cannot say of a recall recipe, checked before anything is done.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use anyhow::{Context, anyhow, bail, ensure};
use recall::{
    ANSWER, CHUNK_QA, JUDGE, Recall,
    memory::{Baseline, CountTokens},
    tiny::Mix,
};
use record::Sampling;

use super::{players::embedder, prompts::example, recipe::Recipe};

impl Recipe {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        for name in self.policies.keys() {
            self.model_of(name)?;
        }
        let common = self.common();
        common.check_training()?;
        ensure!(
            self.tasks.train >= 1 && self.tasks.eval >= 1,
            "tasks.train and tasks.eval must be at least 1"
        );
        ensure!(self.eval.samples >= 1, "eval.samples must be at least 1");
        common.check_sizes(&[
            ("tasks.train", self.tasks.train, 1 << 20),
            ("tasks.eval", self.tasks.eval, 1 << 20),
            ("tasks.questions", self.tasks.questions, 1 << 10),
            ("tasks.chunk_questions", self.tasks.chunk_questions, 1 << 10),
            ("eval.samples", self.eval.samples as usize, 1 << 16),
        ])?;
        ensure!(
            self.tasks.chunk_tokens != Some(0),
            "tasks.chunk_tokens is 0; a turn has at least one token"
        );
        ensure!(
            self.prompt.context_tokens > 0 || self.baseline == Some(Baseline::NoMemory),
            "prompt.context_tokens is 0: no prompt would show anything of a memory; give it some tokens, or say \
             baseline = \"no_memory\""
        );
        self.check_roles()?;
        self.check_trained()?;
        self.check_mixes()?;
        let count: CountTokens = Arc::new(|text: &str| text.len());
        let study = Recall::new(self.config(), count, Some(embedder()))?;
        common.check_rollout()?;
        common.check_policies()?;
        let mut sound: Vec<&Path> = Vec::new();
        for policy in &common.policies {
            let context = policy.config(common.tokenizer)?.context;
            for role in self.policies[policy.name].roles.keys() {
                let example = example(self, &study, role)?;
                policy.check_checkpoint(&mut sound, context, role, &example)?;
            }
        }
        Ok(())
    }

    /// Every role that is asked has one policy, and no policy has another role.
    fn check_roles(&self) -> anyhow::Result<()> {
        let asked = self.asked_roles();
        let mut played: BTreeMap<&str, &str> = BTreeMap::new();
        ensure!(
            !self.policies.is_empty(),
            "there is no policy; add [policies.NAME] with `model` and the `roles` that it plays"
        );
        for (name, policy) in &self.policies {
            let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
            ensure!(
                !name.is_empty() && name.chars().all(plain),
                "policies.\"{name}\": a policy names files, so its name has letters, digits, - and _ alone"
            );
            ensure!(
                !policy.roles.is_empty(),
                "policies.{name}.roles is empty; name what it plays: {}",
                asked.join(", ")
            );
            for role in policy.roles.keys() {
                ensure!(
                    asked.contains(&role.as_str()),
                    "policies.{name}.roles.{role}: nobody asks a role `{role}`; memory.extraction = \"{}\" asks {}{}",
                    self.extraction_name(),
                    asked.join(", "),
                    nearest(role, &asked)
                );
                if let Some(other) = played.insert(role, name) {
                    bail!(
                        "policies.{name}.roles.{role}: policies.{other} plays `{role}` already; a role has \
                         one policy"
                    );
                }
            }
        }
        for role in asked {
            ensure!(
                played.contains_key(role),
                "no policy plays `{role}`, which memory.extraction = \"{}\" asks; add it to the `roles` of one of {}",
                self.extraction_name(),
                self.policies.keys().cloned().collect::<Vec<_>>().join(", ")
            );
        }
        Ok(())
    }

    fn check_trained(&self) -> anyhow::Result<()> {
        let asked = self.asked_roles();
        ensure!(
            !self.rl.train.is_empty(),
            "rl.train is empty; name the roles that are trained, of {}",
            asked.join(", ")
        );
        ensure!(
            !self.rl.train.iter().any(|role| role == CHUNK_QA),
            "rl.train has `{CHUNK_QA}`, whose answers pay those who write the memory and nobody else; train \
             `{ANSWER}`"
        );
        ensure!(
            !self.step_rewards.asks_about_chunks()
                || self.tasks.chunk_questions > 0
                || self.tasks.train_file.is_some(),
            "step_rewards.chunk_qa.ask has nothing to ask: say with tasks.chunk_questions how many questions \
             a session has"
        );
        for (index, role) in self.rl.train.iter().enumerate() {
            ensure!(
                asked.contains(&role.as_str()),
                "rl.train has `{role}`, and memory.extraction = \"{}\" asks {}{}",
                self.extraction_name(),
                asked.join(", "),
                nearest(role, &asked)
            );
            ensure!(
                !self.rl.train[..index].contains(role),
                "rl.train has `{role}` twice"
            );
        }
        for name in self.policies.keys() {
            ensure!(
                self.algorithm(name).step.is_none() || !self.step_rewards.is_empty(),
                "rl.algorithm.step makes advantages of step rewards, and there are none; name some in \
                 [step_rewards], or take rl.algorithm.step out"
            );
        }
        for (name, policy) in &self.policies {
            if let Some(algorithm) = &policy.rl.algorithm {
                algorithm
                    .check()
                    .map_err(|error| anyhow!("policies.{name}.rl.algorithm: {error}"))?;
                let shared = &self.rl.algorithm;
                ensure!(
                    algorithm.advantage.needs_values() == shared.advantage.needs_values()
                        && algorithm.advantage.needs_greedy() == shared.advantage.needs_greedy(),
                    "policies.{name}.rl.algorithm.advantage is made from other things than \
                     rl.algorithm.advantage; the episodes are the same, so they must agree in whether \
                     they need values or a greedy answer"
                );
            }
            if let Some(optimizer) = &policy.rl.optimizer {
                optimizer
                    .check()
                    .map_err(|error| anyhow!("policies.{name}.rl.optimizer: {error}"))?;
            }
            let mut roles = policy.roles.keys();
            ensure!(
                !policy.roles.contains_key(JUDGE)
                    || !roles.any(|role| self.rl.train.contains(role)),
                "policies.{name} plays `{JUDGE}` and is trained (rl.train): it would learn to judge itself \
                 right; let another policy judge"
            );
        }
        let samplings = self.policies.values().flat_map(|policy| &policy.roles);
        let cold = |role: &String| {
            let mut samplings = samplings.clone();
            samplings.any(|(name, settings)| name == role && settings.temperature == 0.0)
        };
        ensure!(
            !self.rl.train.iter().all(cold),
            "the temperature of every trained role is 0: all episodes of a task would be the same, and \
             reinforcement has nothing to choose from; give one at least a little, as 1.0"
        );
        Ok(())
    }

    /// What a teacher does by chance must be possible.
    fn check_mixes(&self) -> anyhow::Result<()> {
        for (name, policy) in &self.policies {
            for (index, stage) in policy.sft.iter().enumerate() {
                let Mix {
                    careless,
                    forget,
                    gossip,
                    verbatim,
                    overwrite,
                    raw,
                    drill_alone,
                    drill_near,
                    ..
                } = stage.mix;
                let chances = [
                    ("careless", careless),
                    ("forget", forget),
                    ("gossip", gossip),
                    ("verbatim", verbatim),
                    ("overwrite", overwrite),
                    ("raw", raw),
                    ("drill_alone", drill_alone),
                    ("drill_near", drill_near),
                ];
                for (key, chance) in chances {
                    ensure!(
                        (0.0..=1.0).contains(&chance),
                        "mix of policies.{name}.sft stage {}: {key} is {chance}; a chance lies between 0 \
                         and 1",
                        index + 1
                    );
                }
            }
        }
        Ok(())
    }

    /// The roles that episodes of this recipe ask.
    pub(super) fn asked_roles(&self) -> Vec<&'static str> {
        self.config().roles()
    }

    /// The policy that plays a role.
    pub(super) fn policy_of(&self, role: &str) -> anyhow::Result<&str> {
        let mut policies = self.policies.iter();
        let found = policies.find(|(_, policy)| policy.roles.contains_key(role));
        let (name, _) = found.with_context(|| format!("no policy plays `{role}`"))?;
        Ok(name)
    }

    /// The roles of a policy, and how they are sampled.
    pub(super) fn samplings(&self, policy: &str) -> Vec<(&str, Sampling)> {
        let roles = self.policies.get(policy).map(|policy| policy.roles.iter());
        roles
            .into_iter()
            .flatten()
            .map(|(role, settings)| (role.as_str(), settings.sampling()))
            .collect()
    }

    fn extraction_name(&self) -> String {
        let name = serde_json::to_value(self.config().effective_memory().extraction).ok();
        let name = name.as_ref().and_then(|name| name.as_str());
        name.unwrap_or_default().to_owned()
    }
}

fn nearest(name: &str, known: &[&str]) -> String {
    recipe::nearest(name, known.iter().copied())
        .map_or_else(String::new, |known| format!("; did you mean `{known}`?"))
}
