//! A policy behind an OpenAI-compatible chat endpoint: vLLM, SGLang, llama.cpp, a hosted service.
//!
//! `POST {base}/chat/completions` without streaming. A server that is full (429, 503) or not up (its connection is
//! refused), and an answer in which nothing was said, are asked for again after a pause that doubles, five times in
//! all; an error of the server's own (500, 502, 504), a connection that is lost, an answer that cannot be read and one
//! that takes longer than the time limit, three times. Where a full server says when to come back (`Retry-After`),
//! that is waited for, however often, while the waits together are within the time limit of an answer. What lasts
//! beyond that is an infrastructure fault, and `rollout` owns its retry.

mod wire;

use std::{fmt, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use record::{Seed, StopReason};
use reqwest::{Client, Response, StatusCode, header::RETRY_AFTER};

use crate::{Conversation, MessagePolicy, PolicyError, Reply};

/// Where a model answers, and how it is called there.
#[derive(Clone, PartialEq, Eq)]
pub struct EndpointConfig {
    /// Up to and without `/chat/completions`: `http://localhost:8000/v1`.
    pub base_url: String,
    /// The model's name there.
    pub model: String,
    /// Sent as a bearer token.
    pub api_key: Option<String>,
    /// From a request to the last byte of its answer, and for all waits together that a full server asks for.
    pub timeout: Duration,
    /// The first pause before a full server is asked again; the next ones double.
    pub pause: Duration,
}

/// Times that a server is asked for one answer while it is full or says nothing.
const ATTEMPTS: u32 = 5;

/// Times that it is asked where it breaks down, is silent or cannot be read: what is asked may be why.
const ATTEMPTS_OF_BROKEN: u32 = 3;

/// What an endpoint is called on the command line and in recipes: `openai:URL#MODEL`.
pub const PREFIX: &str = "openai:";

impl EndpointConfig {
    /// Reads `openai:http://host:8000/v1#model`; ten minutes for an answer, and no key.
    ///
    /// # Errors
    /// What is wrong with the text, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let example = "write openai:http://HOST:PORT/v1#MODEL";
        let rest = text
            .strip_prefix(PREFIX)
            .ok_or_else(|| format!("`{text}` is no endpoint: {example}"))?;
        let (url, model) = rest
            .split_once('#')
            .filter(|(_, model)| !model.is_empty())
            .ok_or_else(|| format!("`{text}` names no model: {example}"))?;
        let parsed = reqwest::Url::parse(url)
            .map_err(|error| format!("`{url}` is no address ({error}): {example}"))?;
        if !matches!(parsed.scheme(), "http" | "https") || parsed.host().is_none() {
            return Err(format!("`{url}` is no address of a server: {example}"));
        }
        Ok(Self {
            base_url: url.trim_end_matches('/').to_owned(),
            model: model.to_owned(),
            api_key: None,
            timeout: Duration::from_secs(600),
            pause: Duration::from_secs(1),
        })
    }
}

/// Never shows the key.
impl fmt::Debug for EndpointConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointConfig")
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .field("has_key", &self.api_key.is_some())
            .field("timeout", &self.timeout)
            .finish()
    }
}

/// What asks servers over HTTP, with `timeout` from a request to the last byte of its answer.
///
/// # Errors
/// [`PolicyError::Infrastructure`] where this machine's certificates cannot be read.
pub fn client(timeout: Duration) -> Result<Client, PolicyError> {
    // Both libraries of ciphers could be linked by others; one must be chosen, once a process.
    let _chosen_before = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .timeout(timeout)
        .connect_timeout(timeout.min(Duration::from_secs(30)))
        .build()
        .map_err(|error| PolicyError::Infrastructure(chain(&error)))
}

/// Is told why a server is asked again, and after which pause.
type Told = dyn Fn(&str, Duration) + Send + Sync;

/// Asks one model of one server.
#[derive(Clone)]
pub struct Endpoint {
    config: EndpointConfig,
    client: Client,
    told: Option<Arc<Told>>,
}

/// What there is instead of an answer.
enum Unanswered {
    /// It may pass, and is asked for so many times in all.
    Passing { message: String, most: u32 },
    /// An answer that is no chat completion.
    Unread(String),
    /// A full server that says when it wants to be asked again.
    Later { status: StatusCode, wait: Duration },
    /// The same would come again.
    Lasting(PolicyError),
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// [`PolicyError::Infrastructure`] where this machine's certificates cannot be read.
    pub fn new(config: EndpointConfig) -> Result<Self, PolicyError> {
        let client = client(config.timeout)?;
        Ok(Self {
            config,
            client,
            told: None,
        })
    }

    /// Tells `told` before every pause why the server is asked again, and how long the pause is.
    pub fn telling(self, told: impl Fn(&str, Duration) + Send + Sync + 'static) -> Self {
        Self {
            told: Some(Arc::new(told)),
            ..self
        }
    }

    pub fn config(&self) -> &EndpointConfig {
        &self.config
    }

    /// Asks for the list of models: whether the server is there, takes the key and has the model.
    ///
    /// # Errors
    /// What is wrong, in words for whoever wrote the address. A server without such a list is believed.
    pub async fn check(&self) -> Result<(), PolicyError> {
        let url = format!("{}/models", self.config.base_url);
        let response = self.authorised(self.client.get(&url)).send().await;
        let response = response.map_err(|error| self.unreachable(&error))?;
        match response.status() {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(self.refused(response).await),
            status if status.is_success() => {
                let text = response.text().await;
                let text = text.map_err(|error| self.unreachable(&error))?;
                let models = wire::models(&text);
                if models.is_empty() || models.contains(&self.config.model) {
                    return Ok(());
                }
                Err(PolicyError::Refused(format!(
                    "{} has no model `{}`; it has {}",
                    self.config.base_url,
                    self.config.model,
                    models.join(", ")
                )))
            }
            _ => Ok(()),
        }
    }

    async fn ask(&self, mut conversation: Conversation) -> Result<Reply, PolicyError> {
        let draws = conversation.seed;
        let (mut asked, mut told_to_wait) = (1, Duration::ZERO);
        loop {
            let (message, most) = match self.once(&conversation).await {
                Ok(reply) if !says_nothing(&reply) => return Ok(reply),
                // Of the same draws the same would come.
                Ok(_) => {
                    conversation.seed = draws.stream("again", u64::from(asked));
                    let message = format!("{} answered and said nothing", self.config.base_url);
                    (message, ATTEMPTS)
                }
                Err(Unanswered::Unread(message)) => {
                    conversation.seed = draws.stream("again", u64::from(asked));
                    (message, ATTEMPTS_OF_BROKEN)
                }
                Err(Unanswered::Passing { message, most }) => (message, most),
                Err(Unanswered::Later { status, wait }) => {
                    told_to_wait += wait;
                    if told_to_wait > self.config.timeout {
                        return Err(PolicyError::Full {
                            server: self.config.base_url.clone(),
                            status: status.as_u16(),
                            wait,
                            limit: self.config.timeout,
                        });
                    }
                    let why = format!("{} answered {status}", self.config.base_url);
                    self.wait(&why, wait).await;
                    continue;
                }
                Err(Unanswered::Lasting(error)) => return Err(error),
            };
            if asked >= most {
                return Err(PolicyError::Infrastructure(format!(
                    "{message} (asked {asked} times)"
                )));
            }
            self.wait(&message, self.pause(draws, asked)).await;
            asked += 1;
        }
    }

    /// One request, and what there is instead of an answer.
    async fn once(&self, conversation: &Conversation) -> Result<Reply, Unanswered> {
        let url = format!("{}/chat/completions", self.config.base_url);
        let body = wire::body(&self.config.model, conversation);
        let request = self.authorised(self.client.post(&url)).json(&body);
        let response = request.send().await.map_err(|error| self.lost(&error))?;
        let status = response.status();
        if status.is_success() {
            let text = response.text().await.map_err(|error| self.lost(&error))?;
            return wire::reply(&text).map_err(|why| {
                let server = &self.config.base_url;
                Unanswered::Unread(format!("{server} gave no chat completion: {why}"))
            });
        }
        let is_full = is_full(status);
        if let Some(wait) = seconds_to_wait(&response).filter(|_| is_full) {
            return Err(Unanswered::Later { status, wait });
        }
        let most = match is_full {
            true => ATTEMPTS,
            false if status.is_server_error() => ATTEMPTS_OF_BROKEN,
            false => return Err(Unanswered::Lasting(self.refused(response).await)),
        };
        let message = self.refused(response).await.to_string();
        Err(Unanswered::Passing { message, most })
    }

    /// A request on whose way something went wrong.
    fn lost(&self, error: &reqwest::Error) -> Unanswered {
        let most = match error.is_connect() {
            true => ATTEMPTS,
            false => ATTEMPTS_OF_BROKEN,
        };
        let server = &self.config.base_url;
        let message = match error.is_timeout() && !error.is_connect() {
            true => {
                let seconds = self.config.timeout.as_secs_f64();
                format!("{server} gave no answer within {seconds} s")
            }
            false => format!("{server}: {}", chain(error)),
        };
        Unanswered::Passing { message, most }
    }

    async fn wait(&self, why: &str, pause: Duration) {
        if let Some(told) = &self.told {
            told(why, pause);
        }
        tokio::time::sleep(pause).await;
    }

    /// The pause before a server is asked again: twice that of the time before, and up to twice as long again, drawn
    /// by the conversation's seed, so that conversations that were turned away together do not come back together.
    fn pause(&self, draws: Seed, asked: u32) -> Duration {
        let drawn = draws.stream("pause", u64::from(asked)).0 as f64 / u64::MAX as f64;
        self.config
            .pause
            .mul_f64(f64::from(1 << (asked - 1)) * (1.0 + drawn))
    }

    fn authorised(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match &self.config.api_key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    /// An answer that is no success. What the client did wrong will be wrong again; the rest may pass.
    async fn refused(&self, response: Response) -> PolicyError {
        let status = response.status();
        let text = response.text().await.unwrap_or_default();
        let message = format!(
            "{} answered {status}: {}",
            self.config.base_url,
            wire::error_message(&text)
        );
        let passing = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
        let sized = [StatusCode::BAD_REQUEST, StatusCode::PAYLOAD_TOO_LARGE];
        if !status.is_client_error() || passing.contains(&status) {
            PolicyError::Infrastructure(message)
        } else if sized.contains(&status) && wire::is_over_context(&text) {
            PolicyError::NoRoom(message)
        } else {
            PolicyError::Refused(message)
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> PolicyError {
        PolicyError::Infrastructure(format!("{}: {}", self.config.base_url, chain(error)))
    }
}

impl MessagePolicy for Endpoint {
    fn converse<'a>(
        &'a self,
        conversation: Conversation,
    ) -> BoxFuture<'a, Result<Reply, PolicyError>> {
        Box::pin(self.ask(conversation))
    }
}

fn is_full(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    )
}

/// Of an answer that was cut off, all its tokens may have gone into what is not said.
fn says_nothing(reply: &Reply) -> bool {
    let said = &reply.said;
    said.text.trim().is_empty() && said.tool_calls.is_empty() && reply.stop == StopReason::Stop
}

/// When the server wants to be asked again; seconds alone are read, not dates.
fn seconds_to_wait(response: &Response) -> Option<Duration> {
    let text = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    let seconds: f64 = text.trim().parse().ok()?;
    // A server that says 0 is asked again in a moment, not in a loop.
    Duration::try_from_secs_f64(seconds.max(0.05)).ok()
}

/// An error with its causes: the outermost alone says only that something was sent.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let causes: String = causes.map(|cause| format!(": {cause}")).collect();
    format!("{error}{causes}")
}
