//! What the repair study plays with: the engines, and sandboxes for checkouts, and what was found out there.

use std::sync::Arc;

use repair::Remembered;

use super::recipe::{Policy, Recipe};
use crate::{failure::Outcome, sandboxes::Sandboxes, walk::Engines};

/// Started once a process, used by every phase.
pub(crate) struct Instruments {
    pub(super) engines: Engines,
    pub(super) sandboxes: Sandboxes,
    /// Of every task that is played, for whoever plans.
    pub(super) remembered: Arc<Remembered>,
}

impl AsRef<Engines> for Instruments {
    fn as_ref(&self) -> &Engines {
        &self.engines
    }
}

impl Instruments {
    pub(super) fn start(recipe: &Recipe) -> Outcome<Self> {
        let engines = Engines::start(recipe.threads)?;
        // Whoever plays opens them anew; here it is before there is a run.
        for endpoint in recipe.policies.values().filter_map(Policy::endpoint) {
            engines.runtime.block_on(endpoint.open())?;
        }
        let sandboxes = engines.runtime.block_on(recipe.sandbox.open())?;
        Ok(Self {
            engines,
            sandboxes,
            remembered: Arc::new(Remembered::new(recipe.threads)),
        })
    }
}
