//! Step rewards that come from what later answers made of the memory.

use std::collections::BTreeMap;

use crate::{
    event::Event,
    play::{FACT_SPLIT, SHORT_MEM},
};

use super::{
    Likelihoods,
    rules::mean,
    view::{View, is_memory_call},
};

pub(super) fn chunk_qa(grades: &BTreeMap<u32, Vec<f64>>, event: &Event) -> Option<f64> {
    if !is_memory_call(event) {
        return None;
    }
    mean(grades.get(&event.turn_id)?.iter().copied())
}

/// `index` is that of `event` in the view. A call whose facts nobody was shown has 0; without questions there
/// is no score.
pub(super) fn evidence(view: &View<'_>, index: usize, event: &Event) -> Option<f64> {
    if !writes_facts(event) {
        return None;
    }
    let is_own = |creator: usize| {
        if event.agent_role == FACT_SPLIT {
            view.events[creator].turn_id == event.turn_id
        } else {
            creator == index
        }
    };
    mean(view.answers().map(|(answer, grade)| {
        let shown: Vec<_> = answer.retrieved.iter().filter(|hit| hit.shown).collect();
        let own = shown
            .iter()
            .filter(|hit| view.creator(hit.item_id).is_some_and(is_own))
            .count();
        grade.score * own as f64 / shown.len().max(1) as f64
    }))
}

/// Over answers that earned something: 1 - log-likelihood with the memory / log-likelihood without it.
pub(super) fn info_gain(
    view: &View<'_>,
    likelihoods: &BTreeMap<u32, Likelihoods>,
    event: &Event,
) -> Option<f64> {
    if !is_memory_call(event) {
        return None;
    }
    let earned = view.answers().filter(|(_, grade)| grade.score > 0.0);
    mean(earned.filter_map(|(answer, _)| {
        let of = likelihoods.get(&answer.turn_id)?;
        // Nothing is left to gain where the answer was certain.
        if of.without_memory >= 0.0 {
            return Some(0.0);
        }
        Some((1.0 - of.with_memory / of.without_memory).clamp(-1.0, 1.0))
    }))
}

pub(super) fn retrievability(view: &View<'_>, event: &Event) -> Option<f64> {
    if !writes_facts(event) {
        return None;
    }
    let wanted = view.answers().flat_map(|(answer, grade)| {
        let here = grade.evidence.iter();
        here.filter(|evidence| evidence.turn_id == event.turn_id)
            .map(move |evidence| (answer, evidence))
    });
    mean(wanted.map(|(answer, evidence)| {
        let mut facts = answer
            .retrieved
            .iter()
            .filter_map(|hit| view.facts.get(&hit.item_id));
        f64::from(facts.any(|fact| evidence.is_in(fact, answer.turn_id)))
    }))
}

/// Whether long-term facts can come of a call.
fn writes_facts(event: &Event) -> bool {
    is_memory_call(event) && event.agent_role != SHORT_MEM
}
