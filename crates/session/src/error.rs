//! What went wrong apart from what a command did.

use code::RelativePath;
use sandbox::SandboxError;

use crate::SnapshotId;

/// A refused request, or an infrastructure failure: see [`SessionError::is_infrastructure`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    #[error("{path} does not exist in the work tree")]
    NotFound { path: RelativePath },
    #[error("{path} is {found}, not a regular file")]
    NotAFile { path: RelativePath, found: String },
    #[error("{path} has {bytes} bytes, more than the {limit} that were asked for")]
    FileTooLarge {
        path: RelativePath,
        bytes: u64,
        limit: u64,
    },
    #[error("this session has no snapshot {}", .snapshot.0)]
    NoSuchSnapshot { snapshot: SnapshotId },
    /// The request cannot be carried out by this backend, whatever its state.
    #[error("the {backend} backend cannot do that: {detail}")]
    Unsupported {
        backend: &'static str,
        detail: String,
    },
    /// The image cannot be used: absent, unreadable, of another kind.
    #[error("no session can be started from {image}: {detail}")]
    Image { image: String, detail: String },
    /// The backend's own service is not there.
    #[error("the {backend} backend is not available: {detail}")]
    Unavailable {
        backend: &'static str,
        detail: String,
    },
    /// The session ended under the request, or its state is unknown.
    #[error("the session {id} was lost: {detail}")]
    Lost { id: String, detail: String },
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

impl SessionError {
    /// Whether the same request may succeed in a new session: the machinery failed, not the request.
    pub fn is_infrastructure(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. } | Self::Lost { .. } | Self::Sandbox(_)
        )
    }
}
