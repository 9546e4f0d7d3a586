//! `etude validate`: checks that run nothing.

mod contracts;
mod patches;

pub(crate) use patches::PatchesArgs;

use crate::{args::ValidateCommand, failure::Outcome, screen::Screen};

pub(crate) fn run(command: &ValidateCommand, screen: Screen) -> Outcome<()> {
    match command {
        ValidateCommand::Contracts { json } => contracts::run(*json),
        ValidateCommand::Patches(args) => patches::run(args, screen),
    }
}
