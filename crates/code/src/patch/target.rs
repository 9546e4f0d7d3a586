//! Which paths a patch may name.

use crate::RelativePath;

use super::Rejection;

/// The path that `text` names, when a patch may touch it: below the root, no spelling of another
/// system that leads elsewhere, nothing of git's own.
pub(super) fn path(text: &str) -> Result<RelativePath, Rejection> {
    let refuse = |reason| {
        Err(Rejection::Path {
            path: text.chars().take(200).collect(),
            reason,
        })
    };
    let drive = matches!(text.as_bytes(), [letter, b':', rest @ ..]
        if letter.is_ascii_alphabetic() && matches!(rest.first(), None | Some(b'\\' | b'/')));
    if drive || text.starts_with('\\') {
        return refuse("it is absolute; give it relative to the root of the repository");
    }
    if text.split(['/', '\\']).any(|part| part == "..") {
        return refuse("it leads upwards with `..`");
    }
    let path = match RelativePath::new(text) {
        Ok(path) => path,
        Err(error) => return refuse(error.reason),
    };
    if path.parts().any(|part| part.eq_ignore_ascii_case(".git")) {
        return refuse("it is git's own");
    }
    if text.ends_with('/') {
        return refuse("it names a folder");
    }
    Ok(path)
}
