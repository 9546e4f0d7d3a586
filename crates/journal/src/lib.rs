//! The run directory: append-only log, episodes, checkpoints, replay. The only crate that writes there.
