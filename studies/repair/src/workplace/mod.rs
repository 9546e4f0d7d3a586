//! A checkout in a sandbox: read, changed, tested and put back.

mod log;
mod patched;
mod run_tests;
mod test_run;

use std::{collections::BTreeMap, fmt, sync::Arc};

use code::{
    Patch, RelativePath,
    patch::{PatchReport, unified_diff},
};
use record::Fault;
use sandbox::Limits;
use session::{Backend, Image, PatchError, Session, SessionError, SnapshotId};

use crate::TestFramework;
pub use patched::PatchedBackend;
pub use test_run::{Ended, Failure, Frame, TestRequest, TestRun};

/// Opens workplaces of one task. Clones open the same.
#[derive(Clone)]
pub struct Testbed {
    pub backend: Arc<dyn Backend>,
    pub image: Image,
    pub framework: TestFramework,
    /// The interpreter as the session's commands call it.
    pub python: String,
    /// Of one run of tests.
    pub limits: Limits,
    /// Workplaces that may be open at the same time for this task.
    pub slots: usize,
}

impl fmt::Debug for Testbed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Testbed")
            .field("image", &self.image)
            .field("framework", &self.framework)
            .finish_non_exhaustive()
    }
}

impl Testbed {
    /// A workplace with a fresh copy of the checkout.
    ///
    /// # Errors
    /// An infrastructure fault when none can be started.
    pub async fn open(&self) -> Result<Workplace, Fault> {
        let session = self.backend.start(&self.image).await.map_err(infra)?;
        Ok(Workplace {
            session,
            testbed: self.clone(),
            originals: BTreeMap::new(),
            log: Vec::new(),
            is_dirty: false,
        })
    }
}

/// One copy of a checkout, for one at a time.
#[derive(Debug)]
pub struct Workplace {
    session: Box<dyn Session>,
    testbed: Testbed,
    /// What the files that patches were applied to were before the first.
    originals: BTreeMap<RelativePath, Option<Vec<u8>>>,
    log: Vec<journal::TestRun>,
    is_dirty: bool,
}

/// Bytes of the largest file that is read from a workplace.
pub const MAX_FILE: u64 = 16 << 20;

impl Workplace {
    pub fn testbed(&self) -> &Testbed {
        &self.testbed
    }

    /// For what this type has no method for.
    pub fn session(&mut self) -> &mut dyn Session {
        self.session.as_mut()
    }

    /// The content of a file; `None` where there is no regular file of at most [`MAX_FILE`] bytes.
    ///
    /// # Errors
    /// Infrastructure faults.
    pub async fn read(&mut self, path: &RelativePath) -> Result<Option<Vec<u8>>, Fault> {
        match self.session.read(path, MAX_FILE).await {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.is_infrastructure() => Err(infra(error)),
            Err(_) => Ok(None),
        }
    }

    /// Applies the whole of `patch`, or nothing of it and says why.
    ///
    /// # Errors
    /// Infrastructure faults.
    pub async fn apply(&mut self, patch: &Patch) -> Result<Result<PatchReport, String>, Fault> {
        for path in patch.paths() {
            if !self.originals.contains_key(&path) {
                let content = self.read(&path).await?;
                self.originals.insert(path, content);
            }
        }
        match self.session.apply_patch(patch).await {
            Ok(report) => Ok(Ok(report)),
            Err(PatchError::Session(error)) if error.is_infrastructure() => Err(infra(error)),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// Runs tests, one request after the other, each in an interpreter forked for it: nothing that one
    /// imports, patches or prints reaches another. The work tree's top and, where there is one, its `src`
    /// are where modules are looked for first. Runs in the order of `requests`.
    ///
    /// What the tests say of themselves is believed: program and tests share an interpreter, so that
    /// whoever sets out to can forge it. A last word needs `judge::pytest`.
    ///
    /// # Errors
    /// Infrastructure faults, and a grader fault where the interpreter or its test framework is absent.
    pub async fn run_tests(&mut self, requests: &[TestRequest]) -> Result<Vec<TestRun>, Fault> {
        let served = run_tests::run_tests(self.session.as_mut(), &self.testbed, requests).await?;
        self.is_dirty |= served.is_dirty;
        let runs = served.runs;
        let lines = requests.iter().zip(&runs);
        let lines = lines.map(|(request, run)| log::line(&self.testbed, request, run));
        self.log.extend(lines);
        Ok(runs)
    }

    /// Whether tests have changed or removed files of the work tree since it was last restored. What they
    /// have added is removed after each run, and permissions are given back; for this a snapshot is needed.
    pub fn is_dirty(&self) -> bool {
        self.is_dirty
    }

    /// The runs of tests since this was last asked, as lines of `logs/test_runs.jsonl`.
    pub fn take_log(&mut self) -> Vec<journal::TestRun> {
        std::mem::take(&mut self.log)
    }

    /// All that patches have changed and that is still changed, as a unified diff.
    ///
    /// # Errors
    /// Infrastructure faults.
    pub async fn diff(&mut self) -> Result<String, Fault> {
        let mut diff = Vec::new();
        for (path, before) in self.originals.clone() {
            let after = self.read(&path).await?;
            diff.extend(unified_diff(&path, before.as_deref(), after.as_deref()));
        }
        Ok(String::from_utf8_lossy(&diff).into_owned())
    }

    /// # Errors
    /// Infrastructure faults.
    pub async fn snapshot(&mut self) -> Result<SnapshotId, Fault> {
        self.session.snapshot().await.map_err(infra)
    }

    /// # Errors
    /// Infrastructure faults.
    pub async fn restore(&mut self, snapshot: &SnapshotId) -> Result<(), Fault> {
        self.session.restore(snapshot).await.map_err(infra)?;
        self.is_dirty = false;
        Ok(())
    }

    /// # Errors
    /// Infrastructure faults.
    pub async fn close(self) -> Result<(), Fault> {
        self.session.stop().await.map_err(infra)
    }
}

pub(crate) fn infra(error: SessionError) -> Fault {
    Fault::infra(error)
}
