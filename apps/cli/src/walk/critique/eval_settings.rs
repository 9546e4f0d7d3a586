//! `[eval]` of critique recipes: rounds, widths, votes and baselines.

use std::path::PathBuf;

use anyhow::ensure;
use critique::Prompter;
use serde::{Deserialize, Serialize};

use crate::walk::settings::{is_default, yes};

/// How critics are evaluated. What follows `gates` is left out of the resolved recipe where it changes nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Eval {
    /// Critiques a task, at the critic's temperature; in rounds, of every program in the first.
    #[serde(default = "once")]
    pub(crate) samples: u32,
    /// Evaluate the reviser on fixed critiques (empty, malformed, … and the right one).
    #[serde(default = "yes")]
    pub(crate) gates: bool,
    /// Rounds of critique and revision.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub(crate) rounds: u32,
    /// The same layer by layer, in place of `samples` and `rounds`: problems, initial programs of each, then
    /// critiques and revisions of every program of the layer before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) widths: Vec<u32>,
    /// Critiques of every program, of which the majority's judgment holds and one that shares it is followed.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub(crate) votes: u32,
    /// Programs that are found correct stay as they are.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) stop_at_correct: bool,
    /// Also the reviser as its own critic, reports of test runs as critiques, and the right critiques.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) baselines: bool,
    /// A file of nodes, this program's or the original's: what it generated are the initial programs, in place of those
    /// of the tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) forest: Option<PathBuf>,
    /// Also judge pairs of a right and a wrong answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pairs: Option<Pairs>,
}

/// Pairs of answers to judge, and how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pairs {
    /// Judgments of each answer.
    pub(crate) votes: u32,
    /// Rows in JudgeBench's format; without a file, the right and the wrong programs of the same problem among the
    /// evaluation tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<PathBuf>,
    /// How the critic is asked about rows of the file; about pairs of tasks it is asked as they say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) prompter: Option<Prompter>,
}

impl Default for Eval {
    fn default() -> Self {
        Self {
            samples: 1,
            gates: true,
            rounds: 1,
            widths: Vec::new(),
            votes: 1,
            stop_at_correct: false,
            baselines: false,
            forest: None,
            pairs: None,
        }
    }
}

/// More makes a forest that nobody has the time for.
const MOST_ROUNDS: usize = 64;

impl Eval {
    /// Whether programs are followed over rounds, or criticised once and done with.
    pub(crate) fn in_rounds(&self) -> bool {
        let plain = Self {
            samples: self.samples,
            gates: self.gates,
            pairs: self.pairs.clone(),
            ..Self::default()
        };
        *self != plain
    }

    /// Critiques and revisions of every program, round by round.
    pub(crate) fn branches(&self) -> Vec<u32> {
        if self.widths.is_empty() {
            let further = (1..self.rounds).map(|_| 1);
            return std::iter::once(self.samples).chain(further).collect();
        }
        self.widths.iter().skip(2).copied().collect()
    }

    /// Programs that a generator writes for every problem.
    pub(crate) fn programs(&self) -> u32 {
        self.widths.get(1).copied().unwrap_or(1)
    }

    pub(crate) fn check(&self, has_generator: bool) -> anyhow::Result<()> {
        ensure!(self.samples >= 1, "eval.samples must be at least 1");
        ensure!(self.votes >= 1, "eval.votes must be at least 1");
        ensure!(
            (1..=MOST_ROUNDS).contains(&(self.rounds as usize)),
            "eval.rounds is {}; at least 1 and at most {MOST_ROUNDS} are possible",
            self.rounds
        );
        ensure!(
            self.pairs.as_ref().is_none_or(|pairs| pairs.votes >= 1),
            "eval.pairs.votes must be at least 1"
        );
        ensure!(
            !has_generator || self.forest.is_none(),
            "eval.forest and [generator] both say what the initial programs are; leave one of them out"
        );
        if self.widths.is_empty() {
            ensure!(
                !has_generator,
                "[generator] writes the initial programs of forests; say how many for each problem with eval.widths, as \
                 [1, 5, 1]: problems, programs of each, critiques of every program"
            );
            return Ok(());
        }
        ensure!(
            self.rounds == 1 && self.samples == 1,
            "eval.widths says how many critiques and rounds there are, so leave out eval.samples and eval.rounds"
        );
        ensure!(
            (3..=MOST_ROUNDS + 2).contains(&self.widths.len())
                && self.widths.iter().all(|width| *width >= 1),
            "eval.widths is {:?}; it begins with problems and initial programs, as [1, 1], and has a number of at \
             least 1 for each round after them, of which there are at most {MOST_ROUNDS}",
            self.widths
        );
        ensure!(
            self.widths[0] == 1,
            "eval.widths begins with {}; every problem is one root, so it begins with 1",
            self.widths[0]
        );
        ensure!(
            has_generator || self.widths[1] == 1,
            "eval.widths asks for {} programs of every problem, and nobody writes them: add a [generator], or begin with \
             [1, 1] and have several programs of a problem as several tasks",
            self.widths[1]
        );
        Ok(())
    }
}

fn once() -> u32 {
    1
}
fn is_once(value: &u32) -> bool {
    *value == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_and_widths_are_two_ways_to_say_the_same() {
        let rounds = Eval {
            samples: 2,
            rounds: 3,
            ..Eval::default()
        };
        let widths = Eval {
            widths: vec![1, 1, 2, 1, 1],
            ..Eval::default()
        };
        assert_eq!(rounds.branches(), [2, 1, 1]);
        assert_eq!(widths.branches(), [2, 1, 1]);
        assert!(rounds.in_rounds() && widths.in_rounds());
        assert!(rounds.check(false).is_ok() && widths.check(false).is_ok());
        // Somebody is to write the programs, and then it must be said how many.
        assert!(rounds.check(true).is_err() && widths.check(true).is_ok());
        let five = Eval {
            widths: vec![1, 5, 2],
            ..Eval::default()
        };
        assert_eq!((five.programs(), five.branches()), (5, vec![2]));
        assert!(five.check(true).is_ok() && five.check(false).is_err());
    }

    #[test]
    fn what_was_always_said_is_no_forest_and_keeps_its_text() {
        let plain = recipe::resolve::<Eval>("samples = 4", "here", &[]).unwrap();
        assert!(!plain.value.in_rounds());
        assert_eq!(plain.value.branches(), [4]);
        assert_eq!(plain.text, "samples = 4\ngates = true\n");
    }

    #[test]
    fn impossible_forests_are_refused() {
        for text in [
            "samples = 0",
            "votes = 0",
            "pairs = { votes = 0 }",
            "rounds = 0",
            "rounds = 65",
            "widths = [1, 1]",
            "widths = [1, 5, 1]",
            "widths = [2, 1, 1]",
            "widths = [1, 1, 0]",
            "widths = [1, 1, 1]\nrounds = 2",
        ] {
            let eval = recipe::resolve::<Eval>(text, "here", &[]).unwrap().value;
            assert!(eval.check(false).is_err(), "{text}");
        }
    }
}
