//! `build_graph` and `build_repo_graph` of `etude runner --swe-proxy`: the code graph of a folder here.

use std::{path::Path, time::Instant};

use serde::Deserialize;
use session::queue::ProxyAnswer;

use crate::graph;

#[derive(Deserialize)]
struct Asked {
    op: String,
    #[serde(default)]
    repo: String,
    max_stdout_bytes: Option<usize>,
}

/// The answer to a payload that asks for a graph, with its lines on `stdout`; `None` for other payloads.
pub(crate) fn answer(payload: &[u8]) -> Option<ProxyAnswer> {
    let asked: Asked = serde_json::from_slice(payload).ok()?;
    if !matches!(asked.op.as_str(), "build_graph" | "build_repo_graph") {
        return None;
    }
    let started = Instant::now();
    let lines = lines(&asked);
    let runtime_sec = started.elapsed().as_secs_f64();
    Some(match lines {
        Ok(stdout) => ProxyAnswer {
            ok: true,
            returncode: Some(0),
            stdout,
            runtime_sec,
            ..ProxyAnswer::default()
        },
        Err(error) => ProxyAnswer {
            runtime_sec,
            error: Some(error),
            ..ProxyAnswer::default()
        },
    })
}

fn lines(asked: &Asked) -> Result<String, String> {
    let folder = Path::new(&asked.repo);
    if !folder.is_absolute() {
        return Err(format!(
            "repo is {:?}: it must be the absolute path of a folder on this machine",
            asked.repo
        ));
    }
    let lines = graph::jsonl(folder).map_err(|failure| failure.to_string())?;
    match asked.max_stdout_bytes {
        Some(most) if lines.len() > most => Err(format!(
            "the graph of {} has {} bytes, more than max_stdout_bytes ({most})",
            asked.repo,
            lines.len()
        )),
        _ => Ok(lines),
    }
}
