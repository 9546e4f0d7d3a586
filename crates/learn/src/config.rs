//! What a recipe may say about learning.

use serde::{Deserialize, Serialize};

use crate::{
    Advantage, Aggregation, ConfigError, CovarianceConfig, KlController, KlEstimator, LossMode,
    RolloutCorrection, Schedule, StepConfig, combination,
};

/// How rewards become gradients. The defaults are those of the critique study's training recipe
/// (GRPO, symmetric clip 0.2, k3 KL in the loss at 0.001).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AlgorithmConfig {
    /// What a reward is compared with.
    pub advantage: Advantage,
    /// Discount of rewards to come, a token; of `gae` and `reinforce-plus-plus`.
    pub gamma: f64,
    /// Of `gae`: 0 trusts the values, 1 the rewards.
    pub lambda: f64,
    /// The policy-gradient objective.
    pub loss_mode: LossMode,
    /// Which tokens `clip-cov` and `kl-cov` pick.
    pub covariance: CovarianceConfig,
    /// The ratio of new to old probability is clipped below at `1 - clip_low`.
    pub clip_low: f64,
    /// The ratio of new to old probability is clipped above at `1 + clip_high`.
    pub clip_high: f64,
    /// Bounds the loss of tokens with a negative advantage `A` at `-A * dual_clip`; more than 1.
    /// Absent: unbounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dual_clip: Option<f64>,
    /// The pull towards the frozen reference policy.
    pub kl: KlConfig,
    /// Weight of the mean entropy, which is subtracted from the loss.
    pub entropy_coefficient: f64,
    /// How the losses of tokens become the loss of a batch.
    pub aggregation: Aggregation,
    /// The divisor of `seq-mean-token-sum-norm`; absent, the most trained tokens in one row of the
    /// batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_scale_factor: Option<f64>,
    /// What becomes of groups whose rewards are all equal.
    pub zero_variance: ZeroVariance,
    /// What an episode is worth that is alone in its group with a verdict. Absent: [`Singleton::Keep`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub singleton: Option<Singleton>,
    /// What each step was worth, beside its episode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepConfig>,
    /// What is done about samplers that are not the policy in training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_correction: Option<RolloutCorrection>,
}

/// The pull to the reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KlConfig {
    pub estimator: KlEstimator,
    /// A term of the loss, or taken off the rewards token by token.
    pub placement: KlPlacement,
    /// How the coefficient moves from step to step.
    pub controller: KlController,
    /// 0 switches the term off, and with it the need for reference log-probs.
    pub coefficient: f64,
}

/// Where the KL penalty stands: verl's `use_kl_loss` and `use_kl_in_reward`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KlPlacement {
    #[default]
    Loss,
    Reward,
}

/// What becomes of groups whose rewards are all equal. Their advantages are 0 either way; kept, they
/// still take part in the KL and entropy terms and in the averages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ZeroVariance {
    Keep,
    Drop,
    /// Dropped, and more tasks are played until the step has as many groups as it should (dynamic
    /// sampling, DAPO, arXiv 2503.14476).
    Resample,
}

/// What becomes of an episode that nothing is compared with. Groups are counted as
/// `rollout/singleton_groups` where this is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Singleton {
    /// As verl has it: most estimators give the raw reward. Where the rest of the group ended without a
    /// verdict, the episode is left out.
    #[default]
    Keep,
    /// Its advantage is 0; it still takes part in the KL and entropy terms and in the averages.
    Zero,
}

impl AlgorithmConfig {
    /// What becomes of an episode that nothing is compared with.
    pub fn singleton(&self) -> Singleton {
        self.singleton.unwrap_or_default()
    }
}

impl ZeroVariance {
    pub fn drops(self) -> bool {
        self != Self::Keep
    }
}

/// AdamW and its learning rate over a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptimizerConfig {
    /// The highest learning rate of the run.
    pub lr: f64,
    /// How the rate falls after the warm-up.
    #[serde(default)]
    pub schedule: Schedule,
    /// Steps over which the rate rises linearly from `lr / warmup_steps` to `lr`.
    #[serde(default)]
    pub warmup_steps: u64,
    /// Where `linear` and `cosine` end, as a share of `lr`.
    #[serde(default)]
    pub min_lr_ratio: f64,
    #[serde(default = "default_betas")]
    pub betas: [f64; 2],
    #[serde(default = "default_eps")]
    pub eps: f64,
    /// Decoupled weight decay.
    #[serde(default)]
    pub weight_decay: f64,
    /// Gradients of a larger global norm are scaled down to it.
    #[serde(default = "default_grad_clip")]
    pub grad_clip: f64,
}

fn default_betas() -> [f64; 2] {
    [0.9, 0.999]
}

fn default_eps() -> f64 {
    1e-8
}

fn default_grad_clip() -> f64 {
    1.0
}

impl Default for AlgorithmConfig {
    fn default() -> Self {
        Self {
            advantage: Advantage::Grpo,
            gamma: 1.0,
            lambda: 1.0,
            covariance: CovarianceConfig::default(),
            rollout_correction: None,
            singleton: None,
            step: None,
            loss_mode: LossMode::Vanilla,
            clip_low: 0.2,
            clip_high: 0.2,
            dual_clip: None,
            kl: KlConfig::default(),
            entropy_coefficient: 0.0,
            aggregation: Aggregation::SeqMeanTokenMean,
            loss_scale_factor: None,
            zero_variance: ZeroVariance::Keep,
        }
    }
}

impl Default for KlConfig {
    fn default() -> Self {
        Self {
            estimator: KlEstimator::K3,
            placement: KlPlacement::Loss,
            controller: KlController::default(),
            coefficient: 0.001,
        }
    }
}

impl AlgorithmConfig {
    /// Checks what types cannot say.
    ///
    /// # Errors
    /// The first key that is out of range, or that nothing else in the settings reads.
    pub fn check(&self) -> Result<(), ConfigError> {
        require(
            "clip_low",
            self.clip_low,
            "between 0 and 1",
            (0.0..=1.0).contains(&self.clip_low),
        )?;
        require(
            "clip_high",
            self.clip_high,
            AT_LEAST_ZERO,
            not_negative(self.clip_high),
        )?;
        if let Some(bound) = self.dual_clip {
            require(
                "dual_clip",
                bound,
                "more than 1",
                bound > 1.0 && bound.is_finite(),
            )?;
        }
        let coefficient = self.kl.coefficient;
        require(
            "kl.coefficient",
            coefficient,
            AT_LEAST_ZERO,
            not_negative(coefficient),
        )?;
        let entropy = self.entropy_coefficient;
        require(
            "entropy_coefficient",
            entropy,
            "finite",
            entropy.is_finite(),
        )?;
        for (key, value) in [("gamma", self.gamma), ("lambda", self.lambda)] {
            require(key, value, "between 0 and 1", (0.0..=1.0).contains(&value))?;
        }
        let ratio = self.covariance.ratio;
        let share = ratio > 0.0 && ratio <= 1.0;
        require(
            "covariance.ratio",
            ratio,
            "more than 0 and at most 1",
            share,
        )?;
        if let KlController::Adaptive { target, horizon } = self.kl.controller {
            let positive = |value: f64| value > 0.0 && value.is_finite();
            require(
                "kl.controller.target",
                target,
                "more than 0",
                positive(target),
            )?;
            require(
                "kl.controller.horizon",
                horizon,
                "more than 0",
                positive(horizon),
            )?;
        }
        if let Some(step) = &self.step {
            step.check()?;
        }
        if let Some(correction) = &self.rollout_correction {
            correction.check()?;
        }
        if let Some(factor) = self.loss_scale_factor {
            let fits = factor > 0.0 && factor.is_finite();
            require("loss_scale_factor", factor, "more than 0", fits)?;
        }
        combination::check(self)
    }

    /// Whether a batch must carry the log-probs of the reference policy.
    pub fn needs_reference(&self) -> bool {
        self.kl.coefficient != 0.0
    }

    /// Whether the loss looks at the reference.
    pub(crate) fn has_kl_loss(&self) -> bool {
        self.needs_reference() && self.kl.placement == KlPlacement::Loss
    }

    /// What the loss weighs its KL term with.
    pub(crate) fn kl_loss_coefficient(&self) -> f64 {
        match self.has_kl_loss() {
            true => self.kl.coefficient,
            false => 0.0,
        }
    }
}

impl OptimizerConfig {
    /// Checks what types cannot say.
    ///
    /// # Errors
    /// The first key that is out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        require("lr", self.lr, AT_LEAST_ZERO, not_negative(self.lr))?;
        let floor = self.min_lr_ratio;
        require(
            "min_lr_ratio",
            floor,
            "between 0 and 1",
            (0.0..=1.0).contains(&floor),
        )?;
        for beta in self.betas {
            require(
                "betas",
                beta,
                "at least 0 and less than 1",
                (0.0..1.0).contains(&beta),
            )?;
        }
        require(
            "eps",
            self.eps,
            "more than 0",
            self.eps > 0.0 && self.eps.is_finite(),
        )?;
        require(
            "weight_decay",
            self.weight_decay,
            AT_LEAST_ZERO,
            not_negative(self.weight_decay),
        )?;
        require(
            "grad_clip",
            self.grad_clip,
            "more than 0",
            self.grad_clip > 0.0,
        )
    }
}

const AT_LEAST_ZERO: &str = "at least 0";

fn not_negative(value: f64) -> bool {
    value >= 0.0 && value.is_finite()
}

pub(crate) fn require(
    key: &'static str,
    value: f64,
    must: &'static str,
    holds: bool,
) -> Result<(), ConfigError> {
    if holds {
        Ok(())
    } else {
        Err(ConfigError {
            key,
            value: value.to_string(),
            must,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn optimizer() -> OptimizerConfig {
        toml::from_str("lr = 1e-3").unwrap()
    }

    #[test]
    fn recipes_read_as_documented() {
        let text = r#"
            advantage = "dr-grpo"
            clip_high = 0.28
            dual_clip = 3.0
            kl = { estimator = "k1", coefficient = 0.0 }
            aggregation = "seq-mean-token-sum-norm"
            zero_variance = "drop"
        "#;
        let config: AlgorithmConfig = toml::from_str(text).unwrap();
        let expected = AlgorithmConfig {
            advantage: Advantage::DrGrpo,
            clip_high: 0.28,
            dual_clip: Some(3.0),
            kl: KlConfig {
                estimator: KlEstimator::K1,
                coefficient: 0.0,
                ..KlConfig::default()
            },
            aggregation: Aggregation::SeqMeanTokenSumNorm,
            zero_variance: ZeroVariance::Drop,
            ..AlgorithmConfig::default()
        };
        assert_eq!(config, expected);
        assert_eq!(
            toml::from_str::<AlgorithmConfig>(&toml::to_string(&config).unwrap()).unwrap(),
            config
        );
        assert!(toml::from_str::<AlgorithmConfig>("clip = 0.2").is_err());
        assert!(
            toml::from_str::<OptimizerConfig>("").is_err(),
            "a rate has no honest default"
        );
    }

    #[test]
    fn impossible_settings_are_named() {
        let good = AlgorithmConfig::default();
        assert_eq!(good.check(), Ok(()));
        assert_eq!(optimizer().check(), Ok(()));
        let bad = [
            AlgorithmConfig {
                clip_low: 1.5,
                ..good.clone()
            },
            AlgorithmConfig {
                clip_high: f64::NAN,
                ..good.clone()
            },
            AlgorithmConfig {
                dual_clip: Some(1.0),
                ..good.clone()
            },
            AlgorithmConfig {
                loss_scale_factor: Some(0.0),
                ..good.clone()
            },
        ];
        let keys = bad.map(|config| config.check().unwrap_err().key);
        assert_eq!(
            keys,
            ["clip_low", "clip_high", "dual_clip", "loss_scale_factor"]
        );
        let bad = [
            OptimizerConfig {
                lr: -1.0,
                ..optimizer()
            },
            OptimizerConfig {
                betas: [0.9, 1.0],
                ..optimizer()
            },
            OptimizerConfig {
                min_lr_ratio: 2.0,
                ..optimizer()
            },
        ];
        let keys = bad.map(|config| config.check().unwrap_err().key);
        assert_eq!(keys, ["lr", "betas", "min_lr_ratio"]);
    }
}
