//! The contract of every backend.

use std::fmt;

use async_trait::async_trait;
use code::{Patch, RelativePath, patch::PatchReport};
use serde::{Deserialize, Serialize};

use crate::{Capabilities, Command, CommandOutcome, Image, PatchError, SessionError, patching};

/// Where sessions can be started.
#[async_trait]
pub trait Backend: Send + Sync + fmt::Debug {
    /// What this backend keeps apart and which limits it enforces, found by trying.
    fn capabilities(&self) -> Capabilities;

    /// Starts a session on a fresh copy of `image`; nothing that it does reaches the image.
    async fn start(&self, image: &Image) -> Result<Box<dyn Session>, SessionError>;
}

/// A work tree that commands run in. Ends when dropped, at the latest; [`Session::stop`] says
/// whether that went well.
///
/// A method that fails with [`SessionError::is_infrastructure`] leaves the session in an unknown
/// state: stop it and start another.
#[async_trait]
pub trait Session: Send + fmt::Debug {
    /// Unique among the sessions of this machine; leases and what is left behind carry it.
    fn id(&self) -> &str;

    fn capabilities(&self) -> Capabilities;

    /// Runs `command` to its end. Processes that it leaves behind are ended with it.
    async fn exec(&mut self, command: &Command) -> Result<CommandOutcome, SessionError>;

    /// The content of a regular file of the work tree. No symbolic link is followed.
    ///
    /// # Errors
    /// [`SessionError::NotFound`], [`SessionError::NotAFile`] (folders, links, devices, pipes) and
    /// [`SessionError::FileTooLarge`] past `max_bytes`.
    async fn read(&mut self, path: &RelativePath, max_bytes: u64) -> Result<Vec<u8>, SessionError>;

    /// Writes a whole file, making its folders. Replaces a link rather than following it; a link
    /// among its folders is [`SessionError::NotAFile`]. `mode` are the permission bits.
    async fn write(
        &mut self,
        path: &RelativePath,
        content: &[u8],
        mode: u32,
    ) -> Result<(), SessionError>;

    /// Removes a file or a link.
    async fn remove(&mut self, path: &RelativePath) -> Result<(), SessionError>;

    /// Applies `patch` to the files that it names: all of it, or nothing. Says where its parts landed.
    ///
    /// # Errors
    /// [`PatchError::Rejected`] when it does not fit, and [`PatchError::Session`] when one of its files
    /// is refused by [`Session::read`], [`Session::write`] or [`Session::remove`].
    async fn apply_patch(&mut self, patch: &Patch) -> Result<PatchReport, PatchError> {
        patching::apply(self, patch).await
    }

    /// Puts the present work tree aside.
    async fn snapshot(&mut self) -> Result<SnapshotId, SessionError>;

    /// Makes the work tree what it was at `snapshot`, which stays.
    ///
    /// # Errors
    /// [`SessionError::NoSuchSnapshot`].
    async fn restore(&mut self, snapshot: &SnapshotId) -> Result<(), SessionError>;

    /// Ends every process of the session and removes what it kept.
    async fn stop(self: Box<Self>) -> Result<(), SessionError>;
}

/// A work tree put aside, valid within its session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SnapshotId(pub String);
