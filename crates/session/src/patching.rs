//! Patches on the files of a session, in full or not at all.

use std::{collections::BTreeMap, time::Duration};

use code::{
    Patch, RelativePath,
    patch::{FileChange, MAX_CONTENT, Mode, PatchReport, Rejection},
};
use sandbox::Limits;

use crate::{Command, Session, SessionError};

/// Why a patch was not applied. The work tree is what it was, unless
/// [`SessionError::is_infrastructure`] says otherwise.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PatchError {
    /// It does not fit the files; the text is for whoever wrote it.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The files cannot be read or written.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// A file before the patch: content and permissions.
type Before = Option<(Vec<u8>, u32)>;

/// See [`Session::apply_patch`].
pub(crate) async fn apply<S: Session + ?Sized>(
    session: &mut S,
    patch: &Patch,
) -> Result<PatchReport, PatchError> {
    let mut files = BTreeMap::new();
    for path in patch.paths() {
        let content = match session.read(&path, MAX_CONTENT as u64).await {
            Ok(content) => Some(content),
            Err(SessionError::NotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        files.insert(path, content);
    }
    let applied = patch.apply(&files)?;
    let mut before: BTreeMap<RelativePath, Before> = BTreeMap::new();
    for (path, content) in files {
        let known = match content {
            Some(content) => Some((content, permissions(session, &path).await?)),
            None => None,
        };
        before.insert(path, known);
    }
    for (index, change) in applied.changes.iter().enumerate() {
        if let Err(error) = carry_out(session, change, &before).await {
            if !error.is_infrastructure() {
                for change in applied.changes[..index].iter().rev() {
                    put_back(session, change, &before).await?;
                }
            }
            return Err(error.into());
        }
    }
    Ok(applied.report)
}

async fn carry_out<S: Session + ?Sized>(
    session: &mut S,
    change: &FileChange,
    before: &BTreeMap<RelativePath, Before>,
) -> Result<(), SessionError> {
    match change {
        FileChange::Write {
            path,
            content,
            mode,
        } => {
            let mode = match mode {
                Mode::Bits(bits) => *bits,
                Mode::Of(other) => match before.get(other) {
                    Some(Some((_, mode))) => *mode,
                    _ => 0o644,
                },
            };
            session.write(path, content, mode).await
        }
        FileChange::Remove { path } => session.remove(path).await,
    }
}

async fn put_back<S: Session + ?Sized>(
    session: &mut S,
    change: &FileChange,
    before: &BTreeMap<RelativePath, Before>,
) -> Result<(), SessionError> {
    let (FileChange::Write { path, .. } | FileChange::Remove { path }) = change;
    match before.get(path) {
        Some(Some((content, mode))) => session.write(path, content, *mode).await,
        _ => session.remove(path).await,
    }
}

/// The permission bits of a regular file, told by the session's own `stat`; without one, those of
/// most files.
async fn permissions<S: Session + ?Sized>(
    session: &mut S,
    path: &RelativePath,
) -> Result<u32, SessionError> {
    let limits = Limits {
        wall: Duration::from_secs(60),
        address_space: false,
        ..Limits::SMALL
    };
    let name = format!("./{path}");
    let command = Command::new(["stat", "-c", "%a", &name], limits);
    let outcome = session.exec(&command).await?;
    let told = outcome.stdout.text();
    let mode = u32::from_str_radix(told.trim(), 8).ok();
    Ok(mode.filter(|_| outcome.is_ok()).unwrap_or(0o644) & 0o777)
}
