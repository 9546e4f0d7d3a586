//! Datasets to problem files: a folder of `tests/cases/data` is a case. `rows.jsonl` are rows as the dataset has
//! them, `problems.jsonl` what they become, `prepared.json` what is counted.

use std::{fs, path::Path};

use critique::data::{CountTokens, HeldOut, Options, Preparation, Source, read_problems};
use dataset::Rows;
use serde::Deserialize;
use serde_json::Value;

use crate::stage::judge;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    source: String,
    split: Option<String>,
    /// Words stand for tokens.
    tokens: Option<(usize, usize)>,
    overlap: Option<usize>,
    dates: Option<(String, String)>,
}

fn cases() -> Vec<std::path::PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/data");
    let mut cases: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    assert!(cases.len() >= 7);
    cases
}

#[test]
fn rows_become_the_problems_beside_them() {
    for folder in cases() {
        let case: Case =
            serde_json::from_slice(&fs::read(folder.join("case.json")).unwrap()).unwrap();
        let source: Source = case.source.parse().unwrap();
        let mut held_out = HeldOut::new(case.overlap);
        if folder.join("held_out.jsonl").exists() {
            held_out.read(&folder.join("held_out.jsonl")).unwrap();
        }
        let count = |text: &str| text.split_whitespace().count();
        let mut preparation = Preparation::new(Options {
            source,
            split: case.split.unwrap_or(source.usual_split().to_owned()),
            data_source: source.name().to_owned(),
            count_tokens: case.tokens.is_some().then_some(&count as &CountTokens<'_>),
            tokens: case.tokens.unwrap_or_default(),
            held_out,
            dates: case.dates,
            solutions: 2,
        });
        let mut problems = String::new();
        for row in Rows::open(&folder.join("rows.jsonl")).unwrap() {
            if let Some(problem) = preparation.take(&row.unwrap()).unwrap() {
                problems += &serde_json::to_string(problem.columns()).unwrap();
                problems += "\n";
            }
        }
        let prepared = preparation.finish();
        let dropped: u64 = prepared.steps.iter().map(|step| step.dropped).sum();
        assert_eq!(prepared.rows_in, prepared.rows_out + dropped, "{folder:?}");
        let prepared = serde_json::to_string_pretty(&prepared).unwrap() + "\n";
        for (name, found) in [("problems.jsonl", problems), ("prepared.json", prepared)] {
            let path = folder.join(name);
            let expected = fs::read_to_string(&path).unwrap_or_default();
            if found != expected {
                let seen = std::env::temp_dir().join(format!(
                    "{}-{name}",
                    folder.file_name().unwrap().to_string_lossy()
                ));
                fs::write(&seen, &found).unwrap();
                assert_eq!(found, expected, "{path:?} is not {seen:?}");
            }
        }
    }
}

/// What a preparation writes is what the other commands read, and programs that come with a problem pass its tests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepared_problems_are_solved_by_their_own_programs() {
    let judge = judge();
    let mut judged = 0;
    for folder in cases() {
        let path = folder.join("problems.jsonl");
        let rows: Vec<Value> = dataset::read_jsonl(&path).unwrap();
        let problems = read_problems(&path, 10).unwrap();
        assert_eq!(problems.len(), rows.len());
        for (problem, row) in problems.iter().zip(&rows) {
            assert_eq!(
                problem.columns()["test_digest"],
                row["test_digest"],
                "{path:?}"
            );
            for (programs, right) in [
                (&problem.solutions, true),
                (&problem.incorrect_solutions, false),
            ] {
                for program in programs {
                    let verdict = problem.verdict(&judge, program).await.unwrap();
                    assert_eq!(verdict.passed, right, "{path:?} {program}: {verdict:?}");
                    judged += 1;
                }
            }
        }
    }
    assert!(judged >= 10, "{judged}");
}

/// LeetCode's and GeeksforGeeks' rows of TACO: the class is in the statement, and its method is what tests call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn methods_of_a_class_are_shown_and_pass_their_tests() {
    let rows = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/methods/rows.jsonl");
    let judge = judge();
    for source in [Source::Taco, Source::Apps] {
        let mut preparation = Preparation::new(Options {
            source,
            split: "train".to_owned(),
            data_source: source.name().to_owned(),
            count_tokens: None,
            tokens: Default::default(),
            held_out: HeldOut::new(None),
            dates: None,
            solutions: 2,
        });
        let mut methods = Vec::new();
        for row in Rows::open(&rows).unwrap() {
            let problem = preparation.take(&row.unwrap()).unwrap().unwrap();
            let method = problem.columns()["fn_name"].as_str().unwrap().to_owned();
            let shown = format!("class Solution:\n    def {method}(self, ");
            assert!(problem.statement.contains(&shown), "{}", problem.statement);
            assert_eq!(problem.solutions.len(), 1);
            for program in &problem.solutions {
                let verdict = problem.verdict(&judge, program).await.unwrap();
                assert!(verdict.passed, "{program}: {verdict:?}");
                let wrong = program.replace("return ", "return 1 or ");
                let verdict = problem.verdict(&judge, &wrong).await.unwrap();
                assert!(!verdict.passed, "{wrong}: {verdict:?}");
            }
            methods.push(method);
        }
        assert_eq!(methods, ["dbl", "runningSum"]);
        let counts = preparation.finish().counts.0;
        assert_eq!(counts["statements with the starter code added"], 2);
        assert_eq!(counts["statements with an example added"], 1);
    }
}
