//! Tests by pytest node id: which must begin to pass, which must go on passing.
//!
//! The program and its tests share an interpreter, so what pytest says can be forged by a program
//! that sets out to (spec of the sandbox, row 38). What is done about that: test files are written
//! over whatever the program brought and looked at again afterwards, options of the environment are off and plugins where a
//! repository's tests do not ask for them, every expected id must be there, a test that must fail is run along, and a summary
//! that stands there twice is tampering.

mod repository;

use std::collections::BTreeMap;

use code::RelativePath;
use sandbox::{InputFile, Job, Language, Limits, Program};

pub use repository::{Pristine, STEERING, in_session};

use crate::{
    CaseResult, Judge, JudgeError, VerdictStatus,
    execute::{Ran, last_words, limit_status},
    tests::PytestCases,
};

/// How pytest says a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestStatus {
    Passed,
    Failed,
    Skipped,
    Error,
    /// Failed, as it was expected to.
    ExpectedFailure,
}

/// What pytest's summary says, by node id.
pub type TestStatuses = BTreeMap<String, TestStatus>;

/// What became of the tests that count, each list in the order it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graded {
    pub fail_to_pass: Vec<CaseResult>,
    pub pass_to_pass: Vec<CaseResult>,
    /// The summary was forged, or the test that must fail did not.
    pub tampered: bool,
}

impl Graded {
    /// Every test that counts passed, and there was one.
    pub fn resolved(&self) -> bool {
        let mut all = self
            .fail_to_pass
            .iter()
            .chain(&self.pass_to_pass)
            .peekable();
        !self.tampered && all.peek().is_some() && all.all(|case| *case == CaseResult::Passed)
    }
}

/// Behind the interpreter's name. `targets` are files or node ids.
pub fn arguments<'a>(targets: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let options = [
        "-m",
        "pytest",
        "-rA",
        "--color=no",
        "--tb=line",
        "--show-capture=no",
        "-p",
        "no:cacheprovider",
    ];
    options
        .into_iter()
        .chain(targets)
        .map(str::to_owned)
        .collect()
}

/// Keeps pytest from loading plugins that are installed.
const NO_PLUGINS: &str = "PYTEST_DISABLE_PLUGIN_AUTOLOAD";

/// Has tests run in their order where plugins are loaded.
const IN_ORDER: [&str; 4] = ["-p", "no:randomly", "-p", "no:random_order"];

/// Variables under which pytest loads nothing that the tests did not ask for.
pub fn environment() -> [(String, String); 2] {
    [(NO_PLUGINS, "1"), ("PYTEST_ADDOPTS", "")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
}

const HEADER: &str = "short test summary info";

/// Reads the summary that `-rA` makes. `None` without a summary, or with several.
pub fn statuses(output: &str) -> Option<TestStatuses> {
    let lines: Vec<&str> = output.lines().collect();
    let is_header = |line: &&str| line.starts_with('=') && line.contains(HEADER);
    if lines.iter().filter(|line| is_header(line)).count() != 1 {
        return None;
    }
    let start = lines.iter().position(is_header)? + 1;
    let mut found = TestStatuses::new();
    for line in &lines[start..] {
        if line.starts_with('=') {
            break;
        }
        let Some((word, rest)) = line.split_once(' ') else {
            continue;
        };
        let status = match word {
            "PASSED" | "XPASS" => TestStatus::Passed,
            "FAILED" => TestStatus::Failed,
            "SKIPPED" => TestStatus::Skipped,
            "ERROR" => TestStatus::Error,
            "XFAIL" => TestStatus::ExpectedFailure,
            _ => continue,
        };
        // Only for a test that passed as it should no reason is given.
        let id = match word {
            "PASSED" => rest,
            _ => rest.split_once(" - ").map_or(rest, |(id, _)| id),
        };
        let before = found.insert(id.trim().to_owned(), status);
        // A test that passed may still fail to clean up. Any other second line is not pytest's.
        if before.is_some() && status != TestStatus::Error {
            return None;
        }
    }
    Some(found)
}

/// Grades by the rules of SWE-bench (spec of the repair study, section 11.3): a test that passed or
/// failed as expected passes; one that is to begin to pass may be neither missing nor skipped; one that
/// is to go on passing may be skipped.
pub fn grade(statuses: &TestStatuses, fail_to_pass: &[String], pass_to_pass: &[String]) -> Graded {
    // pytest names skipped tests by file and line alone.
    let all_skipped = |id: &str| {
        let file = id.split("::").next().unwrap_or(id);
        statuses
            .iter()
            .any(|(name, status)| *status == TestStatus::Skipped && name.contains(file))
    };
    let result = |id: &String, skipped_passes: bool| match statuses.get(id) {
        Some(TestStatus::Passed | TestStatus::ExpectedFailure) => CaseResult::Passed,
        Some(TestStatus::Skipped) if skipped_passes => CaseResult::Passed,
        Some(TestStatus::Failed | TestStatus::Skipped) => CaseResult::Wrong,
        Some(TestStatus::Error) => CaseResult::Error(format!("{id} could not run")),
        None if skipped_passes && all_skipped(id) => CaseResult::Passed,
        None => CaseResult::Missing,
    };
    Graded {
        fail_to_pass: fail_to_pass.iter().map(|id| result(id, false)).collect(),
        pass_to_pass: pass_to_pass.iter().map(|id| result(id, true)).collect(),
        tampered: false,
    }
}

/// The test that must fail: its file and its id.
struct Canary {
    path: String,
    id: String,
    text: String,
}

impl Canary {
    fn new(seed: &str) -> Self {
        let hash = blake3::hash(seed.as_bytes()).to_hex();
        let path = format!("test_{}.py", &hash[..12]);
        // Known by nothing to those who have not seen the seed as a whole.
        let name = format!("test_{}", &hash[12..20]);
        let id = format!("{path}::{name}");
        let text = format!("def {name}():\n    assert False\n");
        Self { path, id, text }
    }

    /// Grades an output that has to contain the canary's failure. A test is expected to fail only where
    /// its file says so, by `declares_failures`: a program could say it of itself.
    fn grade(
        &self,
        output: &str,
        fail_to_pass: &[String],
        pass_to_pass: &[String],
        declares_failures: impl Fn(&str) -> bool,
    ) -> Graded {
        let mut found = statuses(output);
        for (id, status) in found.iter_mut().flatten() {
            let file = id.split("::").next().unwrap_or(id);
            if *status == TestStatus::ExpectedFailure && !declares_failures(file) {
                *status = TestStatus::Failed;
            }
        }
        let failed = found
            .as_ref()
            .is_some_and(|found| found.get(&self.id) == Some(&TestStatus::Failed));
        let mut graded = grade(&found.unwrap_or_default(), fail_to_pass, pass_to_pass);
        // Without any summary pytest itself did not come to its end.
        graded.tampered = !failed && output.contains(HEADER);
        if !failed {
            for case in graded
                .fail_to_pass
                .iter_mut()
                .chain(&mut graded.pass_to_pass)
            {
                *case = CaseResult::Missing;
            }
        }
        graded
    }
}

pub(crate) async fn run(
    judge: &Judge,
    program: &str,
    cases: &PytestCases,
) -> Result<Ran, JudgeError> {
    let limits = Limits {
        output_keep: 4 << 20,
        ..judge.limits
    };
    let canary = Canary::new(program);
    let mut job = judge
        .toolchains()
        .job(Language::Pytest, Vec::new(), limits)?;
    let targets = cases.files.keys().map(RelativePath::as_str);
    let targets = targets.filter(|path| path.ends_with(".py") && !path.ends_with("conftest.py"));
    if let Program::Exec { argv } = &mut job.program {
        argv.truncate(1);
        argv.extend(arguments(targets.chain([canary.path.as_str()])));
    }
    // Later files replace earlier ones: the program cannot stand in for a test.
    let mut files = BTreeMap::from([(cases.program.as_str(), program)]);
    files.extend(
        cases
            .files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str())),
    );
    files.insert(&canary.path, &canary.text);
    job.files = files
        .into_iter()
        .map(|(path, text)| InputFile {
            path: path.to_owned(),
            contents: text.as_bytes().to_vec(),
            executable: false,
        })
        .collect();
    let mut job = Job {
        env: environment().to_vec(),
        ..job
    };
    let program_file = cases.program.as_str();
    let tests = job.files.iter().filter(|file| file.path != program_file);
    let tests: BTreeMap<String, Vec<u8>> = tests
        .map(|file| (file.path.clone(), file.contents.clone()))
        .collect();
    job.fetch = tests.keys().cloned().collect();
    let outcome = judge.run(job).await?;
    let overwritten = outcome
        .files
        .iter()
        .any(|file| file.contents.as_ref().ok() != tests.get(&file.path));
    let output = outcome.stdout.text();
    let declares_failures = |file: &str| {
        let text =
            |path: &RelativePath| path.as_str() == file || path.as_str().ends_with("conftest.py");
        let mut files = cases.files.iter().filter(|(path, _)| text(path));
        files.any(|(_, text)| text.contains("xfail") || text.contains("expectedFailure"))
    };
    let graded = canary.grade(
        &output,
        &cases.fail_to_pass,
        &cases.pass_to_pass,
        declares_failures,
    );
    let tampered = graded.tampered || overwritten;
    let results: Vec<CaseResult> = graded
        .fail_to_pass
        .into_iter()
        .chain(graded.pass_to_pass)
        .map(|case| {
            if overwritten {
                CaseResult::Missing
            } else {
                case
            }
        })
        .collect();
    let missing = results.contains(&CaseResult::Missing);
    let status = match limit_status(outcome.status) {
        _ if tampered => VerdictStatus::Tampered,
        Some(limit) => limit,
        None if missing => VerdictStatus::Error,
        None => VerdictStatus::Wrong,
    };
    let last_line = output.lines().rev().find(|line| !line.trim().is_empty());
    let message = match last_line {
        _ if overwritten => "the program changed its tests".to_owned(),
        _ if tampered => "the program forged the tests' summary".to_owned(),
        Some(line) => line.trim_matches(['=', ' ']).to_owned(),
        None => last_words(&outcome),
    };
    Ok(Ran {
        cases: results,
        status,
        message: Some(message),
        wall_ms: outcome.wall_ms,
        cpu_ms: outcome.cpu_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
...
=========================== short test summary info ============================
PASSED test_a.py::test_one
PASSED test_a.py::test_two[x - y]
SKIPPED [1] test_b.py:3: not here
XFAIL test_a.py::test_three - known
XPASS test_a.py::test_six - will be known
FAILED test_a.py::test_four - assert 1 == 2
ERROR test_c.py::test_five - ImportError
=================== 1 failed, 2 passed in 0.01s ====================
PASSED test_a.py::test_four
";

    #[test]
    fn summaries_are_read_to_their_end_and_no_further() {
        let found = statuses(OUTPUT).unwrap();
        assert_eq!(found.len(), 7);
        assert_eq!(found["test_a.py::test_six"], TestStatus::Passed);
        assert_eq!(found["test_a.py::test_two[x - y]"], TestStatus::Passed);
        assert_eq!(found["test_a.py::test_four"], TestStatus::Failed);
        assert_eq!(found["test_c.py::test_five"], TestStatus::Error);
        assert_eq!(statuses("no summary"), None);
        assert_eq!(statuses(&OUTPUT.repeat(2)), None, "two summaries");
        let twice = OUTPUT.replace("FAILED test_a.py::test_four", "FAILED test_a.py::test_one");
        assert_eq!(statuses(&twice), None, "a test twice");
    }

    #[test]
    fn missing_and_skipped_tests_count_as_swe_bench_counts_them() {
        let ids = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| format!("test_{name}")).collect()
        };
        let graded = grade(
            &statuses(OUTPUT).unwrap(),
            &ids(&[
                "a.py::test_one",
                "a.py::test_four",
                "a.py::gone",
                "b.py::test_skipped",
            ]),
            &ids(&["a.py::test_three", "b.py::test_skipped", "a.py::gone"]),
        );
        use CaseResult::{Missing, Passed, Wrong};
        assert_eq!(graded.fail_to_pass, [Passed, Wrong, Missing, Missing]);
        assert_eq!(graded.pass_to_pass, [Passed, Passed, Missing]);
        assert!(!graded.resolved());
    }
}
