//! Settings that are fine alone and make no sense together: a key that nothing reads is refused, so that no
//! run is something else than its recipe says.

use crate::{
    Advantage, Aggregation, AlgorithmConfig, ConfigError, CovarianceConfig, KlController, LossMode,
    Singleton, config::require,
};

/// Checks that whatever `config` sets away from its default is read by something else that it sets.
///
/// # Errors
/// The first key that would have no effect.
pub(crate) fn check(config: &AlgorithmConfig) -> Result<(), ConfigError> {
    of_advantage(config)?;
    of_loss_mode(config)?;
    of_aggregation(config)?;
    let adaptive = matches!(config.kl.controller, KlController::Adaptive { .. });
    require(
        "kl.coefficient",
        config.kl.coefficient,
        "more than 0 under an adaptive kl.controller, which multiplies it",
        !adaptive || config.kl.coefficient > 0.0,
    )
}

fn of_advantage(config: &AlgorithmConfig) -> Result<(), ConfigError> {
    let advantage = config.advantage;
    let discounts = matches!(advantage, Advantage::Gae | Advantage::ReinforcePlusPlus);
    require(
        "gamma",
        config.gamma,
        "1: only the advantages gae and reinforce-plus-plus discount",
        discounts || config.gamma == 1.0,
    )?;
    require(
        "lambda",
        config.lambda,
        "1: only the advantage gae has a lambda",
        advantage == Advantage::Gae || config.lambda == 1.0,
    )?;
    require(
        "step.weight",
        config.step.map_or(0.0, |step| step.weight),
        "absent, and so must the rest of step: advantages that go token by token have no step part",
        !advantage.is_by_token() || config.step.is_none(),
    )?;
    if config.singleton() != Singleton::Keep && advantage.is_by_token() {
        return Err(ConfigError {
            key: "singleton",
            value: "zero".to_owned(),
            must: "absent: advantages that go token by token compare nothing within groups",
        });
    }
    Ok(())
}

fn of_loss_mode(config: &AlgorithmConfig) -> Result<(), ConfigError> {
    let mode = config.loss_mode;
    require(
        "dual_clip",
        config.dual_clip.unwrap_or_default(),
        "absent: only loss_mode = \"vanilla\" has a dual clip",
        mode == LossMode::Vanilla || config.dual_clip.is_none(),
    )?;
    let unclipped = matches!(mode, LossMode::Gpg | LossMode::Sapo | LossMode::KlCov);
    let default = AlgorithmConfig::default();
    let clips = [
        ("clip_low", config.clip_low, default.clip_low),
        ("clip_high", config.clip_high, default.clip_high),
    ];
    for (key, value, default) in clips {
        require(
            key,
            value,
            "absent: the loss modes gpg, sapo and kl-cov clip nothing",
            !unclipped || value == default,
        )?;
    }
    require(
        "covariance.ratio",
        config.covariance.ratio,
        "absent, and so must the rest of covariance: only the loss modes clip-cov and kl-cov read it",
        mode.needs_covariances() || config.covariance == CovarianceConfig::default(),
    )
}

fn of_aggregation(config: &AlgorithmConfig) -> Result<(), ConfigError> {
    let (configured, used) = (
        config.aggregation,
        config.loss_mode.aggregation(config.aggregation),
    );
    if configured != used {
        return Err(ConfigError {
            key: "aggregation",
            value: configured.name().to_owned(),
            must: "seq-mean-token-mean: the loss modes gspo, gmpo and sapo are defined with it",
        });
    }
    require(
        "loss_scale_factor",
        config.loss_scale_factor.unwrap_or_default(),
        "absent: only aggregation = \"seq-mean-token-sum-norm\" divides by it",
        used == Aggregation::SeqMeanTokenSumNorm || config.loss_scale_factor.is_none(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_nothing_reads_is_named() {
        let cases = [
            ("gamma", "gamma = 0.9"),
            ("gamma", "advantage = 'remax'\ngamma = 0.9"),
            ("lambda", "advantage = 'reinforce-plus-plus'\nlambda = 0.9"),
            ("dual_clip", "loss_mode = 'gspo'\ndual_clip = 3.0"),
            ("clip_low", "loss_mode = 'gpg'\nclip_low = 0.1"),
            ("clip_high", "loss_mode = 'sapo'\nclip_high = 0.3"),
            ("covariance.ratio", "covariance = { upper = 9.0 }"),
            (
                "aggregation",
                "loss_mode = 'gmpo'\naggregation = 'token-mean'",
            ),
            ("loss_scale_factor", "loss_scale_factor = 512.0"),
            (
                "step.weight",
                "advantage = 'remax'\nstep = { weight = 0.5 }",
            ),
            (
                "step.weight",
                "step = { weight = 0.0, weight_episode = 0.0 }",
            ),
            (
                "step.weight_episode",
                "step = { weight = 1.0, weight_episode = -1.0 }",
            ),
            ("step.gamma", "step = { weight = 0.5, gamma = 0.9 }"),
            (
                "singleton",
                "advantage = 'reinforce-plus-plus'\nsingleton = 'zero'",
            ),
            (
                "kl.coefficient",
                "kl = { coefficient = 0.0, controller = { type = 'adaptive' } }",
            ),
        ];
        for (key, text) in cases {
            let config: AlgorithmConfig = toml::from_str(text).unwrap();
            let error = config.check().unwrap_err();
            assert_eq!(error.key, key, "{text}: {error}");
        }
    }

    #[test]
    fn what_goes_together_passes() {
        for text in [
            "advantage = 'gae'\ngamma = 0.99\nlambda = 0.95",
            "advantage = 'reinforce-plus-plus'\ngamma = 0.99",
            "dual_clip = 3.0\nclip_low = 0.1\nclip_high = 0.3",
            "loss_mode = 'gspo'\nclip_low = 3e-4\nclip_high = 4e-4",
            "loss_mode = 'kl-cov'\ncovariance = { ratio = 0.1 }\naggregation = 'token-mean'",
            "aggregation = 'seq-mean-token-sum-norm'\nloss_scale_factor = 512.0",
            "kl = { coefficient = 0.1, controller = { type = 'adaptive' } }",
            "singleton = 'zero'\nstep = { weight = 0.5 }",
            "step = { weight = 1.0, weight_episode = 0.0, baseline = 'pooled', std = false }",
            "step = { weight = 1.0, baseline = 'return-to-go', gamma = 1.0 }",
        ] {
            let config: AlgorithmConfig = toml::from_str(text).unwrap();
            assert_eq!(config.check(), Ok(()), "{text}");
        }
    }
}
