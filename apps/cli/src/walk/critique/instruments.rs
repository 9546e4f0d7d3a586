//! What the critique study plays with: the engines, and a sandbox with a judge.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use critique::{Critique, Purpose};
use judge::{Judge, JudgeConfig};
use policy::Endpoint;
use sandbox::Sandbox;

use super::recipe::Recipe;
use crate::{
    failure::{Classify, Outcome},
    walk::Engines,
};

/// Started once a process, used by every phase.
pub(crate) struct Instruments {
    pub(super) engines: Engines,
    pub(super) sandbox: Sandbox,
    pub(super) judge: Judge,
    /// Of roles that are played by models elsewhere.
    pub(super) endpoints: BTreeMap<&'static str, Arc<Endpoint>>,
}

impl AsRef<Engines> for Instruments {
    fn as_ref(&self) -> &Engines {
        &self.engines
    }
}

impl Instruments {
    pub(super) fn start(recipe: &Recipe) -> Outcome<Self> {
        let mut setup = crate::machine::sandbox_config(recipe.threads);
        setup.allow_weak_tier = recipe.sandbox.allow_weak_tier;
        setup.python.clone_from(&recipe.sandbox.python);
        let sandbox = Sandbox::start(setup).failed()?;
        let mut judging = JudgeConfig::small();
        judging.limits.wall = Duration::from_secs_f64(recipe.sandbox.wall_s);
        judging.limits.cpu = Duration::from_secs_f64(recipe.sandbox.cpu_s);
        judging.limits.memory = recipe.sandbox.memory_mb << 20;
        let judge = Judge::new(sandbox.clone(), judging);
        let engines = Engines::start(recipe.threads)?;
        let mut endpoints = BTreeMap::new();
        for (name, role) in recipe.roles() {
            if let Some(endpoint) = role.endpoint() {
                endpoints.insert(name, engines.runtime.block_on(endpoint.open())?);
            }
        }
        Ok(Self {
            engines,
            sandbox,
            judge,
            endpoints,
        })
    }

    /// The study as it is played for `purpose`.
    pub(super) fn study(&self, recipe: &Recipe, purpose: Purpose) -> Arc<Critique> {
        Arc::new(self.critique(recipe, purpose))
    }

    /// The same as a part of another.
    pub(super) fn critique(&self, recipe: &Recipe, purpose: Purpose) -> Critique {
        Critique {
            judge: self.judge.clone(),
            reward: recipe.reward.clone(),
            purpose,
        }
    }
}
