//! The sandbox and the judge over HTTP, in the dialect of SandboxFusion.
//!
//! Names, defaults and replies are those of the spec of the critique study, section 9, so that its
//! clients work unchanged: what a program does is always a reply with code 200; what is wrong with a
//! request is 400, 413 or 422 and names the field; what the machinery cannot do is 429, 500 or 503,
//! never a program's failure.
//!
//! Programs run in the jail of [`sandbox`] alone. Nothing of a request is executed in this process,
//! and no path of a request is opened outside a jail.

mod connections;
mod datasets;
mod decode;
mod dialect;
mod fault;
mod metrics;
mod object;
mod routes;
mod run_code;
mod service;
mod submit;

pub use datasets::{Class, Dataset, DatasetError};
pub use decode::{Invalid, Part, Request, Route, decode};
pub use dialect::{DatasetRequest, Id, RunCodeRequest, SubmitRequest, TestConfig};
pub use routes::{Access, Options, serve};
pub use service::Service;
