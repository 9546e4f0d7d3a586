//! Tests of a repository, in a session, after a program has changed its work tree.

use std::collections::{BTreeMap, BTreeSet};

use code::RelativePath;
use sandbox::Limits;
use session::{Command, Session, SessionError};

use super::{Canary, Graded, HEADER, IN_ORDER, NO_PLUGINS, arguments, environment};
use crate::CaseResult;

/// Files of a work tree that decide what pytest runs and believes, in each folder above a test.
pub const STEERING: [&str; 10] = [
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "setup.cfg",
    "pyproject.toml",
    "sitecustomize.py",
    "usercustomize.py",
];

/// Where modules are looked for beside the work tree itself.
const SOURCES: &str = "src";

/// Bytes of one of these files.
const MOST: u64 = 16 << 20;

/// The tests' files, and those that steer pytest, as they were before anything was changed
/// (spec of the sandbox, rows 35 and 36).
#[derive(Clone, Debug, Default)]
pub struct Pristine {
    /// `None`: there was no such file.
    files: BTreeMap<RelativePath, Option<Vec<u8>>>,
    /// What the work tree itself says to be plugins.
    own_plugins: Vec<u8>,
}

/// Prints what a work tree says to be plugins, by the metadata of packages that lie where modules are looked for.
const OWN_PLUGINS: &str = "cat /dev/null *.dist-info/entry_points.txt *.egg-info/entry_points.txt \
    src/*.dist-info/entry_points.txt src/*.egg-info/entry_points.txt 2>/dev/null";

async fn own_plugins(session: &mut dyn Session) -> Result<Vec<u8>, SessionError> {
    let told = session
        .exec(&Command::shell(OWN_PLUGINS, Limits::SMALL))
        .await?;
    Ok(told.stdout.text().into_bytes())
}

impl Pristine {
    /// Looks at a work tree that nothing has changed yet. `ids` are the node ids of all tests that
    /// will count.
    ///
    /// # Errors
    /// [`SessionError::Unsupported`] for an id that names no file of the work tree; failures of the
    /// session.
    pub async fn take(
        session: &mut dyn Session,
        ids: impl IntoIterator<Item = &str>,
    ) -> Result<Self, SessionError> {
        let mut paths = BTreeSet::new();
        for id in ids {
            let file = relative(id.split("::").next().unwrap_or(id))?;
            let mut folder = file.parent();
            paths.insert(file);
            loop {
                for name in STEERING {
                    paths.insert(match &folder {
                        Some(folder) => relative(&format!("{folder}/{name}"))?,
                        None => relative(name)?,
                    });
                }
                match folder {
                    Some(inner) => folder = inner.parent(),
                    None => break,
                }
            }
        }
        let mut files = BTreeMap::new();
        for path in paths {
            let content = match session.read(&path, MOST).await {
                Ok(content) => Some(content),
                Err(SessionError::NotFound { .. }) => None,
                Err(error) => return Err(error),
            };
            files.insert(path, content);
        }
        let own_plugins = own_plugins(session).await?;
        Ok(Self { files, own_plugins })
    }

    /// A file of the tests that the work tree does not have in this form yet.
    pub fn with_file(mut self, path: RelativePath, content: Vec<u8>) -> Self {
        self.files.insert(path, Some(content));
        self
    }

    /// Whether it could be done: a folder or a link may stand in a file's place.
    async fn restore(&self, session: &mut dyn Session) -> Result<bool, SessionError> {
        for (path, content) in &self.files {
            let restored = match content {
                Some(content) => session.write(path, content, 0o644).await,
                None => session.remove(path).await,
            };
            match restored {
                Ok(()) | Err(SessionError::NotFound { .. }) => {}
                Err(error) if error.is_infrastructure() => return Err(error),
                Err(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Whether a test's file, or what steers pytest, says that some tests are expected to fail.
    fn declares_failures(&self, file: &str) -> bool {
        let mut files = self
            .files
            .iter()
            .filter(|(path, _)| path.as_str() == file || STEERING.contains(&path.file_name()));
        files.any(|(_, content)| {
            let text = content.as_deref().map(String::from_utf8_lossy);
            text.is_some_and(|text| text.contains("xfail") || text.contains("expectedFailure"))
        })
    }

    async fn is_untouched(&self, session: &mut dyn Session) -> Result<bool, SessionError> {
        for (path, content) in &self.files {
            let found = match session.read(path, MOST).await {
                Ok(found) => Some(found),
                Err(SessionError::NotFound { .. }) => None,
                Err(error) if error.is_infrastructure() => return Err(error),
                Err(_) => return Ok(false),
            };
            if found != *content {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Runs the tests' files with `python -m pytest` and grades those that count. Before that the files of
/// `pristine` are put back, so that no patch can write its own tests or steer pytest; the work tree
/// keeps them. Where tests ask for what pytest does not know by itself, they are run once more with the plugins that
/// are installed. Tests that cannot be put back, or that were changed while they ran, are tampered with,
/// and none of them has passed. Second, what pytest wrote.
///
/// # Errors
/// Failures of the session. What the program does is a grade.
pub async fn in_session(
    session: &mut dyn Session,
    python: &str,
    pristine: &Pristine,
    fail_to_pass: &[String],
    pass_to_pass: &[String],
    limits: Limits,
) -> Result<(Graded, String), SessionError> {
    let tampered = || Graded {
        fail_to_pass: vec![CaseResult::Missing; fail_to_pass.len()],
        pass_to_pass: vec![CaseResult::Missing; pass_to_pass.len()],
        tampered: true,
    };
    if !pristine.restore(session).await? {
        return Ok((tampered(), String::new()));
    }
    let canary = Canary::new(session.id());
    let path = relative(&canary.path)?;
    session.write(&path, canary.text.as_bytes(), 0o644).await?;
    let mut targets = files(fail_to_pass, pass_to_pass);
    targets.push(&canary.path);
    let mut attempt = Attempt::Plain;
    let (graded, output) = loop {
        let outcome = session
            .exec(&attempt.command(python, &targets, limits))
            .await?;
        let output = outcome.stdout.text();
        if !pristine.is_untouched(session).await? {
            break (tampered(), output);
        }
        let declares_failures = |file: &str| pristine.declares_failures(file);
        let graded = canary.grade(&output, fail_to_pass, pass_to_pass, declares_failures);
        // Where a file cannot be read nothing runs, the canary neither.
        let is_settled = match graded.tampered {
            true => !output.contains(UNREAD),
            false => graded.resolved(),
        };
        match attempt.next(&output).filter(|_| !is_settled) {
            // A plugin that the patch brings would be one to grade itself by.
            Some(next) if own_plugins(session).await? == pristine.own_plugins => attempt = next,
            _ => break (graded, output),
        }
    };
    match session.remove(&path).await {
        Err(error) if error.is_infrastructure() => Err(error),
        _ => Ok((graded, output)),
    }
}

/// How pytest is started. Plugins that are installed and options of the repository are for tests that cannot do without.
#[derive(Clone, Copy)]
enum Attempt {
    Plain,
    WithPlugins,
    WithoutOptions,
}

/// What pytest says of files of tests that it cannot read.
const UNREAD: &str = "during collection";

/// What pytest prints of tests that use what it does not know by itself.
const LACKS: [&str; 5] = [
    "' not found\n>       available fixtures:",
    "Unknown config option",
    "Unknown pytest.mark.",
    "async def functions are not natively supported",
    UNREAD,
];

impl Attempt {
    fn command(self, python: &str, targets: &[&str], limits: Limits) -> Command {
        let argv = [python.to_owned()].into_iter();
        let mut argv: Vec<String> = argv.chain(arguments(targets.iter().copied())).collect();
        let more: &[&str] = match self {
            Self::Plain => &[],
            Self::WithPlugins => &[],
            // Such as ask for processes that a sandbox does not let run, or for plugins that are not here.
            Self::WithoutOptions => &["-o", "addopts="],
        };
        argv.extend(more.iter().map(|option| (*option).to_owned()));
        let is_plain = matches!(self, Self::Plain);
        if !is_plain {
            argv.extend(IN_ORDER.map(str::to_owned));
        }
        let mut command = Command::new(argv, limits);
        command.env = environment().to_vec();
        if !is_plain {
            command.env.retain(|(name, _)| name != NO_PLUGINS);
        }
        // Packages of a `src` folder need not be installed to be tested, and ids may follow the order of a set.
        command
            .with_env("PYTHONPATH", SOURCES)
            .with_env("PYTHONHASHSEED", "0")
    }

    /// What may help where this has printed `output`.
    fn next(self, output: &str) -> Option<Self> {
        let has_run = output.contains(HEADER);
        match self {
            Self::Plain if !has_run || LACKS.iter().any(|sign| output.contains(sign)) => {
                Some(Self::WithPlugins)
            }
            Self::WithPlugins => Some(Self::WithoutOptions),
            Self::Plain | Self::WithoutOptions => None,
        }
    }
}

/// The tests' files in the order in which those that go on passing are listed, as a run of all tests has told them;
/// files that only tests of the other list are in, by their names.
fn files<'a>(fail_to_pass: &'a [String], pass_to_pass: &'a [String]) -> Vec<&'a str> {
    let of = |ids: &'a [String]| ids.iter().filter_map(|id| id.split("::").next());
    let mut known = BTreeSet::new();
    let mut files: Vec<&str> = of(pass_to_pass)
        .filter(|file| known.insert(*file))
        .collect();
    let others: BTreeSet<&str> = of(fail_to_pass)
        .filter(|file| !known.contains(file))
        .collect();
    for file in others {
        let place = files.iter().position(|other| *other > file);
        files.insert(place.unwrap_or(files.len()), file);
    }
    files
}

fn relative(path: &str) -> Result<RelativePath, SessionError> {
    RelativePath::new(path).map_err(|error| SessionError::Unsupported {
        backend: "pytest",
        detail: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_run_as_the_tests_that_go_on_passing_are_listed() {
        let ids = |files: &[&str]| -> Vec<String> {
            files.iter().map(|file| format!("{file}::test")).collect()
        };
        let kept = ids(&["tests/b.py", "tests/b.py", "tests/d.py", "first/a.py"]);
        let mended = ids(&["tests/d.py", "tests/c.py", "z.py", "first/a.py"]);
        assert_eq!(
            files(&mended, &kept),
            [
                "tests/b.py",
                "tests/c.py",
                "tests/d.py",
                "first/a.py",
                "z.py"
            ]
        );
        assert_eq!(
            files(&mended, &[]),
            ["first/a.py", "tests/c.py", "tests/d.py", "z.py"]
        );
        let mut sorted = kept.clone();
        sorted.sort();
        assert!(files(&mended, &sorted).is_sorted());
    }
}
