//! The verdict on one instance, in the form of its `report.json` (spec of the repair study, section 11.3).

use judge::pytest::TestStatus;
use serde::{Deserialize, Serialize};

use super::{
    infrastructure::{Tier, infrastructure_sign},
    log_parser::LogParser,
    r2e_gym::{ExpectedStatuses, bare_name, read_r2e_gym_log},
    statuses::{Statuses, status_of},
    test_log::read_log,
};

/// What a test that the log does not name counts as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvalType {
    /// Failed.
    #[default]
    PassAndFail,
    /// Passed: the repository's runner names failed tests alone.
    FailOnly,
}

/// Repositories whose rows have no `eval_type` and whose runners name failed tests alone.
const FAIL_ONLY: [&str; 6] = [
    "chartjs/Chart.js",
    "processing/p5.js",
    "markedjs/marked",
    "bpmn-io/bpmn-js",
    "openlayers/openlayers",
    "eslint/eslint",
];

impl EvalType {
    pub fn of_repo(repo: &str) -> Self {
        match FAIL_ONLY.contains(&repo) {
            true => Self::FailOnly,
            false => Self::PassAndFail,
        }
    }
}

/// What an instance is graded by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    pub instance_id: String,
    pub log_parser: LogParser,
    pub eval_type: EvalType,
    pub fail_to_pass: Vec<String>,
    pub pass_to_pass: Vec<String>,
}

/// Tests that did what was asked of them, and those that did not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    pub success: Vec<String>,
    pub failure: Vec<String>,
}

/// Every test that counts. The lists of tests that fail before and after are there for readers of the
/// format; nothing fills them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestsStatus {
    #[serde(rename = "FAIL_TO_PASS")]
    pub fail_to_pass: Split,
    #[serde(rename = "PASS_TO_PASS")]
    pub pass_to_pass: Split,
    #[serde(rename = "FAIL_TO_FAIL", default)]
    pub fail_to_fail: Split,
    #[serde(rename = "PASS_TO_FAIL", default)]
    pub pass_to_fail: Split,
}

/// How far an instance is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resolution {
    #[serde(rename = "RESOLVED_NO")]
    No,
    /// Some tests that failed pass, and none that passed fails.
    #[serde(rename = "RESOLVED_PARTIAL")]
    Partial,
    #[serde(rename = "RESOLVED_FULL")]
    Full,
}

/// The verdict on one instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceReport {
    #[serde(rename = "patch_is_None")]
    pub patch_is_none: bool,
    pub patch_exists: bool,
    /// The log is one of a run of the tests.
    pub patch_successfully_applied: bool,
    pub resolved: bool,
    /// How far, where tests decide; not of SWE-bench's own reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Resolution>,
    /// The log has a sign that only a broken environment leaves.
    #[serde(default)]
    pub infra_failure: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infra_failure_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests_status: Option<TestsStatus>,
}

impl Split {
    /// The share that did what was asked; 1 of none.
    pub fn rate(&self) -> f64 {
        match self.success.len() + self.failure.len() {
            0 => 1.0,
            all => self.success.len() as f64 / all as f64,
        }
    }

    /// Those of `tests` that `succeeds` holds for, and the others.
    pub(crate) fn of(tests: &[String], succeeds: impl Fn(&String) -> bool) -> Self {
        let (success, failure) = tests.iter().cloned().partition(succeeds);
        Self { success, failure }
    }
}

impl TestsStatus {
    /// What became of the tests that count.
    pub fn of(expected: &Expected, statuses: &Statuses) -> Self {
        let passes =
            |test: &String| matches!(resolve(test, statuses), Some(status) if passed(status));
        let keeps = |test: &String| match resolve(test, statuses) {
            Some(status) => passed(status) || status == TestStatus::Skipped,
            None => false,
        };
        let not_failed = |test: &String| statuses.get(test) != Some(TestStatus::Failed);
        let (fail_to_pass, pass_to_pass) = match expected.eval_type {
            EvalType::PassAndFail => (
                Split::of(&expected.fail_to_pass, passes),
                Split::of(&expected.pass_to_pass, keeps),
            ),
            EvalType::FailOnly => (
                Split::of(&expected.fail_to_pass, not_failed),
                Split::of(&expected.pass_to_pass, not_failed),
            ),
        };
        Self {
            fail_to_pass,
            pass_to_pass,
            ..Self::default()
        }
    }

    /// Tests of R2E-Gym that ended as expected, by the names that it has for them, and those that did not.
    pub fn of_r2e_gym(expected: &ExpectedStatuses, log: &str) -> Self {
        let found = read_r2e_gym_log(log);
        let names: Vec<String> = expected.keys().cloned().collect();
        let as_expected = |name: &String| {
            let status = found.get(&bare_name(name)).copied();
            status.is_some() && status == expected.get(name).and_then(|word| status_of(word))
        };
        Self {
            fail_to_pass: Split::of(&names, as_expected),
            ..Self::default()
        }
    }

    pub fn resolution(&self) -> Resolution {
        let all_kept = self.pass_to_pass.failure.is_empty();
        match (
            &self.fail_to_pass.success[..],
            &self.fail_to_pass.failure[..],
        ) {
            (_, []) if all_kept => Resolution::Full,
            ([_, ..], _) if all_kept => Resolution::Partial,
            _ => Resolution::No,
        }
    }
}

fn passed(status: TestStatus) -> bool {
    matches!(status, TestStatus::Passed | TestStatus::ExpectedFailure)
}

/// The status of an expected test. Some expected ids of SWE-bench Verified end in the middle of their
/// parameters: such an id stands for the tests that begin with it, where they agree on passing.
fn resolve(test: &str, statuses: &Statuses) -> Option<TestStatus> {
    let count = |bracket: char| test.matches(bracket).count();
    if statuses.contains(test) || count('[') <= count(']') {
        return statuses.get(test);
    }
    let mut longer = statuses.iter().filter(|(name, _)| name.starts_with(test));
    let (_, first) = longer.next()?;
    let passes = |status: Option<TestStatus>| status.is_some_and(passed);
    let agree = longer.all(|(_, status)| passes(status) == passes(first));
    first.filter(|_| agree)
}

impl InstanceReport {
    /// Grades the log of an evaluation with a patch.
    pub fn of_log(expected: &Expected, log: &str) -> Self {
        let report = Self {
            patch_exists: true,
            ..Self::default()
        };
        match read_log(expected.log_parser, &expected.instance_id, log) {
            Ok(statuses) => report.with(TestsStatus::of(expected, &statuses)),
            Err(_) => match infrastructure_sign(log) {
                Some(sign) => Self {
                    infra_failure: sign.tier == Tier::Environment,
                    infra_failure_reason: Some(sign.reason.to_owned()),
                    ..report
                },
                None => report,
            },
        }
    }

    /// The verdict on what tests are known to have done.
    pub fn of_tests(tests: TestsStatus) -> Self {
        let report = Self {
            patch_exists: true,
            ..Self::default()
        };
        report.with(tests)
    }

    /// Nobody proposed a patch.
    pub fn without_patch() -> Self {
        Self {
            patch_is_none: true,
            ..Self::default()
        }
    }

    fn with(self, tests: TestsStatus) -> Self {
        let resolution = tests.resolution();
        Self {
            patch_successfully_applied: true,
            resolved: resolution == Resolution::Full,
            resolution: Some(resolution),
            tests_status: Some(tests),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use TestStatus::{Error, ExpectedFailure, Failed, Passed, Skipped};

    fn graded(
        eval_type: EvalType,
        fail_to_pass: &[&str],
        pass_to_pass: &[&str],
        statuses: &[(&str, TestStatus)],
    ) -> TestsStatus {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let expected = Expected {
            instance_id: "a__b-1".to_owned(),
            log_parser: LogParser::Pytest,
            eval_type,
            fail_to_pass: owned(fail_to_pass),
            pass_to_pass: owned(pass_to_pass),
        };
        TestsStatus::of(&expected, &statuses.iter().copied().collect())
    }

    #[test]
    fn what_passes_and_what_is_kept() {
        let statuses = [
            ("passed", Passed),
            ("failed", Failed),
            ("skipped", Skipped),
            ("error", Error),
            ("xfail", ExpectedFailure),
        ];
        let names = ["passed", "failed", "skipped", "error", "xfail", "missing"];
        let tests = graded(EvalType::PassAndFail, &names, &names, &statuses);
        assert_eq!(tests.fail_to_pass.success, ["passed", "xfail"]);
        assert_eq!(tests.pass_to_pass.success, ["passed", "skipped", "xfail"]);
        assert_eq!(tests.pass_to_pass.failure, ["failed", "error", "missing"]);
        let tests = graded(EvalType::FailOnly, &names, &names, &statuses);
        assert_eq!(tests.fail_to_pass.failure, ["failed"]);
        assert_eq!(tests.pass_to_pass.failure, ["failed"]);
    }

    #[test]
    fn resolution_is_full_partial_or_none() {
        let statuses = [("a", Passed), ("b", Failed), ("c", Passed)];
        let resolution = |fail_to_pass: &[&str], pass_to_pass: &[&str]| {
            graded(EvalType::PassAndFail, fail_to_pass, pass_to_pass, &statuses).resolution()
        };
        assert_eq!(resolution(&["a"], &["c"]), Resolution::Full);
        assert_eq!(resolution(&["a", "b"], &["c"]), Resolution::Partial);
        assert_eq!(resolution(&["a"], &["b", "c"]), Resolution::No);
        assert_eq!(resolution(&["b"], &["c"]), Resolution::No);
        assert_eq!(resolution(&[], &["c"]), Resolution::Full);
        assert_eq!(resolution(&[], &[]), Resolution::Full);
    }

    #[test]
    fn truncated_ids_stand_for_tests_that_agree() {
        let statuses = [
            ("t[log(a)]", Passed),
            ("t[log(b)]", ExpectedFailure),
            ("u[log(a)]", Passed),
            ("u[log(b)]", Failed),
            ("v[x]", Passed),
        ];
        let ids = ["t[log(", "u[log(", "v", "v[x", "w["];
        let tests = graded(EvalType::PassAndFail, &ids, &[], &statuses);
        assert_eq!(tests.fail_to_pass.success, ["t[log(", "v[x"]);
        assert_eq!(tests.fail_to_pass.failure, ["u[log(", "v", "w["]);
    }
}
