//! Signs in a log that the environment broke, in two tiers (spec of the repair study, section 11.3). They
//! say why something may have failed and never change a verdict.

use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::log_parser::pattern;

/// How sure a sign is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// No change to a repository's sources causes it.
    Environment,
    /// A broken environment and a bad patch both do.
    Ambiguous,
}

/// A sign that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InfrastructureSign {
    /// The name that reports have for it.
    pub reason: &'static str,
    pub tier: Tier,
}

/// The first sign that a log has, in the order in which they are looked for.
pub fn infrastructure_sign(log: &str) -> Option<InfrastructureSign> {
    static SIGNS: LazyLock<Vec<(InfrastructureSign, Regex)>> = LazyLock::new(|| {
        use Tier::{Ambiguous, Environment};
        [
            (
                "browser_launch_failed",
                Environment,
                "Failed to launch|Failed to connect to the bus",
            ),
            (
                "display_unavailable",
                Environment,
                "cannot open display|Missing X server|unable to open X display",
            ),
            (
                "out_of_memory",
                Environment,
                "Cannot allocate memory|OutOfMemoryError|^Killed$",
            ),
            (
                "container_unavailable",
                Environment,
                "Error response from daemon|Cannot connect to the Docker daemon",
            ),
            (
                "network_unreachable",
                Environment,
                "Could not resolve host|Temporary failure in name resolution",
            ),
            (
                "missing_module",
                Ambiguous,
                "Cannot find module|MODULE_NOT_FOUND|ModuleNotFoundError",
            ),
            (
                "no_tests_collected",
                Ambiguous,
                "no tests ran|collected 0 items",
            ),
            (
                "tests_timed_out",
                Ambiguous,
                r"Timeout error: \d+ seconds exceeded",
            ),
        ]
        .into_iter()
        .map(|(reason, tier, text)| {
            let sign = InfrastructureSign { reason, tier };
            (sign, pattern(&format!("(?m){text}")))
        })
        .collect()
    });
    let mut signs = SIGNS.iter();
    signs
        .find(|(_, regex)| regex.is_match(log))
        .map(|(sign, _)| *sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_surest_sign_is_told_with_its_tier() {
        let reason = |log: &str| infrastructure_sign(log).map(|sign| (sign.reason, sign.tier));
        assert_eq!(reason("assert 1 == 2"), None);
        assert_eq!(
            reason("ModuleNotFoundError: No module named 'x'\ncurl: Could not resolve host: y"),
            Some(("network_unreachable", Tier::Environment))
        );
        assert_eq!(
            reason("a\nKilled\nb"),
            Some(("out_of_memory", Tier::Environment))
        );
        assert_eq!(reason("Killed by a test"), None);
        assert_eq!(
            reason("Timeout error: 1800 seconds exceeded."),
            Some(("tests_timed_out", Tier::Ambiguous))
        );
    }
}
