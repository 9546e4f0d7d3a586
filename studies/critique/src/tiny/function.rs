//! A function of the tiny world: its statement, its program with slots, and what fills each slot.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::arguments::Arguments;
use super::families::Family;

/// One function: what is asked for, and a program whose slots hold one right fragment each.
///
/// `spec` is canonical: two functions that do the same have the same spec, however the statement
/// words them ("greater than 3" and "at least 4" are one condition on integers).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Function {
    pub family: Family,
    pub spec: String,
    pub statement: String,
    /// Lines of Python with at most one `{slot}` mark each; a line that is filled with nothing
    /// disappears.
    pub template: String,
    /// In the order in which the program shows them.
    pub slots: Vec<Slot>,
    pub arguments: Arguments,
}

/// A place of the program that can go wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Slot {
    pub name: &'static str,
    pub right: String,
    pub wrong: Vec<Wrong>,
}

/// A wrong fragment and the bug it makes. An empty fragment drops the slot's line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wrong {
    pub fragment: String,
    pub bug: Bug,
}

/// The kinds of bugs, by the names that reports break down by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bug {
    OffByOne,
    WrongOperator,
    WrongComparison,
    WrongInitialValue,
    WrongAccumulator,
    WrongConstant,
    WrongExpression,
    WrongOrder,
    WrongResult,
    SwappedArguments,
    MissingEdgeCase,
    MissingNegation,
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OffByOne => "off-by-one",
            Self::WrongOperator => "wrong operator",
            Self::WrongComparison => "wrong comparison",
            Self::WrongInitialValue => "wrong initial value",
            Self::WrongAccumulator => "wrong accumulator",
            Self::WrongConstant => "wrong constant",
            Self::WrongExpression => "wrong expression",
            Self::WrongOrder => "wrong order",
            Self::WrongResult => "wrong result",
            Self::SwappedArguments => "swapped arguments",
            Self::MissingEdgeCase => "missing edge case",
            Self::MissingNegation => "missing negation",
        })
    }
}

/// What every slot of a program holds: 0 is the right fragment, `k` the wrong fragment `k - 1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Choices(pub Vec<usize>);

impl Choices {
    /// The same program with one slot filled differently.
    pub fn with(&self, slot: usize, choice: usize) -> Self {
        let mut choices = self.clone();
        choices.0[slot] = choice;
        choices
    }

    /// The slots that hold a wrong fragment.
    pub fn wrong_slots(&self) -> impl Iterator<Item = usize> {
        self.0
            .iter()
            .enumerate()
            .filter(|(_, choice)| **choice != 0)
            .map(|(slot, _)| slot)
    }
}

impl Slot {
    /// The fragment of a choice, which must be below [`Slot::n_choices`].
    pub fn fragment(&self, choice: usize) -> &str {
        if choice == 0 {
            &self.right
        } else {
            &self.wrong[choice - 1].fragment
        }
    }

    /// The right fragment and the wrong ones.
    pub fn n_choices(&self) -> usize {
        1 + self.wrong.len()
    }
}

impl Function {
    /// Every slot right.
    pub fn right(&self) -> Choices {
        Choices(vec![0; self.slots.len()])
    }

    /// The right program.
    pub fn reference(&self) -> String {
        self.program(&self.right())
    }

    /// The program of these choices, without a final newline.
    pub fn program(&self, choices: &Choices) -> String {
        self.program_with(&self.fragments(choices))
    }

    /// What the slots hold, in program order.
    pub fn fragments(&self, choices: &Choices) -> Vec<&str> {
        assert_eq!(
            choices.0.len(),
            self.slots.len(),
            "one choice per slot of {}",
            self.spec
        );
        self.slots
            .iter()
            .zip(&choices.0)
            .map(|(slot, choice)| slot.fragment(*choice))
            .collect()
    }

    /// The program with any fragments in its slots, in program order; an empty one drops its line.
    pub fn program_with(&self, fragments: &[&str]) -> String {
        let fragment = |name: &str| {
            let slot = self.slots.iter().position(|slot| slot.name == name);
            slot.and_then(|slot| fragments.get(slot))
                .copied()
                .unwrap_or_default()
        };
        let fill = |line: &str| match line.split_once('{').zip(line.split_once('}')) {
            Some(((before, _), (to_name, after))) => {
                format!("{before}{}{after}", fragment(&to_name[before.len() + 1..]))
            }
            None => line.to_owned(),
        };
        let lines = self
            .template
            .lines()
            .map(fill)
            .filter(|line| !line.trim().is_empty());
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use crate::tiny::families::sample_functions;

    #[test]
    fn slots_stand_in_program_order_and_occur_once() {
        for function in sample_functions(40) {
            let places: Vec<_> = function
                .slots
                .iter()
                .map(|slot| {
                    let mark = format!("{{{}}}", slot.name);
                    assert_eq!(function.template.matches(&mark).count(), 1, "{function:?}");
                    function.template.find(&mark)
                })
                .collect();
            assert!(places.is_sorted(), "{function:?}");
            assert!(
                function
                    .template
                    .lines()
                    .all(|line| line.matches('{').count() <= 1)
            );
            assert!(
                !function.reference().contains(['{', '}']),
                "{}",
                function.reference()
            );
        }
    }

    #[test]
    fn fragments_of_a_slot_differ_and_name_no_backtick() {
        for function in sample_functions(40) {
            // So that a wrong suggestion always finds a slot, whatever the others hold.
            assert!(
                function.slots.iter().any(|slot| slot.wrong.len() > 1),
                "{function:?}"
            );
            for slot in &function.slots {
                assert!(!slot.wrong.is_empty(), "{function:?}");
                for choice in 0..slot.n_choices() {
                    assert!(!slot.fragment(choice).contains('`'));
                    for other in 0..choice {
                        assert_ne!(slot.fragment(choice), slot.fragment(other), "{function:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_edit_changes_one_line_or_drops_it() {
        for function in sample_functions(40) {
            let reference = function.reference();
            for (slot, holds) in function.slots.iter().enumerate() {
                for choice in 1..holds.n_choices() {
                    let program = function.program(&function.right().with(slot, choice));
                    let dropped = usize::from(holds.fragment(choice).is_empty());
                    assert_eq!(program.lines().count() + dropped, reference.lines().count());
                    let kept = program
                        .lines()
                        .filter(|line| reference.contains(*line))
                        .count();
                    assert!(kept + 1 + dropped >= reference.lines().count(), "{program}");
                }
            }
        }
    }
}
