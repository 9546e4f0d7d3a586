//! Tasks without a grader of their own: the tests of their checks are run as they were before the patch.

use std::collections::{BTreeMap, BTreeSet};

use code::{Patch, RelativePath};
use judge::{
    CaseResult,
    pytest::{Pristine, TestStatus, in_session},
};
use record::Fault;

use super::{Evaluated, apply, misfit};
use crate::{
    Checks, Task, TestFramework,
    grading::{InstanceReport, Split, TestsStatus, with_verdicts},
    workplace::{TestRequest, Workplace, infra},
};

pub(super) async fn grade(
    task: &Task,
    patch: &str,
    workplace: &mut Workplace,
    evaluated: &mut Evaluated,
) -> Result<(), Fault> {
    let checks = &task.checks;
    has_tests(checks)?;
    let before = workplace.snapshot().await?;
    hidden_tests(task, workplace).await?;
    let tests = match task.public.framework {
        TestFramework::Pytest => Tests::Pytest(pristine(checks, workplace).await?),
        TestFramework::Unittest => Tests::Unittest(test_files(task, workplace).await?),
    };
    workplace.restore(&before).await?;
    if !apply::apply(patch, workplace, evaluated).await? {
        return Ok(());
    }
    let tests = match tests {
        Tests::Pytest(pristine) => {
            let python = workplace.testbed().python.clone();
            pytest(checks, &pristine, &python, workplace, evaluated).await?
        }
        Tests::Unittest(files) => unittest(checks, files, workplace, evaluated).await?,
    };
    evaluated.report = Some(InstanceReport::of_tests(tests));
    Ok(())
}

pub(super) fn has_tests(checks: &Checks) -> Result<(), Fault> {
    match checks.fail_to_pass.is_empty() && checks.pass_to_pass.is_empty() {
        true => Err(Fault::grader("the task has no tests to grade by")),
        false => Ok(()),
    }
}

/// The files of pytest's tests as they are now.
pub(super) async fn pristine(
    checks: &Checks,
    workplace: &mut Workplace,
) -> Result<Pristine, Fault> {
    let ids = checks.fail_to_pass.iter().chain(&checks.pass_to_pass);
    let session = workplace.session().await?;
    let taken = Pristine::take(session, ids.map(String::as_str)).await;
    taken.map_err(infra)
}

/// The tests' files as they have to be.
enum Tests {
    Pytest(Pristine),
    Unittest(BTreeMap<RelativePath, Vec<u8>>),
}

/// Tests that the checkout does not show.
async fn hidden_tests(task: &Task, workplace: &mut Workplace) -> Result<(), Fault> {
    if !task.gold.test_patch.is_empty() {
        let patch = Patch::parse(task.gold.test_patch.as_bytes());
        let patch = patch.map_err(|error| misfit("the patch of the tests", error))?;
        let applied = workplace.apply(&patch).await?;
        applied.map_err(|why| misfit("the patch of the tests", why))?;
    }
    for (path, content) in &task.gold.test_files {
        let path = RelativePath::new(path).map_err(Fault::grader)?;
        let written = workplace
            .session()
            .await?
            .write(&path, content.as_bytes(), 0o644);
        written.await.map_err(infra)?;
    }
    Ok(())
}

/// The files that ids of unittest name, `a.b.C.d` in `a/b.py`, and the hidden ones.
async fn test_files(
    task: &Task,
    workplace: &mut Workplace,
) -> Result<BTreeMap<RelativePath, Vec<u8>>, Fault> {
    let checks = &task.checks;
    let mut candidates: BTreeSet<String> = task.gold.test_files.keys().cloned().collect();
    for id in checks.fail_to_pass.iter().chain(&checks.pass_to_pass) {
        let parts: Vec<&str> = id.split('.').collect();
        for end in 1..=parts.len() {
            candidates.insert(format!("{}.py", parts[..end].join("/")));
        }
    }
    let mut files = BTreeMap::new();
    for path in candidates {
        let Ok(path) = RelativePath::new(&path) else {
            continue;
        };
        if let Some(content) = workplace.read(&path).await? {
            files.insert(path, content);
        }
    }
    Ok(files)
}

/// Runs the tests by their ids, with their files as they were.
pub(super) async fn pytest(
    checks: &Checks,
    pristine: &Pristine,
    python: &str,
    workplace: &mut Workplace,
    evaluated: &mut Evaluated,
) -> Result<TestsStatus, Fault> {
    let limits = workplace.testbed().limits;
    let graded = in_session(
        workplace.session().await?,
        python,
        pristine,
        &checks.fail_to_pass,
        &checks.pass_to_pass,
        limits,
    );
    let (graded, output) = graded.await.map_err(infra)?;
    if graded.tampered {
        evaluated.note("the patch tampered with the tests or with what they say");
    }
    let split = |tests: &[String], results: &[CaseResult]| {
        let mut split = Split::default();
        for (test, result) in tests.iter().zip(results) {
            match result {
                CaseResult::Passed if !graded.tampered => split.success.push(test.clone()),
                _ => split.failure.push(test.clone()),
            }
        }
        split
    };
    let tests = TestsStatus {
        fail_to_pass: split(&checks.fail_to_pass, &graded.fail_to_pass),
        pass_to_pass: split(&checks.pass_to_pass, &graded.pass_to_pass),
        ..TestsStatus::default()
    };
    evaluated.test_output = with_verdicts(output, &tests);
    Ok(tests)
}

async fn unittest(
    checks: &Checks,
    files: BTreeMap<RelativePath, Vec<u8>>,
    workplace: &mut Workplace,
    evaluated: &mut Evaluated,
) -> Result<TestsStatus, Fault> {
    for (path, content) in &files {
        let written = workplace.session().await?.write(path, content, 0o644);
        written.await.map_err(infra)?;
    }
    let ids = checks.fail_to_pass.iter().chain(&checks.pass_to_pass);
    let request = TestRequest {
        writes: BTreeMap::new(),
        ids: ids.cloned().collect(),
        stop_at_failure: false,
        trace: false,
        wall: workplace.testbed().limits.wall,
    };
    let runs = workplace.run_tests(&[request]).await?;
    let Some(run) = runs.into_iter().next() else {
        return Err(Fault::infra("a run of tests gave nothing"));
    };
    evaluated.note(format!("the tests ended: {:?}", run.ended));
    let passed = |test: &String| {
        let status = run.statuses.get(test);
        matches!(
            status,
            Some(TestStatus::Passed | TestStatus::ExpectedFailure)
        )
    };
    let kept = |test: &String| passed(test) || run.statuses.get(test) == Some(&TestStatus::Skipped);
    let tests = TestsStatus {
        fail_to_pass: Split::of(&checks.fail_to_pass, passed),
        pass_to_pass: Split::of(&checks.pass_to_pass, kept),
        ..TestsStatus::default()
    };
    evaluated.test_output = with_verdicts(run.output, &tests);
    Ok(tests)
}
