//! The machinery that every study needs: threads, sampler, runtime.

use std::sync::Arc;

use chat::Chat;
use engine::{Engine, Model, Sampler, SamplerOptions};
use policy::EnginePolicy;
use record::WeightVersion;
use tokio::runtime::Runtime;

use crate::failure::{Classify, Outcome};

/// Started once a process, used by every phase.
pub(crate) struct Engines {
    pub(crate) engine: Engine,
    pub(crate) sampler: Sampler,
    pub(crate) runtime: Runtime,
}

impl AsRef<Self> for Engines {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Engines {
    pub(crate) fn start(threads: usize) -> Outcome<Self> {
        let engine = Engine::new(threads).failed()?;
        let sampler = Sampler::start(&engine, SamplerOptions::default()).failed()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .enable_all()
            .build()
            .failed()?;
        Ok(Self {
            engine,
            sampler,
            runtime,
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
