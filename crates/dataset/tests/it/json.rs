//! JSON Lines and JSON lists: rows, errors by place and field, packed files.

use std::{fs, io::Write, path::Path};

use dataset::{DatasetError, Format, JsonlWriter, Rows, json_text};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, PartialEq, Deserialize)]
struct Row {
    id: u32,
    tests: Vec<Case>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Case {
    input: String,
}

struct File {
    folder: tempfile::TempDir,
    name: &'static str,
}

impl File {
    fn new(name: &'static str, content: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), content).unwrap();
        Self { folder, name }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join(self.name)
    }

    fn shown(&self, error: &DatasetError) -> String {
        error
            .to_string()
            .replace(&self.path().display().to_string(), self.name)
    }

    fn read(&self) -> Result<Vec<Row>, String> {
        Rows::open(&self.path())
            .and_then(Rows::read)
            .map_err(|error| self.shown(&error))
    }

    fn values(&self, key: Option<&str>) -> Result<Vec<Value>, String> {
        let rows = match key {
            Some(key) => Rows::open_list(&self.path(), key),
            None => Rows::open(&self.path()),
        };
        rows.and_then(Rows::read)
            .map_err(|error| self.shown(&error))
    }
}

#[test]
fn lines_in_order_blank_ones_skipped_last_newline_optional() {
    let file = File::new(
        "rows.jsonl",
        b"\xef\xbb\xbf{\"id\":1,\"tests\":[]}\r\n\n{\"id\":2,\"tests\":[{\"input\":\"x\"}]}",
    );
    let rows = file.read().unwrap();
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn errors_name_file_line_and_field() {
    for (bad, expected) in [
        (
            "{\"id\":1}",
            "rows.jsonl, line 2, the row: missing field `tests`",
        ),
        (
            "{\"id\":\"x\",\"tests\":[]}",
            "rows.jsonl, line 2, field `id`",
        ),
        (
            "{\"id\":1,\"tests\":[{\"input\":3}]}",
            "rows.jsonl, line 2, field `tests[0].input`",
        ),
        ("{\"id\":1,\"tests\":[", "rows.jsonl, line 2, field `tests`"),
        (
            "{\"id\":1,\"tests\":[]} {}",
            "rows.jsonl, line 2, the row: something stands behind the JSON value",
        ),
        ("\u{fffd}", "rows.jsonl, line 2, the row"),
    ] {
        let file = File::new(
            "rows.jsonl",
            format!("{{\"id\":1,\"tests\":[]}}\n{bad}\n").as_bytes(),
        );
        let error = file.read().unwrap_err();
        assert!(error.starts_with(expected), "{bad}: {error}");
    }
    let empty = File::new("rows.jsonl", b"\n").read().unwrap_err();
    assert!(empty.contains("no rows"), "{empty}");
    let bad_text = File::new("rows.jsonl", b"{\"id\":1,\"tests\":[{\"input\":\"\xff\"}]}");
    assert!(bad_text.read().unwrap_err().contains("line 1"));
}

#[test]
fn all_bad_rows_are_reported_up_to_a_limit_and_counted_beyond() {
    let rows = r#"[{"id":1,"tests":[]},{"id":-1},{"tests":[]},{"id":2,"tests":[{}]},[]]"#;
    let file = File::new("rows.json", rows.as_bytes());
    let error = Rows::open(&file.path())
        .unwrap()
        .read_reporting::<Row>(3)
        .unwrap_err();
    let lines = file.shown(&error);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[0].starts_with("rows.json, row 2, field `id`: invalid value"));
    assert!(lines[1].starts_with("rows.json, row 3, the row: missing field `id`"));
    assert!(lines[2].starts_with("rows.json, row 4, field `tests[0]`: missing field `input`"));
    assert_eq!(lines[3], "and 1 more error");
    let DatasetError::Rows(errors) = error else {
        panic!("{error}")
    };
    assert_eq!(errors.count(), 4);
}

#[test]
fn lists_are_told_apart_whatever_stands_in_their_rows() {
    let rows = json!([{"a": "]},{\"[\\"}, [1, [2]], "x, \\", -1.5e3, null, {}, "", true]);
    for text in [
        rows.to_string(),
        format!("{rows:#}"),
        format!(" \n{rows:#}\n\n"),
    ] {
        let file = File::new("rows.json", text.as_bytes());
        assert_eq!(json!(file.values(None).unwrap()), rows);
        let keyed =
            format!(r#"{{"version": "[1]", "more": {{"data": [3]}}, "data": {text}, "end": 1}}"#);
        let file = File::new("rows.json", keyed.as_bytes());
        assert_eq!(json!(file.values(Some("data")).unwrap()), rows);
    }
}

/// Rows longer than any buffer, with quotes and escapes at every offset from where buffers end.
#[test]
fn rows_may_lie_across_buffers() {
    for shift in 0..9 {
        let pad = "x".repeat((1 << 18) - 20 + shift);
        let rows =
            json!([{"a": format!("{pad}\\\"]}}"), "b": [pad]}, 1, {"c": "\\".repeat(1 << 18)}]);
        let file = File::new("rows.json", rows.to_string().as_bytes());
        assert_eq!(json!(file.values(None).unwrap()), rows);
        let lines = format!("{}\n{}\n", rows[0], rows[2]);
        let file = File::new("rows.jsonl", lines.as_bytes());
        assert_eq!(
            file.values(None).unwrap(),
            [rows[0].clone(), rows[2].clone()]
        );
    }
}

fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(|number: f64| json!(number)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(any::<String>(), inner, 0..4)
                .prop_map(|fields| fields.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn lists_of_anything_are_read_as_they_are(
        rows in prop::collection::vec(json_values(), 1..5), pretty in any::<bool>()
    ) {
        let list = json!(rows);
        let text = if pretty { format!("{list:#}") } else { list.to_string() };
        let file = File::new("rows.json", text.as_bytes());
        prop_assert_eq!(file.values(None).unwrap(), rows);
    }
}

#[test]
fn one_object_is_one_row_and_json_that_holds_lines_is_lines() {
    for text in ["{\n \"a\": 1}\n", "{\"a\": 1}", " {\"a\": 1}\n\n"] {
        let file = File::new("rows.json", text.as_bytes());
        assert_eq!(file.values(None).unwrap(), [json!({"a": 1})]);
    }
    let file = File::new("rows.json", b"{\"a\": 1}\n{\"a\": 2}\n");
    assert_eq!(Rows::open(&file.path()).unwrap().format(), Format::Lines);
    assert_eq!(file.values(None).unwrap().len(), 2);
}

#[test]
fn damaged_structure_says_where_and_ends_the_rows() {
    for (text, key, expected) in [
        (
            "[{}, {\"a\": 1",
            None,
            "rows.json, row 2: the file ends within a value",
        ),
        (
            "[{} {}]",
            None,
            "rows.json, row 2: expected `,` or `]` behind the last row",
        ),
        ("[{},]", None, "rows.json, row 2: expected a value"),
        ("[1, 2", None, "rows.json, row 3: the list does not end"),
        (
            "3",
            None,
            "rows.json, row 1: expected a JSON list or object",
        ),
        (
            "{\"a\": [1], \"b\": 2}",
            Some("data"),
            "rows.json, row 1: the object has no list `data`; its keys: `a`, `b`",
        ),
        (
            "{\"data\": {}}",
            Some("data"),
            "rows.json, row 1: `data` is not a list",
        ),
    ] {
        let error = File::new("rows.json", text.as_bytes())
            .values(key)
            .unwrap_err();
        assert_eq!(
            error,
            format!("{expected}; no row from there on can be read")
        );
    }
}

#[test]
fn names_that_contradict_the_content_are_refused() {
    for (name, content, expected) in [
        (
            "rows.parquet",
            "{}",
            "the name says Parquet, but the file does not begin with `PAR1`",
        ),
        (
            "rows.jsonl",
            "[{}]",
            "the name says one JSON object a line, but the content is a JSON list",
        ),
        (
            "rows.jsonl",
            "PAR1....",
            "the name says JSON, but the content is Parquet",
        ),
        (
            "rows.jsonl.gz",
            "{}",
            "the name says packed, but the content is not packed that way",
        ),
    ] {
        let error = File::new(name, content.as_bytes()).read().unwrap_err();
        assert!(error.starts_with(&format!("{name}: {expected}")), "{error}");
    }
    let missing = dataset::read::<Row>(Path::new("/no/such/rows.jsonl")).unwrap_err();
    assert!(
        missing
            .to_string()
            .starts_with("cannot read /no/such/rows.jsonl: ")
    );
}

#[test]
fn packed_files_are_unpacked() {
    let rows = b"{\"id\":1,\"tests\":[]}\n{\"id\":2,\"tests\":[]}\n";
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(rows).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(&rows[..], 1).unwrap();
    for file in [
        File::new("rows.jsonl.gz", &gzip),
        File::new("rows.jsonl.zst", &zstd),
    ] {
        assert_eq!(file.read().unwrap().len(), 2);
    }
    let cut = File::new("rows.jsonl.gz", &gzip[..gzip.len() - 9]);
    assert!(cut.read().is_err());
}

#[test]
fn values_may_be_json_text() {
    #[derive(Debug, Deserialize)]
    struct Packed {
        #[serde(deserialize_with = "json_text")]
        chunks: Vec<String>,
        #[serde(default, deserialize_with = "json_text")]
        dates: Option<Vec<String>>,
    }
    let read = |text: &str| {
        let file = File::new("rows.jsonl", text.as_bytes());
        Rows::open(&file.path())
            .and_then(Rows::read::<Packed>)
            .map_err(|error| file.shown(&error))
    };
    for text in [
        r#"{"chunks": ["a", "b"]}"#,
        r#"{"chunks": "[\"a\", \"b\"]", "dates": "null"}"#,
    ] {
        let rows = read(text).unwrap();
        assert_eq!(rows[0].chunks, ["a", "b"]);
        assert!(rows[0].dates.is_none());
    }
    for (text, expected) in [
        (
            r#"{"chunks": "[\"a\", 1]"}"#,
            "rows.jsonl, line 1, field `chunks`: in its JSON text, `[1]`: invalid type: integer `1`, expected a string",
        ),
        (
            r#"{"chunks": "[\"a"}"#,
            "rows.jsonl, line 1, field `chunks`: invalid type: string \"[\\\"a\", expected a sequence; its text is no JSON: EOF while parsing a string",
        ),
        (
            r#"{"chunks": 3}"#,
            "rows.jsonl, line 1, field `chunks`: invalid type: integer `3`, expected a sequence",
        ),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn written_lines_are_there_when_they_are_finished() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    let mut writer = JsonlWriter::create(&path).unwrap();
    writer.write(&json!({"a": "é\n"})).unwrap();
    assert!(!path.exists());
    drop(writer);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

    let mut writer = JsonlWriter::create(&path).unwrap();
    writer.write(&json!({"a": "é\n"})).unwrap();
    assert_eq!(writer.finish().unwrap(), 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\":\"é\\n\"}\n");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(JsonlWriter::create(&folder.path().join("no/rows.jsonl")).is_err());
}
