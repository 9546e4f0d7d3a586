//! Step rewards that look at what facts say.

use std::collections::BTreeSet;

use crate::{
    event::Event,
    memory::{OpKind, OpRecord, OpStatus, Store, is_named},
    metrics::porter::stem,
};

use super::{
    rules::mean,
    view::{View, asked_for, is_memory_call},
};

/// Share of the changes that are sound. A text is sound when it could stand alone in its store, as
/// [`is_sound`] says; a deletion when what it removed was not, or when other facts say at least half of it.
pub(super) fn content(view: &View<'_>, event: &Event) -> Option<f64> {
    if !is_memory_call(event) {
        return None;
    }
    let changes = asked_for(event).filter(|op| op.status == OpStatus::Done);
    let sound = changes.filter_map(|op| match op.kind {
        OpKind::Add | OpKind::Update | OpKind::Summarize => {
            let text = op.after_text.as_deref()?;
            Some(is_sound(text, op.store, is_dated(view, op)))
        }
        OpKind::Delete => {
            let text = op.before_text.as_deref()?;
            let sound = is_sound(text, op.store, is_dated(view, op));
            Some(!sound || is_said_elsewhere(view, op, text))
        }
        OpKind::Noop | OpKind::DuplicateSkipped | OpKind::Evict | OpKind::Malformed => None,
    });
    mean(sound.map(f64::from))
}

/// Share of the words of written facts that were read in the turn, or stood in the fact before.
pub(super) fn faithfulness(view: &View<'_>, event: &Event) -> Option<f64> {
    if !is_memory_call(event) {
        return None;
    }
    let mut read: BTreeSet<String> = BTreeSet::new();
    for event in view.turn(event.turn_id) {
        read.extend(words(&event.observation));
        read.extend(event.timestamp.iter().flat_map(|time| words(time)));
    }
    let written = asked_for(event).filter(|op| {
        let writes = matches!(op.kind, OpKind::Add | OpKind::Update);
        writes && op.status == OpStatus::Done
    });
    let supported = written.filter_map(|op| {
        let claimed = words(op.after_text.as_deref()?);
        let before = words(op.before_text.as_deref().unwrap_or(""));
        let found = claimed
            .iter()
            .filter(|word| read.contains(*word) || before.contains(*word));
        Some(found.count() as f64 / claimed.len().max(1) as f64)
    });
    mean(supported)
}

/// Whether a text can stand alone in a store: a statement of at least two words that carry meaning, that does
/// not begin with someone whom only the dialogue could name; in the episodic store it says when.
fn is_sound(text: &str, store: Store, dated: bool) -> bool {
    const UNNAMED: [&str; 12] = [
        "i", "my", "we", "our", "you", "your", "he", "she", "they", "it", "this", "that",
    ];
    let text = text.trim();
    let lower = text.to_lowercase();
    let first = lower.split(|c: char| !c.is_alphanumeric()).next();
    let named = first.is_some_and(|first| !UNNAMED.contains(&first));
    let says_when = store != Store::Episodic || dated || has_date(&lower);
    named && says_when && !text.ends_with(['?', '\u{FF1F}']) && words(text).len() >= 2
}

fn is_dated(view: &View<'_>, op: &OpRecord) -> bool {
    let fact = op.item_id.and_then(|id| view.facts.get(&id));
    fact.is_some_and(|fact| fact.timestamp.is_some())
}

fn has_date(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    text.contains(char::is_numeric) || words.any(is_named)
}

/// Whether some other fact, written before the deletion `op`, says at least half of what `text` says.
fn is_said_elsewhere(view: &View<'_>, op: &OpRecord, text: &str) -> bool {
    let removed = words(text);
    let mut others = view.facts.values().filter(|fact| {
        let known = fact.written.iter().any(|write| write.op_id < op.op_id);
        known && Some(fact.id) != op.item_id
    });
    others.any(|fact| {
        let said = words(&fact.text);
        2 * removed.intersection(&said).count() >= removed.len().max(1)
    })
}

/// Stems of the words that carry meaning; letters of unspaced scripts are words.
fn words(text: &str) -> BTreeSet<String> {
    const EMPTY: [&str; 44] = [
        "a", "an", "the", "and", "or", "but", "of", "to", "in", "on", "at", "for", "with", "by",
        "from", "as", "is", "are", "was", "were", "be", "been", "has", "have", "had", "do", "does",
        "did", "that", "this", "it", "its", "he", "she", "they", "i", "you", "we", "his", "her",
        "their", "my", "so", "s",
    ];
    let spaced: String = text
        .to_lowercase()
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { ' ' })
        .collect();
    let all = crate::metrics::text::tokens(&spaced);
    let meant = all
        .into_iter()
        .filter(|word| !EMPTY.contains(&word.as_str()));
    meant.map(|word| stem(&word)).collect()
}
