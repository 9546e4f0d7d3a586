//! What types cannot say of a repair recipe, checked before anything is done.

use anyhow::{anyhow, ensure};
use repair::{
    patch_model::PATCHER,
    planner::{PLANNER, PlannerKind},
};

use super::recipe::{Patcher, Policy, Recipe};
use crate::walk::{check_seconds, endpoint::NamedEndpoint};

impl Recipe {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let common = self.common();
        common.check_training()?;
        ensure!(
            self.tasks.limit != Some(0) && self.eval.samples >= 1,
            "tasks.limit and eval.samples must be at least 1"
        );
        common.check_sizes(&[
            ("tasks.limit", self.tasks.limit.unwrap_or(1), 1 << 20),
            ("eval.samples", self.eval.samples as usize, 1 << 16),
        ])?;
        common.check_rollout()?;
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
        self.check_roles()
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
            policy.endpoint().check(&format!("policies.{name}"))?;
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

impl Policy {
    pub(super) fn endpoint(&self) -> NamedEndpoint<'_> {
        NamedEndpoint {
            model: &self.model,
            api_key_env: self.api_key_env.as_deref(),
            timeout_s: self.timeout_s,
        }
    }
}
