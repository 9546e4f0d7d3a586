//! What steps are paid.
//!
//! Spec of the repair study, sections 2.3 and 8. Everything that costs is a [`Penalty`], a magnitude that is
//! taken off: a negative one is refused where it is read, since taking it off would pay for failing.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// Rewards by what happened in a step. The reward of an episode is the sum over its steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RewardConfig {
    /// Earned by a submit, or a repair that ends the episode, whose tests all pass.
    pub submit: Gain,
    /// Off for a submit whose tests do not all pass.
    pub failure: Penalty,
    /// Off for an action that had a fault in the environment.
    pub error: Penalty,
    /// Off for a reply that is no action.
    pub invalid: Penalty,
    /// Off for any other step.
    pub step: Penalty,
    /// Off once, for an episode that ends at a limit of steps, operations or time.
    pub timeout: Penalty,
    /// All of these are multiplied by it.
    pub scale: Gain,
}

impl Default for RewardConfig {
    fn default() -> Self {
        Self {
            submit: Gain(1.0),
            failure: Penalty(1.0),
            error: Penalty(0.1),
            invalid: Penalty(0.05),
            step: Penalty(0.01),
            timeout: Penalty(0.5),
            scale: Gain(1.0),
        }
    }
}

/// How much is taken off: never negative, always finite.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Penalty(f64);

/// How much is added: never negative, always finite.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Gain(f64);

/// A number that is neither a gain nor a penalty.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "{value} is refused: rewards and penalties are magnitudes, and penalties are taken off; write {} to take \
     that much off",
    value.abs()
)]
pub struct NoMagnitude {
    pub value: f64,
}

macro_rules! magnitude {
    ($name:ident) => {
        impl TryFrom<f64> for $name {
            type Error = NoMagnitude;

            fn try_from(value: f64) -> Result<Self, NoMagnitude> {
                match value.is_finite() && value >= 0.0 {
                    true => Ok(Self(value)),
                    false => Err(NoMagnitude { value }),
                }
            }
        }

        impl From<$name> for f64 {
            fn from(value: $name) -> Self {
                value.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

magnitude!(Penalty);
magnitude!(Gain);

/// What a step was, for its pay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The tests pass, and the episode is over.
    Solved,
    FailedSubmit,
    Error,
    Invalid,
    Other,
}

impl RewardConfig {
    /// The reward of a step by its parts; whether it ran into a limit comes on top.
    pub(super) fn of(&self, event: Event, at_limit: bool) -> BTreeMap<String, f64> {
        let (name, value) = match event {
            Event::Solved => ("submit", self.submit.0),
            Event::FailedSubmit => ("failure", -self.failure.0),
            Event::Error => ("error", -self.error.0),
            Event::Invalid => ("invalid", -self.invalid.0),
            Event::Other => ("step", -self.step.0),
        };
        let timeout = at_limit.then(|| ("timeout", -self.timeout.0));
        [(name, value)]
            .into_iter()
            .chain(timeout)
            .map(|(name, value)| (name.to_owned(), value * self.scale.0))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn negative_penalties_are_refused_and_not_paid_out() {
        for name in ["failure", "error", "invalid", "step", "timeout", "submit"] {
            let text = format!("{{\"{name}\": -0.5}}");
            let refused = serde_json::from_str::<RewardConfig>(&text).unwrap_err();
            assert!(
                refused.to_string().contains("write 0.5"),
                "{name}: {refused}"
            );
        }
        assert!(Penalty::try_from(f64::NAN).is_err());
        assert!(serde_json::from_str::<RewardConfig>("{\"penalty\": 1}").is_err());
    }

    #[test]
    fn the_defaults_are_those_of_the_spec() {
        let of = |event, at_limit| -> f64 {
            let parts = RewardConfig::default().of(event, at_limit);
            parts.values().sum()
        };
        assert_eq!(of(Event::Solved, false), 1.0);
        assert_eq!(of(Event::FailedSubmit, false), -1.0);
        assert_eq!(of(Event::Error, false), -0.1);
        assert_eq!(of(Event::Invalid, false), -0.05);
        assert_eq!(of(Event::Other, false), -0.01);
        assert_eq!(of(Event::Other, true), -0.51);
    }

    proptest! {
        #[test]
        fn nothing_but_success_pays(values in prop::collection::vec(0.0..10.0f64, 7)) {
            let [submit, failure, error, invalid, step, timeout, scale] = values[..] else {
                unreachable!()
            };
            let config = RewardConfig {
                submit: Gain(submit),
                failure: Penalty(failure),
                error: Penalty(error),
                invalid: Penalty(invalid),
                step: Penalty(step),
                timeout: Penalty(timeout),
                scale: Gain(scale),
            };
            for event in [Event::FailedSubmit, Event::Error, Event::Invalid, Event::Other] {
                for at_limit in [false, true] {
                    let total: f64 = config.of(event, at_limit).values().sum();
                    prop_assert!(total <= 0.0, "{event:?} pays {total}");
                }
            }
            prop_assert!(config.of(Event::Solved, false)["submit"] >= 0.0);
        }
    }
}
