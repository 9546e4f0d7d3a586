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
#[error("{}: {msg}", joined(loc))]
pub struct Invalid {
    pub loc: Vec<Part>,
    pub msg: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
}

/// A step of the way to a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Part {
    Name(String),
    Index(usize),
}

impl From<&str> for Part {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

fn joined(loc: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Name(name) => name.clone(),
        Part::Index(index) => index.to_string(),
    };
    loc.iter().map(text).collect::<Vec<_>>().join(".")
}

impl Invalid {
    pub(crate) fn at(loc: &[&str], msg: impl Into<String>) -> Self {
        Self::below(&[], loc.iter().map(|&name| name.into()), msg)
    }

    /// At `rest`, as seen from `at`.
    fn below(at: &[Part], rest: impl IntoIterator<Item = Part>, msg: impl Into<String>) -> Self {
        Self {
            loc: at.iter().cloned().chain(rest).collect(),
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
            check(&request, &["body".into()])?;
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
                check(request, &["body".into(), Part::Index(index)])?;
            }
            Ok(Request::Batch(requests))
        }
        Route::Submit => {
            let Object::<SubmitRequest>(request) = read(body)?;
            let config = ["body".into(), "config".into()];
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
    at: &[Part],
) -> Result<Vec<(String, Vec<u8>)>, Invalid> {
    let present = request
        .files
        .iter()
        .filter_map(|(path, text)| Some((path, text.as_ref()?)));
    present
        .map(|(path, text)| {
            let wrong =
                |msg: String| Invalid::below(at, ["files".into(), path.as_str().into()], msg);
            let path =
                RelativePath::new(path.as_str()).map_err(|error| wrong(error.to_string()))?;
            let contents = BASE64_STANDARD
                .decode(text)
                .map_err(|error| wrong(format!("not base64: {error}")))?;
            Ok((path.as_str().to_owned(), contents))
        })
        .collect()
}

fn check(request: &RunCodeRequest, at: &[Part]) -> Result<(), Invalid> {
    check_seconds(request.compile_timeout, at, "compile_timeout")?;
    check_seconds(request.run_timeout, at, "run_timeout")?;
    if let Some(memory) = request.memory_limit_mb
        && memory != -1
        && !(1..=MAX_MEMORY_MB).contains(&memory)
    {
        let msg = format!("{memory} is neither -1 nor between 1 and {MAX_MEMORY_MB}");
        return Err(Invalid::below(at, ["memory_limit_MB".into()], msg));
    }
    files(request, at)?;
    for (index, path) in request.fetch_files.iter().enumerate() {
        if let Err(error) = RelativePath::new(path.as_str()) {
            let place = ["fetch_files".into(), Part::Index(index)];
            return Err(Invalid::below(at, place, error.to_string()));
        }
    }
    Ok(())
}

fn check_seconds(seconds: f64, at: &[Part], name: &str) -> Result<(), Invalid> {
    if seconds > 0.0 && seconds <= MAX_SECONDS {
        return Ok(());
    }
    let msg = format!("{seconds} is not a number of seconds above 0 and up to {MAX_SECONDS}");
    Err(Invalid::below(at, [name.into()], msg))
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Invalid> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let read: T = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let mut loc = vec![Part::from("body")];
        loc.extend(error.path().iter().filter_map(|segment| match segment {
            Segment::Seq { index } => Some(Part::Index(*index)),
            Segment::Map { key: name } | Segment::Enum { variant: name } => {
                Some(Part::Name(name.clone()))
            }
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
                    loc.push(field.into());
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
        loc: vec!["body".into()],
        msg: error.to_string(),
        kind: "json_invalid",
    })?;
    Ok(read)
}
