//! The HTTP side: routes, limits on requests, authorization, draining.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Json, Router,
    body::{Body, Bytes, to_bytes},
    extract::{DefaultBodyLimit, Request as HttpRequest, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::{StreamExt, stream};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{
    Class, Dataset, Request, Route, Service, connections,
    decode::decode,
    dialect::{DatasetRequest, RunCodeRequest},
    fault::Fault,
    metrics, run_code, submit,
};

/// How requests are received.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of the largest body; larger ones are answered with 413.
    pub max_body: usize,
    /// Open at a time; more of them wait to be accepted.
    pub connections: usize,
    /// For the head of a request to arrive, and for the next one on a kept connection.
    pub head_timeout: Duration,
    /// For a body to arrive.
    pub body_timeout: Duration,
    /// Told of every request when it is done with.
    pub log: Option<fn(&Access)>,
    /// Where set, requests need `Authorization: Bearer TOKEN`; `/v1/ping` does not.
    pub token: Option<String>,
    /// For requests under way when the server is told to end.
    pub drain: Duration,
}

/// A request that is done with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Access {
    /// `other` where there is no such route.
    pub route: &'static str,
    /// 499 where the client went away before the reply.
    pub code: u16,
    pub milliseconds: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_body: 32 << 20,
            connections: 1024,
            head_timeout: Duration::from_secs(60),
            body_timeout: Duration::from_secs(30),
            log: None,
            token: None,
            drain: Duration::from_secs(30),
        }
    }
}

/// Serves until `shutdown` ends, then finishes what is under way, for at most
/// [`Options::drain`]. Dropping a connection ends the runs that were made for it.
pub async fn serve(
    listener: TcpListener,
    service: Service,
    options: Options,
    shutdown: impl Future<Output = ()>,
) {
    let app = router(service, options.clone());
    connections::serve(listener, app, &options, shutdown).await;
}

#[derive(Clone)]
struct App {
    service: Service,
    options: Arc<Options>,
}

fn router(service: Service, options: Options) -> Router {
    let max_body = options.max_body;
    let app = App {
        service,
        options: Arc::new(options),
    };
    Router::new()
        .route("/run_code", post(run_code))
        .route("/batch", post(batch))
        .route("/submit", post(submit))
        .route("/get_prompts", post(get_prompts))
        .route("/get_prompt_by_id", post(get_prompt_by_id))
        .route("/list_ids", post(list_ids))
        .route("/get_metrics", post(get_metrics))
        .route("/get_metrics_function", post(get_metrics_function))
        .route("/run_jupyter", post(run_jupyter))
        .route("/list_datasets", get(list_datasets))
        .route("/metrics", get(metrics))
        .route("/v1/ping", get(|| async { Json("pong") }))
        .route(
            "/",
            get(|| async {
                "etude sandbox: POST /run_code, /submit, /batch; GET /v1/ping, /metrics\n"
            }),
        )
        .fallback(async || not_offered(StatusCode::NOT_FOUND))
        .method_not_allowed_fallback(async || not_offered(StatusCode::METHOD_NOT_ALLOWED))
        .layer(middleware::from_fn_with_state(app.clone(), receive))
        .layer(DefaultBodyLimit::max(max_body))
        .with_state(app)
}

/// A status in FastAPI's words.
fn not_offered(status: StatusCode) -> Response {
    let detail = status.canonical_reason().unwrap_or_default();
    (status, Json(json!({ "detail": detail }))).into_response()
}

/// Reads the body within its limits, of those who may ask, and counts.
async fn receive(State(app): State<App>, request: HttpRequest, next: Next) -> Response {
    let route = route_name(request.uri().path());
    let counted = Counted::begin(&app, route);
    let (parts, body) = request.into_parts();
    let declared = parts.headers.get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let limit = app.options.max_body;
    let too_large = || {
        let detail = format!("the body is larger than {limit} bytes");
        (
            StatusCode::PAYLOAD_TOO_LARGE,
            Json(json!({ "detail": detail })),
        )
            .into_response()
    };
    let response = if !is_authorized(&app, parts.uri.path(), &parts.headers) {
        unauthorized()
    } else if declared.is_some_and(|length| length > limit) {
        too_large()
    } else {
        match tokio::time::timeout(app.options.body_timeout, to_bytes(body, limit)).await {
            Ok(Ok(bytes)) => {
                next.run(HttpRequest::from_parts(parts, Body::from(bytes)))
                    .await
            }
            Ok(Err(_)) => too_large(),
            Err(_) => {
                let detail = json!({ "detail": "the body did not arrive in time" });
                (StatusCode::REQUEST_TIMEOUT, Json(detail)).into_response()
            }
        }
    };
    counted.end(response.status());
    response
}

/// Counts a request also when its client goes away and the future is dropped.
struct Counted<'a> {
    app: &'a App,
    route: &'static str,
    started: Instant,
    code: u16,
}

impl<'a> Counted<'a> {
    fn begin(app: &'a App, route: &'static str) -> Self {
        app.service.metrics().begin();
        Self {
            app,
            route,
            started: Instant::now(),
            code: 499,
        }
    }

    fn end(mut self, code: StatusCode) {
        self.code = code.as_u16();
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let took = self.started.elapsed();
        self.app.service.metrics().end(self.route, self.code, took);
        if let Some(log) = self.app.options.log {
            log(&Access {
                route: self.route,
                code: self.code,
                milliseconds: took.as_secs_f64() * 1e3,
            });
        }
    }
}

fn route_name(path: &str) -> &'static str {
    const KNOWN: [&str; 12] = [
        "/run_code",
        "/batch",
        "/submit",
        "/get_prompts",
        "/get_prompt_by_id",
        "/list_ids",
        "/get_metrics",
        "/get_metrics_function",
        "/run_jupyter",
        "/list_datasets",
        "/metrics",
        "/v1/ping",
    ];
    KNOWN
        .into_iter()
        .find(|known| *known == path)
        .unwrap_or("other")
}

/// Whether a request may go on: it has the token, or there is none, or its route needs none.
fn is_authorized(app: &App, path: &str, headers: &HeaderMap) -> bool {
    let Some(token) = &app.options.token else {
        return true;
    };
    matches!(path, "/" | "/v1/ping")
        || bearer(headers).is_some_and(|given| same(given.as_bytes(), token.as_bytes()))
}

fn unauthorized() -> Response {
    let detail = Json(json!({ "detail": "a bearer token is needed" }));
    let mut response = (StatusCode::UNAUTHORIZED, detail).into_response();
    let scheme = HeaderValue::from_static("Bearer");
    response
        .headers_mut()
        .insert(header::WWW_AUTHENTICATE, scheme);
    response
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Takes as long for every content of equal length.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

type Answer = Result<Response, Fault>;

fn answer(value: &impl Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(body) => Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response()),
        Err(error) => Err(Fault::Failed(error.to_string())),
    }
}

async fn run_code(State(app): State<App>, body: Bytes) -> Answer {
    match decode(Route::RunCode, &body)? {
        Request::RunCode(request) => answer(&run_code::run(&app.service, &request).await?),
        _ => Err(Fault::Failed("another request was decoded".to_owned())),
    }
}

/// As many replies as requests, in their order; what went wrong with one is its own reply.
async fn batch(State(app): State<App>, body: Bytes) -> Answer {
    let Request::Batch(requests) = decode(Route::Batch, &body)? else {
        return Err(Fault::Failed("another request was decoded".to_owned()));
    };
    /// Requests of one batch that wait in the sandbox's queue at the same time, if it has room.
    const AHEAD: usize = 64;
    let ahead = app.service.sandbox().places().clamp(1, AHEAD);
    let replies: Vec<_> = requests
        .iter()
        .map(|request| run_one(&app.service, request))
        .collect();
    let replies: Vec<Value> = stream::iter(replies).buffered(ahead).collect().await;
    answer(&replies)
}

async fn run_one(service: &Service, request: &RunCodeRequest) -> Value {
    match run_code::run(service, request).await {
        Ok(reply) => serde_json::to_value(reply).unwrap_or_default(),
        Err(fault) => fault.into_json(),
    }
}

async fn submit(State(app): State<App>, body: Bytes) -> Answer {
    match decode(Route::Submit, &body)? {
        Request::Submit(request) => answer(&submit::submit(&app.service, &request).await?),
        _ => Err(Fault::Failed("another request was decoded".to_owned())),
    }
}

fn dataset_request(body: &[u8]) -> Result<DatasetRequest, Fault> {
    match decode(Route::Dataset, body)? {
        Request::Dataset(request) => Ok(request),
        _ => Err(Fault::Failed("another request was decoded".to_owned())),
    }
}

fn dataset<'a>(app: &'a App, request: &DatasetRequest) -> Result<&'a Dataset, Fault> {
    let unknown = || Fault::Asked(format!("unknown dataset {:?}", request.dataset));
    app.service
        .datasets()
        .get(&request.dataset)
        .ok_or_else(unknown)
}

async fn get_prompts(State(app): State<App>, body: Bytes) -> Answer {
    let request = dataset_request(&body)?;
    let (offset, limit) = (
        request.offset.unwrap_or(0),
        request.limit.unwrap_or(1_000_000),
    );
    let prompts: Vec<_> = dataset(&app, &request)?
        .prompts()
        .skip(offset)
        .take(limit)
        .collect();
    answer(&prompts)
}

async fn get_prompt_by_id(State(app): State<App>, body: Bytes) -> Answer {
    let request = dataset_request(&body)?;
    let Some(id) = &request.id else {
        return Err(crate::Invalid::at(&["body", "id"], "missing").into());
    };
    let prompt = dataset(&app, &request)?.prompt(id);
    let absent = || Fault::Absent(format!("the dataset has no problem {}", json!(id)));
    answer(&prompt.ok_or_else(absent)?)
}

async fn list_ids(State(app): State<App>, body: Bytes) -> Answer {
    let request = dataset_request(&body)?;
    answer(&dataset(&app, &request)?.ids().collect::<Vec<_>>())
}

/// The share of accepted results.
async fn get_metrics(State(app): State<App>, body: Bytes) -> Answer {
    let request = dataset_request(&body)?;
    let known = dataset(&app, &request).is_ok() || Class::of_usual(&request.dataset).is_some();
    if !known
        && request
            .config
            .dataset_type
            .as_deref()
            .and_then(Class::named)
            .is_none()
    {
        return Err(Fault::Asked(format!(
            "unknown dataset {:?}",
            request.dataset
        )));
    }
    let accepted = |result: &&Value| result.get("accepted") == Some(&Value::Bool(true));
    let n = request.results.iter().filter(accepted).count();
    let share = n as f64 / request.results.len().max(1) as f64;
    answer(&json!({ "pass@1": share, "n": request.results.len() }))
}

async fn get_metrics_function() -> Answer {
    const FUNCTION: &str = "def get_metrics(results):\n    accepted = [r['accepted'] for r in results]\n    \
        return {'pass@1': sum(accepted) / max(1, len(accepted)), 'n': len(accepted)}\n";
    answer(&json!({ "function": FUNCTION }))
}

async fn run_jupyter() -> Answer {
    let text = "this server has no Jupyter kernels; send the cells as one program to /run_code";
    Err(Fault::NotOffered(text.to_owned()))
}

async fn list_datasets(State(app): State<App>) -> Answer {
    answer(&app.service.datasets().keys().collect::<Vec<_>>())
}

async fn metrics(State(app): State<App>) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    (kind, metrics::text(&app.service)).into_response()
}
