//! SWE-smith's rule: every test that counts must pass, those that passed before as well, and a skipped one does not
//! (spec of the repair study, section 11.4).

use judge::{
    CaseResult,
    pytest::{Pristine, in_session},
};
use record::Fault;

use super::{Evaluated, apply};
use crate::{
    Task,
    grading::{InstanceReport, Split, TestsStatus},
    workplace::{Workplace, infra},
};

/// Where SWE-smith's images have what their tests need.
const PYTHON: &str = "/opt/miniconda3/envs/testbed/bin/python";

/// The tests' files are as they were before the patch.
pub(super) async fn grade(
    task: &Task,
    patch: &str,
    workplace: &mut Workplace,
    evaluated: &mut Evaluated,
) -> Result<(), Fault> {
    let checks = &task.checks;
    let tests = [&checks.fail_to_pass[..], &checks.pass_to_pass].concat();
    if tests.is_empty() {
        return Err(Fault::grader("the task has no tests to grade by"));
    }
    let ids = tests.iter().map(String::as_str);
    let pristine = Pristine::take(workplace.session().await?, ids).await;
    let pristine = pristine.map_err(infra)?;
    if !apply::apply(patch, workplace, evaluated).await? {
        return Ok(());
    }
    let python = match apply::shell(workplace, &format!("test -x {PYTHON}"))
        .await?
        .0
    {
        true => PYTHON.to_owned(),
        false => workplace.testbed().python.clone(),
    };
    let limits = workplace.testbed().limits;
    let session = workplace.session().await?;
    let graded = in_session(session, &python, &pristine, &tests, &[], limits).await;
    let graded = graded.map_err(infra)?;
    if graded.tampered {
        evaluated.note("the patch tampered with the tests or with what they say");
    }
    let mut results = tests.iter().zip(&graded.fail_to_pass);
    let mut split = |count: usize| {
        let passes = |(_, result): &(&String, &CaseResult)| {
            !graded.tampered && **result == CaseResult::Passed
        };
        let (success, failure): (Vec<_>, Vec<_>) = results.by_ref().take(count).partition(passes);
        let named =
            |tests: Vec<(&String, _)>| tests.into_iter().map(|(id, _)| id.clone()).collect();
        Split {
            success: named(success),
            failure: named(failure),
        }
    };
    evaluated.report = Some(InstanceReport::of_tests(TestsStatus {
        fail_to_pass: split(checks.fail_to_pass.len()),
        pass_to_pass: split(checks.pass_to_pass.len()),
        ..TestsStatus::default()
    }));
    Ok(())
}
