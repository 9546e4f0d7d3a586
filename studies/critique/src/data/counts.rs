//! How often what happened, by name.

use std::collections::BTreeMap;

use serde::Serialize;

/// What was left out of rows or changed in them, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Counts(pub BTreeMap<String, u64>);

impl Counts {
    /// Nothing is counted where `number` is 0.
    pub(super) fn add(&mut self, what: &str, number: usize) {
        if number > 0 {
            *self.0.entry(what.to_owned()).or_default() += number as u64;
        }
    }
}
