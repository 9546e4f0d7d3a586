//! Checkouts that are a folder and a patch over it: the patch is applied in every session, so that tasks of one
//! repository share one folder and nothing is left behind.

use std::sync::Arc;

use async_trait::async_trait;
use code::Patch;
use session::{Backend, Capabilities, Image, PatchError, Session, SessionError};

/// Starts sessions whose work tree has a patch.
#[derive(Debug)]
pub struct PatchedBackend {
    inner: Arc<dyn Backend>,
    patch: Patch,
}

impl PatchedBackend {
    /// `patch` has been tried on the checkout that sessions are started on.
    pub fn new(inner: Arc<dyn Backend>, patch: Patch) -> Self {
        Self { inner, patch }
    }
}

#[async_trait]
impl Backend for PatchedBackend {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn start(&self, image: &Image) -> Result<Box<dyn Session>, SessionError> {
        let mut session = self.inner.start(image).await?;
        match session.apply_patch(&self.patch).await {
            Ok(_) => Ok(session),
            Err(PatchError::Session(error)) => Err(error),
            Err(error @ PatchError::Rejected(_)) => Err(SessionError::Unsupported {
                backend: "patched",
                detail: error.to_string(),
            }),
        }
    }
}
