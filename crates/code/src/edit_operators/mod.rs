//! A catalogue of small edits that mend common mistakes in Python, for repair by search. Pure.
//!
//! [`candidates`] lists what could be wrong at lines that somebody suspects. Each [`Candidate`] is one byte
//! span and its replacement, parses, and has a cost: the negative logarithm of how likely such an edit is
//! the right one, up to a constant, by what studies of real fixes found to be common (Karampatsis and
//! Sutton 2020, Table 2, counts simple mistakes; Liu et al. 2019, Table 1, lists fix patterns; Barr et al.
//! 2014 measure that fixes are mostly made of code near by).

mod arguments;
mod arithmetic;
mod bench;
mod calls;
mod comparisons;
mod conditions;
mod constants;
mod conversions;
mod exceptions;
mod family;
mod forgotten;
mod guards;
mod hints;
mod ingredients;
mod insertions;
mod names;
mod neglected;
mod omitted;
mod operators;
mod repeated;
mod returns;
mod siblings;
mod statements;
mod subscripts;
mod vocabulary;
mod wanted;

use rustc_hash::FxHashMap;

use crate::sites::{Edit, Sites, Source};
use bench::Bench;

pub use family::Family;
pub use hints::{Hints, Mismatch};

/// One edit that could mend a source.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub family: Family,
    pub edit: Edit,
    /// Where the edited statement begins.
    pub line: u32,
    /// What the line weighs, by whoever suspects it.
    pub weight: f64,
    /// In nats; lower is likelier.
    pub cost: f64,
}

/// Small edits of `source` at the lines that `weight` is more than zero for, by their place in the text,
/// each change once. A statement weighs what the heaviest line of its own weighs, without its blocks.
pub fn candidates(source: &Source, weight: &dyn Fn(u32) -> f64, hints: &Hints) -> Vec<Candidate> {
    let sites = Sites::of(source);
    let mut bench = Bench::new(&sites, weight, hints);
    for (index, _) in sites.iter() {
        if bench.is_wanted(index) {
            operators::apply(&mut bench, index);
        }
    }
    let mut found = bench.finish();
    cheapest_of_equals(&mut found);
    found.retain(|candidate| candidate.edit.parses(source));
    found
}

/// Of the edits that make the same text the cheapest stays.
fn cheapest_of_equals(found: &mut Vec<Candidate>) {
    let mut cheapest: FxHashMap<Edit, f64> = FxHashMap::default();
    for candidate in &*found {
        let cost = cheapest.entry(candidate.edit.clone()).or_insert(f64::MAX);
        *cost = cost.min(candidate.cost);
    }
    found.retain(|candidate| {
        let is_cheapest = cheapest.get(&candidate.edit) == Some(&candidate.cost);
        is_cheapest && cheapest.remove(&candidate.edit).is_some()
    });
    found.sort_by(|a, b| a.edit.cmp(&b.edit));
}
