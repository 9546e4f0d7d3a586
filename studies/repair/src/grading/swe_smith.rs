//! How rows of SWE-smith are graded: most by their tests' ids, and those whose tests are no ids of pytest by the log of
//! the command that their repository's profile has (spec of the repair study, section 11.4).

use std::collections::BTreeSet;

use code::Patch;
use serde::{Deserialize, Serialize};

use super::{
    log_parser::LogParser,
    report::{EvalType, Expected},
    test_log::{END_OF_TESTS, START_OF_TESTS, TEST_EXIT_CODE},
};
use crate::Checks;

/// What runs a repository's tests, and who reads what it prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmithProfile {
    pub test_cmd: String,
    pub log_parser: LogParser,
}

/// Rows that say nothing of how their tests are run, in a language that has no usual way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "nothing tells how tests of {what} are run and read: add the columns `test_cmd` and `log_parser` of the \
     repository's profile; there are {}",
    LogParser::names()
)]
pub struct UnknownProfile {
    what: String,
}

/// Profiles of Python's repositories whose tests are not run by the environment's pytest.
const PROFILES: [(&str, &str, LogParser); 3] = [
    (
        "tornadoweb__tornado",
        "python -m tornado.test --verbose",
        LogParser::Unittest,
    ),
    (
        "un33k__python-slugify",
        "python test.py --verbose",
        LogParser::Unittest,
    ),
    (
        "pydantic__pydantic",
        "/root/.local/bin/uv run pytest --disable-warnings --color=no --tb=no --verbose",
        LogParser::PytestVerbose,
    ),
];

impl SmithProfile {
    /// What a row is graded by; `None` where its tests are run by their ids. The row's own columns come first,
    /// then what is known of its repository, then the language of the files that its bug is in.
    ///
    /// # Errors
    /// Nothing of all that tells it.
    pub fn of_row(
        instance_id: &str,
        bug: &str,
        test_cmd: Option<String>,
        log_parser: Option<LogParser>,
    ) -> Result<Option<Self>, UnknownProfile> {
        let repository = repository(instance_id);
        let known = PROFILES.iter().find(|(name, ..)| *name == repository);
        let usual = match known {
            Some((_, test_cmd, log_parser)) => Some((*test_cmd, *log_parser)),
            None => match language(bug) {
                Some("py") => None,
                Some("go") => Some(("go test -v -count=1 ./...", LogParser::Gotest)),
                Some("rs") => Some(("cargo test --verbose", LogParser::CargoVerbose)),
                other if test_cmd.is_none() || log_parser.is_none() => {
                    let what = match other {
                        Some(ending) => format!("sources in `.{ending}`"),
                        None => "a bug in no source".to_owned(),
                    };
                    return Err(UnknownProfile { what });
                }
                _ => None,
            },
        };
        let usual = match (&test_cmd, log_parser) {
            (None, None) => usual,
            // Of Python, one of them tells the other.
            _ => usual.or(Some((PYTEST, LogParser::PytestVerbose))),
        };
        Ok(usual.map(|(usual_cmd, usual_parser)| Self {
            test_cmd: test_cmd.unwrap_or_else(|| usual_cmd.to_owned()),
            log_parser: log_parser.unwrap_or(usual_parser),
        }))
    }

    /// The script that runs the tests, with the marks that their log is read by.
    pub fn script(&self, checks: &Checks) -> String {
        let mut command = self.test_cmd.clone();
        if self.runs_pytest() {
            for file in files(&checks.fail_to_pass) {
                command += &format!(" '{}'", file.replace('\'', "'\\''"));
            }
        }
        format!(
            "#!/bin/bash\n\
             set -xo pipefail\n\
             if [ -f /opt/miniconda3/bin/activate ]; then\n    \
             source /opt/miniconda3/bin/activate\n    \
             conda activate testbed\n\
             fi\n\
             : '{START_OF_TESTS}'\n\
             {command}\n\
             code=$?\n\
             : '{END_OF_TESTS}'\n\
             echo \"{TEST_EXIT_CODE}: $code\"\n"
        )
    }

    fn runs_pytest(&self) -> bool {
        self.test_cmd.contains("pytest")
    }

    /// What a log of the profile's command is graded by.
    pub fn expected(&self, instance_id: &str, checks: &Checks) -> Expected {
        Expected {
            instance_id: instance_id.to_owned(),
            log_parser: self.log_parser,
            eval_type: EvalType::PassAndFail,
            fail_to_pass: checks.fail_to_pass.clone(),
            pass_to_pass: match self.runs_pytest() {
                true => in_files(&checks.pass_to_pass, &files(&checks.fail_to_pass)),
                false => checks.pass_to_pass.clone(),
            },
        }
    }
}

/// SWE-smith's command for Python's repositories.
const PYTEST: &str = "pytest --disable-warnings --color=no --tb=no --verbose";

/// What a log of SWE-smith's own harness is graded by, for rows whose tests are run by their ids here.
pub fn smith_expected(instance_id: &str, checks: &Checks) -> Expected {
    let log_parser = match repository(instance_id) {
        "HIPS__autograd" => LogParser::PytestWorkers,
        "paramiko__paramiko" | "python__mypy" => LogParser::Pytest,
        _ => LogParser::PytestVerbose,
    };
    let profile = SmithProfile {
        test_cmd: PYTEST.to_owned(),
        log_parser,
    };
    profile.expected(instance_id, checks)
}

/// `OWNER__NAME` of `OWNER__NAME.COMMIT.BUG`.
fn repository(instance_id: &str) -> &str {
    instance_id.split('.').next().unwrap_or_default()
}

/// The files that the command is given: those of the tests that were to begin to pass.
fn files(tests: &[String]) -> BTreeSet<&str> {
    tests
        .iter()
        .filter_map(|test| test.split("::").next())
        .collect()
}

/// Tests of other files are not run by it, and so do not count.
fn in_files(tests: &[String], files: &BTreeSet<&str>) -> Vec<String> {
    let is_run = |test: &&String| {
        let file = test.split("::").next().unwrap_or_default();
        files.contains(file)
    };
    tests.iter().filter(is_run).cloned().collect()
}

/// The ending of the first file that a patch changes.
fn language(patch: &str) -> Option<&'static str> {
    const ENDINGS: [&str; 17] = [
        "py", "pyx", "go", "rs", "js", "jsx", "mjs", "cjs", "ts", "tsx", "java", "c", "cpp", "cc",
        "rb", "php", "cs",
    ];
    let patch = Patch::parse(patch.as_bytes()).ok()?;
    let paths = patch.paths();
    let ending = |path: code::RelativePath| {
        let ending = path.as_str().rsplit_once('.')?.1;
        ENDINGS.into_iter().find(|known| *known == ending)
    };
    paths
        .into_iter()
        .find_map(ending)
        .map(|ending| match ending {
            "pyx" => "py",
            other => other,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bug(path: &str) -> String {
        format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n")
    }

    fn checks() -> Checks {
        let owned = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        Checks {
            fail_to_pass: owned(&["tests/b.py::t", "tests/a b.py::T::u[x::y]", "tests/b.py::v"]),
            pass_to_pass: owned(&["tests/b.py::w", "tests/b.pyx::w", "tests/c.py::w"]),
        }
    }

    #[test]
    fn a_row_its_repository_or_its_language_say_how_it_is_graded() {
        let of = |id: &str, path: &str, command: Option<&str>, parser: Option<LogParser>| {
            let command = command.map(str::to_owned);
            SmithProfile::of_row(id, &bug(path), command, parser)
        };
        assert_eq!(of("a__b.1.c", "a/b.py", None, None), Ok(None));
        let found = of("tornadoweb__tornado.d5ac.x", "tornado/web.py", None, None);
        let found = found.unwrap().unwrap();
        assert_eq!(found.test_cmd, "python -m tornado.test --verbose");
        assert_eq!(found.log_parser, LogParser::Unittest);
        let go = of("a__b.1.c", "a.go", None, None).unwrap().unwrap();
        assert_eq!(go.log_parser, LogParser::Gotest);
        let own = of("a__b.1.c", "a.rs", Some("make test"), None);
        let own = own.unwrap().unwrap();
        assert_eq!(
            (own.test_cmd.as_str(), own.log_parser),
            ("make test", LogParser::CargoVerbose)
        );
        let jest = of("a__b.1.c", "a.ts", Some("npm test"), Some(LogParser::Jest));
        assert_eq!(jest.unwrap().unwrap().log_parser, LogParser::Jest);
        let python = of("a__b.1.c", "a.py", Some("pytest -v"), None);
        assert_eq!(
            python.unwrap().unwrap().log_parser,
            LogParser::PytestVerbose
        );
        let unknown = of("a__b.1.c", "a.java", None, Some(LogParser::Maven)).unwrap_err();
        assert!(unknown.to_string().contains("`.java`"), "{unknown}");
    }

    #[test]
    fn pytest_is_given_the_files_of_the_tests_that_must_begin_to_pass() {
        let mut profile = SmithProfile {
            test_cmd: "pytest -v".to_owned(),
            log_parser: LogParser::PytestVerbose,
        };
        let script = profile.script(&checks());
        assert!(
            script.contains("\npytest -v 'tests/a b.py' 'tests/b.py'\n"),
            "{script}"
        );
        let expected = profile.expected("a__b.1.c", &checks());
        assert_eq!(expected.pass_to_pass, ["tests/b.py::w"]);
        profile.test_cmd = "go test".to_owned();
        assert!(profile.script(&checks()).contains("\ngo test\n"));
        let expected = profile.expected("a__b.1.c", &checks());
        assert_eq!(expected.pass_to_pass.len(), 3);
    }
}
