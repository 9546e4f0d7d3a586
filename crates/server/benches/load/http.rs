//! A connection that is kept, and as much of HTTP as it needs.

use std::net::{SocketAddr, ToSocketAddrs};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    host: String,
}

/// The address of `http://HOST:PORT`.
pub(crate) fn address(url: &str) -> SocketAddr {
    let host = url.strip_prefix("http://").unwrap_or(url);
    let host = host.trim_end_matches('/');
    let mut found = host
        .to_socket_addrs()
        .unwrap_or_else(|error| panic!("{url}: {error}; give http://HOST:PORT"));
    found.next().unwrap()
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream: BufReader::new(stream),
            host: address.to_string(),
        }
    }

    /// Posts `body`; the reply must have code 200 and a length.
    pub(crate) async fn post(&mut self, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await.unwrap();
        let status = self.line().await;
        let mut length = 0;
        loop {
            let line = self.line().await.to_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(text) = line.strip_prefix("content-length:") {
                length = text.trim().parse().unwrap();
            }
        }
        let mut reply = vec![0; length];
        self.stream.read_exact(&mut reply).await.unwrap();
        assert!(
            status.contains(" 200 "),
            "{status}: {}",
            String::from_utf8_lossy(&reply)
        );
        serde_json::from_slice(&reply).unwrap()
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.unwrap();
        line.trim_end().to_owned()
    }
}
