//! What a candidate's tests cost: a batch of requests in one interpreter against a start of the framework
//! for each, in the same session. Medians of rounds, in seconds.
//!
//! `cargo bench -p repair --bench run_tests -- [CANDIDATES] [ROUNDS]`; `ETUDE_TEST_PYTHON` names an interpreter
//! that has pytest.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and stops at the first surprise"
)]

#[path = "../tests/it/place/mod.rs"]
mod place;

use std::time::Instant;

use judge::pytest::environment;
use place::{LIMITS, Place, path, with};
use repair::{
    TestFramework::{self, Pytest, Unittest},
    workplace::{Ended, TestRequest, Workplace},
};
use session::Command;

const MODULES: usize = 10;
const TESTS: usize = 12;

#[tokio::main]
async fn main() {
    let numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    let numbers: Vec<usize> = numbers.collect();
    let candidates = numbers.first().copied().unwrap_or(50);
    let rounds = numbers.get(1).copied().unwrap_or(3);
    println!(
        "{candidates} candidates, {} tests each, median of {rounds} rounds",
        MODULES * TESTS
    );
    println!(
        "{:>10} {:>12} {:>12} {:>8} {:>14}",
        "", "one batch", "one by one", "ratio", "ms/candidate"
    );
    for framework in [Unittest, Pytest] {
        let files = package();
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (&path[..], &text[..]))
            .collect();
        let Some(place) = Place::new(framework, &files).await else {
            continue;
        };
        let mut workplace = place.open().await;
        let (mut batch, mut single) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            batch.push(batched(&mut workplace, candidates).await);
            single.push(one_by_one(&mut workplace, framework, candidates).await);
        }
        let [batch, single] = [batch, single].map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        });
        println!(
            "{:>10} {batch:>12.2} {single:>12.2} {:>8.1} {:>14.1}",
            format!("{framework:?}").to_lowercase(),
            single / batch,
            1000.0 * batch / candidates as f64
        );
        workplace.close().await.unwrap();
    }
}

fn package() -> Vec<(String, String)> {
    let mut files = vec![
        ("package/__init__.py".to_owned(), String::new()),
        ("tests/__init__.py".to_owned(), String::new()),
    ];
    for module in 0..MODULES {
        let mut source = "import collections\nimport re\n".to_owned();
        let mut tests = format!(
            "import unittest\nfrom package import m{module}\n\n\nclass T(unittest.TestCase):\n"
        );
        for test in 0..TESTS {
            source += &format!(
                "\n\ndef f{test}(x):\n    counts = collections.Counter(re.findall('[a-z]', x * {test}))\n    \
                 return sum(counts.values())\n"
            );
            tests += &format!(
                "    def test_{test}(self):\n        self.assertEqual(m{module}.f{test}('ab1'), {})\n\n",
                2 * test
            );
        }
        files.push((format!("package/m{module}.py"), source));
        files.push((format!("tests/test_m{module}.py"), tests));
    }
    files
}

/// A candidate: one module with one function that is other.
fn candidate(number: usize) -> (String, String) {
    let files = package();
    let module = format!("package/m{}.py", number % MODULES);
    let (_, source) = files.into_iter().find(|(path, _)| *path == module).unwrap();
    (
        module,
        source.replace("sum(", &format!("{number} - {number} + sum(")),
    )
}

async fn batched(workplace: &mut Workplace, candidates: usize) -> f64 {
    let requests: Vec<TestRequest> = (0..candidates)
        .map(|number| {
            let (file, text) = candidate(number);
            with(&file, &text)
        })
        .collect();
    let begun = Instant::now();
    let runs = workplace.run_tests(&requests).await.unwrap();
    let seconds = begun.elapsed().as_secs_f64();
    for run in runs {
        assert_eq!(
            (run.ended, run.statuses.len()),
            (Ended::Finished, MODULES * TESTS)
        );
        assert!(run.failures.is_empty());
    }
    seconds
}

async fn one_by_one(workplace: &mut Workplace, framework: TestFramework, candidates: usize) -> f64 {
    let python = workplace.testbed().python.clone();
    let argv: &[&str] = match framework {
        Pytest => &["-m", "pytest", "-q", "-p", "no:cacheprovider"],
        Unittest => &["-m", "unittest", "discover"],
    };
    let argv = [&python[..]].into_iter().chain(argv.iter().copied());
    let mut command = Command::new(argv, LIMITS);
    command.env = environment().to_vec();
    let command = command.with_env("PYTHONDONTWRITEBYTECODE", "1");
    let begun = Instant::now();
    for number in 0..candidates {
        let (file, text) = candidate(number);
        let before = workplace.read(&path(&file)).await.unwrap().unwrap();
        let session = workplace.session().await.unwrap();
        session
            .write(&path(&file), text.as_bytes(), 0o644)
            .await
            .unwrap();
        let outcome = session.exec(&command).await.unwrap();
        assert!(outcome.is_ok(), "{}", outcome.stdout.text());
        session.write(&path(&file), &before, 0o644).await.unwrap();
    }
    begun.elapsed().as_secs_f64()
}
