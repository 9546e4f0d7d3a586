//! Every log parser on a log that was written for it: which tests it finds, and how they ended.
//!
//! A folder of `tests/cases/logs` is a test: `log.txt`, and in `expected.json` the parser, the instance and
//! the statuses in the order in which the log first names the tests.

use std::{collections::BTreeSet, fs, path::Path};

use repair::grading::{LogParser, STATUS_WORDS};
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    log_parser: LogParser,
    instance_id: String,
    /// `null`: named, with a word that is no status.
    statuses: Map<String, Value>,
}

#[test]
fn logs_of_every_runner_are_read() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/logs");
    let mut parsers = BTreeSet::new();
    for folder in fs::read_dir(cases).unwrap() {
        let folder = folder.unwrap().path();
        let case = fs::read(folder.join("expected.json")).unwrap();
        let case: Case = serde_json::from_slice(&case).unwrap();
        let log = fs::read_to_string(folder.join("log.txt")).unwrap();
        let found: Map<String, Value> = case
            .log_parser
            .read(&log, &case.instance_id)
            .iter()
            .map(|(test, status)| {
                let mut words = STATUS_WORDS.iter();
                let word = words.find(|(_, known)| Some(*known) == status);
                let word = word.map_or(Value::Null, |(word, _)| (*word).into());
                (test.to_owned(), word)
            })
            .collect();
        assert_eq!(
            serde_json::to_string_pretty(&found).unwrap(),
            serde_json::to_string_pretty(&case.statuses).unwrap(),
            "{}",
            folder.display()
        );
        parsers.insert(case.log_parser.name());
    }
    let all: BTreeSet<&str> = LogParser::ALL.iter().map(|parser| parser.name()).collect();
    assert_eq!(parsers, all, "every parser has a case");
}
