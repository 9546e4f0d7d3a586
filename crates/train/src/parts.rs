//! A batch as the parts of its optimizer updates.

use record::{Batch, Datum};
use serde::{Deserialize, Serialize};

/// What a step's batch is divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MiniBatchUnit {
    /// Parts of as many rows, the last apart. Rows of one episode may part, and odd numbers of rows may
    /// make for fewer parts.
    #[default]
    Rows,
    /// Whole episodes, in parts whose numbers of them differ by one at most: as many updates as the recipe
    /// says, however many rows the episodes have; fewer only where there are fewer episodes.
    Episodes,
}

impl MiniBatchUnit {
    pub(crate) fn is_rows(&self) -> bool {
        *self == Self::Rows
    }

    /// The rows of `batch`, each in one of so many parts, in their order. Rows of one episode are
    /// neighbours.
    pub(crate) fn parts(self, batch: &Batch, parts: usize) -> Vec<Batch> {
        let part = |data: &[Datum]| Batch {
            data: data.to_vec(),
        };
        if self == Self::Rows {
            let rows = batch.data.len();
            let size = rows.div_ceil(parts.clamp(1, rows.max(1))).max(1);
            return batch.data.chunks(size).map(part).collect();
        }
        let episodes: Vec<&[Datum]> = batch
            .data
            .chunk_by(|one, other| one.episode.is_some() && one.episode == other.episode)
            .collect();
        let parts = parts.clamp(1, episodes.len().max(1));
        let (each, more) = (episodes.len() / parts, episodes.len() % parts);
        let mut episodes = episodes.into_iter();
        (0..parts)
            .map(|index| {
                let episodes = episodes.by_ref().take(each + usize::from(index < more));
                Batch {
                    data: episodes.flatten().cloned().collect(),
                }
            })
            .filter(|part| !part.data.is_empty())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use record::EpisodeId;

    use super::*;

    /// Episodes of so many rows.
    fn batch(rows: &[usize]) -> Batch {
        let row = |member: usize| {
            let mut datum = Datum::supervised(&[1], &[member as u32]);
            datum.episode = Some(EpisodeId {
                step: 1,
                group: 0,
                member: member as u32,
            });
            datum
        };
        let episodes = rows.iter().enumerate();
        Batch {
            data: episodes
                .flat_map(|(member, &rows)| vec![row(member); rows])
                .collect(),
        }
    }

    fn sizes(parts: &[Batch]) -> Vec<usize> {
        parts.iter().map(|part| part.data.len()).collect()
    }

    #[test]
    fn by_hand() {
        let batch = batch(&[1, 9, 2, 1, 4]);
        assert_eq!(sizes(&MiniBatchUnit::Rows.parts(&batch, 4)), [5, 5, 5, 2]);
        assert_eq!(sizes(&MiniBatchUnit::Episodes.parts(&batch, 2)), [12, 5]);
        assert_eq!(
            sizes(&MiniBatchUnit::Episodes.parts(&batch, 4)),
            [10, 2, 1, 4]
        );
        assert_eq!(
            sizes(&MiniBatchUnit::Episodes.parts(&batch, 9)),
            [1, 9, 2, 1, 4]
        );
        let empty = Batch::default();
        assert_eq!(sizes(&MiniBatchUnit::Episodes.parts(&empty, 3)), [0; 0]);
    }

    proptest! {
        #[test]
        fn updates_are_as_many_as_asked_and_every_row_is_in_one(
            rows in prop::collection::vec(1usize..10, 1..20), parts in 1usize..8,
        ) {
            let batch = batch(&rows);
            let found = MiniBatchUnit::Episodes.parts(&batch, parts);
            prop_assert_eq!(found.len(), parts.min(rows.len()));
            let all: Vec<Datum> = found.iter().flat_map(|part| part.data.clone()).collect();
            prop_assert_eq!(&all, &batch.data);
            for pair in found.windows(2) {
                prop_assert_ne!(pair[0].data.last().unwrap().episode, pair[1].data[0].episode);
            }
            for parts in [&found, &MiniBatchUnit::Rows.parts(&batch, parts)] {
                prop_assert_eq!(sizes(parts).iter().sum::<usize>(), batch.data.len());
            }
        }
    }
}
