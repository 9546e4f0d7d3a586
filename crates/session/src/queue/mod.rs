//! Sessions through a shared folder: requests and responses are files, so a cluster's compute nodes
//! need no network to be asked.
//!
//! ```text
//! QUEUE/runner-0/in/ID.json ──rename──▶ claimed/ID.TOKEN.json ──▶ out/ID.json ──▶ fetched, removed
//!                heartbeat.json every 2 s, ready.json; quarantine/ for what is no request
//! ```

mod client;
mod folder;
mod message;
mod proxy;
mod runner;
mod serve;

pub use client::{Queue, QueueOptions};
pub use proxy::{ProxyAnswer, swe_proxy};
pub use runner::{RunnerError, RunnerOptions, instance_name, serve};
