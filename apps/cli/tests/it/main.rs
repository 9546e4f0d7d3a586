//! The binary from outside: real processes, real files, real programs in the jail.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests stop at the first surprise"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "these tests start the binary that they test"
)]

mod algorithms;
mod bad_input;
mod bad_models;
mod chat;
mod chat_server;
mod checkpoint_roles;
mod critique_data;
mod critique_roles;
mod damage;
mod data;
mod determinism;
mod etude;
mod graph;
mod hub;
mod interrupts;
mod judge;
mod logprobs;
mod lora;
mod models;
mod processes;
mod recall;
mod recall_bad_input;
mod recipes;
mod repair;
mod repair_asked;
mod repair_grading;
mod repair_tests_first;
mod repair_training;
mod resume;
mod rounds;
mod runner;
mod runs;
mod sample;
mod sampling;
mod sandbox_faults;
mod sandbox_run;
mod serve;
mod serve_lifecycle;
mod synthesize;
