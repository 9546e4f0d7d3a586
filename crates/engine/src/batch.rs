//! Rows checked, divided among lanes and packed without padding, common prefixes once.

use std::{cmp::Reverse, ops::Range};

use crate::{ModelConfig, RowError, TrainRow};

/// Several rows side by side. Rows may share the tokens of an earlier entry as their prefix.
#[derive(Debug, Default)]
pub(crate) struct Pack {
    pub(crate) tokens: Vec<u32>,
    pub(crate) rows: Vec<PackedRow>,
    /// Positions, inside their rows, of the tokens whose successor is scored; row by row.
    pub(crate) queries: Vec<u32>,
    /// The scored tokens, one per query.
    pub(crate) targets: Vec<u32>,
}

/// One row of a pack, or a prefix that rows behind it share.
#[derive(Clone, Debug)]
pub(crate) struct PackedRow {
    /// Index of the row in the batch given by the caller; none for a prefix.
    pub(crate) index: Option<usize>,
    /// The tokens in the pack that come before its own in the sequence; empty for most.
    pub(crate) prefix: Range<usize>,
    /// Its own tokens in the pack; the first is at position `prefix.len()` of the sequence.
    pub(crate) tokens: Range<usize>,
    /// Its queries in the pack.
    pub(crate) queries: Range<usize>,
}

/// Rows that begin with the same tokens, none of which predicts a scored one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Family {
    pub(crate) rows: Vec<usize>,
    /// Length of the common prefix; 0 for a row alone.
    pub(crate) prefix: usize,
    /// Tokens that running the family takes.
    cost: usize,
}

impl Pack {
    /// Replaces what the pack holds by these families.
    pub(crate) fn fill(&mut self, rows: &[TrainRow], families: &[Family]) {
        self.clear();
        for family in families {
            let shared = family.rows.first().map_or(&[][..], |&row| rows[row].tokens);
            let prefix = if family.prefix > 0 {
                self.push_unscored(&shared[..family.prefix])
            } else {
                0..0
            };
            for &row in &family.rows {
                self.push(row, rows[row], prefix.clone());
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.tokens.clear();
        self.rows.clear();
        self.queries.clear();
        self.targets.clear();
    }

    /// Adds a row that [`check_rows`] has passed, whose first tokens are in the pack already. What
    /// comes after the last query predicts nothing, so it is left out.
    pub(crate) fn push(&mut self, index: usize, row: TrainRow, prefix: Range<usize>) {
        let (tokens, queries) = (self.tokens.len(), self.queries.len());
        let end = used_tokens(row).max(prefix.len());
        self.tokens.extend(&row.tokens[prefix.len()..end]);
        for position in prefix.len()..end {
            if row.mask[position + 1] {
                self.queries.push(position as u32);
                self.targets.push(row.tokens[position + 1]);
            }
        }
        let (tokens, queries) = (tokens..self.tokens.len(), queries..self.queries.len());
        self.rows.push(PackedRow {
            index: Some(index),
            prefix,
            tokens,
            queries,
        });
    }

    /// Adds tokens of which only keys and values are wanted; returns where they are.
    pub(crate) fn push_unscored(&mut self, tokens: &[u32]) -> Range<usize> {
        let (start, queries) = (self.tokens.len(), self.queries.len());
        self.tokens.extend(tokens);
        let tokens = start..self.tokens.len();
        let row = PackedRow {
            index: None,
            prefix: 0..0,
            tokens: tokens.clone(),
            queries: queries..queries,
        };
        self.rows.push(row);
        tokens
    }

    /// Tokens in the longest sequence.
    pub(crate) fn longest(&self) -> usize {
        self.rows
            .iter()
            .map(|row| row.prefix.len() + row.tokens.len())
            .max()
            .unwrap_or(0)
    }
}

/// Refuses rows that the model cannot be run on.
pub(crate) fn check_rows(config: &ModelConfig, rows: &[TrainRow]) -> Result<(), RowError> {
    for (index, row) in rows.iter().enumerate() {
        let (tokens, mask) = (row.tokens.len(), row.mask.len());
        if tokens != mask {
            return Err(RowError::MaskLength {
                row: index,
                tokens,
                mask,
            });
        }
        if row.mask.first() == Some(&true) {
            return Err(RowError::FirstTokenMasked { row: index });
        }
        if tokens > config.context {
            return Err(RowError::TooLong {
                row: index,
                tokens,
                context: config.context,
            });
        }
        let vocab_size = config.vocab_size;
        let unknown = |&token: &u32| token as usize >= vocab_size;
        if let Some(position) = row.tokens.iter().position(unknown) {
            let token = row.tokens[position];
            return Err(RowError::UnknownToken {
                row: index,
                position,
                token,
                vocab_size,
            });
        }
    }
    Ok(())
}

/// Groups neighbouring rows by common prefix where that saves tokens: the samples of one prompt.
pub(crate) fn families(rows: &[TrainRow]) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    for (index, &row) in rows.iter().enumerate() {
        if let Some(family) = families.last_mut()
            && let Some(&first) = family.rows.first()
        {
            let known = if family.rows.len() == 1 {
                unqueried_tokens(rows[first])
            } else {
                family.prefix
            };
            let limit = known.min(unqueried_tokens(row));
            let pairs = rows[first].tokens.iter().zip(row.tokens).take(limit);
            let common = pairs.take_while(|(a, b)| a == b).count();
            let members = family.rows.len();
            // Worth it for all that are in, and not a chance agreement of the first few tokens.
            if members * common > (members - 1) * family.prefix && 2 * common >= limit {
                family.rows.push(index);
                family.prefix = common;
                continue;
            }
        }
        families.push(Family {
            rows: vec![index],
            prefix: 0,
            cost: 0,
        });
    }
    families.iter_mut().for_each(|family| family.set_cost(rows));
    families
}

/// Divides families among a fixed number of lanes, the most expensive first, each to the lane with
/// the least to do: balanced, and the same whatever the number of threads. A family that would
/// unbalance the lanes is cut, each part with its own copy of the prefix.
pub(crate) fn lanes(rows: &[TrainRow], count: usize) -> Vec<Vec<Family>> {
    let mut whole = families(rows);
    let total: usize = whole.iter().map(|family| family.cost).sum();
    let mut order = Vec::new();
    while let Some(family) = whole.pop() {
        if family.rows.len() > 1 && family.cost * count > total {
            let half = family.rows.len() / 2;
            for part in [&family.rows[half..], &family.rows[..half]] {
                whole.push(family.part(rows, part));
            }
        } else {
            order.push(family);
        }
    }
    order.sort_by_key(|family| (Reverse(family.cost), family.rows.first().copied()));
    let mut lanes = vec![(0, Vec::new()); count];
    for family in order {
        if let Some((cost, lane)) = lanes.iter_mut().min_by_key(|(cost, _)| *cost) {
            *cost += family.cost;
            lane.push(family);
        }
    }
    lanes.into_iter().map(|(_, lane)| lane).collect()
}

/// Cuts families into runs of at most `budget` tokens (a longer row is a run of its own).
pub(crate) fn micro_batches(
    rows: &[TrainRow],
    families: &[Family],
    budget: usize,
) -> Vec<Vec<Family>> {
    let mut runs: Vec<Vec<Family>> = Vec::new();
    let mut spent = budget;
    let mut open = |part: Family| {
        if spent + part.cost > budget || runs.is_empty() {
            runs.push(Vec::new());
            spent = 0;
        }
        spent += part.cost;
        if let Some(run) = runs.last_mut() {
            run.push(part);
        }
    };
    for family in families {
        let mut rest = family.rows.as_slice();
        while !rest.is_empty() {
            let mut cost = family.prefix;
            let fits = rest.iter().take_while(|&&row| {
                cost += used_tokens(rows[row]).saturating_sub(family.prefix);
                cost <= budget
            });
            let (part, later) = rest.split_at(fits.count().max(1));
            open(family.part(rows, part));
            rest = later;
        }
    }
    runs
}

impl Family {
    /// Some of the rows; a row alone needs no prefix.
    fn part(&self, rows: &[TrainRow], part: &[usize]) -> Self {
        let prefix = if part.len() > 1 { self.prefix } else { 0 };
        let mut family = Self {
            rows: part.to_vec(),
            prefix,
            cost: 0,
        };
        family.set_cost(rows);
        family
    }

    fn set_cost(&mut self, rows: &[TrainRow]) {
        let own = |&row: &usize| used_tokens(rows[row]).saturating_sub(self.prefix);
        self.cost = self.prefix + self.rows.iter().map(own).sum::<usize>();
    }
}

/// Tokens that predict a scored one or come before one that does.
fn used_tokens(row: TrainRow) -> usize {
    row.mask.iter().rposition(|&masked| masked).unwrap_or(0)
}

/// Tokens before the first that predicts a scored one.
fn unqueried_tokens(row: TrainRow) -> usize {
    row.mask
        .iter()
        .position(|&masked| masked)
        .map_or(0, |first| first - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_row_is_in_one_micro_batch_of_one_lane_with_its_tokens(
            shapes in prop::collection::vec((0_usize..4, 0_usize..20, 0_usize..20), 0..30),
            count in 1_usize..6,
        ) {
            // Rows of equal prompt number begin with the same tokens, up to their prompt length.
            let rows: Vec<(Vec<u32>, Vec<bool>)> = shapes
                .iter()
                .enumerate()
                .map(|(row, &(prompt, length, response))| {
                    let prompts = (0..length).map(|at| (prompt * 100 + at) as u32);
                    let responses = (0..response).map(|at| (1000 + row * 50 + at) as u32);
                    let mask = (0..length + response).map(|at| at >= length.max(1));
                    (prompts.chain(responses).collect(), mask.collect())
                })
                .collect();
            let rows: Vec<TrainRow> =
                rows.iter().map(|(tokens, mask)| TrainRow { tokens, mask }).collect();
            let mut seen = vec![0; rows.len()];
            for lane in lanes(&rows, count) {
                for run in micro_batches(&rows, &lane, 50) {
                    let mut pack = Pack::default();
                    pack.fill(&rows, &run);
                    let cost: usize = run.iter().map(|family| family.cost).sum();
                    prop_assert_eq!(pack.tokens.len(), cost);
                    prop_assert!(cost <= 50 || pack.rows.len() == 1);
                    for packed in pack.rows.iter() {
                        let Some(index) = packed.index else { continue };
                        seen[index] += 1;
                        let row = rows[index];
                        let own = &pack.tokens[packed.tokens.clone()];
                        let sequence = [&pack.tokens[packed.prefix.clone()], own].concat();
                        prop_assert_eq!(&sequence[..], &row.tokens[..used_tokens(row)]);
                        let queries = packed.queries.clone();
                        let targets = queries.map(|at| (pack.queries[at] + 1, pack.targets[at]));
                        let expected = (0..).zip(row.tokens).zip(row.mask);
                        let expected = expected.filter(|(_, masked)| **masked);
                        let expected = expected.map(|((at, token), _)| (at, *token));
                        prop_assert!(targets.eq(expected));
                    }
                }
            }
            prop_assert!(seen.iter().all(|&times| times == 1));
        }
    }

    #[test]
    fn samples_of_one_prompt_are_one_family() {
        let mask = [false, false, false, true];
        let tokens = [
            [5, 6, 7, 1],
            [5, 6, 7, 2],
            [5, 6, 8, 2],
            [9, 6, 7, 2],
            [9, 6, 7, 2],
        ];
        let rows = tokens.each_ref().map(|tokens| TrainRow {
            tokens,
            mask: &mask,
        });
        let found: Vec<(Vec<usize>, usize)> = families(&rows)
            .into_iter()
            .map(|family| (family.rows, family.prefix))
            .collect();
        assert_eq!(found, [(vec![0, 1, 2], 2), (vec![3, 4], 2)]);
    }
}
