//! The policy-gradient objectives by name, a sequence at a time.

use serde::{Deserialize, Serialize};

use crate::{
    Aggregation, AlgorithmConfig,
    covariance::{clip_cov, covariances, kl_cov},
};

/// What is minimised for the trained tokens of a sequence. `r` is the ratio of new to old probability
/// of a token, `A` its advantage; sums over tokens are then aggregated. Named as verl's
/// `policy_loss.loss_mode`; exact semantics in the spec of the critique study, section 10.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossMode {
    /// `max(-A r, -A clip(r))`, with the dual clip where one is set (PPO, arXiv 1707.06347).
    #[default]
    Vanilla,
    /// As vanilla, with the geometric mean of the sequence's ratios in place of each token's (GSPO,
    /// arXiv 2507.18071). Takes clip ranges of about 3e-4. Aggregates by `seq-mean-token-mean`.
    Gspo,
    /// `-A` times the geometric mean of ratios that are clipped one by one (GMPO, arXiv 2507.20673).
    /// Aggregates by `seq-mean-token-mean`.
    Gmpo,
    /// `-clip(r) A log p`, where no gradient flows through the ratio: clipped tokens still teach
    /// (CISPO, arXiv 2506.13585).
    Cispo,
    /// `-A (4 / τ) sigmoid(τ (r - 1))`, with `τ` 1 for tokens of a positive advantage and 1.05 for
    /// the others: a soft clip (SAPO, arXiv 2511.20347). Aggregates by `seq-mean-token-mean`.
    Sapo,
    /// `-A log p`: no ratio and no clip (GPG, arXiv 2504.02546).
    Gpg,
    /// As vanilla without the dual clip, and some of the tokens whose advantage and log-prob vary
    /// together have no loss at all (Clip-Cov, arXiv 2505.22617).
    ClipCov,
    /// `-A r`, and `-A r + kl_coefficient |log r|` for the tokens with the greatest covariances
    /// (KL-Cov, arXiv 2505.22617).
    KlCov,
}

/// One token's part of the objective and its derivative by the token's log-prob.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TokenObjective {
    pub(crate) value: f64,
    pub(crate) derivative: f64,
    /// The clip holds the ratio.
    pub(crate) clipped: bool,
    /// The dual clip bounds the loss.
    pub(crate) clipped_lower: bool,
}

/// `log r` is clamped to this before it is exponentiated.
const LOG_RATIO_LIMIT: f64 = 20.0;
const SEQUENCE_LOG_RATIO_LIMIT: f64 = 10.0;
const SAPO_TEMPERATURE: [f64; 2] = [1.0, 1.05];

impl LossMode {
    /// The aggregation that the objective is defined with, or the recipe's.
    pub fn aggregation(self, configured: Aggregation) -> Aggregation {
        match self {
            Self::Gspo | Self::Gmpo | Self::Sapo => Aggregation::SeqMeanTokenMean,
            Self::Vanilla | Self::Cispo | Self::Gpg | Self::ClipCov | Self::KlCov => configured,
        }
    }

    /// Whether the objective looks at the log-probs of the whole batch under the weights that are
    /// updated.
    pub fn needs_covariances(self) -> bool {
        matches!(self, Self::ClipCov | Self::KlCov)
    }

    /// The tokens that a batch-wide covariance picks, where the mode has such; one entry a row of
    /// old log-probs, current ones and advantages.
    pub(crate) fn picked(
        self,
        config: &AlgorithmConfig,
        old: &[&[f32]],
        current: &[Vec<f32>],
        advantages: &[Vec<f32>],
    ) -> Vec<Vec<bool>> {
        match self {
            Self::ClipCov => {
                let clipped = |row: usize, token: usize| {
                    let ratio = (current[row][token] - old[row][token]).exp();
                    let advantage = f64::from(advantages[row][token]);
                    clip(config, advantage, ratio.into(), 0.0, None).clipped
                };
                clip_cov(
                    &config.covariance,
                    &covariances(advantages, current),
                    clipped,
                )
            }
            Self::KlCov => kl_cov(&config.covariance, &covariances(advantages, current)),
            _ => Vec::new(),
        }
    }

    /// The objective of each trained token of one sequence, given their old and new log-probs, their
    /// advantages, and which of them were picked.
    pub(crate) fn tokens(
        self,
        config: &AlgorithmConfig,
        old: &[f32],
        new: &[f32],
        advantages: &[f32],
        picked: &[bool],
    ) -> Vec<TokenObjective> {
        let is_picked = |index: usize| picked.get(index).copied().unwrap_or(false);
        let tokens: Vec<Token> = old
            .iter()
            .zip(new)
            .zip(advantages)
            .map(|((&old, &new), &advantage)| Token {
                new: new.into(),
                log_ratio: f64::from(new) - f64::from(old),
                advantage: advantage.into(),
            })
            .collect();
        match self {
            Self::Vanilla => tokens.iter().map(|token| token.vanilla(config)).collect(),
            Self::Gspo => gspo(config, &tokens),
            Self::Gmpo => gmpo(config, &tokens),
            Self::Cispo => tokens.iter().map(|token| token.cispo(config)).collect(),
            Self::Sapo => tokens.iter().map(Token::sapo).collect(),
            Self::Gpg => tokens.iter().map(Token::gpg).collect(),
            Self::ClipCov => {
                let objective = |(index, token): (usize, &Token)| match is_picked(index) {
                    true => TokenObjective {
                        clipped: true,
                        ..TokenObjective::default()
                    },
                    false => token.clipped(config),
                };
                tokens.iter().enumerate().map(objective).collect()
            }
            Self::KlCov => {
                let objective = |(index, token): (usize, &Token)| {
                    token.penalised(if is_picked(index) {
                        config.covariance.kl_coefficient
                    } else {
                        0.0
                    })
                };
                tokens.iter().enumerate().map(objective).collect()
            }
        }
    }
}

struct Token {
    new: f64,
    log_ratio: f64,
    advantage: f64,
}

impl Token {
    /// The ratio and its derivative by the log-prob.
    fn ratio(&self) -> (f64, f64) {
        let clamped = self.log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT);
        let ratio = clamped.exp();
        (
            ratio,
            if clamped == self.log_ratio {
                ratio
            } else {
                0.0
            },
        )
    }

    fn vanilla(&self, config: &AlgorithmConfig) -> TokenObjective {
        let (ratio, slope) = self.ratio();
        clip(config, self.advantage, ratio, slope, config.dual_clip)
    }

    fn clipped(&self, config: &AlgorithmConfig) -> TokenObjective {
        let (ratio, slope) = self.ratio();
        clip(config, self.advantage, ratio, slope, None)
    }

    fn penalised(&self, coefficient: f64) -> TokenObjective {
        let (ratio, slope) = self.ratio();
        let direction = if self.log_ratio == 0.0 {
            0.0
        } else {
            self.log_ratio.signum()
        };
        TokenObjective {
            value: -self.advantage * ratio + coefficient * self.log_ratio.abs(),
            derivative: -self.advantage * slope + coefficient * direction,
            ..TokenObjective::default()
        }
    }

    fn cispo(&self, config: &AlgorithmConfig) -> TokenObjective {
        let (ratio, _) = self.ratio();
        let held = ratio.clamp(1.0 - config.clip_low, 1.0 + config.clip_high);
        TokenObjective {
            value: -held * self.advantage * self.new,
            derivative: -held * self.advantage,
            clipped: held != ratio,
            clipped_lower: false,
        }
    }

    fn sapo(&self) -> TokenObjective {
        let (ratio, slope) = self.ratio();
        let [positive, negative] = SAPO_TEMPERATURE;
        let temperature = if self.advantage > 0.0 {
            positive
        } else {
            negative
        };
        let gate = 1.0 / (1.0 + (-temperature * (ratio - 1.0)).exp());
        TokenObjective {
            value: -self.advantage * 4.0 / temperature * gate,
            derivative: -self.advantage * 4.0 * gate * (1.0 - gate) * slope,
            ..TokenObjective::default()
        }
    }

    fn gpg(&self) -> TokenObjective {
        TokenObjective {
            value: -self.new * self.advantage,
            derivative: -self.advantage,
            ..TokenObjective::default()
        }
    }
}

/// The clipped surrogate at `ratio`, whose derivative by the log-prob is `slope`.
fn clip(
    config: &AlgorithmConfig,
    advantage: f64,
    ratio: f64,
    slope: f64,
    dual_clip: Option<f64>,
) -> TokenObjective {
    let plain = -advantage * ratio;
    let within = ratio.clamp(1.0 - config.clip_low, 1.0 + config.clip_high);
    let bounded = -advantage * within;
    let clipped = bounded > plain;
    let mut token = TokenObjective {
        value: if clipped { bounded } else { plain },
        derivative: if clipped { 0.0 } else { -advantage * slope },
        clipped,
        clipped_lower: false,
    };
    if let Some(bound) = dual_clip.map(|bound| -advantage * bound)
        && advantage < 0.0
        && token.value > bound
    {
        token.value = bound;
        token.derivative = 0.0;
        token.clipped_lower = true;
    }
    token
}

/// In every token, the value is that of the sequence and the gradient is that of the token alone.
fn gspo(config: &AlgorithmConfig, tokens: &[Token]) -> Vec<TokenObjective> {
    let length = tokens.len().max(1) as f64;
    let mean = tokens.iter().map(|token| token.log_ratio).sum::<f64>() / length;
    let clamped = mean.min(SEQUENCE_LOG_RATIO_LIMIT);
    let ratio = clamped.exp();
    let slope = if clamped == mean { ratio } else { 0.0 };
    tokens
        .iter()
        .map(|token| clip(config, token.advantage, ratio, slope, None))
        .collect()
}

/// In every token, the value is that of the sequence, whose mean over its tokens is the loss.
fn gmpo(config: &AlgorithmConfig, tokens: &[Token]) -> Vec<TokenObjective> {
    let length = tokens.len().max(1) as f64;
    let held: Vec<f64> = tokens
        .iter()
        .map(|token| {
            let sign = match token.advantage {
                advantage if advantage > 0.0 => 1.0,
                advantage if advantage < 0.0 => -1.0,
                _ => 0.0,
            };
            let within = token.log_ratio.clamp(-config.clip_low, config.clip_high);
            sign * (sign * token.log_ratio).min(sign * within)
        })
        .collect();
    let ratio = (held.iter().sum::<f64>() / length).exp();
    let advantage = tokens.iter().map(|token| token.advantage).sum::<f64>() / length;
    let value = -advantage * ratio;
    tokens
        .iter()
        .zip(held)
        .map(|(token, held)| {
            let clipped = held != token.log_ratio;
            TokenObjective {
                value,
                derivative: if clipped { 0.0 } else { value },
                clipped: clipped && token.advantage > 0.0,
                clipped_lower: clipped && token.advantage < 0.0,
            }
        })
        .collect()
}
