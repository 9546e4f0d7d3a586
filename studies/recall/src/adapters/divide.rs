//! Training and evaluation apart, by document.

use std::collections::{BTreeMap, BTreeSet};

use record::Seed;

use crate::dialogue::Dialogue;

/// Divides dialogues into those to train on and those to evaluate on, both in their order. All of a
/// document go to one side, whatever the number of its samples and questions. Of every dataset,
/// `fraction` of its documents are for evaluation, drawn by `seed` and the document's name alone, so that
/// the order of files does not matter: rounded, but neither side stays empty where there are two documents,
/// save that 0 is none and 1 is all.
pub fn divide(
    dialogues: Vec<Dialogue>,
    fraction: f64,
    seed: Seed,
) -> (Vec<Dialogue>, Vec<Dialogue>) {
    let mut documents: BTreeMap<&str, BTreeSet<(u64, &str)>> = BTreeMap::new();
    for dialogue in &dialogues {
        let name = dialogue.document.as_str();
        documents
            .entry(&dialogue.data_source)
            .or_default()
            .insert((seed.stream(name, 0).0, name));
    }
    let mut chosen: BTreeSet<(String, String)> = BTreeSet::new();
    for (source, documents) in &documents {
        let all = documents.len();
        let wanted = (all as f64 * fraction).round() as usize;
        let number = if fraction >= 1.0 {
            all
        } else if fraction <= 0.0 || all < 2 {
            0
        } else {
            wanted.clamp(1, all - 1)
        };
        chosen.extend(
            documents
                .iter()
                .take(number)
                .map(|(_, name)| ((*source).to_owned(), (*name).to_owned())),
        );
    }
    let is_chosen = |dialogue: &Dialogue| {
        chosen.contains(&(dialogue.data_source.clone(), dialogue.document.clone()))
    };
    let (eval, train) = dialogues.into_iter().partition(is_chosen);
    (train, eval)
}
