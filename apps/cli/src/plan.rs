//! `etude plan`: what a recipe would do.

use crate::{args::PlanArgs, failure::Outcome, screen::Screen};

pub(crate) fn run(_args: &PlanArgs, _screen: Screen) -> Outcome<()> {
    Ok(())
}
