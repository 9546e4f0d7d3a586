//! Finds the interpreter that runs programs.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{LazyLock, Mutex, PoisonError},
};

use crate::{SandboxError, slot::is_system_path};

/// An interpreter and what it needs to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Python {
    /// The real binary, never a shim that looks for one on each start.
    pub(crate) executable: PathBuf,
    pub(crate) version: String,
    /// Its folders outside the system's.
    pub(crate) folders: Vec<PathBuf>,
}

/// The interpreter at `wanted`, or else the system's, or else the first in the folders `search`.
pub(crate) fn find_python(
    wanted: Option<&Path>,
    search: &[PathBuf],
) -> Result<Python, SandboxError> {
    let mut refusals = Vec::new();
    for candidate in candidates(wanted, search) {
        match ask(&candidate) {
            Ok(python) => return Ok(python),
            Err(detail) => refusals.push(format!("{}: {detail}", candidate.display())),
        }
    }
    Err(SandboxError::NoPython {
        detail: refusals.join("; "),
    })
}

fn candidates(wanted: Option<&Path>, search: &[PathBuf]) -> Vec<PathBuf> {
    const USUAL: [&str; 3] = ["/usr/bin/python3", "/usr/local/bin/python3", "/bin/python3"];
    if let Some(path) = wanted {
        return vec![path.to_owned()];
    }
    let mut candidates: Vec<PathBuf> = USUAL.iter().map(PathBuf::from).collect();
    for path in search.iter().map(|folder| folder.join("python3")) {
        if path.is_absolute() && path.exists() && !candidates.contains(&path) {
            candidates.push(path);
        }
    }
    candidates
}

/// Prints the executable, the version and the folders, one per line; imports what a zygote needs.
const QUESTION: &str = "import sys, ctypes, resource, mmap, fcntl, json
if sys.version_info < (3, 8): sys.exit('older than 3.8')
print(sys.executable, '%d.%d.%d' % sys.version_info[:3], sys.prefix, sys.base_prefix, sep='\\n')";

/// A path, and the file that was there: device, inode, and seconds and nanoseconds of the last change.
type Asked = (PathBuf, [i64; 4]);

/// What interpreters have answered. A shim takes longer to answer than many a run takes.
static ANSWERS: LazyLock<Mutex<HashMap<Asked, Python>>> = LazyLock::new(Mutex::default);

fn ask(candidate: &Path) -> Result<Python, String> {
    let file = fs::metadata(candidate).map_err(|error| error.to_string())?;
    let stamp = [
        file.dev() as i64,
        file.ino() as i64,
        file.ctime(),
        file.ctime_nsec(),
    ];
    let key = (candidate.to_owned(), stamp);
    let answers = || ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = answers().get(&key).cloned();
    if let Some(known) = known.filter(|known| known.executable.exists()) {
        return Ok(known);
    }
    let python = ask_anew(candidate)?;
    answers().insert(key, python.clone());
    Ok(python)
}

fn ask_anew(candidate: &Path) -> Result<Python, String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "this crate starts foreign processes"
    )]
    let mut command = Command::new(candidate);
    let output = command
        .args(["-I", "-c", QUESTION])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let told = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = told.lines().collect();
    let (true, [executable, version, prefixes @ ..]) = (output.status.success(), &lines[..]) else {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(errors.lines().last().unwrap_or("no answer").to_owned());
    };
    let executable = PathBuf::from(executable);
    let resolved = executable
        .canonicalize()
        .map_err(|error| error.to_string())?;
    // `<prefix>/bin/python3`: the binary's own prefix is needed too when links lead there.
    let home = resolved.parent().and_then(Path::parent).map(Path::to_owned);
    let mut folders: Vec<PathBuf> = prefixes.iter().map(PathBuf::from).chain(home).collect();
    folders.retain(|folder| !is_system_path(folder) && folder != Path::new("/"));
    folders.sort();
    folders.dedup();
    // In a virtual environment, the link is what tells the interpreter so; elsewhere it may lie
    // where no jail sees it.
    let virtual_environment = prefixes.first() != prefixes.last();
    Ok(Python {
        executable: if virtual_environment {
            executable
        } else {
            resolved
        },
        version: (*version).to_owned(),
        folders,
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn a_shim_is_resolved_to_the_binary_behind_it() {
        let real = find_python(None, &[]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let shim = folder.path().join("python3");
        let text = format!("#!/bin/sh\nexec {} \"$@\"\n", real.executable.display());
        fs::write(&shim, text).unwrap();
        fs::set_permissions(&shim, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find_python(Some(&shim), &[]).unwrap(), real);
    }

    #[test]
    fn the_search_is_asked_after_the_usual_places() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("python3");
        fs::write(&own, "").unwrap();
        let search = [
            "/usr/bin".into(),
            "/no/such".into(),
            ".".into(),
            folder.path().to_owned(),
        ];
        let found = candidates(None, &search);
        assert_eq!((found.len(), &found[3]), (4, &own));
        assert_eq!(candidates(Some(&own), &search), [own]);
    }

    #[test]
    fn what_is_no_interpreter_is_refused() {
        for path in ["/bin/true", "/no/such/file", "/"] {
            let refused = find_python(Some(Path::new(path)), &[]).unwrap_err();
            assert!(refused.to_string().contains(path), "{refused}");
        }
    }
}
