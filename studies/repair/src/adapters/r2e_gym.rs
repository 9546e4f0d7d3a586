//! Rows of R2E-Gym to tasks, also those that it took from SWE-smith and SWE-bench.

use std::collections::BTreeMap;

use dataset::{RowError, json_text};
use judge::pytest::TestStatus;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Options, Record, commit::ParsedCommit, reverse::reversed, swe_bench, without_nulls};
use crate::{
    Checks, Facts, Gold, Place, Public, Task, TestFramework,
    grading::{ExpectedStatuses, Grader, LogParser, SmithProfile, read_r2e_gym_log},
};

/// Tells the rows apart.
#[derive(Deserialize)]
struct Kind {
    image_name: Option<String>,
    docker_image: Option<String>,
}

#[derive(Deserialize)]
struct R2eRow {
    repo_name: String,
    docker_image: String,
    commit_hash: Option<String>,
    #[serde(deserialize_with = "json_text")]
    parsed_commit_content: ParsedCommit,
    problem_statement: String,
    #[serde(deserialize_with = "json_text")]
    expected_output_json: ExpectedStatuses,
    #[serde(default, deserialize_with = "json_text")]
    execution_result_content: Option<Executions>,
}

/// What the tests printed before and after the repair.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Executions {
    new_commit_res_stdout: String,
    old_commit_res_stdout: String,
}

#[derive(Deserialize)]
struct SmithRow {
    instance_id: String,
    repo: String,
    image_name: String,
    base_commit: Option<String>,
    /// It plants the bug.
    patch: String,
    problem_statement: String,
    #[serde(rename = "FAIL_TO_PASS", deserialize_with = "json_text")]
    fail_to_pass: Vec<String>,
    #[serde(rename = "PASS_TO_PASS", deserialize_with = "json_text")]
    pass_to_pass: Vec<String>,
    /// The repository's profile, where it is no usual one.
    test_cmd: Option<String>,
    log_parser: Option<LogParser>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

pub(super) fn read(record: &Record, options: &Options) -> Result<Task, RowError> {
    match record.parse::<Kind>()? {
        Kind {
            image_name: Some(_),
            ..
        } => smith(record, options),
        Kind {
            docker_image: Some(image),
            ..
        } if image.contains("swebench") => verified(record, options, image),
        _ => r2e(record, options),
    }
}

fn r2e(record: &Record, options: &Options) -> Result<Task, RowError> {
    let row: R2eRow = record.parse()?;
    if row.expected_output_json.is_empty() {
        return Err(record.error(
            "expected_output_json",
            "no test is expected to end in any way",
        ));
    }
    let known = ["PASSED", "FAILED", "ERROR"];
    let mut expected = row.expected_output_json.iter();
    if let Some((test, word)) = expected.find(|(_, word)| !known.contains(&word.as_str())) {
        let message = format!("`{test}` is expected to end in `{word}`; there are {known:?}");
        return Err(record.error("expected_output_json", message));
    }
    let executions = row.execution_result_content.unwrap_or_default();
    let checks = checks(&row.expected_output_json, &executions);
    let commit = row.parsed_commit_content;
    let hash = row.commit_hash.or(commit.new_commit_hash.clone());
    let hash = hash.ok_or_else(|| record.error("commit_hash", "missing"))?;
    let instance = format!("{}__{hash}", row.repo_name);
    // Named columns have their places; all others are kept, and so are texts that were taken apart.
    let mut metadata = without_nulls(record.object()?);
    for column in [
        "repo_name",
        "docker_image",
        "problem_statement",
        "expected_output_json",
    ] {
        metadata.remove(column);
    }
    let issue_text = issue_text(&row.problem_statement);
    if issue_text != row.problem_statement {
        metadata.insert(
            "problem_statement".to_owned(),
            row.problem_statement.clone().into(),
        );
    }
    let source = options.source("r2e-gym");
    let id = options.id(source, &instance);
    let mut issue = swe_bench::issue(issue_text.trim(), Some(instance));
    if issue_text != row.problem_statement {
        // The whole is kept above.
        issue.title = plain_title(&issue.title).to_owned();
    }
    Ok(Task {
        id,
        public: Public {
            repo: row.repo_name,
            base_commit: commit.old_commit_hash.clone(),
            issue,
            framework: TestFramework::Pytest,
            max_steps: None,
        },
        place: Place::Image {
            name: row.docker_image,
            work_tree: swe_bench::WORK_TREE.to_owned(),
        },
        checks,
        facts: Facts {
            data_source: source.to_owned(),
            split: options.split.clone(),
            family: None,
            metadata,
        },
        gold: Gold {
            patch: commit.diff(false),
            test_patch: commit.diff(true),
            grader: Some(Grader::R2eGym {
                expected: row.expected_output_json,
            }),
            ..Gold::default()
        },
    })
}

/// What stands between the marks of an issue, or all of a text without them.
fn issue_text(text: &str) -> &str {
    let inner = text.split_once("[ISSUE]").map(|(_, rest)| rest);
    inner
        .and_then(|rest| rest.rsplit_once("[/ISSUE]"))
        .map_or(text, |(inner, _)| inner)
}

/// A title without what marks it as one: `**Title:** Such`, `**Such**`, `# Such`.
fn plain_title(title: &str) -> &str {
    let heading = title.trim_start_matches('#');
    if heading.len() < title.len() && heading.starts_with(' ') {
        return heading.trim();
    }
    let Some((bold, rest)) = title
        .strip_prefix("**")
        .and_then(|inner| inner.split_once("**"))
    else {
        return title;
    };
    match (bold.trim().trim_end_matches(':'), rest.trim()) {
        ("Title", rest) if !rest.is_empty() => rest,
        (bold, "") => bold,
        _ => title,
    }
}

/// Which tests the repair turns: what passes after it and did not before. Ids are those of the logs, where
/// they have them.
fn checks(expected: &ExpectedStatuses, executions: &Executions) -> Checks {
    let ids = ids(&executions.new_commit_res_stdout);
    let before = read_r2e_gym_log(&executions.old_commit_res_stdout);
    let mut checks = Checks::default();
    for (name, _) in expected.iter().filter(|(_, word)| *word == "PASSED") {
        let id = ids.get(name).unwrap_or(name).clone();
        match before.get(name) {
            Some(TestStatus::Passed) => checks.pass_to_pass.push(id),
            _ => checks.fail_to_pass.push(id),
        }
    }
    checks
}

/// Whole ids of the tests in a log's summary, by their name without the file. Names that two files have are
/// left out.
fn ids(log: &str) -> BTreeMap<String, String> {
    let mut ids: BTreeMap<String, Option<String>> = BTreeMap::new();
    let summary = log.split("short test summary info").nth(1).unwrap_or("");
    for line in summary.lines() {
        let Some(id) = line.strip_prefix("PASSED ") else {
            continue;
        };
        let name = id.split("::").skip(1).collect::<Vec<_>>().join(".");
        ids.entry(name)
            .and_modify(|known| *known = None)
            .or_insert_with(|| Some(id.trim().to_owned()));
    }
    ids.into_iter()
        .filter_map(|(name, id)| Some((name, id?)))
        .collect()
}

/// A row of SWE-bench in an image of R2E-Gym's.
fn verified(record: &Record, options: &Options, image: String) -> Result<Task, RowError> {
    let task = swe_bench::read(record, options)?;
    Ok(Task {
        place: Place::Image {
            name: image,
            work_tree: swe_bench::WORK_TREE.to_owned(),
        },
        ..task
    })
}

fn smith(record: &Record, options: &Options) -> Result<Task, RowError> {
    let row: SmithRow = record.parse()?;
    if row.fail_to_pass.is_empty() {
        return Err(record.error("FAIL_TO_PASS", "no test tells the repair"));
    }
    if row.patch.trim().is_empty() {
        return Err(record.error("patch", "no bug is planted"));
    }
    let profile = SmithProfile::of_row(&row.instance_id, &row.patch, row.test_cmd, row.log_parser);
    let grader = match profile {
        Ok(Some(profile)) => Grader::SweSmithLog(profile),
        Ok(None) => Grader::SweSmith,
        Err(unknown) => return Err(record.error("log_parser", unknown.to_string())),
    };
    let source = options.source("swe-smith");
    let mut metadata = without_nulls(row.rest);
    metadata.insert("image_name".to_owned(), row.image_name.clone().into());
    Ok(Task {
        id: options.id(source, &row.instance_id),
        public: Public {
            repo: row.repo,
            base_commit: row.base_commit,
            issue: swe_bench::issue(row.problem_statement.trim(), Some(row.instance_id)),
            framework: TestFramework::Pytest,
            max_steps: None,
        },
        place: Place::PatchedImage {
            name: smith_image(&row.image_name),
            work_tree: swe_bench::WORK_TREE.to_owned(),
            patch: row.patch.clone(),
        },
        checks: Checks {
            fail_to_pass: row.fail_to_pass,
            pass_to_pass: row.pass_to_pass,
        },
        facts: Facts {
            data_source: source.to_owned(),
            split: options.split.clone(),
            family: None,
            metadata,
        },
        gold: Gold {
            patch: reversed(&row.patch),
            grader: Some(grader),
            ..Gold::default()
        },
    })
}

/// Newer rows name all of an image; older ones leave out whose it is.
fn smith_image(name: &str) -> String {
    let name = match name.contains('/') {
        true => name.to_owned(),
        false => format!("jyangballin/{name}"),
    };
    let name = name.replace("__", "_1776_");
    let last = name.rsplit('/').next().unwrap_or_default();
    match last.contains(':') {
        true => name,
        false => format!("{name}:latest"),
    }
}

#[cfg(test)]
mod tests {
    use super::plain_title;

    #[test]
    fn titles_lose_their_marks_and_nothing_else() {
        for (title, plain) in [
            ("**Title:** Bad image", "Bad image"),
            ("**area adds**", "area adds"),
            ("## Area adds", "Area adds"),
            ("**kwargs are lost", "**kwargs are lost"),
            ("**a** and **b**", "**a** and **b**"),
            ("#1 is first", "#1 is first"),
            ("Plain: a title", "Plain: a title"),
        ] {
            assert_eq!(plain_title(title), plain);
        }
    }
}
