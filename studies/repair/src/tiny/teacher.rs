//! What a teacher goes by, and whom it points at.

use rand::{Rng, seq::IndexedRandom};
use serde::{Deserialize, Serialize};

use crate::environment::{Suspect, Told, highest_suspicion};

/// What a teacher goes by. Those who are alike by it are all the same to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grounds {
    /// The greatest suspicion.
    Suspicion,
    /// The fewest passing tests that run it.
    Passing,
    /// The issue names it.
    Named,
    /// A failure was raised inside it, or else passed through it.
    Raised,
    /// The fewest lines.
    Short,
    /// The most lines.
    Long,
    /// Nothing.
    Chance,
}

/// How often a teacher goes by what: weights, which need not sum to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mix {
    pub suspicion: f64,
    pub passing: f64,
    pub named: f64,
    pub raised: f64,
    pub short: f64,
    pub long: f64,
    pub chance: f64,
}

impl Default for Mix {
    fn default() -> Self {
        Self {
            suspicion: 1.0,
            passing: 1.0,
            named: 1.0,
            raised: 1.0,
            short: 1.0,
            long: 1.0,
            chance: 1.0,
        }
    }
}

impl Mix {
    fn weights(&self) -> [(Grounds, &'static str, f64); 7] {
        [
            (Grounds::Suspicion, "suspicion", self.suspicion),
            (Grounds::Passing, "passing", self.passing),
            (Grounds::Named, "named", self.named),
            (Grounds::Raised, "raised", self.raised),
            (Grounds::Short, "short", self.short),
            (Grounds::Long, "long", self.long),
            (Grounds::Chance, "chance", self.chance),
        ]
    }

    /// # Errors
    /// Weights that nothing can be drawn by, in words.
    pub fn check(&self) -> Result<(), String> {
        for (_, name, weight) in self.weights() {
            if !(0.0..=1e6).contains(&weight) {
                return Err(format!(
                    "{name} is {weight}; a weight lies between 0 and 1000000"
                ));
            }
        }
        match self.weights().iter().any(|(_, _, weight)| *weight > 0.0) {
            true => Ok(()),
            false => Err(
                "all weights are 0; give what the teacher is to go by a positive one".to_owned(),
            ),
        }
    }

    pub(super) fn draw(&self, rng: &mut impl Rng) -> Grounds {
        let weights = self.weights();
        let drawn = weights.choose_weighted(rng, |(_, _, weight)| *weight);
        drawn.map_or(Grounds::Chance, |(grounds, ..)| *grounds)
    }
}

impl Grounds {
    /// As the teacher says it: what holds for the one that it points at, of whom this is told, and its number from 1.
    pub(super) fn words(self, told: Told, number: usize) -> String {
        let words = told.words();
        let (what, word) = match self {
            Self::Suspicion => ("suspicion", words.suspicion),
            Self::Passing => ("passing", words.passing),
            Self::Named => ("issue", words.named),
            Self::Raised => ("raised", words.raised),
            Self::Short | Self::Long => ("size", words.size),
            Self::Chance => return format!("any {number}"),
        };
        format!("{what} {word} {number}")
    }

    /// Whom a teacher points at that goes by these, from 0, as far as a planner is told; `None` of no suspects.
    pub(super) fn point(self, suspects: &[Suspect], rng: &mut impl Rng) -> Option<usize> {
        let highest = highest_suspicion(suspects);
        let worth = |suspect: &Suspect| -> i64 {
            let told = suspect.told(highest);
            let worth = match self {
                Self::Suspicion => told.suspicion,
                Self::Passing => return -(told.passing as i64),
                Self::Named => usize::from(told.named),
                Self::Raised => told.raised as usize,
                Self::Short => return -(told.size as i64),
                Self::Long => told.size,
                Self::Chance => 0,
            };
            worth as i64
        };
        let most = suspects.iter().map(worth).max()?;
        let best = suspects.iter().enumerate();
        let best = best.filter(|(_, suspect)| worth(suspect) == most);
        let best: Vec<usize> = best.map(|(place, _)| place).collect();
        best.choose(rng).copied()
    }
}
