//! What a step was worth beside the like steps of its group: the second part of an advantage.

use std::collections::BTreeMap;

use record::{Call, Episode, TokenId};
use serde::{Deserialize, Serialize};

use crate::{BatchError, ConfigError, config::require};

/// `A = weight_episode · A_episode + weight · A_step`, the same for every trained token of a step. A step
/// is a call of a trained role; its reward is [`record::Call::step_reward`]. The step part is
/// `(x - μ) / (σ + 1e-6)`, with `μ` and sample deviation `σ` of what its cell of steps is worth. Steps
/// that are worth nothing in the sense of `None` have no step part and are in no cell's statistics; a
/// step alone in its cell, and one in a cell whose steps are all worth the same, has a step part of 0
/// (spec of the recall study, section 4.4).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepConfig {
    /// λ, the weight of the step part.
    pub weight: f64,
    /// The weight of the episode part; 0 leaves it out.
    #[serde(default = "one")]
    pub weight_episode: f64,
    /// What steps are worth, and which are compared.
    #[serde(default)]
    pub baseline: StepBaseline,
    /// Discount a call of `anchor` and `return-to-go`.
    #[serde(default = "gigpo_discount")]
    pub gamma: f64,
    /// Whether differences are divided by the deviation of their cell.
    #[serde(default = "yes")]
    pub std: bool,
}

/// What a step is worth and which steps it is compared with; only steps of one task's episodes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepBaseline {
    /// Its own reward, among the steps of its role in its turn: those saw the same part of the
    /// dialogue.
    #[default]
    Turn,
    /// Its own reward and that of its episode, among all steps of the group, whatever their role and
    /// turn (Mem-alpha, arXiv 2509.25911: with `weight_episode = 0`).
    Pooled,
    /// The discounted rewards from it on, that of the episode on the last call, among the steps of its
    /// role with the very same prompt; unscored calls pay 0 (GiGPO, arXiv 2505.10978).
    Anchor,
    /// The discounted step rewards from it on, among the steps of its role in its turn; unscored calls
    /// pay 0, and a step with no scored one from it on is unscored.
    ReturnToGo,
}

/// What the cells of a batch were.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepStats {
    pub steps: usize,
    /// What each scored step was worth, in order of rows.
    pub values: Vec<f64>,
    /// The step part of each scored step, before its weight.
    pub advantages: Vec<f64>,
    pub cells: usize,
    /// Cells of one scored step, which is compared with nothing.
    pub singleton_cells: usize,
    /// Cells of several scored steps that are all worth the same.
    pub zero_variance_cells: usize,
}

/// A step as advantages see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepValue {
    /// Steps of one cell are compared; numbered from 0.
    pub cell: usize,
    /// Finite; `None` is unscored.
    pub value: Option<f64>,
}

const EPSILON: f64 = 1e-6;

/// The step parts of `steps`, in their order; unscored steps have 0. The result does not depend on the
/// order of steps.
pub fn step_advantages(steps: &[StepValue], std: bool) -> (Vec<f64>, StepStats) {
    let cells = steps.iter().map(|step| step.cell + 1).max().unwrap_or(0);
    let mut sorted: Vec<Vec<f64>> = vec![Vec::new(); cells];
    for step in steps {
        sorted[step.cell].extend(step.value);
    }
    let mut stats = StepStats {
        steps: steps.len(),
        ..StepStats::default()
    };
    let moments: Vec<Option<(f64, f64)>> = sorted
        .iter_mut()
        .map(|values| {
            values.sort_unstable_by(f64::total_cmp);
            stats.cells += usize::from(!values.is_empty());
            let (Some(least), Some(most)) = (values.first(), values.last()) else {
                return None;
            };
            if values.len() == 1 {
                stats.singleton_cells += 1;
                return None;
            }
            if least == most {
                stats.zero_variance_cells += 1;
                return None;
            }
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            let scale = match std {
                true => (squares / (n - 1.0)).sqrt() + EPSILON,
                false => 1.0,
            };
            Some((mean, scale))
        })
        .collect();
    let mut parts = Vec::with_capacity(steps.len());
    for step in steps {
        let part = match (step.value, moments[step.cell]) {
            (Some(value), Some((mean, scale))) => (value - mean) / scale,
            _ => 0.0,
        };
        if let Some(value) = step.value {
            stats.values.push(value);
            stats.advantages.push(part);
        }
        parts.push(part);
    }
    (parts, stats)
}

impl StepConfig {
    /// # Errors
    /// The first key that is out of range, or that the baseline does not read.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let weights = [
            ("step.weight", self.weight),
            ("step.weight_episode", self.weight_episode),
        ];
        for (key, weight) in weights {
            let holds = weight >= 0.0 && weight.is_finite();
            require(key, weight, "at least 0", holds)?;
        }
        require(
            "step.weight",
            self.weight,
            "more than 0 where weight_episode is 0, or nothing is learnt",
            self.weight + self.weight_episode > 0.0,
        )?;
        let share = (0.0..=1.0).contains(&self.gamma);
        require("step.gamma", self.gamma, "between 0 and 1", share)?;
        let discounts = matches!(
            self.baseline,
            StepBaseline::Anchor | StepBaseline::ReturnToGo
        );
        require(
            "step.gamma",
            self.gamma,
            "absent: only the baselines anchor and return-to-go discount",
            discounts || self.gamma == gigpo_discount(),
        )
    }

    /// What each call of a graded episode is worth.
    ///
    /// # Errors
    /// A step reward that is not finite.
    pub(crate) fn values(
        &self,
        episode: &Episode,
        reward: f64,
    ) -> Result<Vec<Option<f64>>, BatchError> {
        let paid = || episode.calls.iter().map(|call| call.step_reward);
        let finite = |reward: &Option<f64>| reward.is_none_or(f64::is_finite);
        if let Some(call) = paid().position(|reward| !finite(&reward)) {
            return Err(BatchError::StepRewardNotFinite {
                step: episode.step_key(call),
                task: episode.task.clone(),
                reward: paid().nth(call).flatten().unwrap_or(f64::NAN),
            });
        }
        let mut values: Vec<Option<f64>> = match self.baseline {
            StepBaseline::Turn => return Ok(paid().collect()),
            StepBaseline::Pooled => {
                return Ok(paid().map(|paid| paid.map(|paid| paid + reward)).collect());
            }
            StepBaseline::ReturnToGo => paid().collect(),
            StepBaseline::Anchor => paid().map(|paid| Some(paid.unwrap_or(0.0))).collect(),
        };
        if self.baseline == StepBaseline::Anchor
            && let Some(Some(last)) = values.last_mut()
        {
            *last += reward;
        }
        let mut to_come: Option<f64> = None;
        for value in values.iter_mut().rev() {
            to_come = match (*value, to_come) {
                (None, None) => None,
                (now, later) => Some(now.unwrap_or(0.0) + self.gamma * later.unwrap_or(0.0)),
            };
            *value = to_come;
        }
        Ok(values)
    }
}

/// Numbers the cells of one group's steps.
#[derive(Debug)]
pub(crate) struct Cells<'a> {
    baseline: StepBaseline,
    numbers: BTreeMap<CellKey<'a>, usize>,
}

/// Role, turn and prompt, as far as the baseline looks at them.
type CellKey<'a> = (&'a str, Option<u32>, &'a [TokenId]);

impl<'a> Cells<'a> {
    pub(crate) fn new(baseline: StepBaseline) -> Self {
        Self {
            baseline,
            numbers: BTreeMap::new(),
        }
    }

    pub(crate) fn of(&mut self, call: &'a Call) -> usize {
        let key: CellKey<'a> = match self.baseline {
            StepBaseline::Turn | StepBaseline::ReturnToGo => (&call.role, call.turn, &[]),
            StepBaseline::Pooled => ("", None, &[]),
            StepBaseline::Anchor => (&call.role, None, &call.completion.prompt),
        };
        let next = self.numbers.len();
        *self.numbers.entry(key).or_insert(next)
    }
}

impl StepStats {
    /// Adds those of another group.
    pub(crate) fn extend(&mut self, other: Self) {
        self.steps += other.steps;
        self.values.extend(other.values);
        self.advantages.extend(other.advantages);
        self.cells += other.cells;
        self.singleton_cells += other.singleton_cells;
        self.zero_variance_cells += other.zero_variance_cells;
    }
}

fn one() -> f64 {
    1.0
}

fn gigpo_discount() -> f64 {
    0.95
}

fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn steps(values: &[(usize, Option<f64>)]) -> Vec<StepValue> {
        let step = |&(cell, value)| StepValue { cell, value };
        values.iter().map(step).collect()
    }

    #[test]
    fn by_hand() {
        // Cell 0: 1, 0, 0.5: mean 0.5, deviation 0.5. Cell 1 is alone, cell 2 says one thing twice,
        // cell 3 is unscored.
        let found = steps(&[
            (0, Some(1.0)),
            (1, Some(7.0)),
            (0, Some(0.0)),
            (0, None),
            (2, Some(-2.0)),
            (0, Some(0.5)),
            (2, Some(-2.0)),
            (3, None),
        ]);
        let (parts, stats) = step_advantages(&found, true);
        let whole = 0.5 / 0.500_001;
        assert_eq!(parts, [whole, 0.0, -whole, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(stats.values, [1.0, 7.0, 0.0, -2.0, 0.5, -2.0]);
        assert_eq!(stats.advantages, [whole, 0.0, -whole, 0.0, 0.0, 0.0]);
        let counts = (
            stats.steps,
            stats.cells,
            stats.singleton_cells,
            stats.zero_variance_cells,
        );
        assert_eq!(counts, (8, 3, 1, 1));
        let (parts, _) = step_advantages(&found, false);
        assert_eq!(parts, [0.5, 0.0, -0.5, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(step_advantages(&[], true).0, [0.0; 0]);
    }

    proptest! {
        #[test]
        fn cells_are_centred_and_blind_to_order(
            values in proptest::collection::vec((0usize..3, proptest::option::of(-5.0f64..5.0)), 0..20),
            rotation in 0usize..20,
        ) {
            let given = steps(&values);
            let (parts, _) = step_advantages(&given, true);
            for cell in 0..3 {
                let sum: f64 = given
                    .iter()
                    .zip(&parts)
                    .filter(|(step, _)| step.cell == cell)
                    .map(|(_, part)| part)
                    .sum();
                prop_assert!(sum.abs() < 1e-6);
            }
            let mut rotated = given.clone();
            let by = rotation % given.len().max(1);
            rotated.rotate_left(by);
            let mut expected = parts;
            expected.rotate_left(by);
            prop_assert_eq!(step_advantages(&rotated, true).0, expected);
        }
    }
}
