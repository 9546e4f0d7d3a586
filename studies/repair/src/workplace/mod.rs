//! A checkout in a sandbox: read, changed, tested and put back.

mod log;
mod patched;
mod run_tests;
mod test_run;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use code::{
    Patch, RelativePath,
    patch::{PatchReport, unified_diff},
};
use record::{Fault, LogLine};
use sandbox::Limits;
use session::{Backend, Image, PatchError, Session, SessionError, SnapshotId};

use crate::TestFramework;
pub use patched::PatchedBackend;
pub use test_run::{Ended, Failure, Frame, TIMEOUT, TestRequest, TestRun};

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
    /// How long one test may take: then it fails, and tells where it was. It does not hold for code that never comes
    /// back to the interpreter, and once a test has reached it, others have less: eight times the longest before,
    /// 5 s at least.
    pub test_limit: Option<Duration>,
    /// Plugins of pytest that are installed are loaded for every run, and not for those alone that ask for them.
    pub with_plugins: bool,
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
        let mut workplace = self.open_when_needed();
        workplace.session().await?;
        Ok(workplace)
    }

    /// The same, whose copy is made when something is first done with it.
    pub fn open_when_needed(&self) -> Workplace {
        Workplace {
            session: None,
            testbed: self.clone(),
            waiting: Vec::new(),
            originals: BTreeMap::new(),
            log: Vec::new(),
            is_dirty: false,
        }
    }
}

/// One copy of a checkout, for one at a time.
#[derive(Debug)]
pub struct Workplace {
    /// `None` before anything was done with it.
    session: Option<Box<dyn Session>>,
    testbed: Testbed,
    /// Patches that are applied when the session begins, and what the work tree's diff is then.
    waiting: Vec<(Patch, String)>,
    /// What the files that patches were applied to were before the first.
    originals: BTreeMap<RelativePath, Option<Vec<u8>>>,
    log: Vec<LogLine>,
    is_dirty: bool,
}

/// Bytes of the largest file that is read from a workplace.
pub const MAX_FILE: u64 = 16 << 20;

impl Workplace {
    pub fn testbed(&self) -> &Testbed {
        &self.testbed
    }

    /// For what this type has no method for.
    ///
    /// # Errors
    /// An infrastructure fault when none can be started.
    pub async fn session(&mut self) -> Result<&mut dyn Session, Fault> {
        let session = match self.session.take() {
            Some(session) => session,
            None => {
                let testbed = &self.testbed;
                testbed.backend.start(&testbed.image).await.map_err(infra)?
            }
        };
        let session = self.session.insert(session);
        for (patch, _) in self.waiting.drain(..) {
            for path in patch.paths() {
                let before = session.read(&path, MAX_FILE).await.ok();
                self.originals.entry(path).or_insert(before);
            }
            session.apply_patch(&patch).await.map_err(Fault::infra)?;
        }
        Ok(session.as_mut())
    }

    /// Applies a patch that is known to fit the checkout as it is, and to make its diff this one, once something else
    /// is done with it.
    pub(crate) fn apply_when_needed(&mut self, patch: Patch, diff: String) {
        self.waiting.push((patch, diff));
    }

    /// The content of a file; `None` where there is no regular file of at most [`MAX_FILE`] bytes.
    ///
    /// # Errors
    /// Infrastructure faults.
    pub async fn read(&mut self, path: &RelativePath) -> Result<Option<Vec<u8>>, Fault> {
        match self.session().await?.read(path, MAX_FILE).await {
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
        match self.session().await?.apply_patch(patch).await {
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
        let testbed = self.testbed.clone();
        let served = run_tests::run_tests(self.session().await?, &testbed, requests).await?;
        self.is_dirty |= served.is_dirty;
        let runs = served.runs;
        let lines = requests.iter().zip(&runs);
        let lines = lines.map(|(request, run)| log::line(&self.testbed, request, run));
        self.log.extend(lines);
        Ok(runs)
    }

    /// Lets single tests of later runs take this long: see [`Testbed::test_limit`].
    pub fn limit_tests(&mut self, limit: Duration) {
        self.testbed.test_limit = Some(limit);
    }

    /// Has later runs load plugins as an earlier one did: see [`TestRun::with_plugins`].
    pub fn load_plugins(&mut self, with_plugins: bool) {
        self.testbed.with_plugins |= with_plugins;
    }

    /// Whether tests have changed or removed files of the work tree since it was last restored. What they
    /// have added is removed after each run, and permissions are given back; for this a snapshot is needed.
    pub fn is_dirty(&self) -> bool {
        self.is_dirty
    }

    /// The runs of tests since this was last asked, as lines of `logs/test_runs.jsonl`.
    pub fn take_log(&mut self) -> Vec<LogLine> {
        std::mem::take(&mut self.log)
    }

    /// Takes over lines of runs that were made elsewhere for whoever works here.
    pub(crate) fn add_log(&mut self, lines: Vec<LogLine>) {
        self.log.extend(lines);
    }

    /// Whether a patch was ever applied here.
    pub(crate) fn is_patched(&self) -> bool {
        !self.originals.is_empty() || !self.waiting.is_empty()
    }

    /// All that patches have changed and that is still changed, as a unified diff.
    ///
    /// # Errors
    /// Infrastructure faults.
    pub async fn diff(&mut self) -> Result<String, Fault> {
        if let Some((_, diff)) = self.waiting.last() {
            return Ok(diff.clone());
        }
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
        self.session().await?.snapshot().await.map_err(infra)
    }

    /// # Errors
    /// Infrastructure faults.
    pub async fn restore(&mut self, snapshot: &SnapshotId) -> Result<(), Fault> {
        self.session()
            .await?
            .restore(snapshot)
            .await
            .map_err(infra)?;
        self.is_dirty = false;
        Ok(())
    }

    /// # Errors
    /// Infrastructure faults.
    pub async fn close(self) -> Result<(), Fault> {
        match self.session {
            Some(session) => session.stop().await.map_err(infra),
            None => Ok(()),
        }
    }
}

pub(crate) fn infra(error: SessionError) -> Fault {
    Fault::infra(error)
}
