//! A measured number with its uncertainty.

use serde::{Deserialize, Serialize};

/// A value and the bounds of its 95 % interval over tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Estimate {
    /// True when the two intervals share no point.
    pub fn is_apart_from(&self, other: &Self) -> bool {
        self.low > other.high || other.low > self.high
    }
}
