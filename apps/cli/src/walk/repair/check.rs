//! What types cannot say of a repair recipe, checked before anything is done.

use std::path::Path;

use anyhow::{anyhow, ensure};
use record::Message;
use repair::{
    patch_model::PATCHER,
    planner::{PLANNER, PlannerKind},
};

use super::recipe::{Patcher, Policy, PolicyModel, Recipe};
use crate::walk::{check_seconds, endpoint::NamedEndpoint};

impl Recipe {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let common = self.common();
        common.check_training()?;
        ensure!(
            self.tasks.limit != Some(0)
                && self.tasks.train_limit != Some(0)
                && self.eval.samples >= 1,
            "tasks.limit, tasks.train_limit and eval.samples must be at least 1"
        );
        common.check_sizes(&[
            ("tasks.limit", self.tasks.limit.unwrap_or(1), 1 << 20),
            (
                "tasks.train_limit",
                self.tasks.train_limit.unwrap_or(1),
                1 << 20,
            ),
            ("eval.samples", self.eval.samples as usize, 1 << 16),
            (
                "environment.end.max_steps",
                self.environment.end.max_steps.unwrap_or(1) as usize,
                1 << 16,
            ),
        ])?;
        common.check_rollout()?;
        if let Some(seconds) = self.environment.end.max_seconds {
            check_seconds("environment.end.max_seconds", seconds)?;
            ensure!(
                seconds < self.rollout.deadline_s,
                "environment.end.max_seconds is {seconds}, and an episode may take {} seconds (rollout.deadline_s), \
                 which is a fault and no failure; raise rollout.deadline_s above it",
                self.rollout.deadline_s
            );
        }
        self.sandbox.check()?;
        match &self.patcher {
            Patcher::Search(settings) => {
                settings
                    .check()
                    .map_err(|error| anyhow!("patcher: {error}"))?;
            }
            Patcher::Generate(service) => check_seconds("patcher.timeout_s", service.timeout_s)?,
            Patcher::Model(_) => {}
        }
        self.check_roles()?;
        common.check_policies()?;
        self.check_trained()?;
        self.check_checkpoints()
    }

    /// What is trained plays, and its rewards can be told apart.
    fn check_trained(&self) -> anyhow::Result<()> {
        let search = matches!(self.patcher, Patcher::Search(_));
        ensure!(
            search || !self.repair.remember,
            "repair.remember is for patcher.kind = \"search\", which answers the same whenever it is asked the same"
        );
        ensure!(
            self.eval
                .temperature
                .is_none_or(|value| (0.0..=100.0).contains(&value)),
            "eval.temperature is {}; it must be at least 0 and at most 100",
            self.eval.temperature.unwrap_or_default()
        );
        let points = matches!(
            self.planner.kind,
            PlannerKind::Suspicion | PlannerKind::Chance
        );
        let taught = self.policies.values().any(|policy| !policy.sft.is_empty());
        let shown = self.environment.observation.suspects > 0;
        ensure!(
            shown || !(points || taught || self.eval.baselines),
            "environment.observation.suspects is 0, and planners that point, lessons in pointing and eval.baselines \
             need some to point at"
        );
        let Some(rl) = &self.rl else {
            return Ok(());
        };
        let is_local = |policy: &Policy| {
            policy.roles.contains_key(PLANNER) && matches!(policy.model, PolicyModel::Local(_))
        };
        ensure!(
            self.planner.kind == PlannerKind::Model && self.policies.values().any(is_local),
            "[rl] trains the planner: it needs planner.kind = \"model\" and a policy with a local model that plays \
             the role `{PLANNER}`"
        );
        ensure!(
            rl.train.is_empty() || rl.train == [PLANNER],
            "rl.train is {}; the planner alone is trained: say [\"{PLANNER}\"], or leave it out",
            rl.train.join(", ")
        );
        Ok(())
    }

    /// Checkpoints that policies begin with can be read, and their templates render what they are asked.
    fn check_checkpoints(&self) -> anyhow::Result<()> {
        let common = self.common();
        let mut sound: Vec<&Path> = Vec::new();
        for policy in &common.policies {
            let context = policy.config(common.tokenizer)?.context;
            for role in self.policies[policy.name].roles.keys() {
                let example = [Message::user("Sorting stops early")];
                policy.check_checkpoint(&mut sound, context, role, &example)?;
            }
        }
        Ok(())
    }

    /// Every role that is asked has one policy, and no policy has another role.
    fn check_roles(&self) -> anyhow::Result<()> {
        let asked = self.asked_roles();
        for role in &asked {
            let players = self
                .policies
                .iter()
                .filter(|(_, policy)| policy.roles.contains_key(*role));
            let players: Vec<&str> = players.map(|(name, _)| name.as_str()).collect();
            ensure!(
                players.len() == 1,
                "the role `{role}` is asked, and {}; give it to one policy: [policies.NAME] with `model` and \
                 roles.{role}",
                match players.as_slice() {
                    [] => "no policy plays it".to_owned(),
                    several => format!("{} play it", several.join(" and ")),
                }
            );
        }
        for (name, policy) in &self.policies {
            match policy.endpoint() {
                Some(endpoint) => {
                    endpoint.check(&format!("policies.{name}"))?;
                    ensure!(
                        policy.sft.is_empty() && policy.lora.is_none(),
                        "policies.{name} is a model behind an endpoint, which cannot be trained here; take its `sft` \
                         and `lora` out, or give it a local model"
                    );
                }
                None => check_local(name, policy)?,
            }
            for (role, sampling) in &policy.roles {
                ensure!(
                    asked.contains(&role.as_str()),
                    "policies.{name}.roles.{role}: nobody asks a role `{role}`; planner.kind and patcher.kind = \
                     \"model\" ask for `{PLANNER}` and `{PATCHER}`"
                );
                let sampling = sampling.sampling();
                sampling.check().map_err(|bad| {
                    anyhow!(
                        "policies.{name}.roles.{role}.{} is {}; {}",
                        bad.parameter,
                        bad.value,
                        bad.expected
                    )
                })?;
            }
        }
        Ok(())
    }

    /// The roles that policies are asked in.
    pub(super) fn asked_roles(&self) -> Vec<&'static str> {
        let planner = (self.planner.kind == PlannerKind::Model).then_some(PLANNER);
        let patcher = matches!(self.patcher, Patcher::Model(_)).then_some(PATCHER);
        planner.into_iter().chain(patcher).collect()
    }
}

/// A name that names files, and lessons that can be drawn.
fn check_local(name: &str, policy: &Policy) -> anyhow::Result<()> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    ensure!(
        !name.is_empty() && name.chars().all(plain),
        "policies.\"{name}\": a policy names files, so its name has letters, digits, - and _ alone"
    );
    ensure!(
        policy.api_key_env.is_none(),
        "policies.{name}.api_key_env is the key of an endpoint, and the model is a local one; take it out"
    );
    ensure!(
        policy.sft.is_empty() || policy.roles.contains_key(PLANNER),
        "policies.{name}.sft has lessons for the role `{PLANNER}`, which it does not play"
    );
    for (index, stage) in policy.sft.iter().enumerate() {
        let checked = stage.mix.check();
        checked
            .map_err(|error| anyhow!("mix of policies.{name}.sft stage {}: {error}", index + 1))?;
    }
    Ok(())
}

impl Policy {
    /// Where it is asked, if not here.
    pub(super) fn endpoint(&self) -> Option<NamedEndpoint<'_>> {
        match &self.model {
            PolicyModel::Endpoint(model) => Some(NamedEndpoint {
                model,
                api_key_env: self.api_key_env.as_deref(),
                timeout_s: self.timeout_s,
            }),
            PolicyModel::Local(_) => None,
        }
    }
}
