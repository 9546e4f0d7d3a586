//! Grading one predicted patch in a sandbox: the patch is applied, the tests are run, their results become a
//! report (spec of the repair study, sections 11.2 to 11.4).

mod apply;
mod harbor;
mod own_tests;
mod script;
mod swe_smith;

use code::Patch;
use record::Fault;

use crate::{
    Place, Task,
    adapters::instance_of,
    grading::{Grader, InstanceReport, TestsStatus},
    workplace::{Testbed, Workplace},
};

/// What came of grading a prediction, with all that its folder of logs holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluated {
    /// `None`: it could not be graded, and [`Evaluated::run_log`] says why.
    pub report: Option<InstanceReport>,
    /// What ran the tests, where that was a script.
    pub eval_script: Option<String>,
    /// What the tests printed.
    pub test_output: String,
    pub run_log: String,
}

impl Evaluated {
    fn note(&mut self, line: impl AsRef<str>) {
        self.run_log.push_str(line.as_ref().trim_end());
        self.run_log.push('\n');
    }
}

/// Grades `patch` as a repair of `task`, in a fresh workplace.
///
/// # Errors
/// Failures of the machinery, and a grader fault where the task itself cannot be graded. What the patch
/// does is a report.
pub async fn evaluate(task: &Task, patch: &str, testbed: &Testbed) -> Result<Evaluated, Fault> {
    let mut workplace = testbed.open().await?;
    let mut evaluated = Evaluated::default();
    let graded = grade(task, patch, &mut workplace, &mut evaluated).await;
    let closed = workplace.close().await;
    graded?;
    closed?;
    Ok(evaluated)
}

/// Grades what `task` itself says to repair it: its gold patch, or the solution that a task of Harbor's brings.
///
/// # Errors
/// As of [`evaluate`].
pub async fn evaluate_gold(task: &Task, testbed: &Testbed) -> Result<Evaluated, Fault> {
    let Some(Grader::Harbor(grader)) = &task.gold.grader else {
        return evaluate(task, &task.gold.patch, testbed).await;
    };
    let mut workplace = testbed.open().await?;
    let mut evaluated = Evaluated::default();
    let graded = harbor::grade_solution(task, grader, &mut workplace, &mut evaluated).await;
    let closed = workplace.close().await;
    graded?;
    closed?;
    Ok(evaluated)
}

async fn grade(
    task: &Task,
    patch: &str,
    workplace: &mut Workplace,
    evaluated: &mut Evaluated,
) -> Result<(), Fault> {
    if let Place::Patched { patch, .. } | Place::PatchedImage { patch, .. } = &task.place {
        let made = Patch::parse(patch.as_bytes());
        let made = made.map_err(|error| misfit("the patch that makes the checkout", error))?;
        let applied = workplace.apply(&made).await?;
        applied.map_err(|why| misfit("the patch that makes the checkout", why))?;
        apply::commit(workplace).await?;
    }
    match &task.gold.grader {
        None => own_tests::grade(task, patch, workplace, evaluated).await,
        Some(Grader::SweBench(_)) => {
            let Some(instance) = instance_of(task) else {
                return Err(Fault::grader("the task is no instance of SWE-bench"));
            };
            let expected = instance.expected().map_err(Fault::grader)?;
            if !apply::apply(patch, workplace, evaluated).await? {
                return Ok(());
            }
            let text = crate::grading::eval_script(&instance);
            if script::run(&text, workplace, evaluated).await? {
                let log = &evaluated.test_output;
                evaluated.report = Some(InstanceReport::of_log(&expected, log));
            }
            Ok(())
        }
        Some(Grader::R2eGym { expected }) => {
            if !apply::apply(patch, workplace, evaluated).await? {
                return Ok(());
            }
            if script::run(script::R2E_GYM, workplace, evaluated).await? {
                let log = &evaluated.test_output;
                let tests = TestsStatus::of_r2e_gym(expected, log);
                let mut report = InstanceReport::of_tests(tests);
                report.resolved = crate::grading::r2e_gym_resolved(expected, log);
                evaluated.report = Some(report);
            }
            Ok(())
        }
        Some(Grader::SweSmith) => swe_smith::grade(task, patch, workplace, evaluated).await,
        Some(Grader::SweSmithLog(profile)) => {
            swe_smith::grade_by_log(task, profile, patch, workplace, evaluated).await
        }
        Some(Grader::Harbor(grader)) => {
            harbor::grade(task, grader, patch, workplace, evaluated).await
        }
    }
}

fn misfit(what: &str, why: impl std::fmt::Display) -> Fault {
    Fault::grader(format!("{what} does not fit: {why}"))
}
