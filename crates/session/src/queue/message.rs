//! Requests, responses and signs of life of a file queue. Fields that nobody knows are ignored.
//!
//! The upper fields of each are those of the queue that existing Slurm scripts speak; the lower ones
//! carry what text cannot, and may be absent.

use std::{collections::BTreeMap, time::Duration};

use sandbox::{Captured, Status};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::{
    Capabilities, CommandOutcome, Image, SnapshotId,
    wire::{Bytes, Fault, WireLimits, WireOutcome, seconds},
};

/// What a request asks for.
pub(crate) mod kind {
    pub(crate) const NOOP: &str = "noop";
    /// One command: in the instance of the run when there is one, else in one made for it.
    pub(crate) const EXEC: &str = "exec";
    pub(crate) const PUT: &str = "put";
    pub(crate) const GET: &str = "get";
    pub(crate) const REMOVE: &str = "remove";
    pub(crate) const SNAPSHOT: &str = "snapshot";
    pub(crate) const RESTORE: &str = "restore";
    /// Ends the instance of the run, or one that nobody asks for any more.
    pub(crate) const CLEANUP: &str = "cleanup";
    pub(crate) const START: &str = "instance_start";
    pub(crate) const INSTANCE_EXEC: &str = "instance_exec";
    pub(crate) const STOP: &str = "instance_stop";
}

/// `in/REQ_ID.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Request {
    #[serde(deserialize_with = "or_default")]
    pub(crate) req_id: String,
    pub(crate) runner_id: Value,
    #[serde(deserialize_with = "or_default")]
    pub(crate) run_id: String,
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub(crate) kind: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) image: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) sif_path: String,
    #[serde(deserialize_with = "words")]
    pub(crate) cmd: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) cwd: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) timeout_sec: Option<f64>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) src: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) dst: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) meta: Map<String, Value>,

    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stdin_b64: Option<Bytes>,
    /// What `put` writes to `dst`, instead of the file `src`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content_b64: Option<Bytes>,
    /// Permission bits of a file that is put.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<u32>,
    /// Of a file that is got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limits: Option<WireLimits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot: Option<SnapshotId>,
    /// What `instance_start` starts from, where `image` alone does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<Image>,
    /// Nobody waits for a response.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) no_reply: bool,
}

/// `out/REQ_ID.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Response {
    pub(crate) req_id: String,
    pub(crate) runner_id: Value,
    #[serde(deserialize_with = "or_default")]
    pub(crate) run_id: String,
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub(crate) kind: String,
    /// The runner did what was asked, and a command came to its own end.
    pub(crate) ok: bool,
    pub(crate) returncode: Option<i32>,
    /// Invalid UTF-8 is replaced.
    #[serde(deserialize_with = "or_default")]
    pub(crate) stdout: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) stderr: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) runtime_sec: f64,
    pub(crate) error: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) meta: Map<String, Value>,

    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<WireOutcome>,
    /// What failed, when it was not a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fault: Option<Fault>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content_b64: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot: Option<SnapshotId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) capabilities: Option<Capabilities>,
}

/// `heartbeat.json`, and `ready.json` once a runner can be asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Heartbeat {
    pub(crate) rid: Value,
    pub(crate) pid: u32,
    pub(crate) host: String,
    /// Seconds since 1970, by the runner's clock.
    pub(crate) ts: f64,
    pub(crate) current_run_id: Option<String>,
    pub(crate) current_task_id: Option<String>,
    pub(crate) current_image: Option<String>,
    pub(crate) instance: Option<String>,
    pub(crate) bound_at: Option<f64>,
    pub(crate) last_req_at: Option<f64>,
    pub(crate) orphan_ttl_sec: f64,

    /// Unlike any other runner's: who does not find its own here has been replaced.
    #[serde(deserialize_with = "or_default")]
    pub(crate) token: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) capabilities: Option<Capabilities>,
}

/// How long a command may take when nothing says so.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(900);

/// The exit code of a command that was ended at its time limit, as `timeout` tells it.
pub(crate) const TIMED_OUT: i32 = 124;

impl Request {
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout_sec.map_or(DEFAULT_TIMEOUT, seconds)
    }

    /// Who the instance is for, by which a new run may take over the old one's.
    pub(crate) fn task_id(&self) -> &str {
        let told = self.meta.get("task_id").and_then(Value::as_str);
        told.unwrap_or(&self.run_id)
    }

    pub(crate) fn response(&self) -> Response {
        Response {
            req_id: self.req_id.clone(),
            runner_id: self.runner_id.clone(),
            run_id: self.run_id.clone(),
            kind: self.kind.clone(),
            ..Response::default()
        }
    }
}

impl Heartbeat {
    /// Whether an instance for `run` may be asked for: there is none, or it is this run's, or nobody
    /// has asked anything of it for longer than its runner waits. By the runner's own clock.
    pub(crate) fn is_free_for(&self, run: &str) -> bool {
        let asked = self.last_req_at.or(self.bound_at);
        match &self.current_run_id {
            None => true,
            Some(current) => {
                current == run || asked.is_some_and(|asked| self.ts - asked >= self.orphan_ttl_sec)
            }
        }
    }
}

impl Response {
    pub(crate) fn is_busy(&self) -> bool {
        match self.meta.get("busy") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(busy)) => *busy,
            Some(Value::Number(busy)) => busy.as_f64() != Some(0.0),
            Some(_) => true,
        }
    }

    pub(crate) fn set_outcome(&mut self, outcome: CommandOutcome) {
        self.stdout = outcome.stdout.text();
        self.stderr = outcome.stderr.text();
        self.runtime_sec = outcome.wall_ms / 1e3;
        let (ok, code) = match outcome.status {
            Status::Ok => (true, 0),
            Status::NonZero(code) => (true, code),
            Status::Signal(signal) => (true, 128 + signal),
            Status::WallTimeout | Status::CpuTimeout => (false, TIMED_OUT),
            Status::Memory | Status::Output | Status::Disk => (false, 1),
        };
        self.ok = ok;
        self.returncode = Some(code);
        if !ok {
            self.error = Some(format!("ended at a limit: {}", outcome.status.name()));
        }
        self.outcome = Some(outcome.into());
    }

    /// What a command did; from the text fields where the runner knows no others.
    pub(crate) fn outcome(self) -> Option<CommandOutcome> {
        if let Some(outcome) = self.outcome {
            return Some(outcome.into());
        }
        let captured = |text: String| Captured {
            total: text.len() as u64,
            head: text.into_bytes(),
            ..Captured::default()
        };
        let status = match self.returncode? {
            0 => Status::Ok,
            TIMED_OUT | -1 if !self.ok => Status::WallTimeout,
            code => Status::NonZero(code),
        };
        Some(CommandOutcome {
            status,
            stdout: captured(self.stdout),
            stderr: captured(self.stderr),
            wall_ms: self.runtime_sec * 1e3,
            cpu_ms: None,
            peak_memory: None,
        })
    }
}

/// `null` is as good as absent.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

/// A list of words, or one text for the shell.
fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Words {
        List(Vec<String>),
        Script(String),
    }
    Ok(match Option::<Words>::deserialize(from)? {
        None => Vec::new(),
        Some(Words::List(words)) => words,
        Some(Words::Script(script)) => vec!["bash".to_owned(), "-lc".to_owned(), script],
    })
}

#[cfg(test)]
mod tests {
    use super::{Request, Response};
    use sandbox::Status;

    #[test]
    fn a_request_with_the_old_fields_alone_is_understood() {
        let text = r#"{"req_id":"ab","runner_id":0,"run_id":"gp-1","type":"exec","image":"a/b:c",
            "sif_path":null,"cmd":["ls","-l"],"cwd":"/testbed","env":{"A":"b"},"timeout_sec":5,
            "src":null,"dst":null,"meta":{"task_id":"t"},"of_the_future":[1]}"#;
        let request: Request = serde_json::from_str(text).unwrap();
        assert_eq!(request.cmd, ["ls", "-l"]);
        assert_eq!(request.task_id(), "t");
        let request: Request = serde_json::from_str(r#"{"type":"exec","cmd":"a | b"}"#).unwrap();
        assert_eq!(request.cmd, ["bash", "-lc", "a | b"]);
        assert_eq!(request.timeout().as_secs(), 900);
    }

    #[test]
    fn a_response_with_the_old_fields_alone_is_an_outcome() {
        let text = r#"{"req_id":"ab","ok":true,"returncode":3,"stdout":"o","stderr":"e",
            "runtime_sec":0.5,"error":null,"meta":{}}"#;
        let response: Response = serde_json::from_str(text).unwrap();
        let outcome = response.outcome().unwrap();
        assert_eq!(outcome.status, Status::NonZero(3));
        assert_eq!(outcome.stdout.bytes(), b"o");
        for (meta, busy) in [
            (r#"{"busy":1}"#, true),
            (r#"{"busy":0}"#, false),
            ("{}", false),
        ] {
            let text = format!(r#"{{"meta":{meta}}}"#);
            let response: Response = serde_json::from_str(&text).unwrap();
            assert_eq!(response.is_busy(), busy, "{meta}");
        }
    }
}
