//! Which tasks a step plays: a pure function of seed and step.

use rand::seq::SliceRandom;
use record::Seed;

/// Indices of the `per_step` tasks of `step` (counted from 1) out of `n_tasks`: every epoch is a fresh
/// permutation, and a step goes on where the last one stopped, across epochs if need be.
///
/// No task comes twice in a step unless a step is larger than an epoch's rest.
pub(crate) fn tasks_of_step(seed: Seed, n_tasks: usize, per_step: usize, step: u64) -> Vec<usize> {
    let first = (step.max(1) - 1) * per_step as u64;
    let mut chosen = Vec::with_capacity(per_step);
    let mut epoch: Option<(u64, Vec<usize>)> = None;
    for place in first..first + per_step as u64 {
        let (index, offset) = (place / n_tasks as u64, (place % n_tasks as u64) as usize);
        let order = match epoch.take() {
            Some((current, order)) if current == index => order,
            _ => permutation(seed, n_tasks, index),
        };
        chosen.push(order[offset]);
        epoch = Some((index, order));
    }
    chosen
}

fn permutation(seed: Seed, n: usize, epoch: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(&mut seed.stream("epoch", epoch).rng());
    order
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_task_comes_once_an_epoch(n in 1usize..40, per_step in 1usize..17, seed: u64) {
            let steps = (3 * n).div_ceil(per_step) as u64;
            let played: Vec<usize> =
                (1..=steps).flat_map(|step| tasks_of_step(Seed(seed), n, per_step, step)).collect();
            for epoch in played.chunks_exact(n) {
                let mut sorted = epoch.to_vec();
                sorted.sort_unstable();
                prop_assert_eq!(sorted, (0..n).collect::<Vec<_>>());
            }
        }
    }
}
