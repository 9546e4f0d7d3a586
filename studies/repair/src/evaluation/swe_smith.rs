//! SWE-smith's rule: every test that counts must pass, those that passed before as well, and a skipped one does not
//! (spec of the repair study, section 11.4). Where tests are no ids of pytest, a log says of them what SWE-bench's logs
//! do.

use std::collections::{BTreeMap, BTreeSet};

use code::{Patch, RelativePath};
use record::Fault;

use super::{Evaluated, apply, own_tests, script};
use crate::{
    Checks, Task,
    adapters::instance_id,
    grading::{InstanceReport, SmithProfile, Split, TestsStatus},
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
    own_tests::has_tests(checks)?;
    // None of them may be skipped.
    let strict = Checks {
        fail_to_pass: [&checks.fail_to_pass[..], &checks.pass_to_pass].concat(),
        pass_to_pass: Vec::new(),
    };
    let pristine = own_tests::pristine(&strict, workplace).await?;
    if !apply::apply(patch, workplace, evaluated).await? {
        return Ok(());
    }
    let has_its_own = apply::shell(workplace, &format!("test -x {PYTHON}"))
        .await?
        .0;
    let python = match has_its_own {
        true => PYTHON.to_owned(),
        false => workplace.testbed().python.clone(),
    };
    let tests = own_tests::pytest(&strict, &pristine, &python, workplace, evaluated).await?;
    let passed: BTreeSet<&String> = tests.fail_to_pass.success.iter().collect();
    evaluated.report = Some(InstanceReport::of_tests(TestsStatus {
        fail_to_pass: Split::of(&checks.fail_to_pass, |id| passed.contains(id)),
        pass_to_pass: Split::of(&checks.pass_to_pass, |id| passed.contains(id)),
        ..TestsStatus::default()
    }));
    Ok(())
}

/// Runs the command of the repository's profile and reads its log. Files of tests that the patch changes are put
/// back.
pub(super) async fn grade_by_log(
    task: &Task,
    profile: &SmithProfile,
    patch: &str,
    workplace: &mut Workplace,
    evaluated: &mut Evaluated,
) -> Result<(), Fault> {
    own_tests::has_tests(&task.checks)?;
    let tests = touched_tests(patch, workplace).await?;
    if !apply::apply(patch, workplace, evaluated).await? {
        return Ok(());
    }
    for (path, content) in &tests {
        let session = workplace.session().await?;
        let restored = match content {
            Some(content) => session.write(path, content, 0o644).await,
            None => session.remove(path).await,
        };
        restored.map_err(infra)?;
    }
    let text = profile.script(&task.checks);
    if script::run(&text, workplace, evaluated).await? {
        let expected = profile.expected(&instance_id(task), &task.checks);
        evaluated.report = Some(InstanceReport::of_log(&expected, &evaluated.test_output));
    }
    Ok(())
}

/// Files of tests that a patch changes, as they are now; `None` for those that it makes.
async fn touched_tests(
    patch: &str,
    workplace: &mut Workplace,
) -> Result<BTreeMap<RelativePath, Option<Vec<u8>>>, Fault> {
    let mut tests = BTreeMap::new();
    // A patch that only git's tools can read is applied by them, and its tests are left as it makes them.
    let Ok(patch) = Patch::parse(patch.as_bytes()) else {
        return Ok(tests);
    };
    for path in patch.paths() {
        if code::graph::is_test_path(path.as_str()) {
            let content = workplace.read(&path).await?;
            tests.insert(path, content);
        }
    }
    Ok(tests)
}
