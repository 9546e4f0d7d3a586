//! Adjustments of one ranked list: by age, by variety.

use crate::ranking::{DocId, Scored};

/// Halves positive scores for each `half_life` of a document's age, and ranks anew; equals keep their order. Ages
/// and half-life are in one unit of the caller's choice; what lies in the future has age 0.
///
/// Scores that are not positive stay: a cosine below 0 must not rise by growing old.
pub fn recency_decay(list: &[Scored], half_life: f64, age: impl Fn(DocId) -> f64) -> Vec<Scored> {
    let mut decayed: Vec<Scored> = list
        .iter()
        .map(|it| {
            let halvings = age(it.doc).max(0.0) / half_life;
            let factor = if 0.0 < it.score {
                (-halvings).exp2()
            } else {
                1.0
            };
            Scored {
                score: it.score * factor,
                ..*it
            }
        })
        .collect();
    decayed.sort_by(|a, b| b.score.total_cmp(&a.score));
    decayed
}

/// Maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998): picks `k` documents one by one, each the one
/// of highest `balance * relevance - (1 - balance) * similarity to the nearest document picked before`.
///
/// Relevance is the list's score over its best score, so that it compares with a `similarity` of 0 to 1. The
/// scores that are returned are the values at which documents were picked; they never rise along the list. Equals
/// are picked in the order of the list. Asks for at most `k` similarities for each document.
pub fn maximal_marginal_relevance(
    list: &[Scored],
    balance: f64,
    k: usize,
    similarity: impl Fn(DocId, DocId) -> f64,
) -> Vec<Scored> {
    let top = list.iter().map(|it| it.score).fold(0.0, f64::max);
    let relevance = |it: &Scored| if 0.0 < top { it.score / top } else { it.score };
    // What is left, with its relevance and its highest similarity to what was picked.
    let mut left: Vec<(DocId, f64, Option<f64>)> = list
        .iter()
        .map(|it| (it.doc, relevance(it), None))
        .collect();
    let mut picked = Vec::new();
    while picked.len() < k {
        let values = left.iter().map(|(_, relevance, nearest)| {
            balance * relevance - (1.0 - balance) * nearest.unwrap_or(0.0)
        });
        let best = values
            .enumerate()
            .reduce(|best, next| if best.1 < next.1 { next } else { best });
        let Some((at, score)) = best else { break };
        let (doc, ..) = left.remove(at);
        picked.push(Scored { doc, score });
        for (other, _, nearest) in &mut left {
            let now = similarity(doc, *other);
            *nearest = Some(nearest.map_or(now, |before| before.max(now)));
        }
    }
    picked
}
