//! From the bytes of a request to what it asks, or to the field that is wrong. Pure.

use base64::{Engine, prelude::BASE64_STANDARD};
use code::RelativePath;
use serde::{Serialize, de::DeserializeOwned};
use serde_path_to_error::Segment;

use crate::{
    dialect::{DatasetRequest, RunCodeRequest, SubmitRequest},
    object::Object,
};

/// What a request is.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    RunCode(RunCodeRequest),
    Batch(Vec<RunCodeRequest>),
    Submit(SubmitRequest),
    Dataset(DatasetRequest),
}

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    RunCode,
    Batch,
    Submit,
    Dataset,
}

/// What is wrong with a request, in FastAPI's shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{}: {msg}", loc.join("."))]
pub struct Invalid {
    pub loc: Vec<String>,
    pub msg: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
}

impl Invalid {
    pub(crate) fn at(loc: &[&str], msg: impl Into<String>) -> Self {
        Self {
            loc: loc.iter().map(|&part| part.to_owned()).collect(),
            msg: msg.into(),
            kind: "value_error",
        }
    }
}

/// Requests in one batch.
pub(crate) const MAX_BATCH: usize = 1024;

/// Seconds that a request may ask for.
const MAX_SECONDS: f64 = 3600.0;
const MAX_MEMORY_MB: i64 = 1 << 20;

/// Decodes and checks the body of a request.
///
/// # Errors
/// The first field that is wrong.
pub fn decode(route: Route, body: &[u8]) -> Result<Request, Invalid> {
    match route {
        Route::RunCode => {
            let Object::<RunCodeRequest>(request) = read(body)?;
            check(&request, &["body"])?;
            Ok(Request::RunCode(request))
        }
        Route::Batch => {
            let requests: Vec<Object<RunCodeRequest>> = read(body)?;
            let requests: Vec<_> = requests
                .into_iter()
                .map(|Object(request)| request)
                .collect();
            if requests.len() > MAX_BATCH {
                let msg = format!("{} requests, more than {MAX_BATCH}", requests.len());
                return Err(Invalid::at(&["body"], msg));
            }
            for (index, request) in requests.iter().enumerate() {
                check(request, &["body", &index.to_string()])?;
            }
            Ok(Request::Batch(requests))
        }
        Route::Submit => {
            let Object::<SubmitRequest>(request) = read(body)?;
            let config = ["body", "config"];
            for (name, value) in [
                ("compile_timeout", request.config.compile_timeout),
                ("run_timeout", request.config.run_timeout),
            ] {
                if let Some(value) = value {
                    check_seconds(value, &config, name)?;
                }
            }
            Ok(Request::Submit(request))
        }
        Route::Dataset => {
            let Object::<DatasetRequest>(request) = read(body)?;
            Ok(Request::Dataset(request))
        }
    }
}

/// The contents of the files that a request brings, by path. Checked by [`decode`] already.
pub(crate) fn files(
    request: &RunCodeRequest,
    at: &[&str],
) -> Result<Vec<(String, Vec<u8>)>, Invalid> {
    let present = request
        .files
        .iter()
        .filter_map(|(path, text)| Some((path, text.as_ref()?)));
    present
        .map(|(path, text)| {
            let loc: Vec<&str> = at.iter().copied().chain(["files", path]).collect();
            let path = RelativePath::new(path.as_str())
                .map_err(|error| Invalid::at(&loc, error.to_string()))?;
            let contents = BASE64_STANDARD
                .decode(text)
                .map_err(|error| Invalid::at(&loc, format!("not base64: {error}")))?;
            Ok((path.as_str().to_owned(), contents))
        })
        .collect()
}

fn check(request: &RunCodeRequest, at: &[&str]) -> Result<(), Invalid> {
    check_seconds(request.compile_timeout, at, "compile_timeout")?;
    check_seconds(request.run_timeout, at, "run_timeout")?;
    if let Some(memory) = request.memory_limit_mb
        && memory != -1
        && !(1..=MAX_MEMORY_MB).contains(&memory)
    {
        let loc: Vec<&str> = at.iter().copied().chain(["memory_limit_MB"]).collect();
        let msg = format!("{memory} is neither -1 nor between 1 and {MAX_MEMORY_MB}");
        return Err(Invalid::at(&loc, msg));
    }
    files(request, at)?;
    for (index, path) in request.fetch_files.iter().enumerate() {
        if let Err(error) = RelativePath::new(path.as_str()) {
            let index = index.to_string();
            let loc: Vec<&str> = at.iter().copied().chain(["fetch_files", &index]).collect();
            return Err(Invalid::at(&loc, error.to_string()));
        }
    }
    Ok(())
}

fn check_seconds(seconds: f64, at: &[&str], name: &str) -> Result<(), Invalid> {
    if seconds > 0.0 && seconds <= MAX_SECONDS {
        return Ok(());
    }
    let loc: Vec<&str> = at.iter().copied().chain([name]).collect();
    let msg = format!("{seconds} is not a number of seconds above 0 and up to {MAX_SECONDS}");
    Err(Invalid::at(&loc, msg))
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Invalid> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let read: T = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let mut loc = vec!["body".to_owned()];
        loc.extend(error.path().iter().filter_map(|segment| match segment {
            Segment::Seq { index } => Some(index.to_string()),
            Segment::Map { key } => Some(key.clone()),
            Segment::Enum { variant } => Some(variant.clone()),
            // What the end of the text left unsaid.
            Segment::Unknown => None,
        }));
        let inner = error.into_inner();
        let msg = inner.to_string();
        let kind = match inner.classify() {
            serde_json::error::Category::Data => {
                // `missing field` names its field in the text alone.
                if let Some(rest) = msg.strip_prefix("missing field `")
                    && let Some((field, _)) = rest.split_once('`')
                {
                    loc.push(field.to_owned());
                    "missing"
                } else {
                    "type_error"
                }
            }
            _ => "json_invalid",
        };
        Invalid { loc, msg, kind }
    })?;
    deserializer.end().map_err(|error| Invalid {
        loc: vec!["body".to_owned()],
        msg: error.to_string(),
        kind: "json_invalid",
    })?;
    Ok(read)
}
