//! Which critiques the supervised rows hold, and how often.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::kind::Kind;

/// How good the critiques are that the critic learns to write. Kinds are weights; they need not sum
/// to 1.
///
/// The default is all good, half of it about programs with several bugs: it builds the skill. Weight on
/// the other kinds, with nothing scrambled, makes an uneven critic, from which reinforcement learning
/// brings the skill out again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CriticMix {
    /// Share of rows whose program is scrambled: several slots may be wrong, and a good critique
    /// names them all.
    pub scrambled: f64,
    /// In a scrambled program, the chance that a slot holds any of its fragments.
    pub scrambled_slot: f64,
    /// The right critique.
    pub good: f64,
    /// "Correct", also of wrong programs.
    pub correct: f64,
    /// A suggestion that helps nothing or breaks the program.
    pub wrong_suggestion: f64,
}

impl Default for CriticMix {
    fn default() -> Self {
        Self {
            scrambled: 0.5,
            scrambled_slot: 0.4,
            good: 1.0,
            correct: 0.0,
            wrong_suggestion: 0.0,
        }
    }
}

/// Which programs the generator learns to write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GeneratorMix {
    /// Share of rows whose program is right; the others have the draft's planted bug, where it has one.
    pub right: f64,
}

impl Default for GeneratorMix {
    fn default() -> Self {
        Self { right: 1.0 }
    }
}

/// What the reviser learns to follow: always the letter of the critique, never the statement.
///
/// The kinds are weights; they need not sum to 1. All but the edits, `good` and `wrong_suggestion`
/// have the unchanged program as their target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReviserMix {
    /// Share of rows whose program is scrambled. There the statement says nothing about what to
    /// write, so only the critique can be followed.
    pub scrambled: f64,
    /// In a scrambled program, the chance that a slot holds any of its fragments.
    pub scrambled_slot: f64,
    /// Share of rows whose statement asks for another function.
    pub foreign_statement: f64,
    pub good: f64,
    pub correct: f64,
    pub wrong_suggestion: f64,
    pub edit: f64,
    pub several_edits: f64,
    pub no_op: f64,
    pub absent_fragment: f64,
    pub malformed: f64,
    pub contradiction: f64,
    pub truncated: f64,
    pub empty: f64,
}

impl Default for ReviserMix {
    fn default() -> Self {
        Self {
            scrambled: 1.0,
            scrambled_slot: 1.0,
            foreign_statement: 0.3,
            good: 0.0,
            correct: 0.11,
            wrong_suggestion: 0.0,
            edit: 0.45,
            several_edits: 0.08,
            no_op: 0.08,
            absent_fragment: 0.09,
            malformed: 0.08,
            contradiction: 0.03,
            truncated: 0.05,
            empty: 0.03,
        }
    }
}

/// A mix that nothing can be drawn from.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum MixError {
    #[error("`{name}` is {value}; a weight is a finite number of at least 0")]
    Weight { name: &'static str, value: f64 },
    #[error("`{name}` is {value}; a share lies between 0 and 1")]
    Share { name: &'static str, value: f64 },
    #[error("every kind of critique has weight 0; give at least one of them a weight")]
    NoKind,
    #[error("there are no drafts to make rows from")]
    NoDrafts,
}

/// Kinds of critiques and their weights.
#[derive(Clone, Debug)]
pub(super) struct Kinds(Vec<(Kind, f64)>);

impl Kinds {
    pub(super) fn new(
        weights: impl IntoIterator<Item = (&'static str, Kind, f64)>,
    ) -> Result<Self, MixError> {
        let mut kinds = Vec::new();
        for (name, kind, value) in weights {
            if !(value.is_finite() && value >= 0.0) {
                return Err(MixError::Weight { name, value });
            }
            if value > 0.0 {
                kinds.push((kind, value));
            }
        }
        if kinds.is_empty() {
            Err(MixError::NoKind)
        } else {
            Ok(Self(kinds))
        }
    }

    pub(super) fn draw(&self, rng: &mut ChaCha8Rng) -> Kind {
        let total: f64 = self.0.iter().map(|(_, weight)| weight).sum();
        let mut left = rng.random_range(0.0..total);
        for (kind, weight) in &self.0 {
            if left < *weight {
                return *kind;
            }
            left -= weight;
        }
        // Only rounding leads here; the list is never empty.
        self.0[self.0.len() - 1].0
    }
}

pub(super) fn share(name: &'static str, value: f64) -> Result<f64, MixError> {
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(MixError::Share { name, value })
    }
}
