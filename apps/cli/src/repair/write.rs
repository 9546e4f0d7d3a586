//! A patch into the user's own files.

use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
};

use anyhow::Context;
use code::{Patch, patch::FileChange, patch::Mode};
use repair::Checkout;

use crate::failure::{Classify, Outcome};

/// Writes all of a patch, or nothing that could be foreseen to fail.
pub(super) fn write(checkout: &Checkout, patch: &str) -> Outcome<()> {
    let patch = Patch::parse(patch.as_bytes()).failed()?;
    let root = checkout.folder();
    let (mut files, mut modes) = (BTreeMap::new(), BTreeMap::new());
    for path in patch.paths() {
        let content = checkout.read(&path).failed()?;
        if let Ok(found) = fs::metadata(root.join(path.as_str())) {
            modes.insert(path.clone(), found.permissions().mode());
        }
        files.insert(path, content);
    }
    for change in patch.apply(&files).failed()?.changes {
        match change {
            FileChange::Write {
                path,
                content,
                mode,
            } => {
                let mode = match mode {
                    // Written in place, a file keeps its permissions and links.
                    Mode::Of(other) if other == path => None,
                    Mode::Of(other) => modes.get(&other).copied(),
                    Mode::Bits(bits) => Some(bits),
                };
                let path = root.join(path.as_str());
                if let Some(folder) = path.parent() {
                    fs::create_dir_all(folder).failed()?;
                }
                fs::write(&path, content)
                    .with_context(|| path.display().to_string())
                    .failed()?;
                if let Some(mode) = mode {
                    fs::set_permissions(&path, Permissions::from_mode(mode)).failed()?;
                }
            }
            FileChange::Remove { path } => fs::remove_file(root.join(path.as_str())).failed()?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use repair::Place;

    use super::*;

    #[test]
    fn renamed_and_changed_files_keep_their_modes() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o7777;
        for (name, mode) in [("old.sh", 0o750), ("kept.py", 0o600), ("plain.py", 0o640)] {
            fs::write(at(name), "one\ntwo\n").unwrap();
            fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
        }
        let patch = "diff --git a/old.sh b/new/name.sh\nrename from old.sh\nrename to new/name.sh\n\
            --- a/old.sh\n+++ b/new/name.sh\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n\
            --- a/kept.py\n+++ b/kept.py\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n\
            diff --git a/plain.py b/plain.py\nold mode 100644\nnew mode 100755\n";
        let checkout = Checkout::of(&Place::Folder(folder.path().to_owned())).unwrap();
        write(&checkout, patch).unwrap();
        assert_eq!(
            fs::read_to_string(at("new/name.sh")).unwrap(),
            "one\nthree\n"
        );
        assert!(!at("old.sh").exists());
        assert_eq!(
            (mode("new/name.sh"), mode("kept.py"), mode("plain.py")),
            (0o750, 0o600, 0o755)
        );
    }
}
