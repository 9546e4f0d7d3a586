//! Fusion and adjustment of ranked lists against hand-computed scores.

use retrieve::{
    AdditiveFusion, DocId, Scored, maximal_marginal_relevance, recency_decay,
    reciprocal_rank_fusion, z_score_fusion,
};

fn list<const N: usize>(scored: [(DocId, f64); N]) -> [Scored; N] {
    scored.map(|(doc, score)| Scored { doc, score })
}

#[track_caller]
fn check(found: &[Scored], expected: &[(DocId, f64)]) {
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, (doc, score)) in found.iter().zip(expected) {
        assert_eq!(found.doc, *doc, "{found:?}");
        assert!(
            (found.score - score).abs() < 1e-12,
            "{found:?}, not {score}"
        );
    }
}

#[test]
fn reciprocal_ranks_add_up() {
    let lexical = list([(7, 9.0), (1, 8.0), (3, 1.0)]);
    let dense = list([(1, 0.9), (5, 0.8)]);
    let fused = reciprocal_rank_fusion(&[&lexical, &dense], 60.0, 10);
    check(
        &fused,
        &[
            (1, 1.0 / 62.0 + 1.0 / 61.0),
            (7, 1.0 / 61.0),
            (5, 1.0 / 62.0),
            (3, 1.0 / 63.0),
        ],
    );
    check(
        &reciprocal_rank_fusion(&[&lexical, &dense], 60.0, 1),
        &[(1, 1.0 / 62.0 + 1.0 / 61.0)],
    );
    // Of equals, the earlier list's.
    let fused = reciprocal_rank_fusion(&[&list([(9, 1.0)]), &list([(2, 1.0)])], 60.0, 10);
    check(&fused, &[(9, 1.0 / 61.0), (2, 1.0 / 61.0)]);
    check(&reciprocal_rank_fusion(&[&[], &[]], 60.0, 10), &[]);
}

#[test]
fn standard_scores_add_up_by_weight() {
    // Mean 2, deviation sqrt(2/3), and mean 5, deviation 5.
    let one = list([(1, 3.0), (2, 2.0), (3, 1.0)]);
    let other = list([(2, 10.0), (4, 0.0)]);
    let unit = 1.0 / (2.0_f64 / 3.0).sqrt();
    let fused = z_score_fusion(&[(&one, 1.0), (&other, 0.5)], 10);
    check(
        &fused,
        &[
            (1, unit - 0.5),
            (2, 0.5),
            (3, -unit - 0.5),
            (4, -unit - 0.5),
        ],
    );
    // Lists without differences say nothing.
    let flat = list([(8, 0.1), (9, 0.1), (7, 0.1)]);
    check(
        &z_score_fusion(&[(&flat, 1.0), (&[], 1.0)], 2),
        &[(8, 0.0), (9, 0.0)],
    );
}

#[test]
fn additive_fusion_gates_by_cosine_and_divides_by_what_is_present() {
    let semantic = list([(1, 0.8), (2, 0.5), (3, 0.05)]);
    let lexical = list([(3, 30.0), (2, 5.0)]);
    let boosts = list([(2, 1.0)]);
    let fusion = AdditiveFusion::default();
    // Three terms: the sigmoid's middle is at 5. Document 3 is below the threshold.
    check(
        &fusion.fuse(&semantic, &lexical, &boosts, 3, 10),
        &[(2, (0.5 + 0.5 + 0.5) / 2.5), (1, 0.8 / 2.5)],
    );
    let squeezed = 1.0 / (1.0 + (0.5 * 7.0_f64).exp());
    check(
        &fusion.fuse(&semantic, &lexical, &[], 16, 10),
        &[(1, 0.4), (2, (0.5 + squeezed) / 2.0)],
    );
    check(&fusion.fuse(&semantic, &[], &[], 16, 1), &[(1, 0.8)]);
}

#[test]
fn age_halves_scores() {
    let ages = |doc: DocId| f64::from(doc);
    let found = recency_decay(
        &list([(20, 8.0), (0, 3.0), (10, 6.0), (30, -1.0)]),
        10.0,
        ages,
    );
    check(&found, &[(0, 3.0), (10, 3.0), (20, 2.0), (30, -1.0)]);
    check(
        &recency_decay(&list([(1, 1.0)]), 10.0, |_| -5.0),
        &[(1, 1.0)],
    );
}

#[test]
fn variety_is_traded_against_relevance() {
    let list = list([(1, 10.0), (2, 9.0), (3, 5.0)]);
    // 1 and 2 say the same.
    let similarity = |a: DocId, b: DocId| if a + b == 3 { 1.0 } else { 0.0 };
    let found = maximal_marginal_relevance(&list, 0.5, 3, similarity);
    check(&found, &[(1, 0.5), (3, 0.25), (2, 0.45 - 0.5)]);
    let found = maximal_marginal_relevance(&list, 1.0, 2, similarity);
    check(&found, &[(1, 1.0), (2, 0.9)]);
}
