//! Rows checked, divided among lanes and packed without padding.

use std::ops::Range;

use crate::{ModelConfig, RowError, TrainRow};

/// Several rows side by side; token `i` of the pack is at `positions[i]` of its own row.
#[derive(Debug, Default)]
pub(crate) struct Pack {
    pub(crate) tokens: Vec<u32>,
    pub(crate) rows: Vec<PackedRow>,
    /// Positions, inside their rows, of the tokens whose successor is scored; row by row.
    pub(crate) queries: Vec<u32>,
    /// The scored tokens, one per query.
    pub(crate) targets: Vec<u32>,
}

/// One row of a pack.
#[derive(Clone, Debug)]
pub(crate) struct PackedRow {
    /// Index of the row in the batch given by the caller.
    pub(crate) index: usize,
    /// Its tokens in the pack.
    pub(crate) tokens: Range<usize>,
    /// Its queries in the pack.
    pub(crate) queries: Range<usize>,
}

impl Pack {
    pub(crate) fn clear(&mut self) {
        self.tokens.clear();
        self.rows.clear();
        self.queries.clear();
        self.targets.clear();
    }

    /// Adds a row that [`check_rows`] has passed. The last token of a row predicts nothing, so it
    /// is left out.
    pub(crate) fn push(&mut self, index: usize, row: TrainRow) {
        let (tokens, queries) = (self.tokens.len(), self.queries.len());
        let scored = row.mask.iter().rposition(|&masked| masked).unwrap_or(0);
        self.tokens.extend(&row.tokens[..scored]);
        for position in 0..scored {
            if row.mask[position + 1] {
                self.queries.push(position as u32);
                self.targets.push(row.tokens[position + 1]);
            }
        }
        let (tokens, queries) = (tokens..self.tokens.len(), queries..self.queries.len());
        self.rows.push(PackedRow { index, tokens, queries });
    }

    /// Adds a row of which only keys and values are wanted.
    pub(crate) fn push_unscored(&mut self, index: usize, tokens: &[u32]) {
        let (start, queries) = (self.tokens.len(), self.queries.len());
        self.tokens.extend(tokens);
        let row = PackedRow { index, tokens: start..self.tokens.len(), queries: queries..queries };
        self.rows.push(row);
    }

    /// Tokens in the longest row.
    pub(crate) fn longest(&self) -> usize {
        self.rows.iter().map(|row| row.tokens.len()).max().unwrap_or(0)
    }
}

/// Refuses rows that the model cannot be run on.
pub(crate) fn check_rows(config: &ModelConfig, rows: &[TrainRow]) -> Result<(), RowError> {
    for (index, row) in rows.iter().enumerate() {
        let (tokens, mask) = (row.tokens.len(), row.mask.len());
        if tokens != mask {
            return Err(RowError::MaskLength { row: index, tokens, mask });
        }
        if row.mask.first() == Some(&true) {
            return Err(RowError::FirstTokenMasked { row: index });
        }
        if tokens > config.context {
            return Err(RowError::TooLong { row: index, tokens, context: config.context });
        }
        let vocab_size = config.vocab_size;
        let unknown = |&token: &u32| token as usize >= vocab_size;
        if let Some(position) = row.tokens.iter().position(unknown) {
            let token = row.tokens[position];
            return Err(RowError::UnknownToken { row: index, position, token, vocab_size });
        }
    }
    Ok(())
}

/// Divides rows among a fixed number of lanes, the longest first, each to the lane with the fewest
/// tokens: balanced, and the same whatever the number of threads.
pub(crate) fn lanes(rows: &[TrainRow], count: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|&row| std::cmp::Reverse(rows[row].tokens.len()));
    let mut lanes = vec![(0, Vec::new()); count];
    for row in order {
        if let Some((tokens, lane)) = lanes.iter_mut().min_by_key(|(tokens, _)| *tokens) {
            *tokens += rows[row].tokens.len();
            lane.push(row);
        }
    }
    lanes.into_iter().map(|(_, lane)| lane).collect()
}

/// Cuts a list of rows into runs of at most `budget` tokens (a longer row is a run of its own).
pub(crate) fn micro_batches<'a>(
    rows: &'a [TrainRow],
    order: &'a [usize],
    budget: usize,
) -> impl Iterator<Item = &'a [usize]> {
    let mut rest = order;
    std::iter::from_fn(move || {
        let mut total = 0;
        let fits = rest.iter().take_while(|&&row| {
            total += rows[row].tokens.len();
            total <= budget
        });
        let count = fits.count().max(1).min(rest.len());
        let (run, later) = rest.split_at(count);
        rest = later;
        (!run.is_empty()).then_some(run)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_row_is_in_one_micro_batch_of_one_lane(
            lengths in prop::collection::vec(0_usize..40, 0..30), count in 1_usize..6,
        ) {
            let tokens = [0; 40];
            let mask = [false; 40];
            let rows: Vec<TrainRow> = lengths
                .iter()
                .map(|&n| TrainRow { tokens: &tokens[..n], mask: &mask[..n] })
                .collect();
            let mut seen = vec![0; rows.len()];
            for lane in lanes(&rows, count) {
                for run in micro_batches(&rows, &lane, 50) {
                    let total: usize = run.iter().map(|&row| lengths[row]).sum();
                    prop_assert!(total <= 50 || run.len() == 1);
                    run.iter().for_each(|&row| seen[row] += 1);
                }
            }
            prop_assert!(seen.iter().all(|&times| times == 1));
        }
    }

    #[test]
    fn packs_the_tokens_that_matter() {
        let mut pack = Pack::default();
        let mask = [false, true, false, true, false, false];
        pack.push(3, TrainRow { tokens: &[9, 8, 7, 6, 5, 4], mask: &mask });
        pack.push(1, TrainRow { tokens: &[1, 2], mask: &[false, true] });
        assert_eq!(pack.tokens, [9, 8, 7, 1]);
        assert_eq!((pack.queries, pack.targets), (vec![0, 2, 0], vec![8, 6, 2]));
        assert_eq!((pack.rows[1].tokens.clone(), pack.rows[1].queries.clone()), (3..4, 2..3));
    }
}
