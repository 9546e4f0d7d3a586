//! Finds the programs of a language: the real ones, never a shim that looks for one on each start.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::slot::is_system_path;

/// Where programs lie on most systems.
const USUAL: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// The executable files called `name` in `search` and the usual places, in this order.
pub(crate) fn candidates(name: &str, search: &[PathBuf]) -> Vec<PathBuf> {
    let usual = USUAL.iter().map(PathBuf::from);
    let folders = search.iter().cloned().chain(usual);
    let mut found: Vec<PathBuf> = Vec::new();
    for path in folders.map(|folder| folder.join(name)) {
        let executable = fs::metadata(&path)
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
        if executable && path.is_absolute() && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// What `program` prints, on both streams, when it ends well.
pub(crate) fn ask(program: &Path, arguments: &[&str]) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "this crate starts foreign processes"
    )]
    let mut command = Command::new(program);
    // Some shims go by settings of the folder they are called in.
    let command = command
        .args(arguments)
        .current_dir("/")
        .stdin(Stdio::null());
    let output = command.output().ok()?;
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told).into_owned();
    output.status.success().then_some(told)
}

/// The folder that an installation of `program` (`<folder>/bin/<name>`) needs to be seen, unless it
/// is the system's.
pub(crate) fn home_of(program: &Path) -> Vec<PathBuf> {
    let real = program
        .canonicalize()
        .unwrap_or_else(|_| program.to_owned());
    let home = real.parent().and_then(Path::parent).map(Path::to_owned);
    foreign(home)
}

/// Those of `folders` that a jail does not show anyway.
pub(crate) fn foreign(folders: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let foreign = |folder: &PathBuf| !is_system_path(folder) && folder != Path::new("/");
    folders.into_iter().filter(foreign).collect()
}

/// Folders outside `home` that links within it lead to, such as a distribution's settings.
pub(crate) fn linked_from(home: &Path) -> Vec<PathBuf> {
    const DEPTH: usize = 4;
    let mut found = Vec::new();
    let mut folders = vec![(home.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < DEPTH => folders.push((path, depth + 1)),
                Ok(kind) if kind.is_symlink() => found.extend(target_folder(&path)),
                _ => {}
            }
        }
    }
    found.retain(|folder| !folder.starts_with(home));
    found.sort();
    // A folder within one that is shown already adds nothing.
    found.dedup_by(|later, earlier| later.starts_with(earlier.as_path()));
    foreign(found)
}

/// The folder of what a link leads to; the target itself where that folder is a whole system's.
fn target_folder(link: &Path) -> Option<PathBuf> {
    let target = link.canonicalize().ok()?;
    if target.is_dir() {
        return Some(target);
    }
    let folder = target.parent()?.to_owned();
    match folder.components().count() {
        0..=2 => Some(target),
        _ => Some(folder),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn programs_are_found_where_they_are_searched_first() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("sh");
        fs::write(&own, "#!/bin/sh\necho out; echo err >&2\n").unwrap();
        let search = [folder.path().to_owned()];
        let not_executable = candidates("sh", &search);
        assert!(!not_executable.contains(&own) && !not_executable.is_empty());
        fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(candidates("sh", &search)[0], own);
        assert_eq!(ask(&own, &[]).as_deref(), Some("out\nerr\n"));
        assert_eq!(
            home_of(&own),
            foreign(folder.path().parent().map(Path::to_owned))
        );
        assert!(candidates("no-such-program", &search).is_empty());
        assert_eq!(ask(Path::new("/bin/false"), &[]), None);
    }

    #[test]
    fn links_out_of_an_installation_are_followed() {
        let home = tempfile::tempdir().unwrap();
        let settings = tempfile::tempdir().unwrap();
        let file = settings.path().join("some.conf");
        fs::write(&file, "").unwrap();
        fs::create_dir(home.path().join("conf")).unwrap();
        symlink(&file, home.path().join("conf/some.conf")).unwrap();
        symlink("conf", home.path().join("inside")).unwrap();
        symlink("/etc/passwd", home.path().join("passwd")).unwrap();
        symlink("/usr/bin", home.path().join("system")).unwrap();
        symlink("nowhere", home.path().join("broken")).unwrap();
        let mut expected = vec![
            settings.path().canonicalize().unwrap(),
            "/etc/passwd".into(),
        ];
        expected.sort();
        let home = home.path().canonicalize().unwrap();
        assert_eq!(linked_from(&home), expected);
    }
}
