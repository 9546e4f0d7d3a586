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
    /// The mean over runs with different seeds and its 95 % t-interval; `None` below two runs.
    pub fn over_seeds(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n < 2 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let half = student_t(n - 1) * (squares / (n - 1) as f64 / n as f64).sqrt();
        Some(Self {
            value: mean,
            low: mean - half,
            high: mean + half,
        })
    }

    /// Whether anything is known of how much of the value is chance: a single cluster, or clusters that are all
    /// alike, give bounds that meet.
    pub fn has_interval(&self) -> bool {
        self.low < self.high
    }

    /// Whether the two intervals share a point; `None` where one of them is none.
    pub fn overlaps(&self, other: &Self) -> Option<bool> {
        let known = self.has_interval() && other.has_interval();
        known.then_some(self.low <= other.high && other.low <= self.high)
    }
}

/// The 97.5 % point of Student's t with `degrees` of freedom.
fn student_t(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010,
        2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739,
        2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
    ];
    if (1..=TABLE.len()).contains(&degrees) {
        return TABLE[degrees - 1];
    }
    // Cornish-Fisher expansion around the normal point; exact to four digits from 31 degrees on.
    let d = degrees as f64;
    NORMAL
        + (NORMAL.powi(3) + NORMAL) / (4.0 * d)
        + (5.0 * NORMAL.powi(5) + 16.0 * NORMAL.powi(3) + 3.0 * NORMAL) / (96.0 * d * d)
}

/// The 97.5 % point of the normal distribution.
const NORMAL: f64 = 1.959_964;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_over_seeds_has_the_t_interval() {
        // Standard error sqrt(2.5 / 5), 2.7764 at four degrees of freedom.
        let found = Estimate::over_seeds(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(found.value, 3.0);
        assert!((found.high - 3.0 - 2.7764 * 0.5f64.sqrt()).abs() < 1e-9);
        assert_eq!(Estimate::over_seeds(&[1.0]), None);
    }

    #[test]
    fn bounds_that_meet_are_neither_apart_from_others_nor_not() {
        let around = |value, half| Estimate {
            value,
            low: value - half,
            high: value + half,
        };
        assert_eq!(around(0.5, 0.1).overlaps(&around(0.6, 0.1)), Some(true));
        assert_eq!(around(0.5, 0.1).overlaps(&around(0.8, 0.1)), Some(false));
        assert_eq!(around(0.0, 0.0).overlaps(&around(1.0, 0.0)), None);
        assert_eq!(around(0.0, 0.0).overlaps(&around(0.8, 0.1)), None);
    }

    #[test]
    fn students_t_falls_to_the_normal_point() {
        let points: Vec<f64> = (1..60).map(student_t).collect();
        assert!(
            points.windows(2).all(|pair| pair[1] < pair[0]),
            "{points:?}"
        );
        assert!((student_t(100_000) - NORMAL).abs() < 1e-3);
    }
}
