//! Per-token estimates of the KL divergence from a reference policy.

use serde::{Deserialize, Serialize};

/// Estimators of `KL(policy || reference)` from one sampled token, with `d` its log-prob under the
/// policy less that under the reference (Schulman, "Approximating KL divergence"; clamps as in the
/// spec of the critique study, section 10.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KlEstimator {
    /// `d`: unbiased, noisy, may be negative.
    K1,
    /// `d² / 2`: biased, never negative.
    K2,
    /// `exp(-d) + d - 1`: unbiased, never negative; `-d` is clamped to ±20 and the value to ±10.
    K3,
    /// `|d|`.
    Abs,
    /// The value of k1 with the gradient of k2, which is that of the KL divergence itself.
    #[serde(rename = "k1+")]
    K1Straight,
    /// The value of k3 with the gradient of k2.
    #[serde(rename = "k3+")]
    K3Straight,
    /// The value of abs with the gradient of k2.
    #[serde(rename = "abs+")]
    AbsStraight,
}

const LOG_RATIO_LIMIT: f64 = 20.0;
const K3_LIMIT: f64 = 10.0;

impl KlEstimator {
    /// The estimate and its derivative by `d`, or what stands in for it; clamped parts have
    /// derivative 0.
    pub fn estimate(self, d: f64) -> (f64, f64) {
        match self {
            Self::K1 => (d, 1.0),
            Self::K2 => (d * d / 2.0, d),
            Self::Abs if d == 0.0 => (0.0, 0.0),
            Self::Abs => (d.abs(), d.signum()),
            Self::K1Straight => (d, d),
            Self::K3Straight => (Self::K3.estimate(d).0, d),
            Self::AbsStraight => (d.abs(), d),
            Self::K3 => {
                let log_ratio = (-d).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT);
                let ratio = log_ratio.exp();
                let value = ratio - log_ratio - 1.0;
                let free = log_ratio == -d && value < K3_LIMIT;
                (value.min(K3_LIMIT), if free { 1.0 - ratio } else { 0.0 })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn golden_vectors() {
        // Spec of the critique study, section 11.
        let cases = [
            (KlEstimator::K1, 0.5, 0.5),
            (KlEstimator::K2, 0.5, 0.125),
            (KlEstimator::K3, 0.5, 0.1065307),
            (KlEstimator::K2, -0.5, 0.125),
            (KlEstimator::K3, -0.5, 0.1487213),
            (KlEstimator::K3, 0.0, 0.0),
            (KlEstimator::K3, -5.0, 10.0),
            (KlEstimator::K3, 1000.0, 10.0),
            (KlEstimator::K3, -1000.0, 10.0),
        ];
        for (estimator, d, expected) in cases {
            let (value, _) = estimator.estimate(d);
            assert!(
                (value - expected).abs() < 5e-8,
                "{estimator:?} at {d}: {value}"
            );
        }
    }

    proptest! {
        #[test]
        fn derivatives_are_those_of_the_values(d in -30.0f64..30.0) {
            for estimator in [KlEstimator::K1, KlEstimator::K2, KlEstimator::K3] {
                let h = 1e-6;
                let ([below, above], [slope_below, slope_above]) =
                    ([d - h, d + h].map(|d| estimator.estimate(d).0), [d - h, d + h].map(|d| estimator.estimate(d).1));
                // Not on the kinks where k3 reaches its limits.
                if (slope_below == 0.0) != (slope_above == 0.0) && d.abs() > 1e-3 {
                    continue;
                }
                let (value, slope) = estimator.estimate(d);
                let found = (above - below) / (2.0 * h);
                prop_assert!((found - slope).abs() < 1e-5 * (1.0 + slope.abs()), "{estimator:?} at {d}: {found}, {slope}");
                prop_assert!(estimator == KlEstimator::K1 || value >= 0.0);
            }
        }
    }
}
