//! Parquet files of other writers, and our own read back.

use std::{fs, path::Path};

use dataset::{DatasetError, Place, Rows, write_parquet};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn objects(path: &Path) -> Vec<Map<String, Value>> {
    Rows::open(path)
        .unwrap()
        .map(|row| row.unwrap().object().unwrap())
        .collect()
}

/// Every folder of the cases: what pyarrow wrote, and the rows that it says it wrote.
#[test]
fn files_of_pyarrow_hold_the_rows_that_it_says() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut seen = 0;
    for case in fs::read_dir(cases).unwrap() {
        let case = case.unwrap().path();
        if !case.join("rows.parquet").exists() {
            continue;
        }
        let expected = objects(&case.join("rows.jsonl"));
        let found = objects(&case.join("rows.parquet"));
        assert_eq!(found.len(), expected.len(), "{}", case.display());
        for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
            for (name, value) in expected {
                assert_eq!(
                    found.get(name),
                    Some(value),
                    "{}, row {}, {name}",
                    case.display(),
                    index + 1
                );
            }
            assert_eq!(found.len(), expected.len());
        }
        seen += 1;
    }
    assert_eq!(seen, 5);
}

fn write(rows: &[Value], json_columns: &[&str]) -> (tempfile::TempDir, Result<(), String>) {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<_> = rows
        .iter()
        .map(|row| row.as_object().unwrap().clone())
        .collect();
    let file = folder.path().join("rows.parquet");
    let written = write_parquet(&file, &rows, json_columns).map_err(|error| {
        error
            .to_string()
            .replace(&folder.path().display().to_string(), "FOLDER")
    });
    (folder, written)
}

#[test]
fn nested_rows_come_back_with_null_for_what_they_lacked() {
    let rows = [
        json!({"prompt": [{"role": "user", "content": "é"}], "extra_info": {"index": 0, "roles": []}}),
        json!({"prompt": [], "extra_info": {"index": 1, "weight": 0.5, "roles": [["a", null], null]}}),
        json!({"prompt": null, "extra_info": {"index": 2, "weight": 3}, "metadata": {}}),
    ];
    let (folder, written) = write(&rows, &["metadata"]);
    written.unwrap();
    let found = objects(&folder.path().join("rows.parquet"));
    let expected = [
        json!({"prompt": [{"role": "user", "content": "é"}], "extra_info": {"index": 0, "roles": [], "weight": null}, "metadata": null}),
        json!({"prompt": [], "extra_info": {"index": 1, "roles": [["a", null], null], "weight": 0.5}, "metadata": null}),
        json!({"prompt": null, "extra_info": {"index": 2, "roles": null, "weight": 3.0}, "metadata": "{}"}),
    ];
    assert_eq!(
        found.into_iter().map(Value::Object).collect::<Vec<_>>(),
        expected
    );
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing else is left behind");
}

#[test]
fn rows_without_common_columns_are_refused_by_row_and_column() {
    for (rows, expected) in [
        (
            vec![json!({"a": {"b": [1]}}), json!({"a": {"b": ["x"]}})],
            "cannot write FOLDER/rows.parquet, row 2, column `a.b[]`: a text where earlier rows have numbers; \
             name the column among those that are stored as JSON text",
        ),
        (
            vec![json!({"a": {}})],
            "cannot write FOLDER/rows.parquet, row 1, column `a`: objects without a field have no columns; \
             name the column among those that are stored as JSON text",
        ),
        (
            vec![json!({"a": u64::MAX})],
            "cannot write FOLDER/rows.parquet, row 1, column `a`: 18446744073709551615 does not fit into 64 bits \
             with a sign",
        ),
        (vec![], "FOLDER/rows.parquet: no rows to write"),
    ] {
        let (folder, written) = write(&rows, &[]);
        assert_eq!(written.unwrap_err(), expected);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

/// Damage anywhere is an error or other values, never a panic and never an endless read.
#[test]
fn damaged_files_are_errors() {
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.parquet");
    let mut errors = 0;
    for name in ["001_messages", "002_types"] {
        let whole = fs::read(case.join(name).join("rows.parquet")).unwrap();
        for step in 0..400 {
            let mut bytes = whole.clone();
            let at = step * whole.len() / 400;
            if step % 4 == 0 {
                bytes.truncate(at);
            } else {
                bytes[at] ^= 1 << (step % 8);
            }
            fs::write(&file, &bytes).unwrap();
            let rows = match Rows::open(&file) {
                Ok(rows) => rows,
                Err(_) => {
                    errors += 1;
                    continue;
                }
            };
            let mut count = 0;
            for row in rows {
                count += 1;
                match row {
                    Ok(_) => assert!(count <= 1000),
                    Err(DatasetError::Broken { place, .. }) => {
                        assert!(matches!(place, Place::Row(_)));
                        errors += 1;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
    assert!(errors > 200, "{errors}");
}

/// Values of one shape, nested up to a depth.
fn values(depth: u32) -> BoxedStrategy<Value> {
    let text = prop_oneof![Just(Value::Null), "[a-zé\\n]{0,6}".prop_map(Value::from)];
    if depth == 0 {
        return text.boxed();
    }
    let list = prop_oneof![
        1 => Just(Value::Null),
        4 => prop::collection::vec(values(depth - 1), 0..4).prop_map(Value::from),
    ];
    let fields = prop_oneof![
        1 => Just(Value::Null),
        4 => (values(depth - 1), any::<Option<i64>>(), any::<Option<bool>>(), prop::option::of(-1e9..1e9))
            .prop_map(|(inner, int, bool, float)| {
                json!({"inner": inner, "int": int, "bool": bool, "float": float})
            }),
    ];
    if depth.is_multiple_of(2) {
        list.boxed()
    } else {
        fields.boxed()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn rows_come_back_as_they_were(rows in prop::collection::vec(
        (values(4), values(3), any::<i64>()).prop_map(|(a, b, c)| json!({"a": a, "b": b, "c": c})), 1..150)
    ) {
        let (folder, written) = write(&rows, &[]);
        if let Err(error) = &written {
            prop_assert!(error.contains("without a field"), "{error}");
            return Ok(());
        }
        let found: Vec<Value> = objects(&folder.path().join("rows.parquet"))
            .into_iter()
            .map(Value::Object)
            .collect();
        prop_assert_eq!(found, rows);
    }
}
