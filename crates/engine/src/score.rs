//! Log-probabilities and entropies of masked tokens, without gradients.

use rayon::prelude::*;

use crate::{
    Engine, Model, RowError, RowScores, TrainRow,
    batch::{check_rows, families, micro_batches},
    pass,
};

/// Tokens scored together by one thread. Scores do not depend on it.
const MICRO_BATCH_TOKENS: usize = 512;

impl Engine {
    /// Scores the masked tokens of every row under `model`, in the order of the rows. A row's scores
    /// are the same bytes whatever the other rows and the number of threads.
    pub fn score(&self, model: &Model, rows: &[TrainRow]) -> Result<Vec<RowScores>, RowError> {
        check_rows(model.config(), rows)?;
        let micro_batches = micro_batches(rows, &families(rows), MICRO_BATCH_TOKENS);
        let scored: Vec<Vec<RowScores>> = self.run(|| {
            micro_batches
                .par_iter()
                .map(|families| {
                    self.with_workspace(|workspace| {
                        workspace.pack.fill(rows, families);
                        let result = pass::run(model, workspace, None);
                        result
                            .rows
                            .into_iter()
                            .map(|(_, scores, _)| scores)
                            .collect()
                    })
                })
                .collect()
        });
        Ok(scored.into_iter().flatten().collect())
    }
}
