//! An endpoint over a real socket: what is sent, what is read, and whose fault what goes wrong is.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use policy::{Conversation, Endpoint, EndpointConfig, MessagePolicy, PolicyError, ToolChoice};
use record::{FunctionCall, Message, Sampling, Seed, StopReason, ToolCall, ToolKind};
use serde_json::{Value, json};

/// What the server does, and what it was asked.
#[derive(Clone)]
struct Server {
    answer: Arc<dyn Fn(usize) -> Response + Send + Sync>,
    asked: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
    requests: Arc<AtomicUsize>,
}

async fn completions(
    State(server): State<Server>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    server.asked.lock().unwrap().push((headers, body));
    (server.answer)(server.requests.fetch_add(1, Relaxed))
}

/// A server that gives `answer` for each request, by its number.
async fn serve(
    answer: impl Fn(usize) -> Response + Send + Sync + 'static,
) -> (Server, EndpointConfig) {
    let server = Server {
        answer: Arc::new(answer),
        asked: Arc::default(),
        requests: Arc::default(),
    };
    let router = Router::new()
        .route("/v1/chat/completions", post(completions))
        .route(
            "/v1/models",
            get(|| async { Json(json!({"data": [{"id": "m"}]})) }),
        )
        .with_state(server.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let mut config = EndpointConfig::parse(&format!("openai:http://{address}/v1#m")).unwrap();
    config.pause = Duration::from_millis(1);
    (server, config)
}

fn said(message: Value, finish: &str) -> Response {
    let body = json!({
        "id": "1", "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    });
    Json(body).into_response()
}

fn conversation(messages: Vec<Message>) -> Conversation {
    Conversation {
        messages,
        tools: Vec::new(),
        tool_choice: ToolChoice::Auto,
        sampling: Sampling::at(0.7, 64),
        seed: Seed(5),
    }
}

async fn ask(config: EndpointConfig) -> Result<policy::Reply, PolicyError> {
    let endpoint = Endpoint::new(config).unwrap();
    endpoint
        .converse(conversation(vec![Message::user("hi")]))
        .await
}

#[tokio::test]
async fn asks_as_the_api_wants_and_reads_the_answer() {
    let (server, mut config) =
        serve(|_| said(json!({"role": "assistant", "content": "hello"}), "length")).await;
    config.api_key = Some("secret".to_owned());
    assert!(!format!("{config:?}").contains("secret"));
    let endpoint = Endpoint::new(config).unwrap();
    endpoint.check().await.unwrap();
    let mut wish = conversation(vec![Message::system("be brief"), Message::user("hi")]);
    wish.sampling.top_k = 20;
    wish.sampling.stop_strings = vec!["\n\n".to_owned()];
    let reply = endpoint.converse(wish).await.unwrap();
    assert_eq!(reply.said.text, "hello");
    assert_eq!(
        (reply.said.prompt_tokens, reply.said.response_tokens),
        (7, 3)
    );
    assert_eq!(reply.stop, StopReason::Length);
    let (headers, body) = server.asked.lock().unwrap()[0].clone();
    assert_eq!(headers["authorization"], "Bearer secret");
    assert_eq!(
        body,
        json!({
            "model": "m",
            "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}],
            "max_tokens": 64, "temperature": 0.7, "top_p": 1.0, "seed": 2, "top_k": 20, "stop": ["\n\n"],
        })
    );
}

#[tokio::test]
async fn tools_are_offered_and_their_calls_come_apart() {
    let call = json!({"id": "c1", "type": "function",
        "function": {"name": "submit", "arguments": "{\"a\": 1}"}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let (server, config) = serve(move |_| said(message.clone(), "tool_calls")).await;
    let tool = json!({"type": "function", "function": {"name": "submit", "parameters": {}}});
    let earlier = ToolCall {
        id: Some("c0".to_owned()),
        kind: ToolKind::Function,
        function: FunctionCall {
            name: "noop".to_owned(),
            arguments: json!({"reason": "x"}),
        },
    };
    let mut assistant = Message::assistant("");
    assistant.tool_calls = vec![earlier];
    let mut wish = conversation(vec![Message::user("go"), assistant]);
    wish.tools = vec![tool.clone()];
    wish.tool_choice = ToolChoice::Required;
    let reply = Endpoint::new(config).unwrap().converse(wish).await.unwrap();
    assert_eq!(reply.said.text, "");
    assert_eq!(reply.said.tool_calls[0].function.name, "submit");
    let body = server.asked.lock().unwrap()[0].1.clone();
    assert_eq!(body["tools"], json!([tool]));
    assert_eq!(body["tool_choice"], "required");
    let sent = &body["messages"][1]["tool_calls"][0]["function"]["arguments"];
    assert_eq!(sent, "{\"reason\":\"x\"}");
}

#[tokio::test]
async fn a_busy_server_is_waited_for_where_it_says_how_long() {
    let (server, config) = serve(|number| match number {
        0 => (
            StatusCode::TOO_MANY_REQUESTS,
            [("retry-after", "0")],
            "later",
        )
            .into_response(),
        _ => said(json!({"role": "assistant", "content": "now"}), "stop"),
    })
    .await;
    let pauses = Arc::new(Mutex::new(Vec::new()));
    let told = pauses.clone();
    let endpoint = Endpoint::new(config).unwrap();
    let endpoint = endpoint.telling(move |why, pause| {
        told.lock().unwrap().push((why.to_owned(), pause));
    });
    let reply = endpoint
        .converse(conversation(vec![Message::user("hi")]))
        .await;
    assert_eq!(reply.unwrap().said.text, "now");
    assert_eq!(server.requests.load(Relaxed), 2);
    let pauses = pauses.lock().unwrap();
    assert!(
        pauses.len() == 1 && pauses[0].0.contains("429"),
        "{pauses:?}"
    );
}

#[tokio::test]
async fn a_server_that_is_full_for_longer_than_an_answer_may_take_is_a_fault_at_once() {
    for status in [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::SERVICE_UNAVAILABLE,
    ] {
        let (server, config) =
            serve(move |_| (status, [("retry-after", "3600")], "tomorrow").into_response()).await;
        let error = ask(config).await.unwrap_err();
        assert!(error.is_infrastructure());
        let said = error.to_string();
        assert!(matches!(error, PolicyError::Full { .. }), "{said}");
        assert!(
            said.contains("again in 3600 s, and an answer may take 600 s"),
            "{said}"
        );
        assert_eq!(server.requests.load(Relaxed), 1);
    }
    // What it asks for bit by bit is added up.
    let busy = |_| {
        (
            StatusCode::TOO_MANY_REQUESTS,
            [("retry-after", "1")],
            "later",
        )
            .into_response()
    };
    let (server, mut config) = serve(busy).await;
    config.timeout = Duration::from_millis(2500);
    let error = ask(config).await.unwrap_err();
    assert!(matches!(error, PolicyError::Full { .. }), "{error}");
    assert_eq!(server.requests.load(Relaxed), 3);
}

#[tokio::test]
async fn full_servers_and_empty_answers_are_asked_again_after_a_pause() {
    type Trouble = Box<dyn Fn() -> Response + Send + Sync>;
    let troubles: [fn() -> Trouble; 4] = [
        || Box::new(|| (StatusCode::TOO_MANY_REQUESTS, "later").into_response()),
        || Box::new(|| (StatusCode::SERVICE_UNAVAILABLE, "later").into_response()),
        || Box::new(|| said(json!({"role": "assistant", "content": ""}), "stop")),
        || Box::new(|| said(json!({"role": "assistant", "content": null}), "stop")),
    ];
    for trouble in troubles {
        let (passing, lasting) = (trouble(), trouble());
        let (server, config) = serve(move |number| match number {
            0..4 => passing(),
            _ => said(json!({"role": "assistant", "content": "now"}), "stop"),
        })
        .await;
        assert_eq!(ask(config).await.unwrap().said.text, "now");
        assert_eq!(server.requests.load(Relaxed), 5);
        // What lasts is a fault, and never an answer.
        let (server, config) = serve(move |_| lasting()).await;
        let error = ask(config).await.unwrap_err();
        assert!(error.is_infrastructure(), "{error}");
        assert_eq!(server.requests.load(Relaxed), 5);
    }
    // Whoever said nothing is asked with other draws, and these are the same each time.
    let mut seeds = Vec::new();
    for _ in 0..2 {
        let (server, config) =
            serve(|_| said(json!({"role": "assistant", "content": " "}), "stop")).await;
        ask(config).await.unwrap_err();
        let asked = server.asked.lock().unwrap();
        let drawn: Vec<u64> = asked
            .iter()
            .map(|(_, body)| body["seed"].as_u64().unwrap())
            .collect();
        assert!(drawn.windows(2).all(|pair| pair[0] != pair[1]), "{drawn:?}");
        seeds.push(drawn);
    }
    assert_eq!(seeds[0], seeds[1]);
    // What was cut off before anything was said is an answer.
    let (server, config) =
        serve(|_| said(json!({"role": "assistant", "content": null}), "length")).await;
    assert_eq!(ask(config).await.unwrap().stop, StopReason::Length);
    assert_eq!(server.requests.load(Relaxed), 1);
}

#[tokio::test]
async fn other_faults_say_whose_they_are_and_only_servers_that_break_down_are_asked_again() {
    let error = json!({"error": {"message": "the prompt is longer than 4096 tokens"}});
    let cases = [
        (StatusCode::BAD_REQUEST, error.to_string(), false, 1),
        (StatusCode::UNAUTHORIZED, "no key".to_owned(), false, 1),
        (
            StatusCode::INTERNAL_SERVER_ERROR,
            "out of memory".to_owned(),
            true,
            3,
        ),
        (StatusCode::BAD_GATEWAY, "gone".to_owned(), true, 3),
        (StatusCode::OK, "not json".to_owned(), true, 3),
        (StatusCode::OK, "{\"choices\": []}".to_owned(), true, 3),
        (StatusCode::OK, error.to_string(), true, 3),
    ];
    for (status, text, infrastructure, requests) in cases {
        let body = text.clone();
        let (server, config) = serve(move |_| (status, body.clone()).into_response()).await;
        let address = config.base_url.clone();
        let error = ask(config).await.unwrap_err();
        assert_eq!(
            error.is_infrastructure(),
            infrastructure,
            "{status} {text}: {error}"
        );
        assert!(error.to_string().contains(&address), "{error}");
        assert_eq!(server.requests.load(Relaxed), requests, "{status}");
    }
    let (server, config) = serve(|number| match number {
        0 => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        1 => "<html>one moment</html>".into_response(),
        _ => said(json!({"role": "assistant", "content": "now"}), "stop"),
    })
    .await;
    assert_eq!(ask(config).await.unwrap().said.text, "now");
    assert_eq!(server.requests.load(Relaxed), 3);
}

#[tokio::test]
async fn a_connection_that_is_lost_is_made_three_times() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = accepted.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Relaxed);
            drop(stream);
        }
    });
    let mut config = EndpointConfig::parse(&format!("openai:http://{address}/v1#m")).unwrap();
    config.pause = Duration::from_millis(1);
    assert!(ask(config).await.unwrap_err().is_infrastructure());
    assert_eq!(accepted.load(Relaxed), 3);
}

#[tokio::test]
async fn a_prompt_over_the_servers_context_is_no_other_refusal() {
    let openai = json!({"error": {"message": "too many", "code": "context_length_exceeded"}});
    let vllm =
        json!({"message": "This model's maximum context length is 4096 tokens.", "code": 400});
    let llama_cpp = json!({"error": {"message": "the request exceeds the available context size", "code": 400}});
    let other = json!({"error": {"message": "temperature must be at least 0"}});
    let cases = [
        (StatusCode::BAD_REQUEST, openai.to_string(), true),
        (StatusCode::BAD_REQUEST, vllm.to_string(), true),
        (StatusCode::BAD_REQUEST, llama_cpp.to_string(), true),
        (StatusCode::BAD_REQUEST, other.to_string(), false),
        (StatusCode::UNAUTHORIZED, vllm.to_string(), false),
    ];
    for (status, text, over) in cases {
        let body = text.clone();
        let (_server, config) = serve(move |_| (status, body.clone()).into_response()).await;
        let error = ask(config).await.unwrap_err();
        assert!(!error.is_infrastructure());
        assert_eq!(
            matches!(error, PolicyError::NoRoom(_)),
            over,
            "{status} {text}"
        );
        assert_eq!(
            matches!(error, PolicyError::Refused(_)),
            !over,
            "{status} {text}"
        );
    }
}

#[tokio::test]
async fn silence_and_absence_are_infrastructure_faults() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut config = EndpointConfig::parse(&format!("openai:http://{address}/v1#m")).unwrap();
    config.timeout = Duration::from_millis(100);
    config.pause = Duration::from_millis(1);
    let error = ask(config.clone()).await.unwrap_err();
    let said = "gave no answer within 0.1 s (asked 3 times)";
    assert!(
        error.is_infrastructure() && error.to_string().ends_with(said),
        "{error}"
    );
    drop(listener);
    let error = ask(config).await.unwrap_err();
    assert!(
        error.is_infrastructure() && error.to_string().contains("refused"),
        "{error}"
    );
}

#[tokio::test]
async fn a_model_that_is_not_there_is_told_beforehand() {
    let (_, mut config) = serve(|_| StatusCode::NOT_FOUND.into_response()).await;
    config.model = "other".to_owned();
    let error = Endpoint::new(config).unwrap().check().await.unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("has no model `other`; it has m"),
        "{error}"
    );
}

#[test]
fn addresses_that_are_none_are_refused_with_an_example() {
    for text in [
        "http://h/v1#m",
        "openai:http://h/v1",
        "openai:http://h/v1#",
        "openai:h#m",
        "openai:ftp://h#m",
    ] {
        let error = EndpointConfig::parse(text).unwrap_err();
        assert!(
            error.contains("write openai:http://HOST:PORT/v1#MODEL"),
            "{text}: {error}"
        );
    }
}
