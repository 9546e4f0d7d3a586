//! What the repair study plays with: the engines, and sandboxes for checkouts.

use super::recipe::Recipe;
use crate::{failure::Outcome, sandboxes::Sandboxes, walk::Engines};

/// Started once a process, used by every phase.
pub(crate) struct Instruments {
    pub(super) engines: Engines,
    pub(super) sandboxes: Sandboxes,
}

impl AsRef<Engines> for Instruments {
    fn as_ref(&self) -> &Engines {
        &self.engines
    }
}

impl Instruments {
    pub(super) fn start(recipe: &Recipe) -> Outcome<Self> {
        let engines = Engines::start(recipe.threads)?;
        let sandboxes = engines.runtime.block_on(recipe.sandbox.open())?;
        Ok(Self { engines, sandboxes })
    }
}
