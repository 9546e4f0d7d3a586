//! What failed programs are told to have done: with the real sandbox.

#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use judge::{FailedTest, Feedback, Judge, JudgeConfig, Tests, VerdictStatus};
use sandbox::{Config, Sandbox};

async fn feedback(program: &str, tests: &Tests) -> Feedback {
    let mut config = JudgeConfig::small();
    config.limits.cpu = std::time::Duration::from_millis(500);
    let judge = Judge::new(Sandbox::start(Config::new(2)).unwrap(), config);
    judge.feedback(program, tests).await.unwrap()
}

fn sums() -> Tests {
    let case = |input: &str, output: &str| (input.to_owned(), output.to_owned());
    Tests::stdio([case("1 2", "3"), case("2 0", "2"), case("x y", "?")])
}

#[tokio::test]
async fn programs_that_print_show_what_they_printed_and_raised() {
    let program = "a, b = map(int, input().split())\nprint(a - b)";
    let found = feedback(program, &sums()).await;
    assert_eq!(found.verdict.n_passed, 1);
    let [wrong, raised] = found.failures.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(
        *wrong,
        FailedTest {
            status: VerdictStatus::Wrong,
            input: "1 2".to_owned(),
            expected: Some("3".to_owned()),
            printed: Some("-1\n".to_owned()),
            error: None,
        }
    );
    assert_eq!(raised.status, VerdictStatus::Error);
    let error = raised.error.as_deref().unwrap();
    assert!(error.starts_with("Traceback"), "{error}");
    assert!(
        error.contains("a, b = map(int, input().split())"),
        "{error}"
    );
    assert!(error.trim_end().ends_with("'x'"), "{error}");
}

#[tokio::test]
async fn a_slow_program_is_slow_on_each_test_and_a_right_one_has_nothing_to_say() {
    let slow = feedback("while True:\n    pass", &sums()).await;
    assert_eq!(slow.failures.len(), 3);
    assert!(
        slow.failures.iter().all(|one| one.status.is_timeout()),
        "{slow:?}"
    );
    let right = Tests::stdio([("1".to_owned(), "1".to_owned())]);
    let right = feedback("print(input())", &right).await;
    assert!(right.verdict.passed && right.failures.is_empty());
}

#[tokio::test]
async fn calls_and_assertions_are_told_as_they_were_made() {
    let program = "def f(x, y):\n    return x[y]";
    let calls = Tests::function(
        "f",
        [
            (vec![vec![1.into(), 2.into()].into(), 1.into()], 2.into()),
            (vec![vec![1.into()].into(), 0.into()], "one".into()),
            (vec![vec![].into(), 0.into()], 0.into()),
        ],
    );
    let found = feedback(program, &calls).await;
    let told: Vec<_> = found
        .failures
        .iter()
        .map(|one| {
            (
                one.input.as_str(),
                one.expected.as_deref(),
                one.error.is_some(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("f([1], 0)", Some("\"one\""), false),
            ("f([], 0)", Some("0"), true)
        ]
    );
    let asserts = ["assert f([1], 0) == 1", "assert f([1], 0) == 2"];
    for tests in [
        Tests::asserts(asserts),
        Tests::assert_script(asserts.join("\n"), None),
    ] {
        let found = feedback(program, &tests).await;
        assert_eq!(found.failures.len(), 1, "{found:?}");
        assert_eq!(found.failures[0].input, asserts[1]);
    }
}
