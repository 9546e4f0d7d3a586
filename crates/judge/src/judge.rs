//! The judge: one verdict per program and tests.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use sandbox::{Job, Language, Limits, RunOutcome, Sandbox, Status, Toolchains};
use serde::{Deserialize, Serialize};

use crate::{
    CacheKey, CaseResult, JudgeError, Submission, Tests, Verdict, VerdictStatus, VerdictStore,
    cache::Cache,
    harness::{self, Call, Report},
    verdict::Reuse,
};

/// A program that used this share of its wall time was not waiting for anything but the machine.
const COMPUTING_SHARE: f64 = 0.05;

/// Judges programs in a sandbox. Cheap to clone; clones share the cache.
#[derive(Clone, Debug)]
pub struct Judge {
    inner: Arc<Inner>,
    pub(crate) limits: Limits,
}

/// What a judge may be given besides a sandbox.
#[derive(Debug, Default)]
pub struct JudgeParts {
    /// Languages besides Python.
    pub toolchains: Toolchains,
    /// Looked into before anything is executed; verdicts are left there.
    pub store: Option<VerdictStore>,
}

/// How programs are judged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgeConfig {
    /// Of the jail run of a verdict: all cases of function tests together, one case of stdio tests.
    pub limits: Limits,
    /// Verdicts kept in memory.
    pub cache_capacity: usize,
    /// Programs that share one jail run in [`Judge::evaluate`].
    pub evaluation_batch: usize,
    /// CPU time of one program in [`Judge::evaluate`].
    pub evaluation_cpu: Duration,
}

/// Counters since the start. For the same requests `cache_hits` and `executed` are the same
/// whatever the concurrency, wall timeouts apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgeStats {
    pub verdicts: u64,
    /// Verdicts that needed no execution of their own, including those that waited for one.
    pub cache_hits: u64,
    /// Those of `cache_hits` that were read from the store on disk; the others came from memory.
    #[serde(default)]
    pub disk_hits: u64,
    /// Verdicts by execution.
    pub executed: u64,
    pub sandbox_errors: u64,
    /// Verdicts that ended in a timeout of either kind.
    pub timeouts: u64,
}

#[derive(Debug)]
struct Inner {
    sandbox: Sandbox,
    toolchains: Toolchains,
    config: JudgeConfig,
    cache: Mutex<Cache>,
    store: Option<VerdictStore>,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Counters {
    verdicts: AtomicU64,
    executed: AtomicU64,
    disk_hits: AtomicU64,
    sandbox_errors: AtomicU64,
    timeouts: AtomicU64,
}

impl Judge {
    /// Judges programs in Python.
    pub fn new(sandbox: Sandbox, config: JudgeConfig) -> Self {
        Self::with(sandbox, config, JudgeParts::default())
    }

    /// Judges programs with what `parts` bring; `sandbox` must show the folders of the toolchains.
    pub fn with(sandbox: Sandbox, config: JudgeConfig, parts: JudgeParts) -> Self {
        let JudgeParts { toolchains, store } = parts;
        let cache = Mutex::new(Cache::new(config.cache_capacity));
        Self {
            limits: config.limits,
            inner: Arc::new(Inner {
                sandbox,
                toolchains,
                config,
                cache,
                store,
                counters: Counters::default(),
            }),
        }
    }

    /// The same judge with other limits of a jail run.
    pub fn within(&self, limits: Limits) -> Self {
        Self {
            limits,
            ..self.clone()
        }
    }

    /// The same judge, whose runs may take `cpu` of processor time and, so that a busy machine changes no
    /// verdict, twice that by the clock where it has no more patience than that.
    pub fn within_cpu(&self, cpu: Duration) -> Self {
        self.within(Limits {
            cpu,
            wall: self.limits.wall.max(cpu.saturating_mul(2)),
            ..self.limits
        })
    }

    /// Judges a Python program against `tests`: see [`Judge::verdict_of`].
    pub async fn verdict(&self, program: &str, tests: &Tests) -> Result<Verdict, JudgeError> {
        self.verdict_of(&program.into(), tests).await
    }

    /// Judges `submission` against `tests`. Equal requests execute once, also when they come at the
    /// same time. What the program does is a verdict; an error says nothing about the program.
    ///
    /// # Errors
    /// Tests that call the program need Python ([`JudgeError::NotPython`]); a language whose programs
    /// are missing on this machine, and every other failure of the sandbox.
    pub async fn verdict_of(
        &self,
        submission: &Submission,
        tests: &Tests,
    ) -> Result<Verdict, JudgeError> {
        let inner = &*self.inner;
        let key = self.key_of(submission, tests);
        let entry = self.cache().entry(key);
        let mut executed = false;
        let verdict = entry
            .get_or_try_init(|| async {
                if let Some(verdict) = inner.store.as_ref().and_then(|store| store.get(key)) {
                    inner.counters.disk_hits.fetch_add(1, Relaxed);
                    return Ok(Arc::new(verdict));
                }
                executed = true;
                self.execute(key, submission, tests).await.map(Arc::new)
            })
            .await;
        // After an error the entry stays, empty: others may be waiting for it, and one of them executes.
        if executed && matches!(&verdict, Ok(verdict) if verdict.reuse() == Reuse::Never) {
            self.cache().forget(key, &entry);
        }
        let mut verdict = Verdict::clone(verdict?);
        if let Some(store) = inner.store.as_ref().filter(|_| executed) {
            store.put(&verdict);
        }
        inner.counters.verdicts.fetch_add(1, Relaxed);
        if executed {
            inner.counters.executed.fetch_add(1, Relaxed);
        }
        if verdict.status.is_timeout() {
            inner.counters.timeouts.fetch_add(1, Relaxed);
        }
        verdict.cached = !executed;
        Ok(verdict)
    }

    /// What a verdict on `program` and `tests` is stored under.
    pub fn key(&self, program: &str, tests: &Tests) -> CacheKey {
        self.key_of(&program.into(), tests)
    }

    fn key_of(&self, submission: &Submission, tests: &Tests) -> CacheKey {
        let Inner {
            sandbox,
            toolchains,
            ..
        } = &*self.inner;
        let version = match (submission.language, toolchains.get(submission.language)) {
            (Language::Python, _) | (_, Err(_)) => sandbox.python_version(),
            (_, Ok(toolchain)) => &toolchain.version,
        };
        CacheKey::new(submission, tests, &self.limits, version, sandbox.tier())
    }

    /// What runs `submission`.
    pub(crate) fn job(&self, submission: &Submission) -> Result<Job, JudgeError> {
        let (source, limits) = (submission.source.as_bytes(), self.limits);
        if submission.language == Language::Python {
            return Ok(Job::script(source, limits));
        }
        let toolchains = &self.inner.toolchains;
        Ok(toolchains.job(submission.language, source, limits)?)
    }

    /// What runs the language's programs here.
    pub(crate) fn toolchains(&self) -> &Toolchains {
        &self.inner.toolchains
    }

    /// Puts a verdict that was reached before, such as one from a journal, into the cache.
    pub fn prime(&self, key: CacheKey, verdict: Verdict) {
        if verdict.reuse() != Reuse::Never {
            self.cache().prime(key, verdict);
        }
    }

    pub fn stats(&self) -> JudgeStats {
        let counters = &self.inner.counters;
        let (verdicts, executed) = (
            counters.verdicts.load(Relaxed),
            counters.executed.load(Relaxed),
        );
        JudgeStats {
            verdicts,
            cache_hits: verdicts.saturating_sub(executed),
            disk_hits: counters.disk_hits.load(Relaxed),
            executed,
            sandbox_errors: counters.sandbox_errors.load(Relaxed),
            timeouts: counters.timeouts.load(Relaxed),
        }
    }

    pub(crate) fn config(&self) -> &JudgeConfig {
        &self.inner.config
    }

    /// The limits of a shared run of `n_programs`.
    pub(crate) fn batch_limits(&self, n_programs: usize) -> Limits {
        let config = self.config();
        let cpu = config.evaluation_cpu.saturating_mul(2) + self.limits.cpu;
        let share = Duration::from_millis(20).saturating_mul(n_programs as u32);
        Limits {
            cpu: cpu + share,
            wall: self
                .limits
                .wall
                .saturating_add((cpu + share).saturating_mul(8)),
            output_max: self.limits.output_max.max(256 << 20),
            ..self.limits
        }
    }

    /// Runs `calls` in one jail run.
    pub(crate) async fn run_harness(
        &self,
        calls: &[Call<'_>],
        limits: Limits,
    ) -> Result<(RunOutcome, Report), JudgeError> {
        let per_program = (calls.len() > 1 || limits != self.limits)
            .then(|| self.config().evaluation_cpu.as_secs_f64());
        let payload =
            harness::payload(calls, per_program).map_err(|error| JudgeError::Harness {
                detail: error.to_string(),
            })?;
        let outcome = self
            .run(Job::harness(harness::CALLS.clone(), payload, limits))
            .await?;
        let n_calls: Vec<usize> = calls.iter().map(|call| call.args.len()).collect();
        let report = harness::read(&outcome.result, &n_calls);
        Ok((outcome, report))
    }

    /// A program that ran out of wall time although it was computing is run once more: the machine
    /// may have been too busy for it.
    pub(crate) async fn run(&self, job: Job) -> Result<RunOutcome, JudgeError> {
        let starved = |outcome: &RunOutcome| {
            outcome.status == Status::WallTimeout
                && outcome.cpu_ms > outcome.wall_ms * COMPUTING_SHARE
        };
        let outcome = self.run_once(job.clone()).await?;
        if starved(&outcome) {
            return self.run_once(job).await;
        }
        Ok(outcome)
    }

    async fn run_once(&self, job: Job) -> Result<RunOutcome, JudgeError> {
        self.inner.sandbox.run(job).await.map_err(|error| {
            self.inner.counters.sandbox_errors.fetch_add(1, Relaxed);
            JudgeError::from(error)
        })
    }

    async fn execute(
        &self,
        key: CacheKey,
        submission: &Submission,
        tests: &Tests,
    ) -> Result<Verdict, JudgeError> {
        let ran = self.run_tests(submission, &tests.kind).await?;
        let n_passed = ran
            .cases
            .iter()
            .filter(|case| **case == CaseResult::Passed)
            .count();
        let passed = !ran.cases.is_empty() && n_passed == ran.cases.len();
        let message = ran.message.or_else(|| {
            ran.cases.iter().find_map(|case| match case {
                CaseResult::Error(message) => Some(message.clone()),
                _ => None,
            })
        });
        Ok(Verdict {
            passed,
            n_passed,
            n_tests: ran.cases.len(),
            status: if passed {
                VerdictStatus::Passed
            } else {
                ran.status
            },
            message: if passed { None } else { message },
            cases: ran.cases,
            key,
            cached: false,
            wall_ms: ran.wall_ms,
            cpu_ms: ran.cpu_ms,
            tier: self.inner.sandbox.tier(),
        })
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        // The cache is consistent between any two of its operations.
        self.inner
            .cache
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl JudgeConfig {
    /// Small programs: see [`Limits::SMALL`].
    pub fn small() -> Self {
        Self {
            limits: Limits::SMALL,
            cache_capacity: 100_000,
            evaluation_batch: 250,
            evaluation_cpu: Duration::from_millis(500),
        }
    }
}
