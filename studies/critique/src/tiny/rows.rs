//! Supervised rows: what the critic and the reviser learn from before reinforcement learning.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use record::Seed;
use serde::Serialize;

use super::critique::write_critique;
use super::draft::Draft;
use super::function::Choices;
use super::kind::Kind;
use super::mix::{CriticMix, GeneratorMix, Kinds, MixError, ReviserMix, share};

/// One example for the critic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CriticRow {
    pub statement: String,
    pub program: String,
    pub critique: String,
    pub kind: Kind,
}

/// One example for the reviser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReviserRow {
    pub statement: String,
    pub program: String,
    pub critique: String,
    /// The program with the critique's edit made.
    pub revision: String,
    pub kind: Kind,
    pub scrambled: bool,
}

/// An endless supply of critic rows; row `index` is the same whenever it is asked for. Every draft
/// comes once in each pass of as many rows as there are drafts.
#[derive(Clone, Debug)]
pub struct CriticRows<'a> {
    drafts: &'a [Draft],
    kinds: Kinds,
    scramble: Scramble,
    seed: Seed,
}

impl<'a> CriticRows<'a> {
    /// # Errors
    /// A negative weight, no weight at all, a share outside of [0, 1], no drafts.
    pub fn new(drafts: &'a [Draft], mix: &CriticMix, seed: Seed) -> Result<Self, MixError> {
        let kinds = Kinds::new([
            ("good", Kind::Good, mix.good),
            ("correct", Kind::Correct, mix.correct),
            (
                "wrong_suggestion",
                Kind::WrongSuggestion,
                mix.wrong_suggestion,
            ),
        ])?;
        not_empty(drafts)?;
        Ok(Self {
            drafts,
            kinds,
            scramble: Scramble::new(mix.scrambled, mix.scrambled_slot)?,
            seed: seed.stream("critic-rows", 0),
        })
    }

    pub fn row(&self, index: u64) -> CriticRow {
        let draft = nth(self.drafts, self.seed, index);
        let mut rng = self.seed.stream("row", index).rng();
        let (choices, _) = self.scramble.draw(draft, &mut rng);
        let kind = self.kinds.draw(&mut rng);
        CriticRow {
            statement: draft.function.statement.clone(),
            program: draft.function.program(&choices),
            critique: write_critique(&draft.function, &choices, None, kind, &mut rng).text,
            kind,
        }
    }
}

/// One example for the generator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GeneratorRow {
    pub statement: String,
    pub program: String,
}

/// An endless supply of generator rows, in the manner of [`CriticRows`].
#[derive(Clone, Debug)]
pub struct GeneratorRows<'a> {
    drafts: &'a [Draft],
    right: f64,
    seed: Seed,
}

impl<'a> GeneratorRows<'a> {
    /// # Errors
    /// A share outside of [0, 1], no drafts.
    pub fn new(drafts: &'a [Draft], mix: &GeneratorMix, seed: Seed) -> Result<Self, MixError> {
        not_empty(drafts)?;
        Ok(Self {
            drafts,
            right: share("right", mix.right)?,
            seed: seed.stream("generator-rows", 0),
        })
    }

    pub fn row(&self, index: u64) -> GeneratorRow {
        let draft = nth(self.drafts, self.seed, index);
        let mut rng = self.seed.stream("row", index).rng();
        let program = if rng.random_bool(self.right) {
            draft.function.reference()
        } else {
            draft.program()
        };
        GeneratorRow {
            statement: draft.function.statement.clone(),
            program,
        }
    }
}

/// An endless supply of reviser rows, in the manner of [`CriticRows`].
#[derive(Clone, Debug)]
pub struct ReviserRows<'a> {
    drafts: &'a [Draft],
    kinds: Kinds,
    scramble: Scramble,
    foreign_statement: f64,
    seed: Seed,
}

impl<'a> ReviserRows<'a> {
    /// # Errors
    /// A negative weight, no weight at all, a share outside of [0, 1], no drafts.
    pub fn new(drafts: &'a [Draft], mix: &ReviserMix, seed: Seed) -> Result<Self, MixError> {
        let kinds = Kinds::new([
            ("good", Kind::Good, mix.good),
            ("correct", Kind::Correct, mix.correct),
            (
                "wrong_suggestion",
                Kind::WrongSuggestion,
                mix.wrong_suggestion,
            ),
            ("edit", Kind::Edit, mix.edit),
            ("several_edits", Kind::SeveralEdits, mix.several_edits),
            ("no_op", Kind::NoOp, mix.no_op),
            ("absent_fragment", Kind::AbsentFragment, mix.absent_fragment),
            ("malformed", Kind::Malformed, mix.malformed),
            ("contradiction", Kind::Contradiction, mix.contradiction),
            ("truncated", Kind::Truncated, mix.truncated),
            ("empty", Kind::Empty, mix.empty),
        ])?;
        not_empty(drafts)?;
        Ok(Self {
            drafts,
            kinds,
            scramble: Scramble::new(mix.scrambled, mix.scrambled_slot)?,
            foreign_statement: share("foreign_statement", mix.foreign_statement)?,
            seed: seed.stream("reviser-rows", 0),
        })
    }

    pub fn row(&self, index: u64) -> ReviserRow {
        let draft = nth(self.drafts, self.seed, index);
        let function = &draft.function;
        let mut rng = self.seed.stream("row", index).rng();
        let stranger = &self.drafts[rng.random_range(0..self.drafts.len())].function;
        let asked = if rng.random_bool(self.foreign_statement) {
            stranger
        } else {
            function
        };
        let (choices, scrambled) = self.scramble.draw(draft, &mut rng);
        let kind = self.kinds.draw(&mut rng);
        let written = write_critique(function, &choices, Some(stranger), kind, &mut rng);
        ReviserRow {
            statement: asked.statement.clone(),
            program: function.program(&choices),
            critique: written.text,
            revision: written.program,
            kind,
            scrambled,
        }
    }
}

/// How often and how much programs are scrambled.
#[derive(Clone, Copy, Debug)]
struct Scramble {
    programs: f64,
    slots: f64,
}

impl Scramble {
    fn new(programs: f64, slots: f64) -> Result<Self, MixError> {
        Ok(Self {
            programs: share("scrambled", programs)?,
            slots: share("scrambled_slot", slots)?,
        })
    }

    /// The draft's own choices, or random ones; and whether they are random.
    fn draw(self, draft: &Draft, rng: &mut ChaCha8Rng) -> (Choices, bool) {
        if !rng.random_bool(self.programs) {
            return (draft.choices.clone(), false);
        }
        let mut choice = |n: usize| {
            if rng.random_bool(self.slots) {
                rng.random_range(0..n)
            } else {
                0
            }
        };
        let slots = draft.function.slots.iter();
        (
            Choices(slots.map(|slot| choice(slot.n_choices())).collect()),
            true,
        )
    }
}

fn not_empty(drafts: &[Draft]) -> Result<(), MixError> {
    if drafts.is_empty() {
        Err(MixError::NoDrafts)
    } else {
        Ok(())
    }
}

/// The draft of row `index`: each pass over the drafts takes them in another order, by a step that
/// shares no factor with their number.
fn nth(drafts: &[Draft], seed: Seed, index: u64) -> &Draft {
    let n = drafts.len() as u64;
    let mut rng = seed.stream("pass", index / n).rng();
    let start = rng.random_range(0..n);
    let mut step = rng.random_range(0..n);
    while gcd(step, n) != 1 {
        step = (step + 1) % n.max(2);
    }
    let place = (u128::from(start) + u128::from(step) * u128::from(index % n)) % u128::from(n);
    &drafts[place as usize]
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::tiny::{Split, TaskSet, drafts};

    fn some(n: usize) -> Vec<Draft> {
        drafts(TaskSet::Functions, Seed(1), Split::Train, 0.3)
            .take(n)
            .collect()
    }

    #[test]
    fn each_pass_takes_every_draft_once_and_in_another_order() {
        for n in [1, 2, 3, 12, 97] {
            let drafts = some(n);
            let pass = |p: u64| -> Vec<u64> {
                let n = n as u64;
                (p * n..(p + 1) * n)
                    .map(|index| nth(&drafts, Seed(2), index).index)
                    .collect()
            };
            let mut sorted = pass(0);
            sorted.sort_unstable();
            let mut all: Vec<u64> = drafts.iter().map(|draft| draft.index).collect();
            all.sort_unstable();
            assert_eq!(sorted, all);
            if n > 10 {
                assert_ne!(pass(0), pass(1));
            }
        }
    }

    #[test]
    fn rows_are_fixed_by_seed_and_index() {
        let drafts = some(50);
        let rows = ReviserRows::new(&drafts, &ReviserMix::default(), Seed(2)).unwrap();
        let again = ReviserRows::new(&drafts, &ReviserMix::default(), Seed(2)).unwrap();
        let other = ReviserRows::new(&drafts, &ReviserMix::default(), Seed(3)).unwrap();
        assert_eq!(rows.row(17), again.row(17));
        assert!((0..20).any(|index| rows.row(index) != other.row(index)));
        let critic = CriticRows::new(&drafts, &CriticMix::default(), Seed(2)).unwrap();
        assert!((0..50).all(|index| critic.row(index).kind == Kind::Good));
    }

    #[test]
    fn generators_learn_right_programs_as_often_as_asked() {
        let drafts = some(200);
        for (right, between) in [(0.0, 0..1), (0.5, 60..140), (1.0, 200..201)] {
            // Of drafts with a bug in them.
            let rows = GeneratorRows::new(&drafts, &GeneratorMix { right }, Seed(2)).unwrap();
            let mut seen = (0, 0);
            for index in 0..2_000 {
                let row = rows.row(index);
                let draft = nth(&drafts, rows.seed, index);
                assert_eq!(row.statement, draft.function.statement);
                if draft.planted().is_some() {
                    seen.1 += 1;
                    seen.0 += usize::from(row.program == draft.function.reference());
                }
            }
            let share = 200 * seen.0 / seen.1;
            assert!(between.contains(&share), "{right}: {seen:?}");
        }
        assert!(GeneratorRows::new(&drafts, &GeneratorMix { right: 1.1 }, Seed(0)).is_err());
    }

    #[test]
    fn shares_are_as_asked() {
        let drafts = some(200);
        let mix = ReviserMix {
            scrambled: 0.7,
            good: 0.1,
            wrong_suggestion: 0.1,
            edit: 0.25,
            ..ReviserMix::default()
        };
        let rows = ReviserRows::new(&drafts, &mix, Seed(2)).unwrap();
        let mut kinds: BTreeMap<Kind, f64> = BTreeMap::new();
        let mut scrambled = 0.0;
        for index in 0..4_000 {
            let row = rows.row(index);
            *kinds.entry(row.kind).or_default() += 1.0 / 4_000.0;
            scrambled += f64::from(row.scrambled) / 4_000.0;
            if row.kind.changes_nothing() {
                assert_eq!(row.program, row.revision);
            }
        }
        assert!((scrambled - 0.7).abs() < 0.04);
        for (kind, share) in [(Kind::Good, 0.1), (Kind::Edit, 0.25), (Kind::Empty, 0.03)] {
            assert!(
                (kinds[&kind] - share).abs() < 0.03,
                "{kind:?} {}",
                kinds[&kind]
            );
        }
        assert_eq!(kinds.len(), Kind::ALL.len());
    }

    #[test]
    fn impossible_mixes_are_refused() {
        let drafts = some(3);
        let critic = |mix| CriticRows::new(&drafts, &mix, Seed(0)).err();
        let none = CriticMix {
            good: 0.0,
            ..CriticMix::default()
        };
        assert_eq!(critic(none), Some(MixError::NoKind));
        let negative = CriticMix {
            correct: -0.5,
            ..CriticMix::default()
        };
        assert_eq!(
            critic(negative),
            Some(MixError::Weight {
                name: "correct",
                value: -0.5
            })
        );
        let reviser = ReviserMix {
            scrambled: 1.5,
            ..ReviserMix::default()
        };
        assert_eq!(
            ReviserRows::new(&drafts, &reviser, Seed(0)).err(),
            Some(MixError::Share {
                name: "scrambled",
                value: 1.5
            })
        );
        let no_drafts = CriticRows::new(&[], &CriticMix::default(), Seed(0)).err();
        assert_eq!(no_drafts, Some(MixError::NoDrafts));
        let unknown: Result<CriticMix, _> = serde_json::from_str(r#"{"god": 1.0}"#);
        assert!(unknown.is_err());
    }
}
