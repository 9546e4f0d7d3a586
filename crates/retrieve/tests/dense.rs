//! Dense search, and the embedder that needs no model.

use proptest::prelude::*;
use retrieve::{
    Analyzer, DenseError, DenseIndex, DocId, EmbedError, Embedder, HashedEmbedder, Scored,
};

#[test]
fn scores_are_cosines_and_equals_rank_by_recency() {
    let mut index = DenseIndex::new(2);
    for (doc, vector) in [
        (1, [3.0, 4.0]),
        (2, [0.0, 2.0]),
        (3, [-1.0, 0.0]),
        (4, [6.0, 8.0]),
    ] {
        index.insert(doc, &vector).unwrap();
    }
    let found = index.search(&[0.0, 9.0], 9).unwrap();
    let docs: Vec<DocId> = found.iter().map(|it| it.doc).collect();
    assert_eq!(docs, [2, 4, 1, 3]);
    for (scored, cosine) in found.iter().zip([1.0, 0.8, 0.8, 0.0]) {
        assert!((scored.score - cosine).abs() < 1e-6, "{scored:?}");
    }
    assert_eq!(index.search(&[0.0, 9.0], 1).unwrap(), found[..1]);
    let few = index.search_where(&[0.0, 9.0], 2, |doc| doc != 2);
    assert_eq!(few.unwrap(), found[1..3]);
}

#[test]
fn vectors_without_direction_are_refused() {
    let mut index = DenseIndex::new(2);
    let dimension = DenseError::Dimension {
        expected: 2,
        found: 3,
    };
    assert_eq!(index.insert(1, &[1.0; 3]), Err(dimension));
    assert_eq!(index.insert(1, &[0.0; 2]), Err(DenseError::Zero));
    assert!(index.insert(1, &[1.0, f32::NAN]).is_err());
    assert!(index.search(&[1.0, f32::INFINITY], 1).is_err());
    assert!(index.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn after_any_history_scores_are_those_of_an_index_built_anew(
        history in prop::collection::vec((0..200_u32, any::<bool>(), prop::array::uniform5(-9..9_i8)), 0..500),
    ) {
        let mut index = DenseIndex::new(5);
        let mut live: Vec<(DocId, Vec<f32>)> = Vec::new();
        for (doc, inserted, vector) in history {
            live.retain(|(it, _)| *it != doc);
            let vector: Vec<f32> = vector.map(f32::from).to_vec();
            if inserted && vector.iter().any(|it| *it != 0.0) {
                index.insert(doc, &vector).unwrap();
                live.push((doc, vector));
            } else {
                index.remove(doc);
            }
        }
        prop_assert_eq!(index.len(), live.len());
        let query = [1.0, -2.0, 0.5, 3.0, 1.0];
        let found = index.search(&query, 400).unwrap();
        let mut anew = DenseIndex::new(5);
        for (doc, vector) in &live {
            anew.insert(*doc, vector).unwrap();
        }
        prop_assert_eq!(&found, &anew.search(&query, 400).unwrap());
        let length = |it: &[f32]| it.iter().map(|x| x * x).sum::<f32>().sqrt();
        for Scored { doc, score } in found {
            let vector = &live.iter().find(|(it, _)| *it == doc).unwrap().1;
            let dot: f32 = vector.iter().zip(&query).map(|(a, b)| a * b).sum();
            let cosine = f64::from(dot / length(vector) / length(&query));
            prop_assert!((score - cosine).abs() < 1e-5);
        }
    }
}

#[test]
fn the_hashed_embedder_sees_spelling() {
    let embedder = HashedEmbedder::new(512, Analyzer::default());
    let texts = [
        "Anna plays the violin",
        "anna PLAYED the violins!",
        "the weather in Oslo",
    ];
    let vectors = embedder.embed(&texts).unwrap();
    assert_eq!(vectors, embedder.embed(&texts).unwrap());
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    for vector in &vectors {
        assert_eq!(vector.len(), embedder.dimension());
        assert!((dot(vector, vector) - 1.0).abs() < 1e-5);
    }
    assert!(0.6 < dot(&vectors[0], &vectors[1]));
    assert!(dot(&vectors[0], &vectors[2]) < 0.4);
}

#[test]
fn what_cannot_be_embedded_is_an_error_and_no_zero_vector() {
    let embedder = HashedEmbedder::new(8, Analyzer::default());
    let error = embedder.embed(&["a", "  "]).unwrap_err();
    assert!(matches!(error, EmbedError::Empty { position: 1 }));
    // Signs are not words, but they are something.
    let vectors = embedder.embed(&["?!", "🙂"]).unwrap();
    assert!(vectors.iter().all(|it| it.contains(&1.0)));
}

proptest! {
    #[test]
    fn every_text_but_the_empty_has_a_unit_vector(text in "\\PC{1,12}", dimension in 1..40_usize) {
        let embedder = HashedEmbedder::new(dimension, Analyzer::default());
        match embedder.embed(&[&text]) {
            Ok(vectors) => {
                let square: f32 = vectors[0].iter().map(|it| it * it).sum();
                prop_assert!((square - 1.0).abs() < 1e-4);
            }
            Err(_) => prop_assert!(text.trim().is_empty()),
        }
    }
}
