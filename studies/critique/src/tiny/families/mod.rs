//! The families of functions, each in its own module, and the parts they share.

mod aggregate;
mod arithmetic;
mod build;
mod condition;
mod digits;
mod extreme;
mod fold;
mod index;
mod pairs;
mod predicate;
mod range;

use std::fmt;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::arguments::Arguments;
use super::function::{Bug, Function, Slot, Wrong};
use condition::Scope;
pub use condition::{Comparison, Condition};

/// A family: functions of one shape that differ in their parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    Fold,
    Range,
    Extreme,
    Index,
    Build,
    Arithmetic,
    Digits,
    Predicate,
    Pairs,
}

impl Family {
    pub const ALL: [Self; 9] = [
        Self::Fold,
        Self::Range,
        Self::Extreme,
        Self::Index,
        Self::Build,
        Self::Arithmetic,
        Self::Digits,
        Self::Predicate,
        Self::Pairs,
    ];

    /// The name that reports use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fold => "fold",
            Self::Range => "range",
            Self::Extreme => "extreme",
            Self::Index => "index",
            Self::Build => "build",
            Self::Arithmetic => "arithmetic",
            Self::Digits => "digits",
            Self::Predicate => "predicate",
            Self::Pairs => "pairs",
        }
    }

    /// One function of the family; its parts are drawn independently and uniformly.
    pub fn draw(self, rng: &mut ChaCha8Rng) -> Function {
        let parts = match self {
            Self::Fold => fold::draw(rng),
            Self::Range => range::draw(rng),
            Self::Extreme => extreme::draw(rng),
            Self::Index => index::draw(rng),
            Self::Build => build::draw(rng),
            Self::Arithmetic => arithmetic::draw(rng),
            Self::Digits => digits::draw(rng),
            Self::Predicate => predicate::draw(rng),
            Self::Pairs => pairs::draw(rng),
        };
        Function {
            family: self,
            spec: format!("{}/{}", self.name(), parts.spec),
            statement: parts.statement,
            template: parts.template,
            slots: parts.slots,
            arguments: parts.arguments,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a family draws; [`Family::draw`] adds the family itself.
struct Parts {
    spec: String,
    statement: String,
    template: String,
    slots: Vec<Slot>,
    arguments: Arguments,
}

fn slot(
    name: &'static str,
    right: impl Into<String>,
    wrong: impl IntoIterator<Item = Wrong>,
) -> Slot {
    Slot {
        name,
        right: right.into(),
        wrong: wrong.into_iter().collect(),
    }
}

fn wrong(bug: Bug, fragment: impl Into<String>) -> Wrong {
    Wrong {
        fragment: fragment.into(),
        bug,
    }
}

fn pick<'a, T>(from: &'a [T], rng: &mut ChaCha8Rng) -> &'a T {
    &from[rng.random_range(0..from.len())]
}

/// The lines of a loop body that updates under a condition, if there is one.
fn guarded_update(condition: Option<&Condition>) -> &'static str {
    match condition {
        Some(_) => "        if {condition}:\n            {update}\n",
        None => "        {update}\n",
    }
}

/// The condition's slot, if there is one.
fn condition_slot(condition: Option<&Condition>, variable: &str) -> Option<Slot> {
    condition.map(|c| slot("condition", c.fragment(variable), c.wrong(variable)))
}

/// " that are odd", or nothing.
fn that_are(condition: Option<&Condition>) -> String {
    condition
        .map(|c| format!(" that are {}", c.words()))
        .unwrap_or_default()
}

fn condition_spec(condition: Option<&Condition>) -> String {
    condition.map_or_else(|| "all".to_owned(), Condition::spec)
}

/// Values that a function gives back when there is nothing to give back; `None` is Python's.
const DEFAULTS: [&str; 4] = ["0", "-1", "None", "1"];

/// `line` with two other defaults than the right one.
fn wrong_defaults(right: &str, line: impl Fn(&str) -> String) -> Vec<Wrong> {
    let others = DEFAULTS
        .into_iter()
        .filter(|default| *default != right)
        .take(2);
    others
        .map(|default| wrong(Bug::WrongConstant, line(default)))
        .collect()
}

/// `n` functions of every family.
#[cfg(test)]
pub(crate) fn sample_functions(n: u64) -> Vec<Function> {
    let seed = record::Seed(11);
    Family::ALL
        .into_iter()
        .flat_map(|family| {
            (0..n).map(move |index| family.draw(&mut seed.stream(family.name(), index).rng()))
        })
        .collect()
}
