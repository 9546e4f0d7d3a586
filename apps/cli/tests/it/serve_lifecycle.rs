//! How connections and the server itself end: told to, left, too large, too slow.

use std::{
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    etude::{assert_success, etude, stderr, wait_until},
    processes::{assert_all_end, descendants, supervisor_of},
    serve::Server,
};

/// Far longer than anything here takes, and shorter than the sleeping programs.
const SOON: Duration = Duration::from_secs(40);

fn sleeping() -> String {
    let code = "import time; time.sleep(50)";
    json!({ "code": code, "language": "python", "run_timeout": 60 }).to_string()
}

/// Sends a request and does not wait for its reply.
fn send(server: &Server, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    write!(
        stream,
        "POST /run_code HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    stream
}

/// All that comes until the server closes; a reset behind the reply is no fault.
fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A sample of `GET /metrics`; 0 where there is none.
fn metric(server: &Server, name: &str) -> f64 {
    let (_, _, text) = server.ask("GET", "/metrics", "", b"");
    let text = String::from_utf8(text).unwrap();
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.map_or(0.0, |value| value.parse().unwrap())
}

fn running(server: &Server) -> f64 {
    metric(server, "etude_runs_in_flight")
}

#[test]
fn draining_has_an_end_and_leaves_nothing() {
    let mut server = Server::start(&["--drain", "0.2"]);
    let _waiting = send(&server, &sleeping());
    wait_until("the program runs", || running(&server) >= 1.0);
    let processes = descendants(server.child.id());
    assert!(!processes.is_empty());
    let started = Instant::now();
    server.terminate("-INT");
    assert_eq!(server.child.wait().unwrap().code(), Some(130));
    assert!(started.elapsed() < SOON, "it waited for the program");
    assert_all_end(&processes);
}

/// Control groups that a supervisor made.
fn groups_of(supervisor: u32) -> Vec<PathBuf> {
    let prefix = format!("etude-sandbox-{supervisor}-");
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                found.push(entry.path());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn what_a_killed_server_leaves_is_reaped() {
    let mut server = Server::start(&[]);
    let supervisor = supervisor_of(server.child.id()).unwrap().id;
    if groups_of(supervisor).is_empty() {
        eprintln!("no control groups may be made here: only the command's end is looked at");
    }
    let processes = descendants(server.child.id());
    server.terminate("-KILL");
    server.child.wait().unwrap();
    assert_all_end(&processes);
    let leases = TempDir::new().unwrap();
    let reap = |folder: &Path| {
        let arguments = ["sandbox", "reap", "--json", "--leases"].map(OsStr::new);
        etude(
            leases.path(),
            arguments.into_iter().chain([folder.as_os_str()]),
        )
        .output()
        .unwrap()
    };
    let reaped = reap(leases.path());
    assert_success(&reaped);
    let told: Value = serde_json::from_slice(&reaped.stdout).unwrap();
    assert!(told["abandoned"].is_array(), "{told}");
    assert_eq!(groups_of(supervisor), Vec::<PathBuf>::new());

    let absent = leases.path().join("absent");
    let refused = reap(&absent);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("absent is no folder"));
    assert!(!absent.exists());
}

#[test]
fn an_idle_connection_does_not_hold_the_end_up() {
    let mut server = Server::start(&["--drain", "50"]);
    let mut idle = TcpStream::connect(&server.address).unwrap();
    idle.write_all(b"GET /v1/ping HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    idle.read_exact(&mut [0; 16]).unwrap();
    let started = Instant::now();
    server.terminate("-TERM");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    assert!(started.elapsed() < SOON, "it waited for an idle connection");
}

#[test]
fn clients_that_go_away_free_their_slots() {
    let server = Server::start(&[]);
    let gone: Vec<_> = (0..4).map(|_| send(&server, &sleeping())).collect();
    wait_until("both slots are busy", || running(&server) >= 2.0);
    drop(gone);
    let started = Instant::now();
    let (code, reply) = server.post(
        "/run_code",
        &json!({"code": "print(1)", "language": "python"}),
    );
    assert_eq!((code, &reply["run_result"]["stdout"]), (200, &json!("1\n")));
    wait_until("nothing runs", || running(&server) == 0.0);
    assert!(started.elapsed() < SOON, "a sleeping program kept its slot");
}

#[test]
fn a_large_body_is_refused_before_it_has_come() {
    let server = Server::start(&["--max-body", "1"]);
    // The announcement is enough.
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream
        .write_all(b"POST /run_code HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 104857600\r\n\r\n{")
        .unwrap();
    let reply = rest(stream);
    assert!(reply.starts_with("HTTP/1.1 413 "), "{reply:?}");
    // Without one, the limit is found out on the way.
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream
        .write_all(b"POST /run_code HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
        .unwrap();
    let chunk = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
    for _ in 0..17 {
        // The server may have answered and closed already.
        if stream.write_all(&chunk).is_err() {
            break;
        }
    }
    let reply = rest(stream);
    assert!(reply.starts_with("HTTP/1.1 413 "), "{reply:?}");
}

#[test]
fn verdicts_outlive_the_server_in_their_folder() {
    let scratch = TempDir::new().unwrap();
    let folder = scratch.path().join("verdicts");
    let body = json!({
        "dataset": "x", "id": 1, "completion": "```python\ndef f(): return 1\n```",
        "config": {"dataset_type": "MBPPDataset", "provided_data": {"test_list": ["assert f() == 1"]}},
    });
    for hits in [0.0, 1.0] {
        let server = Server::start(&["--cache", folder.to_str().unwrap()]);
        let (code, reply) = server.post("/submit", &body);
        assert_eq!((code, &reply["accepted"]), (200, &json!(true)), "{reply}");
        assert_eq!(metric(&server, "etude_verdict_cache_hits_total"), hits);
    }
}

#[test]
fn a_server_that_is_asked_wrongly_says_so() {
    let scratch = TempDir::new().unwrap();
    let rows = scratch.path().join("rows.jsonl");
    fs::write(&rows, "{\"id\": 1}\n{\"no\": 1}\n").unwrap();
    let with_class = |class: &str| format!("x={class}:{}", rows.display());
    for (flag, value, said) in [
        ("--bind", "nowhere:1".to_owned(), "nowhere"),
        ("--token-file", "/nowhere".to_owned(), "/nowhere"),
        ("--dataset", "x".to_owned(), "NAME=CLASS:FILE"),
        ("--dataset", with_class("Other"), "CommonOJ"),
        ("--dataset", with_class("CommonOJ"), "line 2"),
        ("--drain", "-1".to_owned(), "seconds"),
    ] {
        let arguments = ["sandbox", "serve", &format!("{flag}={value}")].map(str::to_owned);
        let output = etude(scratch.path(), arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
}

#[test]
fn requests_are_logged_when_asked_for() {
    let scratch = TempDir::new().unwrap();
    let arguments = ["sandbox", "serve", "--bind", "127.0.0.1:0", "--log"];
    let mut child = etude(scratch.path(), arguments).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let (_, rest) = first.split_once("http://").unwrap();
    let address = rest.split(' ').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(b"POST /run_code HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1\r\n\r\n{")
        .unwrap();
    let logged: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(
        (&logged["route"], &logged["code"]),
        (&json!("/run_code"), &json!(422))
    );
    assert!(logged["milliseconds"].is_number());
    child.kill().unwrap();
    child.wait().unwrap();
}
