//! Where checkouts of repositories run: jails of this machine, or containers.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, anyhow, ensure};
use repair::TestFramework;
use sandbox::{Language, Limits, Toolchains};
use serde::{Deserialize, Serialize};
use session::{
    Backend,
    docker::{DockerBackend, DockerConfig},
    lease::{Leases, TIME_TO_LIVE},
    local::{LocalBackend, LocalConfig},
};

use crate::{
    failure::{Classify, Outcome},
    machine, sandbox_reap,
};

/// `[sandbox]` of recipes whose tasks are checkouts, and the same as options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SandboxSettings {
    pub(crate) backend: BackendName,
    /// Of `docker`: `unix:///path` or `tcp://host:port` of another engine than the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) engine: Option<String>,
    /// The Python that runs tests; found by searching when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) python: Option<PathBuf>,
    /// Wall seconds of one run of tests.
    pub(crate) wall_s: f64,
    /// CPU seconds of one run of tests.
    pub(crate) cpu_s: f64,
    pub(crate) memory_mb: u64,
    /// Checkouts of one task that are tested at the same time. Changes no result.
    pub(crate) slots: usize,
    /// What names another interpreter: of commands without a recipe, `--python`.
    #[serde(skip)]
    pub(crate) python_setting: &'static str,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BackendName {
    /// Jails of this machine.
    #[default]
    Local,
    /// Containers of an engine that speaks the Docker API.
    Docker,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            backend: BackendName::Local,
            engine: None,
            python: None,
            wall_s: 300.0,
            cpu_s: 300.0,
            memory_mb: 2048,
            slots: 1,
            python_setting: "sandbox.python",
        }
    }
}

/// A backend that was found to work, and the interpreters for it.
#[derive(Clone)]
pub(crate) struct Sandboxes {
    pub(crate) backend: Arc<dyn Backend>,
    toolchains: Option<Toolchains>,
    searched: Option<PathBuf>,
    python_setting: &'static str,
}

impl SandboxSettings {
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        crate::walk::check_seconds("sandbox.wall_s", self.wall_s)?;
        crate::walk::check_seconds("sandbox.cpu_s", self.cpu_s)?;
        ensure!(
            (64..=1 << 20).contains(&self.memory_mb),
            "sandbox.memory_mb is {}; give 64 or more, and no more than {}",
            self.memory_mb,
            1 << 20
        );
        ensure!(
            (1..=1024).contains(&self.slots),
            "sandbox.slots is {}; give 1 or more, and no more than 1024",
            self.slots
        );
        ensure!(
            self.engine.is_none() || self.backend == BackendName::Docker,
            "sandbox.engine is for sandbox.backend = \"docker\""
        );
        Ok(())
    }

    /// Of one run of tests.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            wall: Duration::from_secs_f64(self.wall_s),
            cpu: Duration::from_secs_f64(self.cpu_s),
            memory: self.memory_mb << 20,
            // Interpreters with native parts reserve far more than they use.
            address_space: false,
            output_keep: 16 << 20,
            output_max: 64 << 20,
            processes: 256,
            disk: 256 << 20,
            files: 1024,
        }
    }

    /// Finds out what works here.
    pub(crate) async fn open(&self) -> Outcome<Sandboxes> {
        let leases = sandbox_reap::default_folder()
            .context("neither XDG_STATE_HOME nor HOME is set; it is needed for leases")
            .asked()?;
        let leases = Leases::open(leases, TIME_TO_LIVE).failed()?;
        let (backend, toolchains): (Arc<dyn Backend>, _) = match self.backend {
            BackendName::Local => {
                let search = machine::search_path();
                let toolchains = match &self.python {
                    None => interpreters(&search),
                    Some(python) => {
                        let python = program(python, &search, self.python_setting).asked()?;
                        Toolchains::probe(&LANGUAGES, Some(&python), &[])
                    }
                };
                let config = LocalConfig {
                    search,
                    readable: toolchains.readable(),
                    ..LocalConfig::new(leases, sessions_folder().asked()?)
                };
                let backend = LocalBackend::open(config).await.failed()?;
                (Arc::new(backend), Some(toolchains))
            }
            BackendName::Docker => {
                let engine = match &self.engine {
                    Some(engine) => engine.clone(),
                    None => sandbox_reap::usual_engines()
                        .into_iter()
                        .next()
                        .context("no engine answers; name one with --engine ADDRESS, or `sandbox.engine` of a recipe")
                        .asked()?,
                };
                let config = DockerConfig {
                    memory: self.memory_mb << 20,
                    ..DockerConfig::new(engine, leases)
                };
                (
                    Arc::new(DockerBackend::connect(config).await.failed()?),
                    None,
                )
            }
        };
        Ok(Sandboxes {
            backend,
            toolchains,
            searched: self.python.clone(),
            python_setting: self.python_setting,
        })
    }
}

impl Sandboxes {
    /// The interpreter that runs these tests, as commands of a session call it.
    ///
    /// # Errors
    /// There is none: a matter of what was asked.
    pub(crate) fn python(&self, framework: TestFramework) -> anyhow::Result<String> {
        let Some(toolchains) = &self.toolchains else {
            // The image's own.
            return Ok("python".to_owned());
        };
        let language = match framework {
            TestFramework::Pytest => Language::Pytest,
            TestFramework::Unittest => Language::Python,
        };
        match toolchains.get(language) {
            Ok(toolchain) => Ok(toolchain.program().display().to_string()),
            Err(_) => Err(self.absent(framework)),
        }
    }

    fn absent(&self, framework: TestFramework) -> anyhow::Error {
        let what = match framework {
            TestFramework::Pytest => "a Python with pytest",
            TestFramework::Unittest => "a Python",
        };
        let python = self.toolchains.as_ref();
        let python = python.and_then(|toolchains| toolchains.get(Language::Python).ok());
        let setting = self.python_setting;
        match (&self.searched, python) {
            (Some(path), None) => anyhow!("{} is not {what}", path.display()),
            (None, None) => anyhow!(
                "these tests need {what}, and none was found in the folders of PATH; name one with {setting}"
            ),
            (_, Some(python)) => {
                let python = python.program().display();
                anyhow!(
                    "{python} has no pytest, which these tests need; install it there ({python} -m pip install \
                     pytest), or name another Python with {setting}"
                )
            }
        }
    }
}

/// Where sessions have their folders: below the folder for temporary files, which users share, one that is this
/// user's own. It stays when it is empty: another process of the user may be about to make something in it.
fn sessions_folder() -> anyhow::Result<PathBuf> {
    let user = fs::metadata("/proc/self")
        .context("cannot find out whose process this is: /proc/self")?
        .uid();
    let folder = std::env::temp_dir().join(format!("etude-sessions-{user}"));
    let at = || format!("the folder of sessions, {}", folder.display());
    let elsewhere = "name another place for temporary files with TMPDIR";
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            let what = format!("{} cannot be made; {elsewhere}", at());
            return Err(error).context(what);
        }
        _ => {}
    }
    // Not what a link leads to: whoever may write beside it chooses that.
    let found = fs::symlink_metadata(&folder).with_context(at)?;
    ensure!(
        found.is_dir(),
        "{} is no folder; remove it, or {elsewhere}",
        at()
    );
    ensure!(
        found.uid() == user,
        "{} belongs to user {} and not to {user}, whose process this is; have it removed, or {elsewhere}",
        at(),
        found.uid()
    );
    if found.mode() & 0o777 != 0o700 {
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).with_context(at)?;
    }
    Ok(folder)
}

/// What the tests of checkouts are run by.
const LANGUAGES: [Language; 2] = [Language::Python, Language::Pytest];

/// The first `python3` of `search` that there is, so that an active virtual environment is the one that is meant, and
/// the first that has pytest; else what is in the usual places.
fn interpreters(search: &[PathBuf]) -> Toolchains {
    let named = search.iter().map(|folder| folder.join("python3"));
    let named = named.filter(|path| path.is_absolute() && path.is_file());
    let mut found = Toolchains::default();
    for python in named.map(Some).chain([None]) {
        let missing = LANGUAGES
            .into_iter()
            .filter(|language| found.get(*language).is_err());
        let missing: Vec<Language> = missing.collect();
        if !missing.is_empty() {
            found = found.or(Toolchains::probe(&missing, python.as_deref(), &[]));
        }
    }
    found
}

/// The program of this name: a path from the folder that we are in, or a name that is looked for in `search`.
fn program(named: &Path, search: &[PathBuf], setting: &str) -> anyhow::Result<PathBuf> {
    let found = match named.components().count() {
        1 => {
            let candidates = search.iter().map(|folder| folder.join(named));
            candidates.into_iter().find(|path| path.is_file())
        }
        _ => None,
    };
    // Links stay: what they are called decides whose packages an interpreter has.
    let path = match found {
        Some(path) => path,
        None => std::path::absolute(named)?,
    };
    ensure!(
        path.is_file(),
        "{setting} {}: there is no such program",
        named.display()
    );
    Ok(path)
}
