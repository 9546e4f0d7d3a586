//! A chat endpoint over a real socket, which dies or refuses, and comes back at the same address.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    thread,
};

use serde_json::{Value, json};

type Answer = dyn Fn(&[Value]) -> String + Send + Sync;

#[derive(Default)]
struct State {
    /// Conversations that were asked for, answered or not.
    asked: AtomicU64,
    failing: Mutex<Option<Failing>>,
}

#[derive(Clone)]
struct Failing {
    /// The first conversation that is not answered.
    from: u64,
    /// The status and the message that are sent instead; without them the connection is closed.
    refusal: Option<(u16, String)>,
}

/// Answers every conversation with a function of its messages. It lives as long as the test process.
pub(crate) struct ChatServer {
    /// As recipes and options name it.
    pub(crate) name: String,
    state: Arc<State>,
}

impl ChatServer {
    pub(crate) fn start(answer: impl Fn(&[Value]) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let name = format!("openai:http://{}/v1#model", listener.local_addr().unwrap());
        let state = Arc::new(State::default());
        let answer: Arc<Answer> = Arc::new(answer);
        let shared = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, state) = (answer.clone(), shared.clone());
                thread::spawn(move || serve(stream, answer.as_ref(), &state));
            }
        });
        Self { name, state }
    }

    pub(crate) fn asked(&self) -> u64 {
        self.state.asked.load(SeqCst)
    }

    /// Closes every connection unanswered, once so many more conversations were asked for.
    pub(crate) fn die_after(&self, more: u64) {
        self.fail_after(more, None);
    }

    /// Answers so, once so many more conversations were asked for.
    pub(crate) fn refuse_after(&self, more: u64, status: u16, message: &str) {
        self.fail_after(more, Some((status, message.to_owned())));
    }

    pub(crate) fn come_back(&self) {
        *self.state.failing.lock().unwrap() = None;
    }

    fn fail_after(&self, more: u64, refusal: Option<(u16, String)>) {
        let from = self.asked() + more;
        *self.state.failing.lock().unwrap() = Some(Failing { from, refusal });
    }
}

/// One request of one connection.
fn serve(mut stream: TcpStream, answer: &Answer, state: &State) {
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
    let asked = state.asked.fetch_add(u64::from(!lists), SeqCst);
    let failing = state.failing.lock().unwrap().clone();
    let (status, body) = if let Some(failing) = failing.filter(|failing| asked >= failing.from) {
        let Some((status, message)) = failing.refusal else {
            return;
        };
        (status, json!({"error": {"message": message}}))
    } else if lists {
        (200, json!({"data": [{"id": "model"}]}))
    } else {
        let length = head
            .iter()
            .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let text = answer(body["messages"].as_array().unwrap());
        let answered = json!({
            "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1},
        });
        (200, answered)
    };
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} so\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // Who asked may be gone.
    let _ = stream.write_all((head + &body).as_bytes());
}
