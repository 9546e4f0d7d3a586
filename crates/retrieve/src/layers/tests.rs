//! Layers against a plain list, and what they promise of their own shape.

use super::*;
use proptest::prelude::*;

/// Keeps what it was given.
struct Values(Vec<Value>);

#[derive(Clone, Debug, PartialEq)]
struct Value {
    doc: DocId,
    weight: u64,
}

impl Frozen for Values {
    type Entry = Value;

    fn freeze<'a>(entries: impl Iterator<Item = &'a Value>) -> Self {
        Self(entries.cloned().collect())
    }

    fn merge(parts: &[Part<'_, Self>]) -> Self {
        let mut values: Vec<Option<Value>> = Vec::new();
        let mut put = |place: usize, value: &Value| {
            values.resize(values.len().max(place + 1), None);
            assert_eq!(values[place].replace(value.clone()), None);
        };
        for Part { content, places } in parts {
            for (at, value) in content.0.iter().enumerate() {
                match places {
                    Places::From(first) => put(usize::from(*first) + at, value),
                    Places::Each(places) => {
                        if let Some(place) = places[at] {
                            put(usize::from(place), value);
                        }
                    }
                }
            }
        }
        Self(values.into_iter().map(Option::unwrap).collect())
    }

    fn weight(&self, place: usize) -> u64 {
        self.0[place].weight
    }

    fn entry_weight(entry: &Value) -> u64 {
        entry.weight
    }
}

/// The live values in order, checked against the blocks' ids and sequences.
fn live(layers: &Layers<Values>) -> Vec<Value> {
    let mut found = Vec::new();
    let mut last = None;
    for layer in layers.layers() {
        let block = layer.block();
        assert!(layer.size() <= MAX_SIZE || block.len() == TAIL);
        for place in (0..block.len()).filter(|place| layer.is_live(*place)) {
            assert!(last < Some(block.sequence(place)));
            last = Some(block.sequence(place));
            assert_eq!(block.id(place), block.content.0[place].doc);
            found.push(block.content.0[place].clone());
        }
    }
    for document in layers.tail() {
        assert!(last < Some(document.sequence));
        last = Some(document.sequence);
        assert_eq!(document.doc, document.entry.doc);
        found.push((*document.entry).clone());
    }
    assert_eq!(layers.len(), found.len());
    let weight: u64 = found.iter().map(|it| it.weight).sum();
    assert_eq!(layers.total_weight(), weight);
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_live_is_what_was_inserted_last(
        history in prop::collection::vec((0..400_u32, 0..5_u8, 0..3000_u64), 0..2500),
    ) {
        let mut layers: Layers<Values> = Layers::new();
        let mut model: Vec<Value> = Vec::new();
        for (doc, kind, weight) in history {
            let before = model.len();
            model.retain(|it| it.doc != doc);
            if kind == 0 {
                prop_assert_eq!(layers.contains(doc), model.len() < before);
                prop_assert_eq!(layers.remove(doc), model.len() < before);
            } else {
                // Mostly short documents.
                let weight = if kind == 1 { weight } else { weight % 16 };
                layers.insert(doc, Value { doc, weight });
                model.push(Value { doc, weight });
            }
        }
        prop_assert_eq!(live(&layers), model);
    }
}

#[test]
fn layers_are_few_and_their_number_follows_the_live_documents() {
    let mut layers: Layers<Values> = Layers::new();
    for doc in 0..200_000 {
        layers.insert(doc, Value { doc, weight: 12 });
        // Of what is older than 3000, one in 1000 stays.
        if let Some(old) = doc.checked_sub(3000).filter(|old| old % 1000 != 0) {
            assert!(layers.remove(old));
        }
    }
    assert_eq!(live(&layers).len(), 3000 + 197);
    let count = layers.layers().len();
    assert!(count < 40, "{count} layers");

    let mut layers: Layers<Values> = Layers::new();
    for doc in 0..100_000 {
        layers.insert(doc, Value { doc, weight: 12 });
    }
    let count = layers.layers().len();
    assert!(count < 30, "{count} layers");
    for doc in 0..100_000 {
        assert!(layers.remove(doc));
    }
    assert!(layers.layers().is_empty() && layers.tail().is_empty());
}

#[test]
fn heavy_documents_are_merged_less() {
    let mut layers: Layers<Values> = Layers::new();
    for doc in 0..20_000 {
        layers.insert(doc, Value { doc, weight: 2048 });
    }
    let most = layers.layers().iter().map(Layer::size).max();
    assert!(most <= Some(MAX_SIZE), "{most:?}");
    assert_eq!(live(&layers).len(), 20_000);
}

#[test]
fn snapshots_share_what_is_frozen() {
    let mut layers: Layers<Values> = Layers::new();
    for doc in 0..10_000 {
        layers.insert(doc, Value { doc, weight: 12 });
    }
    let mut snapshot = layers.clone();
    snapshot.insert(
        10_000,
        Value {
            doc: 10_000,
            weight: 12,
        },
    );
    assert!(Arc::ptr_eq(&layers.layers, &snapshot.layers));
    assert!(snapshot.remove(7));
    let shared = layers.layers().iter().zip(snapshot.layers());
    assert!(shared.clone().all(|(a, b)| Arc::ptr_eq(&a.block, &b.block)));
    assert!(layers.contains(7) && !snapshot.contains(7));
}
