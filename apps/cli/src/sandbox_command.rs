//! `etude sandbox`: the jail by itself.

use crate::{
    args::{SandboxArgs, SandboxCommand},
    failure::Outcome,
    sandbox_run,
    screen::Screen,
};

pub(crate) fn run(args: &SandboxArgs, screen: Screen) -> Outcome<()> {
    match &args.command {
        SandboxCommand::Run(args) => sandbox_run::run(args, screen),
    }
}
