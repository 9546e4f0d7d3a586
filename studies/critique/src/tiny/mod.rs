//! The tiny world: small Python functions with planted bugs, drawn from a seed.
//!
//! It is the study's world for machines without a GPU and without data: large enough that a small
//! transformer must learn to compare a program with a statement, small enough that it can learn it
//! from nothing in minutes.
//!
//! # A task
//!
//! A function is a statement and a program with named *slots*. Every slot has one right fragment and
//! a few wrong ones, each with the kind of bug that it makes. The program under criticism is right,
//! or wrong in one slot. Names are always `xs`, `x`, `s`, `i`, `a`, `b`, `n`.
//!
//! ```text
//! Return the product of the items of xs that are greater than 8.
//!
//! def f(xs):
//!     s = 1                <- initial: `s = 0` is a wrong initial value
//!     for x in xs:
//!         if x < 8:        <- condition: a wrong comparison; right is `x > 8`
//!             s *= x       <- update: `s += x` is a wrong operator, …
//!     return s             <- result: `return s + 1` is off by one, …
//! ```
//!
//! The right critique walks the slots in program order (an absent line is `nothing`):
//!
//! ```text
//! Analysis: `s = 1` ok, `x < 8` wrong, `s *= x` ok, `return s` ok
//! Improvement suggestions: use `x > 8` instead of `x < 8`.
//! Overall judgment: Incorrect
//! ```
//!
//! and the revision is the program with that one fragment replaced. Followed to the letter, a critique
//! with a wrong suggestion spoils a program, and one that cannot be followed leaves it alone: that
//! is what the reviser learns ([`ReviserRows`]), so that only a critic that finds the bug is paid.
//!
//! # From seed to task
//!
//! [`drafts`] gives statements, programs and the arguments of [`N_CALLS`] hidden calls of `f`, nothing
//! that needs Python. Whoever turns a draft into a task runs [`Function::reference`] on the calls to
//! get the expected results, and throws away a wrong draft that gives the same ones (about one wrong
//! draft in sixty is harmless: its calls do not reach the bug).
//!
//! Training and held-out drafts share no function ([`Split::of`] the spec, which is the same for
//! statements that mean the same) and therefore no bug either. Held-out functions are new combinations
//! of parts that training has seen, not new families.
//!
//! # Programs
//!
//! [`TaskSet::Programs`] is the same with whole programs that read lines and print: each argument of a call is a
//! line of standard input.

pub mod arguments;
pub mod class;
pub mod critique;
pub mod draft;
pub mod families;
pub mod function;
pub mod kind;
pub mod mix;
pub mod rows;
pub mod wording;

pub use arguments::{Arguments, Call, Value};
pub use class::{Class, classify, right_critique};
pub use critique::{Written, probe, write_critique};
pub use draft::{Draft, Drafts, N_CALLS, N_INPUTS, Planted, Split, draft, drafts};
pub use families::{Family, TaskSet};
pub use function::{Bug, Choices, Function, Slot, Wrong};
pub use kind::Kind;
pub use mix::{CriticMix, GeneratorMix, MixError, ReviserMix};
pub use rows::{CriticRow, CriticRows, GeneratorRow, GeneratorRows, ReviserRow, ReviserRows};

#[cfg(test)]
mod tests {
    use record::Seed;

    use super::*;

    /// The example of the module's documentation, word for word.
    #[test]
    fn the_documented_example_is_what_the_world_makes() {
        let statement = "Return the product of the items of xs that are greater than 8.";
        let function = (0..20_000)
            .map(|index| Family::Fold.draw(&mut Seed(0).stream("example", index).rng()))
            .find(|function| function.statement == statement)
            .unwrap();
        let condition = function
            .slots
            .iter()
            .position(|slot| slot.name == "condition")
            .unwrap();
        let choice = (1..function.slots[condition].n_choices())
            .find(|choice| function.slots[condition].fragment(*choice) == "x < 8")
            .unwrap();
        let choices = function.right().with(condition, choice);
        let draft = Draft {
            split: Split::Train,
            index: 0,
            function,
            choices,
            calls: Vec::new(),
        };
        assert_eq!(
            draft.program(),
            "def f(xs):\n    s = 1\n    for x in xs:\n        if x < 8:\n            s *= x\n    return s"
        );
        assert_eq!(
            draft.planted().map(|planted| planted.bug),
            Some(Bug::WrongComparison)
        );
        assert_eq!(
            right_critique(&draft),
            "Analysis: `s = 1` ok, `x < 8` wrong, `s *= x` ok, `return s` ok\n\
             Improvement suggestions: use `x > 8` instead of `x < 8`.\nOverall judgment: Incorrect"
        );
    }
}
