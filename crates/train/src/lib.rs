//! The supervised and reinforcement learning loops over a study.
