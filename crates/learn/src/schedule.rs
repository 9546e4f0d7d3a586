//! The learning rate at every step of a run.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

use crate::OptimizerConfig;

/// How the learning rate falls after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    #[default]
    Constant,
    /// In a straight line to `min_lr_ratio * lr`.
    Linear,
    /// Along half a cosine to `min_lr_ratio * lr`.
    Cosine,
}

impl OptimizerConfig {
    /// The learning rate of optimizer step `step`, counted from 0, of `total` steps.
    ///
    /// Warm-up step `i` has `(i + 1) / warmup_steps` of the rate, so that no step is without effect.
    /// The floor would be reached at step `total`, one past the last, and holds from there on.
    pub fn lr_at(&self, step: u64, total: u64) -> f64 {
        if step < self.warmup_steps {
            return self.lr * (step + 1) as f64 / self.warmup_steps as f64;
        }
        let steps = total.saturating_sub(self.warmup_steps).max(1);
        let done = ((step - self.warmup_steps) as f64 / steps as f64).min(1.0);
        let left = match self.schedule {
            Schedule::Constant => return self.lr,
            Schedule::Linear => 1.0 - done,
            Schedule::Cosine => (1.0 + (PI * done).cos()) / 2.0,
        };
        self.lr * (self.min_lr_ratio + (1.0 - self.min_lr_ratio) * left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_over_a_run() {
        let config = |schedule| OptimizerConfig {
            lr: 2.0,
            schedule,
            warmup_steps: 4,
            min_lr_ratio: 0.1,
            betas: [0.9, 0.999],
            eps: 1e-8,
            weight_decay: 0.0,
            grad_clip: 1.0,
        };
        let cases = [
            (Schedule::Constant, [0.5, 1.0, 2.0, 2.0, 2.0, 2.0]),
            (Schedule::Linear, [0.5, 1.0, 2.0, 2.0, 1.1, 0.2]),
            (Schedule::Cosine, [0.5, 1.0, 2.0, 2.0, 1.1, 0.2]),
        ];
        for (schedule, expected) in cases {
            for (step, expected) in [0, 1, 3, 4, 7, 10].into_iter().zip(expected) {
                let found = config(schedule).lr_at(step, 10);
                assert!(
                    (found - expected).abs() < 1e-12,
                    "{schedule:?} at {step}: {found}"
                );
            }
        }
        assert!((config(Schedule::Cosine).lr_at(1000, 10) - 0.2).abs() < 1e-12);
        assert!(config(Schedule::Linear).lr_at(4, 4).is_finite());
        let mut last = f64::INFINITY;
        for step in 4..10 {
            let rate = config(Schedule::Cosine).lr_at(step, 10);
            assert!(rate < last);
            last = rate;
        }
    }
}
