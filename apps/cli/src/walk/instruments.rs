//! The machinery of a run: threads, sampler, sandbox, judge, runtime.

use std::{sync::Arc, time::Duration};

use chat::Chat;
use critique::{Critique, Purpose};
use engine::{Engine, Model, Sampler, SamplerOptions};
use judge::{Judge, JudgeConfig};
use policy::EnginePolicy;
use record::WeightVersion;
use sandbox::Sandbox;
use tokio::runtime::Runtime;

use super::recipe::Recipe;
use crate::failure::{Classify, Outcome};

/// Started once a process, used by every phase.
pub(crate) struct Instruments {
    pub(crate) engine: Engine,
    pub(crate) sampler: Sampler,
    pub(crate) sandbox: Sandbox,
    pub(crate) judge: Judge,
    pub(crate) runtime: Runtime,
}

impl Instruments {
    /// Starts everything that the recipe needs, or says what this machine lacks.
    pub(crate) fn start(recipe: &Recipe) -> Outcome<Self> {
        let mut setup = crate::machine::sandbox_config(recipe.threads);
        setup.allow_weak_tier = recipe.sandbox.allow_weak_tier;
        setup.python.clone_from(&recipe.sandbox.python);
        let sandbox = Sandbox::start(setup).failed()?;
        let mut judging = JudgeConfig::small();
        judging.limits.wall = Duration::from_secs_f64(recipe.sandbox.wall_s);
        judging.limits.cpu = Duration::from_secs_f64(recipe.sandbox.cpu_s);
        judging.limits.memory = recipe.sandbox.memory_mb << 20;
        let judge = Judge::new(sandbox.clone(), judging);
        let engine = Engine::new(recipe.threads).failed()?;
        let sampler = Sampler::start(&engine, SamplerOptions::default()).failed()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(recipe.threads.max(1))
            .enable_all()
            .build()
            .failed()?;
        Ok(Self {
            engine,
            sampler,
            sandbox,
            judge,
            runtime,
        })
    }

    /// The study as it is played for `purpose`.
    pub(crate) fn study(&self, recipe: &Recipe, purpose: Purpose) -> Arc<Critique> {
        Arc::new(Critique {
            judge: self.judge.clone(),
            reward: recipe.reward.clone(),
            purpose,
        })
    }

    /// A policy of its own name on the shared sampler.
    pub(crate) fn policy(
        &self,
        name: &str,
        chat: &Chat,
        model: Arc<Model>,
    ) -> Outcome<EnginePolicy> {
        let sampler = self.sampler.clone();
        EnginePolicy::new(sampler, name, chat.clone(), model, WeightVersion(0)).failed()
    }
}
