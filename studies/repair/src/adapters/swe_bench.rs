//! Rows of SWE-bench to tasks, and back.

use dataset::RowError;
use record::TaskId;
use serde_json::Value;

use super::{Options, Record, without_nulls};
use crate::{
    Checks, Facts, Gold, Issue, Place, Public, Task, TestFramework,
    grading::{Grader, Instance, SweBenchGrader},
};

/// Where the images of SWE-bench have the checkout.
pub(super) const WORK_TREE: &str = "/testbed";
/// Where a text that an issue cannot give back is kept.
pub(super) const STATEMENT: &str = "problem_statement";
/// Where the columns of an instance in a file of Graph Planner's are kept.
pub(super) const INSTANCE: &str = "instance";

pub(super) fn read(record: &Record, options: &Options) -> Result<Task, RowError> {
    let instance: Instance = record.parse()?;
    for (field, value) in [
        ("instance_id", &instance.instance_id),
        ("repo", &instance.repo),
        ("problem_statement", &instance.problem_statement),
    ] {
        if value.trim().is_empty() {
            return Err(record.error(field, "must not be empty"));
        }
    }
    record.check_name("instance_id", &instance.instance_id)?;
    if let Some(key) = record.key()
        && key != instance.instance_id
    {
        let message = format!(
            "the row under `{key}` says that it is `{}`",
            instance.instance_id
        );
        return Err(record.error("instance_id", message));
    }
    if instance.fail_to_pass.is_empty() {
        return Err(record.error("FAIL_TO_PASS", "no test tells the repair"));
    }
    instance
        .expected()
        .map_err(|error| record.error("log_parser", error.to_string()))?;
    Ok(task_of(instance, options))
}

/// The task of an instance. [`instance_of`] gives the instance back.
pub(super) fn task_of(instance: Instance, options: &Options) -> Task {
    let image = match (&instance.image, &options.image_namespace) {
        (None, Some(namespace)) => instance.remote_image(namespace),
        _ => instance.image(),
    };
    let mut metadata = without_nulls(instance.rest);
    let issue = issue(
        &instance.problem_statement,
        Some(instance.instance_id.clone()),
    );
    if statement(&issue) != instance.problem_statement {
        metadata.insert(STATEMENT.to_owned(), instance.problem_statement.into());
    }
    let source = options.source("swe-bench");
    Task {
        id: options.id(source, &instance.instance_id),
        public: Public {
            repo: instance.repo,
            base_commit: Some(instance.base_commit),
            issue,
            framework: TestFramework::Pytest,
            max_steps: None,
        },
        place: Place::Image {
            name: image,
            work_tree: WORK_TREE.to_owned(),
        },
        checks: Checks {
            fail_to_pass: instance.fail_to_pass,
            pass_to_pass: instance.pass_to_pass,
        },
        facts: Facts {
            data_source: source.to_owned(),
            split: options.split.clone(),
            family: None,
            metadata,
        },
        gold: Gold {
            patch: instance.patch,
            test_patch: instance.test_patch,
            grader: Some(Grader::SweBench(Box::new(SweBenchGrader {
                version: instance.version,
                environment_setup_commit: instance.environment_setup_commit,
                image: instance.image,
                eval_script: instance.eval_script,
                log_parser: instance.log_parser,
                eval_type: instance.eval_type,
            }))),
            ..Gold::default()
        },
    }
}

/// The instance that a task was made of; `None` of other tasks.
pub fn instance_of(task: &Task) -> Option<Instance> {
    let Some(Grader::SweBench(grader)) = &task.gold.grader else {
        return None;
    };
    let mut rest = task.facts.metadata.clone();
    if let Some(Value::Object(columns)) = rest.remove(INSTANCE) {
        // Beside them stands what Graph Planner's row has.
        for name in ["task_id", "sandbox"] {
            rest.remove(name);
        }
        rest.extend(columns);
        rest.remove("instance_id");
    }
    let problem_statement = match rest.remove(STATEMENT) {
        Some(Value::String(text)) => text,
        _ => statement(&task.public.issue),
    };
    Some(Instance {
        repo: task.public.repo.clone(),
        instance_id: instance_id(task),
        base_commit: task.public.base_commit.clone().unwrap_or_default(),
        patch: task.gold.patch.clone(),
        test_patch: task.gold.test_patch.clone(),
        problem_statement,
        version: grader.version.clone(),
        fail_to_pass: task.checks.fail_to_pass.clone(),
        pass_to_pass: task.checks.pass_to_pass.clone(),
        environment_setup_commit: grader.environment_setup_commit.clone(),
        image: grader.image.clone(),
        eval_script: grader.eval_script.clone(),
        log_parser: grader.log_parser,
        eval_type: grader.eval_type,
        rest,
    })
}

/// The name that predictions call a task by: what its dataset calls it, else its id.
pub fn instance_id(task: &Task) -> String {
    let named = task.public.issue.id.clone();
    named.unwrap_or_else(|| {
        let TaskId(id) = &task.id;
        id.clone()
    })
}

/// A text whose first line is the title.
pub(super) fn issue(text: &str, id: Option<String>) -> Issue {
    let (title, body) = text.split_once('\n').unwrap_or((text, ""));
    Issue {
        id,
        title: title.trim().to_owned(),
        body: body.to_owned(),
        ..Issue::default()
    }
}

pub(super) fn statement(issue: &Issue) -> String {
    match issue.body.as_str() {
        "" => issue.title.clone(),
        body => format!("{}\n{body}", issue.title),
    }
}
