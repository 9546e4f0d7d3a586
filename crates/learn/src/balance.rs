//! Rows into parts of like cost, and into micro-batches of a token budget.

use std::{cmp::Ordering, collections::BinaryHeap};

/// Cost of a row of so many tokens beside others, for [`partitions`]: linear layers and attention
/// (spec of the critique study, section 10.6).
pub fn row_cost(tokens: usize) -> u64 {
    let tokens = tokens as u64;
    24_576 * tokens + tokens * tokens
}

/// Divides rows into `parts` whose greatest sum of costs is small: the largest differencing method of
/// Karmarkar and Karp (1982), as verl's `seqlen_balancing` has it. Every row is in one part; rows of a part are in their order, parts in the
/// order of their first rows. With `equal_sizes` the numbers of rows differ by one at most.
///
/// Deterministic, and within `O(n log n)` steps for a given number of parts.
pub fn partitions(costs: &[u64], parts: usize, equal_sizes: bool) -> Vec<Vec<usize>> {
    let parts = parts.max(1);
    let mut order: Vec<usize> = (0..costs.len()).collect();
    order.sort_by_key(|&row| (costs[row], row));
    let mut heap: BinaryHeap<State> = BinaryHeap::new();
    if equal_sizes {
        // Rows that go together by rank, one to each part.
        let spare = (parts - order.len() % parts) % parts;
        let ranked: Vec<Option<usize>> = std::iter::repeat_n(None, spare)
            .chain(order.into_iter().map(Some))
            .collect();
        for ranks in ranked.chunks(parts) {
            heap.push(State::new(ranks, costs));
        }
    } else {
        for row in order {
            let mut ranks = vec![None; parts];
            ranks[0] = Some(row);
            heap.push(State::new(&ranks, costs));
        }
    }
    while let Some(first) = heap.pop() {
        match heap.pop() {
            Some(second) => heap.push(first.merge(second)),
            None => {
                let mut found: Vec<Vec<usize>> =
                    first.parts.into_iter().map(Part::into_rows).collect();
                found.iter_mut().for_each(|rows| rows.sort_unstable());
                found.sort_by_key(|rows| rows.first().copied().unwrap_or(usize::MAX));
                return found;
            }
        }
    }
    vec![Vec::new(); parts]
}

/// A division of some rows: parts with the greatest sum first.
struct State {
    parts: Vec<Part>,
}

/// Rows with their costs, in the order in which they came together.
struct Part {
    sum: u64,
    rows: Vec<(usize, u64)>,
}

impl Part {
    fn into_rows(self) -> Vec<usize> {
        self.rows.into_iter().map(|(row, _)| row).collect()
    }

    fn compare(&self, other: &Self) -> Ordering {
        let by_size = (self.sum, self.rows.len()).cmp(&(other.sum, other.rows.len()));
        by_size.then_with(|| self.rows.cmp(&other.rows))
    }
}

impl State {
    fn new(ranks: &[Option<usize>], costs: &[u64]) -> Self {
        let part = |row: &Option<usize>| {
            let rows: Vec<(usize, u64)> = row.iter().map(|&row| (row, costs[row])).collect();
            let sum = rows.iter().map(|(_, cost)| cost).sum();
            Part { sum, rows }
        };
        let mut state = Self {
            parts: ranks.iter().map(part).collect(),
        };
        state.sort();
        state
    }

    fn sort(&mut self) {
        self.parts.sort_by(|one, other| other.compare(one));
    }

    fn spread(&self) -> u64 {
        let sum = |part: Option<&Part>| part.map_or(0, |part| part.sum);
        sum(self.parts.first()) - sum(self.parts.last())
    }

    /// The greatest part of one with the least of the other, and so on.
    fn merge(mut self, other: Self) -> Self {
        for (part, with) in self.parts.iter_mut().zip(other.parts.into_iter().rev()) {
            part.sum += with.sum;
            part.rows.extend(with.rows);
        }
        self.sort();
        self
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for State {}

impl PartialOrd for State {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for State {
    /// The greatest spread first; of equal ones, the greatest part.
    fn cmp(&self, other: &Self) -> Ordering {
        let greatest = || match (self.parts.first(), other.parts.first()) {
            (Some(one), Some(other)) => one.compare(other),
            _ => Ordering::Equal,
        };
        self.spread().cmp(&other.spread()).then_with(greatest)
    }
}

/// Divides rows into the fewest micro-batches, by count of tokens alone, that can hold `budget` tokens
/// each, and balances their costs; a part that goes over the budget makes for one micro-batch more. A
/// row longer than the budget is alone.
pub fn micro_batches(lengths: &[usize], budget: usize) -> Vec<Vec<usize>> {
    let budget = budget.max(1);
    let costs: Vec<u64> = lengths.iter().map(|&length| row_cost(length)).collect();
    let total: usize = lengths.iter().map(|&length| length.min(budget)).sum();
    let tokens = |rows: &[usize]| rows.iter().map(|&row| lengths[row]).sum::<usize>();
    for parts in total.div_ceil(budget).max(1)..lengths.len() {
        let found = partitions(&costs, parts, false);
        let fits = |rows: &Vec<usize>| rows.len() < 2 || tokens(rows) <= budget;
        if found.iter().all(fits) {
            return found.into_iter().filter(|rows| !rows.is_empty()).collect();
        }
    }
    (0..lengths.len()).map(|row| vec![row]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_the_method() {
        // Greedy filling gives 17 and 13.
        let costs = [8, 7, 6, 5, 4];
        let sum = |rows: &Vec<usize>| rows.iter().map(|&row| costs[row]).sum::<u64>();
        let mut sums: Vec<u64> = partitions(&costs, 2, false).iter().map(sum).collect();
        sums.sort_unstable();
        assert_eq!(sums, [14, 16]);
        let halves = partitions(&[9, 1, 1, 1, 1, 1], 2, true);
        assert_eq!(halves.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
        assert_eq!(partitions(&[], 2, true), [[0usize; 0]; 2]);
        assert_eq!(micro_batches(&[5, 5, 5, 5], 10).len(), 2);
        assert_eq!(micro_batches(&[99, 1, 1], 10), [vec![0], vec![1, 2]]);
        assert_eq!(micro_batches(&[], 10), [[0usize; 0]; 0]);
    }

    proptest! {
        #[test]
        fn every_row_is_in_one_part(
            costs in prop::collection::vec(0u64..1000, 0..60), parts in 1usize..9, equal in any::<bool>(),
        ) {
            let found = partitions(&costs, parts, equal);
            prop_assert_eq!(found.len(), parts);
            let mut all: Vec<usize> = found.iter().flatten().copied().collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..costs.len()).collect::<Vec<_>>());
            let sums: Vec<u64> = found.iter().map(|rows| rows.iter().map(|&row| costs[row]).sum()).collect();
            let sizes = found.iter().map(Vec::len);
            if equal {
                prop_assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
            } else {
                let least = costs.iter().sum::<u64>().div_ceil(parts as u64);
                let largest = costs.iter().max().copied().unwrap_or(0);
                prop_assert!(sums.iter().max().unwrap() <= &(least + largest));
            }
        }

        #[test]
        fn micro_batches_keep_to_the_budget(
            lengths in prop::collection::vec(1usize..50, 0..40), budget in 1usize..120,
        ) {
            let found = micro_batches(&lengths, budget);
            let mut all: Vec<usize> = found.iter().flatten().copied().collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..lengths.len()).collect::<Vec<_>>());
            for rows in &found {
                prop_assert!(!rows.is_empty());
                let tokens: usize = rows.iter().map(|&row| lengths[row]).sum();
                prop_assert!(rows.len() == 1 || tokens <= budget);
            }
        }
    }
}
