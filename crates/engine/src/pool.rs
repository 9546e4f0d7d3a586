//! The engine's own threads, and the buffers that passes reuse.

use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use crate::{EngineError, workspace::Workspace};

/// Does independent pieces of work on the engine's threads when called on one of them, else in order on
/// the calling thread.
pub(crate) fn for_each<T: Send>(pieces: Vec<T>, work: impl Fn(T) + Send + Sync) {
    if rayon::current_thread_index().is_some() {
        pieces.into_par_iter().with_max_len(1).for_each(work);
    } else {
        pieces.into_iter().for_each(work);
    }
}

/// A fixed number of threads that every pass of this engine runs on. Clones share them; results do
/// not depend on their number.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    pool: rayon::ThreadPool,
    idle: Mutex<Vec<Workspace>>,
}

impl Engine {
    pub fn new(threads: usize) -> Result<Self, EngineError> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.max(1))
            .thread_name(|index| format!("engine-{index}"))
            .build()
            .map_err(|source| EngineError::Pool { threads, source })?;
        Ok(Self {
            shared: Arc::new(Shared {
                pool,
                idle: Mutex::default(),
            }),
        })
    }

    pub fn threads(&self) -> usize {
        self.shared.pool.current_num_threads()
    }

    /// Runs `work` on the engine's threads; rayon calls inside it use them and no others.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.shared.pool.install(work)
    }

    /// Lends `work` a workspace; whatever an earlier user left in it is overwritten before use.
    pub(crate) fn with_workspace<T>(&self, work: impl FnOnce(&mut Workspace) -> T) -> T {
        let idle = &self.shared.idle;
        let lent = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut workspace = lent.unwrap_or_default();
        let result = work(&mut workspace);
        idle.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(workspace);
        result
    }
}
