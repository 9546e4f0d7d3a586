//! What is answered instead of a result.

use std::time::Duration;

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use judge::JudgeError;
use sandbox::SandboxError;
use serde_json::{Value, json};

use crate::Invalid;

/// A reply that is no result.
#[derive(Debug)]
pub(crate) enum Fault {
    /// 422 in FastAPI's shape: the request is not what its schema says.
    Invalid(Invalid),
    /// 400: the request is well formed and asks for what there is not.
    Asked(String),
    /// 404.
    Absent(String),
    /// 429: come back later.
    Busy(Duration),
    /// 500: the machinery failed; says nothing about the program.
    Failed(String),
    /// 503: going down.
    Closing,
    /// 501.
    NotOffered(String),
}

impl From<Invalid> for Fault {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<SandboxError> for Fault {
    fn from(error: SandboxError) -> Self {
        match error {
            SandboxError::Overloaded { retry_after, .. } => Self::Busy(retry_after),
            SandboxError::Invalid {
                field,
                value,
                detail,
            } => Self::Invalid(Invalid::at(&["body", field], format!("{value}: {detail}"))),
            SandboxError::TooLarge { .. } => {
                Self::Invalid(Invalid::at(&["body"], error.to_string()))
            }
            // Not the program's failure, and no use to try again.
            SandboxError::MissingProgram { .. } => Self::Asked(error.to_string()),
            SandboxError::Closed => Self::Closing,
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<JudgeError> for Fault {
    fn from(error: JudgeError) -> Self {
        match error {
            JudgeError::Sandbox(error) => error.into(),
            JudgeError::NotPython { .. } => Self::Asked(error.to_string()),
            other => Self::Failed(other.to_string()),
        }
    }
}

impl Fault {
    fn parts(self) -> (StatusCode, Value, Option<Duration>) {
        let detail = |text: String| json!({ "detail": text });
        match self {
            Self::Invalid(invalid) => (
                StatusCode::UNPROCESSABLE_ENTITY,
                json!({ "detail": [invalid] }),
                None,
            ),
            Self::Asked(text) => (StatusCode::BAD_REQUEST, detail(text), None),
            Self::Absent(text) => (StatusCode::NOT_FOUND, detail(text), None),
            Self::Busy(after) => {
                let text = "as many requests wait as this server holds; try again later";
                (
                    StatusCode::TOO_MANY_REQUESTS,
                    detail(text.to_owned()),
                    Some(after),
                )
            }
            Self::Failed(text) => (
                StatusCode::INTERNAL_SERVER_ERROR,
                json!({ "detail": text, "traceback": [] }),
                None,
            ),
            Self::Closing => (
                StatusCode::SERVICE_UNAVAILABLE,
                detail("this server is going down".to_owned()),
                Some(Duration::from_secs(5)),
            ),
            Self::NotOffered(text) => (StatusCode::NOT_IMPLEMENTED, detail(text), None),
        }
    }

    /// The body alone, for one request of a batch.
    pub(crate) fn into_json(self) -> Value {
        let (code, body, _) = self.parts();
        json!({ "status_code": code.as_u16(), "error": body })
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let (code, body, retry_after) = self.parts();
        let mut response = (code, Json(body)).into_response();
        if let Some(after) = retry_after {
            let seconds = after.as_secs_f64().ceil().max(1.0) as u64;
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
