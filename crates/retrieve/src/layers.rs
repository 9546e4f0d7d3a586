//! A copy-on-write store of documents in insertion order: frozen layers that snapshots share, and a short tail.
//!
//! The tail holds fewer than [`TAIL`] documents. A full tail is frozen into a layer, and [`FANOUT`] layers of one
//! level are merged into one of the next, up to layers of about `TAIL * FANOUT^TOP_LEVEL` documents, which are
//! never merged again. A document of many terms counts as several. So an insertion costs a bounded amount however long the history is, also for snapshots
//! that each merge on their own, and a clone copies two pointers.

#[cfg(test)]
mod tests;

use std::{ops::RangeInclusive, sync::Arc};

use crate::ranking::DocId;

/// Documents in a full tail.
const TAIL: usize = 32;
/// Layers of one level that become one of the next.
const FANOUT: usize = 4;
/// The level from which layers are only rewritten to drop removed documents.
const TOP_LEVEL: u32 = 4;
/// What is merged never makes a larger layer; places have 16 bits.
const MAX_SIZE: u64 = 1 << 15;
/// The weight up to which a document counts as one.
const WEIGHT_OF_ONE: u64 = 16;
/// A layer is rewritten once more than one in this many of its documents is removed.
const REMOVED_SHARE: usize = 8;

/// What an index keeps of its documents, frozen.
pub(crate) trait Frozen: Sized {
    /// What it keeps of one document.
    type Entry;

    fn freeze<'a>(entries: impl Iterator<Item = &'a Self::Entry>) -> Self
    where
        Self::Entry: 'a;

    /// One content of several, without what was removed.
    fn merge(parts: &[Part<'_, Self>]) -> Self;

    /// The share of a document in the index's total (its length in terms, or nothing).
    fn weight(&self, place: usize) -> u64;

    fn entry_weight(entry: &Self::Entry) -> u64;
}

/// One layer as [`Frozen::merge`] sees it.
pub(crate) struct Part<'a, F> {
    pub(crate) content: &'a F,
    pub(crate) places: Places,
}

/// Where the documents of a part go.
pub(crate) enum Places {
    /// All of them, in order, from this place on.
    From(u16),
    /// By old place; `None` for what was removed.
    Each(Vec<Option<u16>>),
}

pub(crate) struct Layers<F: Frozen> {
    layers: Arc<Vec<Layer<F>>>,
    tail: Arc<Vec<TailDocument<F::Entry>>>,
    next_sequence: u64,
    live: usize,
    total_weight: u64,
}

pub(crate) struct Layer<F> {
    block: Arc<Block<F>>,
    removed: Option<Arc<Removed>>,
    /// From the lowest id to the highest. Ids of a store mostly ascend, so that a layer is passed over by these
    /// alone when a document is looked for.
    ids: RangeInclusive<DocId>,
}

/// Documents of a layer: immutable, shared by all snapshots that hold the layer. Places count from 0 in the
/// order of insertion.
pub(crate) struct Block<F> {
    pub(crate) content: F,
    ids: Vec<DocId>,
    sequences: Vec<u64>,
    weight: u64,
    /// Places by ascending id.
    by_id: Vec<u16>,
}

pub(crate) struct TailDocument<E> {
    pub(crate) doc: DocId,
    pub(crate) sequence: u64,
    pub(crate) entry: Arc<E>,
}

/// Which places of a layer are dead.
#[derive(Clone)]
pub(crate) struct Removed {
    bits: Vec<u64>,
    count: usize,
    weight: u64,
}

impl<F: Frozen> Layers<F> {
    pub(crate) fn new() -> Self {
        Self {
            layers: Arc::default(),
            tail: Arc::default(),
            next_sequence: 0,
            live: 0,
            total_weight: 0,
        }
    }

    /// Live documents.
    pub(crate) fn len(&self) -> usize {
        self.live
    }

    /// The sum of the live documents' weights.
    pub(crate) fn total_weight(&self) -> u64 {
        self.total_weight
    }

    pub(crate) fn layers(&self) -> &[Layer<F>] {
        &self.layers
    }

    pub(crate) fn tail(&self) -> &[TailDocument<F::Entry>] {
        &self.tail
    }

    pub(crate) fn contains(&self, doc: DocId) -> bool {
        self.tail.iter().any(|it| it.doc == doc)
            || self.layers.iter().any(|it| it.find(doc).is_some())
    }

    /// Puts a document at the end, in place of the live one of the same id if there is one.
    pub(crate) fn insert(&mut self, doc: DocId, entry: F::Entry) {
        self.remove(doc);
        self.live += 1;
        self.total_weight += F::entry_weight(&entry);
        let tail = Arc::make_mut(&mut self.tail);
        tail.push(TailDocument {
            doc,
            sequence: self.next_sequence,
            entry: Arc::new(entry),
        });
        self.next_sequence += 1;
        if tail.len() == TAIL {
            let block = Block::of_tail(tail);
            tail.clear();
            let layers = Arc::make_mut(&mut self.layers);
            layers.push(Layer::new(block));
            merge_levels(layers);
        }
    }

    pub(crate) fn remove(&mut self, doc: DocId) -> bool {
        let weight = if let Some(at) = self.tail.iter().position(|it| it.doc == doc) {
            let gone = Arc::make_mut(&mut self.tail).remove(at);
            F::entry_weight(&gone.entry)
        } else {
            let found = self.layers.iter().enumerate().find_map(|(at, layer)| {
                let place = layer.find(doc)?;
                Some((at, place, layer.block.content.weight(place)))
            });
            let Some((at, place, weight)) = found else {
                return false;
            };
            let layers = Arc::make_mut(&mut self.layers);
            layers[at].remove(place);
            tidy(layers, at);
            weight
        };
        self.live -= 1;
        self.total_weight -= weight;
        true
    }
}

impl<F: Frozen> Clone for Layers<F> {
    fn clone(&self) -> Self {
        Self {
            layers: Arc::clone(&self.layers),
            tail: Arc::clone(&self.tail),
            ..*self
        }
    }
}

impl<F> Clone for Layer<F> {
    fn clone(&self) -> Self {
        Self {
            block: Arc::clone(&self.block),
            removed: self.removed.clone(),
            ids: self.ids.clone(),
        }
    }
}

impl<E> Clone for TailDocument<E> {
    fn clone(&self) -> Self {
        Self {
            entry: Arc::clone(&self.entry),
            ..*self
        }
    }
}

impl<F: Frozen> Layer<F> {
    pub(crate) fn block(&self) -> &Block<F> {
        &self.block
    }

    pub(crate) fn removed(&self) -> Option<&Removed> {
        self.removed.as_deref()
    }

    pub(crate) fn is_live(&self, place: usize) -> bool {
        self.removed.as_ref().is_none_or(|it| !it.contains(place))
    }

    fn new(block: Block<F>) -> Self {
        let id = |place: Option<&u16>| place.map_or(0, |place| block.ids[usize::from(*place)]);
        let ids = id(block.by_id.first())..=id(block.by_id.last());
        Self {
            block: Arc::new(block),
            removed: None,
            ids,
        }
    }

    fn live(&self) -> usize {
        self.block.ids.len() - self.removed.as_ref().map_or(0, |it| it.count)
    }

    /// Live documents, or as many ordinary ones as have their weight.
    fn size(&self) -> u64 {
        let removed = self.removed.as_ref().map_or(0, |it| it.weight);
        (self.live() as u64).max((self.block.weight - removed) / WEIGHT_OF_ONE)
    }

    fn level(&self) -> u32 {
        let tails = self.size() / TAIL as u64;
        tails.checked_ilog(FANOUT as u64).unwrap_or(0)
    }

    /// The place of a live document.
    fn find(&self, doc: DocId) -> Option<usize> {
        if !self.ids.contains(&doc) {
            return None;
        }
        let block = &*self.block;
        let id = |place: &u16| block.ids[usize::from(*place)];
        // A block can hold an id twice: a document that was removed and its successor.
        let start = block.by_id.partition_point(|place| id(place) < doc);
        block.by_id[start..]
            .iter()
            .take_while(|place| id(place) == doc)
            .map(|place| usize::from(*place))
            .find(|place| self.is_live(*place))
    }

    fn remove(&mut self, place: usize) {
        let len = self.block.ids.len();
        let removed = self.removed.get_or_insert_with(|| {
            Arc::new(Removed {
                bits: vec![0; len.div_ceil(64)],
                count: 0,
                weight: 0,
            })
        });
        let removed = Arc::make_mut(removed);
        removed.bits[place / 64] |= 1 << (place % 64);
        removed.count += 1;
        removed.weight += self.block.content.weight(place);
    }
}

impl<F: Frozen> Block<F> {
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn id(&self, place: usize) -> DocId {
        self.ids[place]
    }

    pub(crate) fn sequence(&self, place: usize) -> u64 {
        self.sequences[place]
    }

    fn new(content: F, ids: Vec<DocId>, sequences: Vec<u64>) -> Self {
        let mut by_id: Vec<u16> = (0..=u16::MAX).take(ids.len()).collect();
        by_id.sort_by_key(|place| ids[usize::from(*place)]);
        Self {
            weight: (0..ids.len()).map(|place| content.weight(place)).sum(),
            content,
            ids,
            sequences,
            by_id,
        }
    }

    fn of_tail(tail: &[TailDocument<F::Entry>]) -> Self {
        Self::new(
            F::freeze(tail.iter().map(|it| &*it.entry)),
            tail.iter().map(|it| it.doc).collect(),
            tail.iter().map(|it| it.sequence).collect(),
        )
    }

    fn of_layers(layers: &[Layer<F>]) -> Self {
        let (mut ids, mut sequences) = (Vec::new(), Vec::new());
        let mut parts = Vec::with_capacity(layers.len());
        for layer in layers {
            let block = &*layer.block;
            // Sizes are bounded where merges are decided, so places fit.
            let next = |ids: &[DocId]| u16::try_from(ids.len()).unwrap_or(u16::MAX);
            let places = if layer.removed.is_none() {
                let first = next(&ids);
                ids.extend_from_slice(&block.ids);
                sequences.extend_from_slice(&block.sequences);
                Places::From(first)
            } else {
                let mut places = vec![None; block.len()];
                for place in (0..block.len()).filter(|place| layer.is_live(*place)) {
                    places[place] = Some(next(&ids));
                    ids.push(block.ids[place]);
                    sequences.push(block.sequences[place]);
                }
                Places::Each(places)
            };
            parts.push(Part {
                content: &block.content,
                places,
            });
        }
        Self::new(F::merge(&parts), ids, sequences)
    }
}

impl Removed {
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn places(&self) -> impl Iterator<Item = usize> {
        self.bits.iter().enumerate().flat_map(|(word, bits)| {
            let mut bits = *bits;
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
                bits &= bits - 1;
                Some(word * 64 + bit)
            })
        })
    }

    pub(crate) fn contains(&self, place: usize) -> bool {
        self.bits[place / 64] >> (place % 64) & 1 == 1
    }
}

/// Merges full levels at the end of the layers.
fn merge_levels<F: Frozen>(layers: &mut Vec<Layer<F>>) {
    while let Some(level) = layers.last().map(Layer::level) {
        let mut size = 0;
        let same = layers
            .iter()
            .rev()
            .take_while(|it| {
                size += it.size();
                it.level() <= level && size <= MAX_SIZE
            })
            .count();
        if same < FANOUT || TOP_LEVEL <= level {
            return;
        }
        merge(layers, layers.len() - same, same);
    }
}

/// Rewrites a layer of which much was removed, together with neighbours of about its size, so that the number of
/// layers follows the live documents and not the history.
fn tidy<F: Frozen>(layers: &mut Vec<Layer<F>>, at: usize) {
    let (live, all) = (layers[at].live(), layers[at].block.len());
    if live == 0 {
        layers.remove(at);
        return;
    }
    if all - live <= all / REMOVED_SHARE {
        return;
    }
    let own = layers[at].size();
    let (mut first, mut end, mut size) = (at, at + 1, own);
    let mut fits = |neighbour: &Layer<F>| {
        let more = neighbour.size();
        let fits = more <= 2 * own && size + more <= MAX_SIZE / FANOUT as u64;
        size += if fits { more } else { 0 };
        fits
    };
    if 0 < at && fits(&layers[at - 1]) {
        first = at - 1;
    }
    if end < layers.len() && fits(&layers[end]) {
        end += 1;
    }
    merge(layers, first, end - first);
}

fn merge<F: Frozen>(layers: &mut Vec<Layer<F>>, first: usize, count: usize) {
    let merged = Layer::new(Block::of_layers(&layers[first..first + count]));
    layers.splice(first..first + count, [merged]);
}
