//! The weight of the KL penalty over a run.

use serde::{Deserialize, Serialize};

/// How the coefficient of the KL penalty moves (spec of the critique study, section 10.4). Named as
/// verl's `algorithm.kl_ctrl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "type", deny_unknown_fields)]
pub enum KlController {
    /// As the recipe says, from the first step to the last.
    Fixed {},
    /// Raised when the policy is further from the reference than `target`, lowered when it is nearer
    /// (arXiv 1909.08593, section 2.2).
    Adaptive {
        /// Nats a token, in the mean over sequences of the means over their tokens.
        #[serde(default = "default_target")]
        target: f64,
        /// Episodes over which the coefficient may change by a fifth.
        #[serde(default = "default_horizon")]
        horizon: f64,
    },
}

fn default_target() -> f64 {
    0.1
}

fn default_horizon() -> f64 {
    10_000.0
}

impl Default for KlController {
    fn default() -> Self {
        Self::Fixed {}
    }
}

impl KlController {
    /// The coefficient after a step of so many `episodes` whose measured divergence was `kl`:
    /// `β (1 + clip(kl / target - 1, ±0.2) episodes / horizon)`.
    pub fn next(&self, coefficient: f64, kl: f64, episodes: usize) -> f64 {
        match self {
            Self::Fixed {} => coefficient,
            Self::Adaptive { target, horizon } => {
                let error = (kl / target - 1.0).clamp(-0.2, 0.2);
                coefficient * (1.0 + error * episodes as f64 / horizon)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::KlController;

    #[test]
    fn the_coefficient_follows_the_divergence() {
        let adaptive: KlController = toml::from_str("type = 'adaptive'").unwrap();
        assert_eq!(adaptive.next(0.001, 0.1, 256), 0.001);
        // Twice the target is clipped to a fifth: 1 + 0.2 · 256 / 10000.
        assert!((adaptive.next(0.001, 0.2, 256) - 0.001 * 1.00512).abs() < 1e-15);
        assert!((adaptive.next(0.001, 0.0, 256) - 0.001 * 0.99488).abs() < 1e-15);
        assert!((adaptive.next(1.0, 0.11, 1000) - 1.01).abs() < 1e-12);
        assert_eq!(KlController::Fixed {}.next(0.001, 9.0, 256), 0.001);
        assert!(toml::from_str::<KlController>("type = 'fixed'\ntarget = 1").is_err());
    }
}
