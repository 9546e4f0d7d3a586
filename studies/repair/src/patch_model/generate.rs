//! A patch model that is a CodeFuse service: `POST /generate` (spec of the repair study, section 4.4).

use std::{fmt, time::Duration};

use async_trait::async_trait;
use code::graph::Chunk;
use record::Fault;
use reqwest::{Client, StatusCode};
use rollout::Cx;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Answered, PatchModel, PatchRequest, Proposed, reply::read_value};
use crate::workplace::Testbed;

/// Nodes, characters of a node's field, pieces of source and their lines that the service reads.
const NODES: usize = 32;
const FIELD: usize = 512;
const SNIPPETS: usize = 5;
const SNIPPET_LINES: usize = 40;

/// Where the service answers, and what its model is told.
#[derive(Clone, PartialEq)]
pub struct GenerateConfig {
    /// Up to `/generate`, without it: `http://localhost:30001`.
    pub base_url: String,
    pub model: String,
    /// Sent as a bearer token.
    pub api_key: Option<String>,
    pub temperature: f64,
    pub max_tokens: u32,
    /// From the request to the last byte of its answer.
    pub timeout: Duration,
}

impl GenerateConfig {
    /// No key, temperature 0, 1024 tokens, and ten minutes for an answer. `url` may end in `/generate` or not.
    pub fn new(url: impl Into<String>, model: impl Into<String>) -> Self {
        let url: String = url.into();
        let url = url.trim_end_matches('/');
        let base_url = url.strip_suffix("/generate").unwrap_or(url);
        Self {
            base_url: base_url.trim_end_matches('/').to_owned(),
            model: model.into(),
            api_key: None,
            temperature: 0.0,
            max_tokens: 1_024,
            timeout: Duration::from_secs(600),
        }
    }
}

/// Never shows the key.
impl fmt::Debug for GenerateConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GenerateConfig")
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .field("has_key", &self.api_key.is_some())
            .finish_non_exhaustive()
    }
}

/// Asks one service.
#[derive(Clone, Debug)]
pub struct GeneratePatcher {
    config: GenerateConfig,
    client: Client,
}

#[derive(Serialize)]
struct Snippet<'a> {
    path: &'a str,
    start: u32,
    end: u32,
    snippet: Vec<&'a str>,
}

impl GeneratePatcher {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// An infrastructure fault where this machine's certificates cannot be read.
    pub fn new(config: GenerateConfig) -> Result<Self, Fault> {
        let client = policy::endpoint::client(config.timeout).map_err(Fault::infra)?;
        Ok(Self { config, client })
    }

    /// Whether the service is there: `GET /healthz`.
    ///
    /// # Errors
    /// What it or the way to it says instead.
    pub async fn check(&self) -> Result<(), Fault> {
        let url = format!("{}/healthz", self.config.base_url);
        let response = self.client.get(&url).send().await;
        let response = response.map_err(|error| unreachable(&url, &error))?;
        match response.status().is_success() {
            true => Ok(()),
            false => Err(Fault::infra(format!("{url} answers {}", response.status()))),
        }
    }

    fn body(&self, request: &PatchRequest) -> Value {
        let constraints = request.constraints;
        let cut = |text: &str| text.chars().take(FIELD).collect::<String>();
        let nodes: Vec<Value> = request
            .graph
            .nodes
            .values()
            .take(NODES)
            .map(|node| {
                json!({
                    "id": node.id, "type": node.kind, "name": cut(&node.name), "path": node.path,
                    "span": node.span, "summary": cut(&node.summary), "text": cut(&node.snippet_lines.join("\n")),
                })
            })
            .collect();
        let feedback = request.feedback.last();
        json!({
            "issue": {
                "id": request.issue.id, "title": request.issue.title, "body": request.issue.body,
            },
            "plan": {
                "targets": request.targets,
                "budget": {"max_edits": constraints.max_edits},
                "priority_tests": [],
            },
            "plan_text": request.plan.join("\n"),
            "subgraph": nodes,
            "snippets": request.snippets.iter().take(SNIPPETS).map(snippet).collect::<Vec<_>>(),
            "constraints": {
                "max_edits": constraints.max_edits,
                "one_file_per_patch": constraints.one_file_per_patch,
                "implementation_only": true,
                "no_test_changes": true,
                "prior_repair_feedback": feedback,
            },
            "model_config": {
                "model": self.config.model,
                "temperature": self.config.temperature,
                "max_tokens": self.config.max_tokens,
            },
        })
    }
}

fn snippet(chunk: &Chunk) -> Snippet<'_> {
    let lines: Vec<&str> = chunk.text.lines().take(SNIPPET_LINES).collect();
    Snippet {
        path: &chunk.path,
        start: chunk.start,
        end: chunk.start + (lines.len() as u32).saturating_sub(1),
        snippet: lines,
    }
}

#[async_trait]
impl PatchModel for GeneratePatcher {
    async fn propose(
        &self,
        request: &PatchRequest,
        _testbed: &Testbed,
        _cx: &mut Cx,
    ) -> Result<Answered, Fault> {
        let url = format!("{}/generate", self.config.base_url);
        let mut post = self.client.post(&url).json(&self.body(request));
        if let Some(key) = &self.config.api_key {
            post = post.bearer_auth(key);
        }
        let response = post
            .send()
            .await
            .map_err(|error| unreachable(&url, &error))?;
        let status = response.status();
        let text = response.text().await;
        let text = text.map_err(|error| unreachable(&url, &error))?;
        let said: String = text.chars().take(500).collect();
        let refused = |code| Proposed::None {
            code,
            detail: format!("the patch service answers {status}: {said}"),
        };
        let proposed = match status {
            StatusCode::OK => match serde_json::from_str(&text) {
                Ok(value) => read_value(&value),
                Err(_) => refused("invalid-patch-schema"),
            },
            // No edits were generated.
            StatusCode::BAD_GATEWAY if text.contains("edit") => refused("cgm-empty"),
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
                refused("invalid-payload")
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                return Err(Fault::grader(format!(
                    "{url} answers {status}: give it the right key"
                )));
            }
            status => return Err(Fault::infra(format!("{url} answers {status}: {said}"))),
        };
        Ok(proposed.into())
    }
}

fn unreachable(url: &str, error: &reqwest::Error) -> Fault {
    let mut text = format!("{url}: {error}");
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        text += &format!(": {inner}");
        source = inner.source();
    }
    Fault::infra(text)
}
