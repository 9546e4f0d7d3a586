//! `etude sandbox`: the jail by itself.

use crate::{
    args::{SandboxArgs, SandboxCommand},
    failure::Outcome,
    sandbox_reap, sandbox_run, sandbox_serve,
    screen::Screen,
};

pub(crate) fn run(args: &SandboxArgs, screen: Screen) -> Outcome<()> {
    match &args.command {
        SandboxCommand::Run(args) => sandbox_run::run(args, screen),
        SandboxCommand::Serve(args) => sandbox_serve::run(args, screen),
        SandboxCommand::Reap(args) => sandbox_reap::run(args, screen),
    }
}
