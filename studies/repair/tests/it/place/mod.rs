//! Checkouts in sessions of this machine, for the tests.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::panic,
    clippy::disallowed_methods,
    dead_code,
    reason = "helpers of tests"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use code::RelativePath;
use repair::{
    TestFramework,
    workplace::{TestRequest, Testbed, Workplace},
};
use sandbox::{Language, Limits, Program, Toolchains};
use session::{
    Image, SessionError,
    lease::{Leases, TIME_TO_LIVE},
    local::{LocalBackend, LocalConfig},
};

pub(crate) const LIMITS: Limits = Limits {
    cpu: Duration::from_secs(20),
    address_space: false,
    ..Limits::SMALL
};

/// A checkout and what opens workplaces of it. Its folder goes with it.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    pub(crate) testbed: Testbed,
}

impl Place {
    /// `files` as paths and contents. `None`, and why, where there are no walls or no such framework.
    pub(crate) async fn new(framework: TestFramework, files: &[(&str, &str)]) -> Option<Self> {
        Self::fill(framework, |checkout| {
            for (path, text) in files {
                let path = checkout.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
        })
        .await
    }

    /// As [`Self::new`], with whatever `fill` puts into the checkout's folder.
    pub(crate) async fn fill(framework: TestFramework, fill: impl FnOnce(&Path)) -> Option<Self> {
        let asked = std::env::var_os("ETUDE_TEST_PYTHON").map(PathBuf::from);
        let search: Vec<PathBuf> =
            std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect();
        let language = match framework {
            TestFramework::Pytest => Language::Pytest,
            TestFramework::Unittest => Language::Python,
        };
        let toolchains = Toolchains::probe(&[language], asked.as_deref(), &search);
        let python = match framework {
            TestFramework::Unittest => "python3".to_owned(),
            TestFramework::Pytest => {
                let job = toolchains.job(language, "", Limits::SMALL);
                let Ok(Program::Exec { argv }) = job.map(|job| job.program) else {
                    eprintln!(
                        "SKIPPED: there is no pytest; ETUDE_TEST_PYTHON names an interpreter that has it"
                    );
                    return None;
                };
                argv[0].clone()
            }
        };
        let folder = tempfile::tempdir().unwrap();
        let checkout = folder.path().join("checkout");
        fs::create_dir(&checkout).unwrap();
        fill(&checkout);
        let leases = Leases::open(folder.path().join("leases"), TIME_TO_LIVE).unwrap();
        let config = LocalConfig {
            search,
            readable: toolchains.readable(),
            ..LocalConfig::new(leases, folder.path().join("work"))
        };
        let backend = match LocalBackend::open(config).await {
            Ok(backend) => backend,
            Err(SessionError::Sandbox(error)) => {
                eprintln!("SKIPPED: {error}");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let testbed = Testbed {
            backend: Arc::new(backend),
            image: Image::checkout(checkout),
            framework,
            python,
            limits: LIMITS,
            test_limit: None,
            with_plugins: false,
            slots: 1,
        };
        Some(Self { folder, testbed })
    }

    /// The checkout's own folder, which no session changes.
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.path().join("checkout")
    }

    pub(crate) async fn open(&self) -> Workplace {
        self.testbed.open().await.unwrap()
    }
}

pub(crate) fn path(text: &str) -> RelativePath {
    RelativePath::new(text).unwrap()
}

/// All tests, on the tree as it is.
pub(crate) fn all() -> TestRequest {
    TestRequest {
        writes: [].into(),
        ids: Vec::new(),
        stop_at_failure: false,
        trace: false,
        wall: Duration::from_secs(20),
    }
}

/// Some tests.
pub(crate) fn only(ids: &[&str]) -> TestRequest {
    TestRequest {
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        ..all()
    }
}

/// All tests with a file that is other.
pub(crate) fn with(file: &str, text: &str) -> TestRequest {
    TestRequest {
        writes: [(path(file), Some(text.as_bytes().to_vec()))].into(),
        ..all()
    }
}
