//! Many programs in few jail runs, to learn what they return.

use futures::{StreamExt, future::BoxFuture, stream::FuturesOrdered};
use sandbox::Status;

use crate::{
    Judge, JudgeError, Value,
    harness::{self, Call, Record, Report},
};

/// One program and the calls whose results are wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    pub source: String,
    /// The function to call.
    pub entry: String,
    /// The arguments of each call.
    pub args: Vec<Vec<Value>>,
}

/// The results of one program's calls, in order.
pub(crate) type Results = Vec<Result<Value, String>>;

impl Judge {
    /// What each program returns for each of its calls, or the exception's text.
    ///
    /// Hundreds of programs share one jail run, one after the other in one interpreter, each under
    /// its own CPU limit: for programs that are meant well. A batch that dies is halved until the
    /// program that kills it stands alone; its missing results are errors.
    pub async fn evaluate(&self, evaluations: Vec<Evaluation>) -> Result<Vec<Results>, JudgeError> {
        let mut batches: FuturesOrdered<_> = evaluations
            .chunks(self.config().evaluation_batch.max(1))
            .map(|batch| self.evaluate_batch(batch))
            .collect();
        let mut results = Vec::with_capacity(evaluations.len());
        while let Some(batch) = batches.next().await {
            results.extend(batch?);
        }
        Ok(results)
    }

    fn evaluate_batch<'a>(
        &'a self,
        batch: &'a [Evaluation],
    ) -> BoxFuture<'a, Result<Vec<Results>, JudgeError>> {
        Box::pin(async move {
            let calls: Vec<Call<'_>> = batch
                .iter()
                .map(|evaluation| Call {
                    source: &evaluation.source,
                    entry: &evaluation.entry,
                    in_solution: false,
                    args: evaluation.args.iter().map(Vec::as_slice).collect(),
                })
                .collect();
            let (outcome, report) = self
                .run_harness(&calls, self.batch_limits(batch.len()))
                .await?;
            let whole = !report.tampered && report.finished && outcome.status == Status::Ok;
            if whole || batch.len() == 1 {
                let reason = harness::reason(&outcome, &report);
                return Ok(collect(batch, report, &reason));
            }
            let (left, right) = batch.split_at(batch.len() / 2);
            let (mut left, right) =
                futures::try_join!(self.evaluate_batch(left), self.evaluate_batch(right))?;
            left.extend(right);
            Ok(left)
        })
    }
}

fn collect(batch: &[Evaluation], report: Report, reason: &str) -> Vec<Results> {
    let missing = |_| -> Result<Value, String> { Err(reason.to_owned()) };
    if report.tampered {
        return batch
            .iter()
            .map(|one| (0..one.args.len()).map(missing).collect())
            .collect();
    }
    let mut programs = report.programs.into_iter();
    batch
        .iter()
        .map(|one| {
            let calls = programs.next().unwrap_or_default();
            let mut calls = calls.into_iter();
            (0..one.args.len())
                .map(|at| match calls.next().flatten() {
                    Some(Record::Value(value)) => Ok(value),
                    Some(Record::Error(message)) => Err(message),
                    Some(Record::Done) | None => missing(at),
                })
                .collect()
        })
        .collect()
}
