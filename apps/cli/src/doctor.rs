//! `etude doctor`: what this machine offers.

use crate::{args::DoctorArgs, failure::Outcome, screen::Screen};

pub(crate) fn run(_args: &DoctorArgs, _screen: Screen) -> Outcome<()> {
    Ok(())
}
