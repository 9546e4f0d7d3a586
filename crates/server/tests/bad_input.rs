//! What is wrong is said with the field that is wrong, and nothing runs.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests stop at the first surprise"
)]

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use sandbox::{Config, Language, Sandbox, Toolchains};
use serde::Deserialize;
use serde_json::{Value, json};
use server::{Options, Service, serve};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

#[derive(Deserialize)]
struct Expected {
    route: String,
    status: u16,
    /// Where in the request; absent where the reply's detail is a sentence.
    loc: Option<Vec<Value>>,
    /// Part of what is said.
    says: Option<String>,
}

/// Posts `body` to a server of its own; returns the code and the reply.
async fn post(address: std::net::SocketAddr, route: &str, body: &[u8]) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST {route} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // A server that refuses the body need not read it.
    let _ = stream.write_all(body).await;
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply).await;
    let reply = String::from_utf8(reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    (code, serde_json::from_str(body).unwrap())
}

async fn start() -> (Sandbox, std::net::SocketAddr) {
    start_with(Options::default()).await
}

/// A server, its sandbox, and where it listens; it ends with the test.
async fn start_with(options: Options) -> (Sandbox, std::net::SocketAddr) {
    let sandbox = Sandbox::start(Config::new(1)).unwrap();
    let search = ["/usr/bin", "/usr/local/bin"].map(std::path::PathBuf::from);
    let toolchains = Toolchains::probe(&[Language::Python], None, &search);
    let service = Service::new(
        sandbox.clone(),
        toolchains,
        256 << 20,
        None,
        BTreeMap::new(),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, service, options, std::future::pending()));
    (sandbox, address)
}

async fn assert_alive(sandbox: &Sandbox, address: std::net::SocketAddr) {
    assert_eq!(sandbox.stats().runs, 0, "something was run");
    let good = json!({ "code": "print('alive')", "language": "python", "unknown": [1] });
    let (code, reply) = post(address, "/run_code", good.to_string().as_bytes()).await;
    assert_eq!(code, 200, "{reply}");
    assert_eq!(reply["run_result"]["stdout"], "alive\n");
}

#[tokio::test]
async fn every_case_is_refused_at_its_field() {
    let (sandbox, address) = start().await;
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut folders: Vec<_> = fs::read_dir(cases)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.sort();
    assert!(folders.len() > 50);
    let mut faults = Vec::new();
    for folder in folders {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let body = fs::read(folder.join("request.json")).unwrap();
        let expected = fs::read(folder.join("expected.json")).unwrap();
        let expected: Expected = serde_json::from_slice(&expected).unwrap();
        let (code, reply) = post(address, &expected.route, &body).await;
        let detail = &reply["detail"];
        let right_place = match &expected.loc {
            Some(loc) => {
                detail[0]["loc"] == json!(loc)
                    && detail[0]["msg"].is_string()
                    && detail[0]["type"].is_string()
            }
            None => detail.is_string(),
        };
        let says = expected.says.as_deref().unwrap_or_default();
        if code != expected.status || !right_place || !detail.to_string().contains(says) {
            faults.push(format!("{name}: {code} {reply}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_alive(&sandbox, address).await;
}

#[tokio::test]
async fn bodies_that_are_too_much_are_refused() {
    let (sandbox, address) = start().await;
    let clash = json!({ "code": "", "language": "python", "files": { "a": "", "a/b": "" } });
    let (code, reply) = post(address, "/run_code", clash.to_string().as_bytes()).await;
    assert_eq!(code, 422, "{reply}");

    let mut not_text = br#"{"language": "python", "code": ""#.to_vec();
    not_text.extend(b"\xff\xfe\"}");
    let (code, reply) = post(address, "/run_code", &not_text).await;
    assert_eq!(code, 422, "{reply}");

    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let nested =
        format!(r#"{{"dataset":"x","id":1,"completion":"","config":{{"provided_data":{deep}}}}}"#);
    let (code, reply) = post(address, "/submit", nested.as_bytes()).await;
    assert_eq!(code, 422, "{reply}");

    let large = vec![b' '; 100 << 20];
    let (code, reply) = post(address, "/run_code", &large).await;
    assert_eq!(code, 413, "{reply}");
    assert!(reply["detail"].is_string());
    assert_alive(&sandbox, address).await;
}

#[tokio::test]
async fn requests_that_do_not_come_are_given_up() {
    let options = Options {
        head_timeout: Duration::from_millis(100),
        body_timeout: Duration::from_millis(100),
        ..Options::default()
    };
    let (sandbox, address) = start_with(options).await;
    for (sent, reply) in [
        // A head that does not end, and nothing at all: there is nobody to answer.
        ("POST /run_code HTTP/1.1\r\nHost: x\r\n", ""),
        ("", ""),
        (
            "POST /run_code HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{",
            "HTTP/1.1 408 ",
        ),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut got = Vec::new();
        // Comes to an end only because the server closes.
        let _ = stream.read_to_end(&mut got).await;
        let got = String::from_utf8(got).unwrap();
        assert!(got.starts_with(reply), "{sent:?}: {got:?}");
    }
    assert_alive(&sandbox, address).await;
}

#[tokio::test]
async fn connections_beyond_their_number_wait() {
    let options = Options {
        connections: 2,
        ..Options::default()
    };
    let (sandbox, address) = start_with(options).await;
    let idle = [
        TcpStream::connect(address).await.unwrap(),
        TcpStream::connect(address).await.unwrap(),
    ];
    let mut third = TcpStream::connect(address).await.unwrap();
    let ping = "GET /v1/ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    third.write_all(ping.as_bytes()).await.unwrap();
    let mut got = String::new();
    let early = Duration::from_millis(200);
    let waited = tokio::time::timeout(early, third.read_to_string(&mut got)).await;
    assert!(waited.is_err(), "{got}");
    drop(idle);
    third.read_to_string(&mut got).await.unwrap();
    assert!(got.starts_with("HTTP/1.1 200 "), "{got}");
    assert_alive(&sandbox, address).await;
}

/// What LiveCodeBench packs by `base64(zlib(pickle(json)))` is read, and judged as when it comes in the open.
#[tokio::test]
async fn packed_tests_are_judged() {
    const PACKED: &str = "eJxrYJmazwABPdnVSpl5BaUl8fmlJUBKyUpBqToGIlQcA+RFxygZxsTkGcUo6SjEKBkDmSYxSrEgNkQDTJExRIE5VDItLz4vMTcVJBmjlJiSEqNUq1Q7RQ8AnhwkJg==";
    let (_sandbox, address) = start().await;
    for (sign, accepted) in [("+", true), ("-", false)] {
        let program =
            format!("class Solution:\n    def add(self, a, b):\n        return a {sign} b");
        let request = json!({
            "dataset": "dataset_id", "id": 0, "completion": format!("```python\n{program}\n```"),
            "config": {"dataset_type": "LiveCodeBenchDataset", "run_timeout": 6, "provided_data": {"test": PACKED}},
        });
        let (code, reply) = post(address, "/submit", request.to_string().as_bytes()).await;
        assert_eq!(code, 200, "{reply}");
        assert_eq!(reply["accepted"], accepted, "{reply}");
    }
}
