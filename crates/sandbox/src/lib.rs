//! Runs foreign programs in a jail and says what happened. The only crate that starts foreign processes.
