//! The families of functions, each in its own module, and the parts they share.

mod account;
mod aggregate;
mod arithmetic;
mod build;
mod condition;
mod digits;
mod extreme;
mod fold;
mod grid;
mod index;
mod pairs;
mod predicate;
mod range;
mod runs;
mod totals;
mod two_loops;
mod words;

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
    // Of programs.
    Totals,
    TwoLoops,
    Runs,
    Account,
    Grid,
    Words,
}

/// The builtin worlds: which families there are, and what their programs are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskSet {
    /// A function `f`, which tests call.
    #[default]
    Functions,
    /// A program that reads standard input and prints: loops that need each other, running states, words.
    Programs,
}

impl TaskSet {
    pub fn families(self) -> &'static [Family] {
        match self {
            Self::Functions => &Family::FUNCTIONS,
            Self::Programs => &Family::PROGRAMS,
        }
    }
}

impl Family {
    /// Of programs that read standard input.
    pub const PROGRAMS: [Self; 6] = [
        Self::Totals,
        Self::TwoLoops,
        Self::Runs,
        Self::Account,
        Self::Grid,
        Self::Words,
    ];

    /// Of functions.
    pub const FUNCTIONS: [Self; 9] = [
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
            Self::Totals => "totals",
            Self::TwoLoops => "two-loops",
            Self::Runs => "runs",
            Self::Account => "account",
            Self::Grid => "grid",
            Self::Words => "words",
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
            Self::Totals => totals::draw(rng),
            Self::TwoLoops => two_loops::draw(rng),
            Self::Runs => runs::draw(rng),
            Self::Account => account::draw(rng),
            Self::Grid => grid::draw(rng),
            Self::Words => words::draw(rng),
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

/// The first line of programs that read integers.
const INTEGERS: &str = "xs = list(map(int, input().split()))";

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
    let families = [TaskSet::Functions, TaskSet::Programs];
    families
        .into_iter()
        .flat_map(TaskSet::families)
        .flat_map(|family| {
            (0..n).map(move |index| family.draw(&mut seed.stream(family.name(), index).rng()))
        })
        .collect()
}
