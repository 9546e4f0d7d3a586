//! One operation on a queue, as JSON in and JSON out: what clients on other machines start over ssh,
//! by the operation names that they know.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{
    client::Queue,
    message::{Request, Response, kind},
};
use crate::SessionError;

/// Seconds that a start may take at the least.
const START_AT_LEAST: f64 = 300.0;

/// Seconds that a command may take when nothing says so.
const EXEC_DEFAULT: f64 = 600.0;

#[derive(Debug, Deserialize)]
struct Payload {
    op: String,
    #[serde(default)]
    run_id: String,
    #[serde(default, deserialize_with = "text")]
    image: String,
    #[serde(default, deserialize_with = "text")]
    cwd: String,
    #[serde(default)]
    timeout: Option<f64>,
    #[serde(default)]
    env: Option<BTreeMap<String, String>>,
    #[serde(default)]
    cmd: Value,
}

/// The one JSON object of an answer.
#[derive(Debug, Default, Serialize)]
pub struct ProxyAnswer {
    pub ok: bool,
    pub returncode: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub runtime_sec: f64,
    pub error: Option<String>,
}

/// Carries out `start`, `exec`, `stop` or `cleanup_pool`. An operation that fails is an answer; a
/// payload that is none is an error, and its text.
pub async fn swe_proxy(queue: &Queue, payload: &[u8]) -> Result<ProxyAnswer, String> {
    let payload: Payload =
        serde_json::from_slice(payload).map_err(|error| format!("the payload: {error}"))?;
    let request = |kind: &str, timeout: f64| Request {
        run_id: payload.run_id.clone(),
        kind: kind.to_owned(),
        image: payload.image.clone(),
        cwd: match payload.cwd.trim_end_matches('/') {
            "/repo" => "/testbed".to_owned(),
            cwd => cwd.to_owned(),
        },
        env: payload.env.clone().unwrap_or_default(),
        timeout_sec: Some(timeout),
        ..Request::default()
    };
    let refuse = |error: &str| {
        Ok(ProxyAnswer {
            error: Some(error.to_owned()),
            ..ProxyAnswer::default()
        })
    };
    let needs_run = matches!(payload.op.as_str(), "start" | "exec" | "stop");
    if needs_run && payload.run_id.is_empty() {
        return refuse("run_id is missing");
    }
    let answered = match payload.op.as_str() {
        "start" => {
            let timeout = payload.timeout.unwrap_or(START_AT_LEAST);
            let mut start = request(kind::START, timeout.max(START_AT_LEAST));
            // gp-TASK__UUID: a new run of the same task takes the instance over.
            let task = payload.run_id.split("__").next().unwrap_or_default();
            start.meta = Map::from_iter([("task_id".to_owned(), task.into())]);
            queue.place(start).await.map(|(_, response)| response)
        }
        "exec" => {
            let mut exec = request(kind::INSTANCE_EXEC, payload.timeout.unwrap_or(EXEC_DEFAULT));
            exec.cmd = match &payload.cmd {
                Value::String(script) => vec!["bash".into(), "-lc".into(), script.clone()],
                words => serde_json::from_value(words.clone())
                    .map_err(|error| format!("the payload: cmd: {error}"))?,
            };
            match queue.owner(&payload.run_id) {
                Some(runner) => ask(queue, runner, exec).await,
                None => return refuse("no runner has an instance for this run; start it first"),
            }
        }
        "stop" => match queue.owner(&payload.run_id) {
            Some(runner) => ask(queue, runner, request(kind::STOP, START_AT_LEAST)).await,
            // Stopped before, or never started.
            None => Ok(Response {
                ok: true,
                ..Response::default()
            }),
        },
        "cleanup_pool" => {
            for runner in queue.alive() {
                if let Err(error) = ask(queue, runner, request(kind::CLEANUP, START_AT_LEAST)).await
                {
                    return refuse(&error.to_string());
                }
            }
            Ok(Response {
                ok: true,
                ..Response::default()
            })
        }
        other => return refuse(&format!("no operation is called {other:?}")),
    };
    Ok(match answered {
        Ok(response) => ProxyAnswer {
            ok: response.ok,
            returncode: response.returncode.or(response.ok.then_some(0)),
            stdout: response.stdout,
            stderr: response.stderr,
            runtime_sec: response.runtime_sec,
            error: response.error,
        },
        Err(error) => ProxyAnswer {
            error: Some(error.to_string()),
            ..ProxyAnswer::default()
        },
    })
}

async fn ask(queue: &Queue, runner: u32, request: Request) -> Result<Response, SessionError> {
    let patience = request.timeout().mul_f64(1.5) + Duration::from_secs(60);
    queue.call(runner, request, patience).await
}

fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Option::<String>::deserialize(from)?.unwrap_or_default())
}
