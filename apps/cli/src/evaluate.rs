//! `etude eval`: evaluate a run's policies again.

use crate::{args::EvalArgs, failure::Outcome, screen::Screen};

pub(crate) fn run(_args: &EvalArgs, _screen: Screen) -> Outcome<()> {
    Ok(())
}
