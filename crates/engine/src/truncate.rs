//! Truncation of a distribution before it is drawn from: top-k, top-p, min-p.
//!
//! Weights are unnormalised probabilities, the largest 1. What is dropped becomes 0, and the sum of
//! the rest is returned.

use record::TokenId;

/// Keeps the `k` largest and those that equal the last of them. `k` is at least 1 and less than there
/// are weights.
pub(crate) fn keep_top(weights: &mut [f32], order: &mut Vec<TokenId>, k: usize) -> f64 {
    order.clear();
    order.extend(0..weights.len() as TokenId);
    let (_, &mut last, _) = order.select_nth_unstable_by(k - 1, |&a, &b| by_weight(weights, a, b));
    let least = weights[last as usize];
    keep(weights, |weight| weight >= least)
}

/// Keeps the smallest set of largest weights that reaches `mass`, lowest id first among equals, and at
/// least one.
pub(crate) fn keep_nucleus(weights: &mut [f32], order: &mut Vec<TokenId>, mass: f32) -> f64 {
    /// Few tokens hold most of the mass: so many are sorted first, then four times as many.
    const FIRST: usize = 64;
    order.clear();
    order.extend((0..weights.len() as TokenId).filter(|&id| weights[id as usize] > 0.0));
    let (mut kept, mut needed, mut sorted) = (0.0_f64, 0, 0);
    'growing: while sorted < order.len() {
        let end = (4 * sorted).max(FIRST).min(order.len());
        let rest = &mut order[sorted..];
        if end - sorted < rest.len() {
            rest.select_nth_unstable_by(end - sorted, |&a, &b| by_weight(weights, a, b));
        }
        let next = &mut rest[..end - sorted];
        next.sort_unstable_by(|&a, &b| by_weight(weights, a, b));
        for &id in &*next {
            if kept >= f64::from(mass) && needed > 0 {
                break 'growing;
            }
            kept += f64::from(weights[id as usize]);
            needed += 1;
        }
        sorted = end;
    }
    for &id in &order[needed..] {
        weights[id as usize] = 0.0;
    }
    kept
}

/// Keeps those of at least `share` of the largest, which is 1.
pub(crate) fn keep_likely(weights: &mut [f32], share: f32) -> f64 {
    keep(weights, |weight| weight >= share)
}

fn keep(weights: &mut [f32], keeps: impl Fn(f32) -> bool) -> f64 {
    let mut kept = 0.0;
    for weight in weights {
        if keeps(*weight) {
            kept += f64::from(*weight);
        } else {
            *weight = 0.0;
        }
    }
    kept
}

/// Largest first, lowest id first among equals.
fn by_weight(weights: &[f32], a: TokenId, b: TokenId) -> std::cmp::Ordering {
    weights[b as usize]
        .total_cmp(&weights[a as usize])
        .then(a.cmp(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All weights sorted and summed one by one.
    fn nucleus_by_sorting(weights: &[f32], mass: f32) -> (Vec<f32>, f64) {
        let mut order: Vec<TokenId> = (0..weights.len() as TokenId).collect();
        order.sort_by(|&a, &b| by_weight(weights, a, b));
        let (mut left, mut kept) = (vec![0.0; weights.len()], 0.0);
        for (rank, &id) in order.iter().enumerate() {
            if rank > 0 && kept >= f64::from(mass) {
                break;
            }
            kept += f64::from(weights[id as usize]);
            left[id as usize] = weights[id as usize];
        }
        (left, kept)
    }

    proptest! {
        #[test]
        fn nucleus_is_the_shortest_sorted_prefix(
            weights in prop::collection::vec(0.0001_f32..1.0, 1..700),
            share in 0.0_f32..1.2,
        ) {
            let mass = weights.iter().sum::<f32>() * share;
            let expected = nucleus_by_sorting(&weights, mass);
            let mut found = weights;
            let kept = keep_nucleus(&mut found, &mut Vec::new(), mass);
            prop_assert_eq!((found, kept), expected);
        }

        #[test]
        fn top_k_keeps_k_or_ties_and_min_p_what_is_near_the_top(
            weights in prop::collection::vec((1_u8..=20).prop_map(|x| f32::from(x) / 20.0), 2..200),
            k in 1_usize..50,
            share in 0.0_f32..=1.0,
        ) {
            let k = k.min(weights.len() - 1);
            let mut found = weights.clone();
            let kept = keep_top(&mut found, &mut Vec::new(), k);
            let mut sorted = weights.clone();
            sorted.sort_by(|a, b| b.total_cmp(a));
            for (found, &weight) in found.iter().zip(&weights) {
                prop_assert_eq!(*found, if weight >= sorted[k - 1] { weight } else { 0.0 });
            }
            prop_assert!((kept - found.iter().map(|&x| f64::from(x)).sum::<f64>()).abs() < 1e-9);
            let mut found = weights.clone();
            keep_likely(&mut found, share);
            for (found, &weight) in found.iter().zip(&weights) {
                prop_assert_eq!(*found, if weight >= share { weight } else { 0.0 });
            }
        }
    }

    #[test]
    fn by_hand() {
        let weights = [0.2, 1.0, 0.5, 0.5, 0.1];
        let kept = |keep: &dyn Fn(&mut [f32]) -> f64| {
            let mut weights = weights;
            let total = keep(&mut weights);
            (weights, total)
        };
        let two = kept(&|weights| keep_top(weights, &mut Vec::new(), 2));
        assert_eq!(two, ([0.0, 1.0, 0.5, 0.5, 0.0], 2.0));
        // 1.0 is below 1.2, so one of the halves comes in: that of the lower id.
        let nucleus = kept(&|weights| keep_nucleus(weights, &mut Vec::new(), 1.2));
        assert_eq!(nucleus, ([0.0, 1.0, 0.5, 0.0, 0.0], 1.5));
        let likely = kept(&|weights| keep_likely(weights, 0.5));
        assert_eq!(likely, ([0.0, 1.0, 0.5, 0.5, 0.0], 2.0));
    }
}
