//! `etude sandbox serve`: real sockets, a real sandbox, and the clients that people have.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::etude::{etude, package};

/// A server, ended with SIGTERM when dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: String,
    scratch: TempDir,
}

impl Server {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let scratch = TempDir::new().unwrap();
        let dataset = format!("small=CommonOJ:{}", clients("small.jsonl").display());
        let mut child = etude(
            scratch.path(),
            ["sandbox", "serve", "--bind", "127.0.0.1:0"],
        )
        .args(["--slots", "2", "--dataset", &dataset])
        .args(arguments)
        .spawn()
        .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        let address = line.split("http://").nth(1).unwrap();
        let address = address.split(' ').next().unwrap().to_owned();
        // Nothing that it says later must hold it up.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            address,
            scratch,
        }
    }

    /// One request; the reply's code, head and body.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> (u16, String, Vec<u8>) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        // A server that refuses a large body may close before it was written.
        let _ = stream.write_all(body);
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
        let end = reply
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap();
        let head = String::from_utf8(reply[..end].to_vec())
            .unwrap()
            .to_lowercase();
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        (code, head, reply[end + 4..].to_vec())
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let (code, _, body) = self.ask("POST", path, "", body.to_string().as_bytes());
        (code, serde_json::from_slice(&body).unwrap_or_default())
    }

    pub(crate) fn terminate(&self, signal: &str) {
        let id = self.child.id().to_string();
        Command::new("kill").args([signal, &id]).status().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.terminate("-TERM");
            let _ = self.child.wait();
        }
    }
}

fn clients(file: &str) -> PathBuf {
    package("tests/cases/clients").join(file)
}

#[test]
fn what_a_program_does_is_a_reply_with_code_200() {
    let server = Server::start(&[]);
    let run = |body: Value| {
        let (code, reply) = server.post("/run_code", &body);
        assert_eq!(code, 200, "{reply}");
        reply
    };
    let reply = run(json!({"code": "print(input())", "language": "python", "stdin": "a"}));
    assert_eq!(reply["status"], "Success");
    assert_eq!(reply["run_result"]["stdout"], "a\n");
    assert_eq!(reply["message"], "");
    let reply = run(json!({"code": "import os; os.kill(os.getpid(), 11)", "language": "python"}));
    assert_eq!(reply["run_result"]["return_code"], -11);
    let hog = json!({"code": "a = 'x' * (1 << 40)", "language": "python", "memory_limit_MB": 100});
    assert_eq!(run(hog)["run_result"]["outcome"], "memory");
    let bytes =
        run(json!({"code": "import os; os.write(1, b'\\xff\\x00a')", "language": "python"}));
    assert_eq!(bytes["run_result"]["stdout"], "\u{fffd}\0a");
    let link = json!({"code": "import os; os.symlink('/etc/passwd', 'x')", "language": "python", "fetch_files": ["x", "y"]});
    let reply = run(link);
    assert_eq!(reply["files"], json!({}));
    assert_eq!(reply["files_not_fetched"].as_object().unwrap().len(), 2);
}

#[test]
fn what_is_wrong_with_a_request_is_named_and_nothing_runs() {
    let server = Server::start(&[]);
    let code = |more: Value| {
        let mut body = json!({"code": "print(1)", "language": "python"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    // Body, status code, and what the reply says.
    let cases = [
        (json!([]), 422, "body"),
        (json!({"language": "python"}), 422, "code"),
        (json!({"code": "1"}), 422, "language"),
        (code(json!({"code": 1})), 422, "string"),
        (code(json!({"language": "klingon"})), 422, "klingon"),
        (code(json!({"language": "php"})), 400, "php"),
        (code(json!({"files": {"../x": "aGk="}})), 422, "../x"),
        (code(json!({"files": {"/x": "aGk="}})), 422, "absolute"),
        (code(json!({"files": {"a": "***"}})), 422, "base64"),
        (
            code(json!({"fetch_files": ["/etc/passwd"]})),
            422,
            "fetch_files",
        ),
        (
            code(json!({"fetch_files": ["a/../../b"]})),
            422,
            "fetch_files",
        ),
        (code(json!({"run_timeout": 0})), 422, "run_timeout"),
        (code(json!({"run_timeout": -5})), 422, "run_timeout"),
        (code(json!({"run_timeout": 1e9})), 422, "run_timeout"),
        (
            code(json!({"compile_timeout": "soon"})),
            422,
            "compile_timeout",
        ),
        (code(json!({"memory_limit_MB": -2})), 422, "memory_limit_MB"),
        (
            code(json!({"memory_limit_MB": 1_u64 << 60})),
            422,
            "memory_limit_MB",
        ),
        (code(json!({"stdin": 5})), 422, "stdin"),
    ];
    for (body, expected, word) in cases {
        let (code, reply) = server.post("/run_code", &body);
        assert_eq!(code, expected, "{body}: {reply}");
        assert!(
            reply["detail"].to_string().contains(word),
            "{body}: {reply}"
        );
        assert!(reply.get("run_result").is_none());
    }
    for (path, body, expected, word) in [
        (
            "/submit",
            json!({"dataset": "x", "completion": ""}),
            422,
            "id",
        ),
        (
            "/submit",
            json!({"dataset": "x", "id": 1, "completion": ""}),
            400,
            "registered",
        ),
        (
            "/submit",
            json!({"dataset": "mbpp", "id": 1, "completion": "", "config": {"provided_data": []}}),
            422,
            "provided_data",
        ),
        (
            "/submit",
            json!({"dataset": "mbpp", "id": 1, "completion": "", "config": {"provided_data": {}}}),
            422,
            "test",
        ),
        (
            "/submit",
            json!({"dataset": "code_contests", "id": 1, "completion": "", "config": {"provided_data": {"test": "{"}}}),
            422,
            "JSON",
        ),
        (
            "/submit",
            json!({"dataset": "mbpp", "id": 1, "completion": "", "config": {"custom_extract_logic": "1/0"}}),
            400,
            "custom_extract_logic",
        ),
        (
            "/submit",
            json!({"dataset": "small", "id": 9, "completion": "", "config": {}}),
            404,
            "9",
        ),
        ("/get_prompts", json!({"dataset": "absent"}), 400, "absent"),
        ("/run_jupyter", json!({"cells": []}), 501, "Jupyter"),
        ("/batch", json!([{"code": "1"}]), 422, "language"),
    ] {
        let (code, reply) = server.post(path, &body);
        assert_eq!(code, expected, "{path} {body}: {reply}");
        assert!(
            reply["detail"].to_string().contains(word),
            "{path} {body}: {reply}"
        );
    }
    for bytes in [
        &b""[..],
        b"{",
        b"\xff\xfe",
        b"{\"code\":\"1\",\"language\":\"python\"} trailing",
    ] {
        let (code, ..) = server.ask("POST", "/run_code", "", bytes);
        assert_eq!(code, 422, "{bytes:?}");
    }
    let (code, _, body) = server.ask("POST", "/run_code", "", &vec![b' '; 33 << 20]);
    assert_eq!(code, 413, "{}", String::from_utf8_lossy(&body));
    assert_eq!(server.ask("GET", "/nowhere", "", b"").0, 404);
    let (code, _, pong) = server.ask("GET", "/v1/ping", "", b"");
    assert_eq!((code, pong.as_slice()), (200, &b"\"pong\""[..]));
}

#[test]
fn batches_keep_their_order_and_metrics_count() {
    let server = Server::start(&[]);
    let requests: Vec<Value> = (0..30)
        .map(|i| json!({"code": format!("print({i})"), "language": if i == 7 { "php" } else { "python" }}))
        .collect();
    let (code, replies) = server.post("/batch", &json!(requests));
    assert_eq!(code, 200);
    for (i, reply) in replies.as_array().unwrap().iter().enumerate() {
        if i == 7 {
            assert_eq!(reply["status_code"], 400);
        } else {
            assert_eq!(reply["run_result"]["stdout"], format!("{i}\n"));
        }
    }
    let (_, head, text) = server.ask("GET", "/metrics", "", b"");
    assert!(head.contains("text/plain"));
    let text = String::from_utf8(text).unwrap();
    for name in [
        "etude_requests_total{route=\"/batch\",code=\"200\"}",
        "etude_runs_total{status=\"ok\"}",
        "etude_request_seconds_bucket{le=\"+Inf\"}",
        "etude_queue_depth",
    ] {
        assert!(text.contains(name), "{name}\n{text}");
    }
}

#[test]
fn many_files_are_taken_or_refused_and_the_server_lives() {
    let server = Server::start(&[]);
    let files = |n: usize| -> Value {
        (0..n)
            .map(|i| (format!("f/{i}"), json!("aGk=")))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let count = "import os; print(len(os.listdir('f')))";
    let (code, reply) = server.post(
        "/run_code",
        &json!({"code": count, "language": "python", "files": files(20_000)}),
    );
    assert_eq!(
        (code, &reply["run_result"]["stdout"]),
        (200, &json!("20000\n"))
    );
    let (code, reply) = server.post(
        "/run_code",
        &json!({"code": count, "language": "python", "files": files(150_000)}),
    );
    assert_eq!(code, 422, "{reply}");
    assert_eq!(server.ask("GET", "/v1/ping", "", b"").0, 200);
}

#[test]
fn requests_need_the_token_and_a_full_queue_says_when_to_come_back() {
    let scratch = TempDir::new().unwrap();
    let token = scratch.path().join("token");
    std::fs::write(&token, "secret\n").unwrap();
    let server = Server::start(&["--token-file", token.to_str().unwrap(), "--queue", "1"]);
    let body = json!({"code": "import time; time.sleep(2)", "language": "python"}).to_string();
    let (code, head, _) = server.ask("POST", "/run_code", "", body.as_bytes());
    assert_eq!(code, 401);
    assert!(head.contains("www-authenticate: bearer"));
    let (code, ..) = server.ask(
        "POST",
        "/run_code",
        "Authorization: Bearer wrong\r\n",
        body.as_bytes(),
    );
    assert_eq!(code, 401);
    let codes: Vec<(u16, String)> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let (code, head, _) = server.ask(
                        "POST",
                        "/run_code",
                        "Authorization: Bearer secret\r\n",
                        body.as_bytes(),
                    );
                    (code, head)
                })
            })
            .collect();
        asked
            .into_iter()
            .map(|asked| asked.join().unwrap())
            .collect()
    });
    assert!(codes.iter().any(|(code, _)| *code == 200), "{codes:?}");
    let busy: Vec<_> = codes.iter().filter(|(code, _)| *code == 429).collect();
    assert!(!busy.is_empty(), "{codes:?}");
    assert!(busy.iter().all(|(_, head)| head.contains("retry-after:")));
}

#[test]
fn a_server_that_is_told_to_end_finishes_what_is_under_way() {
    let mut server = Server::start(&[]);
    let body = json!({"code": "import time; time.sleep(1); print('done')", "language": "python"});
    let (code, reply) = std::thread::scope(|scope| {
        let asked = scope.spawn(|| server.post("/run_code", &body));
        let runs = || {
            let (_, _, text) = server.ask("GET", "/metrics", "", b"");
            String::from_utf8_lossy(&text).contains("etude_runs_in_flight 1\n")
        };
        while !runs() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        server.terminate("-TERM");
        asked.join().unwrap()
    });
    assert_eq!(
        (code, &reply["run_result"]["stdout"]),
        (200, &json!("done\n"))
    );
    assert!(server.child.wait().unwrap().success());
    let refused = etude(
        server.scratch.path(),
        ["sandbox", "serve", "--bind", "nowhere"],
    )
    .output()
    .unwrap();
    assert_eq!(refused.status.code(), Some(2));
}

/// `ETUDE_TEST_CLIENTS` names a Python interpreter that has what
/// `pip install -r apps/cli/tests/cases/clients/requirements.txt` and `pip install --no-deps verl`
/// bring.
#[test]
fn the_clients_that_people_have_work_unchanged() {
    let Some(python) = std::env::var_os("ETUDE_TEST_CLIENTS") else {
        eprintln!("skipped: ETUDE_TEST_CLIENTS names no interpreter with sandbox-fusion and verl");
        return;
    };
    let evals = format!("evals=HumanEval:{}", clients("evals.jsonl").display());
    let server = Server::start(&["--dataset", &evals]);
    for script in ["sandbox_fusion_client.py", "verl_client.py"] {
        let output = Command::new(&python)
            .arg(clients(script))
            .arg(format!("http://{}", server.address))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.contains("client ok"),
            "{script}\n{said}\n{errors}"
        );
    }
}
