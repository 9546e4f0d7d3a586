//! What a loop tells its caller, and how its caller stops it.

use journal::Metrics;
use tokio_util::sync::CancellationToken;

/// A request to stop at the next point where nothing is lost. Clones are the same request.
#[derive(Clone, Debug, Default)]
pub struct Stop(CancellationToken);

impl Stop {
    pub fn request(&self) {
        self.0.cancel();
    }

    pub fn requested(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Resolves when the stop is requested.
    pub async fn wait(&self) {
        self.0.cancelled().await;
    }
}

/// A step that a loop has just committed, or done again after a resume.
#[derive(Debug)]
pub struct StepDone<'a> {
    pub step: u64,
    pub steps: u64,
    pub metrics: &'a Metrics,
    pub timings: &'a Metrics,
    /// It was committed before this process began.
    pub replayed: bool,
}
