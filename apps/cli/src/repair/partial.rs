//! A patch that mends some of the failing tests where none mends all.

use std::time::Duration;

use code::Patch;
use judge::pytest::TestStatus;
use repair::{
    Task, Testbeds,
    play::Notes,
    workplace::{Ended, TestRequest},
};
use serde::Serialize;

use crate::failure::{Classify, Outcome};

/// Patches that are looked at, those that mended the most first.
const MOST: usize = 3;

/// A patch that all tests were run with: it mends some and breaks none.
#[derive(Serialize)]
pub(super) struct Partial {
    pub(super) patch: String,
    /// Ids of tests that failed and pass with it.
    pub(super) mended: Vec<String>,
}

/// The best of those that the episode tried and did not keep.
pub(super) async fn find(
    notes: &Notes,
    task: &Task,
    testbeds: &Testbeds,
    wall: Duration,
) -> Outcome<Option<Partial>> {
    let mut tried: Vec<(u64, &str)> = notes
        .steps
        .iter()
        .filter_map(|step| {
            let mended = step.info["tests"]["fail_to_pass"]["passed"].as_u64()?;
            let patch = step.info["patch"].as_str().filter(|it| !it.is_empty())?;
            (mended > 0 && step.info["kind"] == "repair").then_some((mended, patch))
        })
        .collect();
    tried.sort_by_key(|(mended, _)| std::cmp::Reverse(*mended));
    tried.dedup();
    for (_, patch) in tried.into_iter().take(MOST) {
        let Ok(parsed) = Patch::parse(patch.as_bytes()) else {
            continue;
        };
        let mut workplace = testbeds(task).failed()?.open().await.failed()?;
        let mut runs = Vec::new();
        if workplace.apply(&parsed).await.failed()?.is_ok() {
            let request = TestRequest {
                writes: Default::default(),
                ids: Vec::new(),
                stop_at_failure: false,
                trace: false,
                wall,
            };
            runs = workplace.run_tests(&[request]).await.failed()?;
        }
        workplace.close().await.failed()?;
        let Some(run) = runs.pop().filter(|run| run.ended == Ended::Finished) else {
            continue;
        };
        let passes = |id: &&String| run.statuses.get(*id) == Some(&TestStatus::Passed);
        let mended = task.checks.fail_to_pass.iter().filter(passes);
        let mended: Vec<String> = mended.cloned().collect();
        if !mended.is_empty() && task.checks.pass_to_pass.iter().all(|id| passes(&id)) {
            return Ok(Some(Partial {
                patch: patch.to_owned(),
                mended,
            }));
        }
    }
    Ok(None)
}
