//! Age, variety and fusion in what is retrieved for a question.

use std::sync::Arc;

use recall::memory::{
    BadSetting, Fusion, MemoryConfig, MemoryError, MemoryManager, Retrieval, RetrieveOptions,
};
use retrieve::{Analyzer, HashedEmbedder};

use crate::{add, at, manager, update, words};

const FACTS: [&str; 4] = [
    "rome is warm in may",
    "rome is warm in june",
    "rome has seven hills and old walls",
    "oslo is cold",
];

/// The ids that are retrieved for a question where each fact was learnt in a turn of its own.
fn found(manager: &MemoryManager, question: &str) -> Vec<u32> {
    let mut state = manager.initialize();
    for (turn, text) in (0..).zip(FACTS) {
        manager.apply(&mut state, add(text), &at(turn));
    }
    let hits = manager.retrieve(&state, question, &RetrieveOptions::default());
    hits.unwrap().iter().map(|hit| hit.item_id.0).collect()
}

fn with(change: impl FnOnce(&mut MemoryConfig)) -> MemoryConfig {
    let mut config = MemoryConfig::default();
    change(&mut config);
    config
}

#[test]
fn old_facts_fade_and_leave_the_window() {
    let plain = manager(MemoryConfig::default());
    assert_eq!(found(&plain, "warm rome may"), [0, 1, 2]);
    // Half a turn: the first is worth a sixteenth of what it was beside the third.
    let fading = manager(with(|config| config.half_life_turns = 0.5));
    assert_eq!(found(&fading, "warm rome may"), [2, 1, 0]);
    let slowly = manager(with(|config| config.half_life_turns = 1000.0));
    assert_eq!(found(&slowly, "warm rome may"), [0, 1, 2]);
    let near = manager(with(|config| config.within_turns = 1));
    assert_eq!(found(&near, "warm rome may"), [2]);
    let nearer = manager(with(|config| config.within_turns = 2));
    assert_eq!(found(&nearer, "warm rome may"), [1, 2]);

    // An update makes a fact new again; neighbours are found however old they are.
    let mut state = near.initialize();
    for (turn, text) in (0..).zip(FACTS) {
        near.apply(&mut state, add(text), &at(turn));
    }
    near.apply(&mut state, update(0, "rome is warm in april"), &at(4));
    let options = RetrieveOptions::default();
    let hits = near.retrieve(&state, "warm", &options).unwrap();
    let ids: Vec<u32> = hits.iter().map(|hit| hit.item_id.0).collect();
    assert_eq!(ids, [0]);
    assert_eq!(near.neighbours(&state, "warm", 9).unwrap().len(), 2);
}

#[test]
fn variety_leaves_out_what_says_the_same() {
    let few = |diversity| {
        manager(with(|config| {
            config.top_k = 2;
            config.diversity = diversity;
        }))
    };
    assert_eq!(found(&few(0.0), "warm rome may"), [0, 1]);
    assert_eq!(found(&few(0.7), "warm rome may"), [0, 2]);
}

#[test]
fn lists_are_joined_as_the_recipe_says() {
    let joined = |fusion| {
        let config = with(|config| {
            config.retrieval = Retrieval::Hybrid;
            config.fusion = fusion;
        });
        let embedder = Arc::new(HashedEmbedder::new(256, Analyzer::default()));
        MemoryManager::new(config, words(), Some(embedder)).unwrap()
    };
    for fusion in [Fusion::ReciprocalRank, Fusion::ZScore, Fusion::Additive] {
        let ids = found(&joined(fusion), "warm rome may");
        assert_eq!(ids[0], 0, "{fusion:?}");
        // What is close to the question in no way is out under a threshold, and last without one.
        let last = ids.last() == Some(&3);
        assert_eq!(last, fusion != Fusion::Additive, "{fusion:?}: {ids:?}");
    }
}

#[test]
fn settings_of_retrieval_that_make_no_sense_are_refused() {
    let cases: [(&str, MemoryConfig); 5] = [
        ("fusion", with(|config| config.fusion = Fusion::ZScore)),
        (
            "half_life_turns",
            with(|config| config.half_life_turns = -1.0),
        ),
        (
            "half_life_turns",
            with(|config| config.half_life_turns = f64::NAN),
        ),
        ("diversity", with(|config| config.diversity = 1.0)),
        ("diversity", with(|config| config.diversity = -0.1)),
    ];
    for (name, config) in cases {
        match MemoryManager::new(config, words(), None).err() {
            Some(MemoryError::BadSetting(BadSetting { field, .. })) => assert_eq!(field, name),
            other => unreachable!("{name}: {other:?}"),
        }
    }
    // Recipes that say nothing of it are written as they always were.
    let text = serde_json::to_string(&MemoryConfig::default()).unwrap();
    for name in ["fusion", "half_life_turns", "within_turns", "diversity"] {
        assert!(!text.contains(name), "{text}");
    }
}
