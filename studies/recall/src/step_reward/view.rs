//! An episode as step rewards look at it.

use std::collections::BTreeMap;

use crate::{
    event::{Event, Grade, Notes},
    memory::{Fact, FactId, OpKind, OpRecord, Store},
};

/// What happened, with what belongs together found.
pub(super) struct View<'a> {
    pub(super) events: &'a [Event],
    pub(super) facts: BTreeMap<FactId, &'a Fact>,
    /// By record of an operation: the event that did it, as an index of `events`.
    owners: BTreeMap<u32, usize>,
}

impl<'a> View<'a> {
    pub(super) fn of(notes: &'a Notes) -> Self {
        let ops = |(index, event): (usize, &'a Event)| {
            let ops = event.memory_ops.iter();
            ops.map(move |op| (op.op_id, index))
        };
        Self {
            events: &notes.events,
            facts: notes.facts.iter().map(|fact| (fact.id, fact)).collect(),
            owners: notes.events.iter().enumerate().flat_map(ops).collect(),
        }
    }

    /// The answers that were graded, in order.
    pub(super) fn answers(&self) -> impl Iterator<Item = (&'a Event, &'a Grade)> {
        let events = self.events.iter();
        events.filter_map(|event| Some((event, event.grade.as_ref()?)))
    }

    /// The events of a turn.
    pub(super) fn turn(&self, turn_id: u32) -> impl Iterator<Item = &'a Event> {
        let events = self.events.iter();
        events.filter(move |event| event.turn_id == turn_id)
    }

    /// The event that created a fact, as an index of `events`. Updates change nothing about it.
    pub(super) fn creator(&self, id: FactId) -> Option<usize> {
        let write = self.facts.get(&id)?.written.first()?;
        self.owners.get(&write.op_id).copied()
    }
}

/// Whether a policy was asked to look after the memory.
pub(super) fn is_memory_call(event: &Event) -> bool {
    event.response.is_some() && event.grade.is_none()
}

/// What the role of an event asked for: its operations without those that only followed from others, and
/// without those of rules in the same turn.
pub(super) fn asked_for(event: &Event) -> impl Iterator<Item = &OpRecord> {
    event
        .memory_ops
        .iter()
        .filter(|op| op.agent_role == event.agent_role)
        .filter(|op| op.kind != OpKind::Evict && op.store != Store::Window)
}
