//! What is written here, pyarrow reads.

use std::process::Command;

use dataset::write_parquet;
use serde_json::{Value, json};

const READ: &str = "
import json, sys
import pyarrow.parquet as pq
table = pq.read_table(sys.argv[1])
print(json.dumps({'types': [str(field.type) for field in table.schema], 'rows': table.to_pylist()}))
";

/// An interpreter that has pyarrow: the one that verl's tests use, or the system's.
#[expect(clippy::disallowed_methods, reason = "pyarrow is a Python library")]
fn pyarrow() -> Option<String> {
    let named = std::env::var("ETUDE_TEST_CLIENTS").ok();
    named
        .into_iter()
        .chain(["python3".to_owned()])
        .find(|python| {
            Command::new(python)
                .args(["-c", "import pyarrow.parquet"])
                .output()
                .is_ok_and(|output| output.status.success())
        })
}

#[test]
#[expect(clippy::disallowed_methods, reason = "pyarrow is a Python library")]
fn pyarrow_reads_nested_columns() {
    let Some(python) = pyarrow() else {
        eprintln!("skipped: neither ETUDE_TEST_CLIENTS nor python3 is a Python with pyarrow");
        return;
    };
    let rows: Vec<Value> = (0..2500)
        .map(|index| {
            json!({
                "prompt": (0..index % 3)
                    .map(|turn| json!({"role": "user", "content": format!("ü{turn}")}))
                    .collect::<Vec<_>>(),
                "reward_model": {"style": "rule", "ground_truth": if index % 5 == 0 { json!(null) } else { json!(["a"]) }},
                "lists": [[index, null], [], null],
                "score": f64::from(index) / 4.0,
                "seen": index % 2 == 0,
                "extra_info": null,
            })
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    let objects: Vec<_> = rows
        .iter()
        .map(|row| row.as_object().unwrap().clone())
        .collect();
    write_parquet(&path, &objects, &[]).unwrap();
    let output = Command::new(python)
        .args(["-c", READ])
        .arg(&path)
        .output()
        .unwrap();
    let told: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(
        told["types"],
        json!([
            "list<element: struct<role: string, content: string>>",
            "struct<style: string, ground_truth: list<element: string>>",
            "list<element: list<element: int64>>",
            "double",
            "bool",
            "string"
        ])
    );
    assert_eq!(told["rows"], json!(rows));
}
