//! A chat endpoint over a real socket, which dies and comes back at the same address.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    thread,
};

use serde_json::{Value, json};

type Answer = dyn Fn(&[Value]) -> String + Send + Sync;

/// Answers every conversation with a function of its messages. It lives as long as the test process.
pub(crate) struct ChatServer {
    /// As recipes and options name it.
    pub(crate) name: String,
    /// Conversations that were asked for, answered or not.
    asked: Arc<AtomicU64>,
    /// Of these, the one at which it dies.
    dies_at: Arc<AtomicU64>,
}

impl ChatServer {
    pub(crate) fn start(answer: impl Fn(&[Value]) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let name = format!("openai:http://{}/v1#model", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicU64::new(0));
        let dies_at = Arc::new(AtomicU64::new(u64::MAX));
        let answer: Arc<Answer> = Arc::new(answer);
        let counters = (asked.clone(), dies_at.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, counters) = (answer.clone(), counters.clone());
                thread::spawn(move || serve(stream, answer.as_ref(), &counters));
            }
        });
        Self {
            name,
            asked,
            dies_at,
        }
    }

    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(SeqCst)
    }

    /// Closes every connection unanswered, once so many more conversations were asked for.
    pub(crate) fn die_after(&self, more: u64) {
        self.dies_at.store(self.asked() + more, SeqCst);
    }

    pub(crate) fn come_back(&self) {
        self.dies_at.store(u64::MAX, SeqCst);
    }
}

/// One request of one connection.
fn serve(
    mut stream: TcpStream,
    answer: &Answer,
    (asked, dies_at): &(Arc<AtomicU64>, Arc<AtomicU64>),
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = Vec::new();
    for line in reader.by_ref().lines().map_while(Result::ok) {
        if line.is_empty() {
            break;
        }
        head.push(line.to_lowercase());
    }
    let Some(request) = head.first() else {
        return;
    };
    let lists = request.starts_with("get");
    if asked.fetch_add(u64::from(!lists), SeqCst) >= dies_at.load(SeqCst) {
        return;
    }
    let body = if lists {
        json!({"data": [{"id": "model"}]})
    } else {
        let length = head
            .iter()
            .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let text = answer(body["messages"].as_array().unwrap());
        json!({
            "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1},
        })
    };
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // Who asked may be gone.
    let _ = stream.write_all((head + &body).as_bytes());
}
