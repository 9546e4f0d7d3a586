//! Datasets by their ids on the hub: fetched from a server that speaks its addresses, and refused by builds without it.

use std::{fs, path::Path, process::Command};
#[cfg(feature = "hub")]
use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use tempfile::TempDir;

#[cfg(feature = "hub")]
use crate::etude::{assert_success, stderr};
use crate::{
    bad_input::complaint,
    etude::{etude, package},
};

fn prepare(folder: &Path, id: &str) -> Command {
    let mut command = etude(
        folder,
        ["data", "prepare", "taco", id, "--out", "out", "--json"],
    );
    command.current_dir(folder);
    command
}

#[cfg(not(feature = "hub"))]
#[test]
fn a_build_without_the_hub_says_how_to_get_it() {
    let folder = TempDir::new().unwrap();
    let output = prepare(folder.path(), "BAAI/TACO").output().unwrap();
    let says = ["BAAI/TACO", "--features hub", "download its files"];
    assert_eq!(complaint(&output, 2, &says), None);
    assert!(!folder.path().join("out").exists());
    // A file of that name is a file.
    fs::create_dir(folder.path().join("BAAI")).unwrap();
    let rows = package("../../studies/critique/tests/cases/data/002_taco_function/rows.jsonl");
    fs::copy(rows, folder.path().join("BAAI/TACO")).unwrap();
    let output = prepare(folder.path(), "BAAI/TACO").output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// A hub of one dataset, whose list comes in two pages.
#[cfg(feature = "hub")]
struct Hub {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

#[cfg(feature = "hub")]
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

#[cfg(feature = "hub")]
impl Hub {
    /// `files` by their paths, and how many bytes each is listed with.
    fn start(files: Vec<(&'static str, Vec<u8>, usize)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, here) = (asked.clone(), address.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &here, &files, &log);
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

#[cfg(feature = "hub")]
fn answer(
    mut stream: TcpStream,
    here: &str,
    files: &[(&str, Vec<u8>, usize)],
    log: &Mutex<Vec<String>>,
) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let Some(Ok(request)) = lines.next() else {
        return;
    };
    let head: Vec<String> = lines
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
        .map(|line| line.to_lowercase())
        .collect();
    let path = request.split(' ').nth(1).unwrap().to_owned();
    log.lock().unwrap().push(path.clone());
    let tree = format!("/api/datasets/BAAI/TACO/tree/{COMMIT}?recursive=true");
    let listed = |from: usize, to: usize| {
        let entries = files[from..to].iter().map(|(path, _, size)| {
            serde_json::json!({"type": "file", "oid": "x", "size": size, "path": path})
        });
        serde_json::to_vec(&entries.collect::<Vec<_>>()).unwrap()
    };
    let half = files.len() / 2;
    let resolved = format!("/datasets/BAAI/TACO/resolve/{COMMIT}/");
    let (status, more, body) = if !head.contains(&"authorization: bearer secret".to_owned()) {
        ("401 Unauthorized", String::new(), Vec::new())
    } else if path == "/api/datasets/BAAI/TACO/revision/main" {
        let body = format!("{{\"sha\": \"{COMMIT}\", \"id\": \"BAAI/TACO\"}}");
        ("200 OK", String::new(), body.into_bytes())
    } else if path == tree {
        let next = format!("link: <{here}{tree}&cursor=abc>; rel=\"next\"\r\n");
        ("200 OK", next, listed(0, half))
    } else if path == format!("{tree}&cursor=abc") {
        ("200 OK", String::new(), listed(half, files.len()))
    } else {
        let file = path.strip_prefix(&resolved);
        match files.iter().find(|(path, _, _)| Some(*path) == file) {
            Some((_, body, _)) => ("200 OK", String::new(), body.clone()),
            None => ("404 Not Found", String::new(), Vec::new()),
        }
    };
    let head = format!(
        "HTTP/1.1 {status}\r\n{more}content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(&body);
}

#[cfg(feature = "hub")]
#[test]
fn files_of_a_split_are_fetched_once_and_prepared() {
    let folder = TempDir::new().unwrap();
    let case = |name: &str| {
        let cases = package("../../studies/critique/tests/cases/data");
        fs::read(cases.join(name).join("rows.jsonl")).unwrap()
    };
    let (io, function) = (case("001_taco_stdio"), case("002_taco_function"));
    let (n_io, n_function) = (io.len(), function.len());
    let hub = Hub::start(vec![
        ("README.md", b"#".to_vec(), 1),
        ("ALL/train-0.jsonl", io.clone(), n_io),
        ("ALL/train-1.jsonl", function.clone(), n_function),
        ("ALL/test-0.jsonl", io, n_io),
    ]);
    let command = |id: &str| {
        let mut command = prepare(folder.path(), id);
        command.env("HF_ENDPOINT", &hub.address);
        command.env("HF_TOKEN", "secret");
        command
    };
    let output = command("BAAI/TACO").output().unwrap();
    assert_success(&output);
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["hub"][0]["revision"], COMMIT);
    assert_eq!(
        (&told["rows_in"], &told["rows_out"]),
        (&9.into(), &6.into())
    );
    assert_eq!(hub.asked().len(), 1 + 2 + 2);
    let kept = folder.path().join("out/hub/BAAI--TACO").join(COMMIT);
    assert_eq!(fs::read(kept.join("ALL/train-1.jsonl")).unwrap(), function);
    let prepared = fs::read(folder.path().join("out/taco_train.jsonl")).unwrap();

    // Once more: the list alone is asked for.
    assert_success(&command("BAAI/TACO@main").output().unwrap());
    assert_eq!(hub.asked().len(), 3);
    let again = fs::read(folder.path().join("out/taco_train.jsonl")).unwrap();
    assert!(again == prepared);

    for (id, token, says) in [
        ("BAAI/TACO", "wrong", ["HF_TOKEN", "BAAI/TACO"]),
        ("BAAI/APPS", "secret", ["the hub has no", "BAAI/APPS"]),
        ("BAAI/TACO:EASY/", "secret", ["EASY/", "ALL/test-0.jsonl"]),
    ] {
        let output = command(id).env("HF_TOKEN", token).output().unwrap();
        assert_eq!(complaint(&output, 2, &says), None, "{id}");
    }
}

#[cfg(feature = "hub")]
#[test]
fn a_file_that_comes_short_is_not_kept() {
    let folder = TempDir::new().unwrap();
    let hub = Hub::start(vec![
        ("a.md", Vec::new(), 0),
        ("train.jsonl", b"{}".to_vec(), 5),
    ]);
    let mut command = prepare(folder.path(), "BAAI/TACO");
    command.env("HF_ENDPOINT", &hub.address);
    let output = command.env("HF_TOKEN", "secret").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("has 2 bytes"),
        "{}",
        stderr(&output)
    );
    let kept = folder.path().join("out/hub/BAAI--TACO").join(COMMIT);
    assert!(!kept.join("train.jsonl").exists());
}
