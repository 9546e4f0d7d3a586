//! The judge: one verdict per program and tests.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use futures::future::try_join_all;
use sandbox::{Job, Limits, RunOutcome, Sandbox, Status};
use serde::{Deserialize, Serialize};

use crate::{
    CacheKey, CaseResult, JudgeError, Tests, Value, Verdict, VerdictStatus, VerdictStore,
    cache::Cache,
    compare::outputs_match,
    harness::{self, Call, Report},
    tests::{FunctionCase, Kind, StdioCase},
    verdict::Reuse,
};

/// Judges programs in a sandbox. Cheap to clone; clones share the cache.
#[derive(Clone, Debug)]
pub struct Judge {
    inner: Arc<Inner>,
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
    pub fn new(sandbox: Sandbox, config: JudgeConfig) -> Self {
        Self::over(sandbox, config, None)
    }

    /// A judge that looks into `store` before it executes, and leaves its verdicts there.
    pub fn with_store(sandbox: Sandbox, config: JudgeConfig, store: VerdictStore) -> Self {
        Self::over(sandbox, config, Some(store))
    }

    fn over(sandbox: Sandbox, config: JudgeConfig, store: Option<VerdictStore>) -> Self {
        let cache = Mutex::new(Cache::new(config.cache_capacity));
        Self {
            inner: Arc::new(Inner {
                sandbox,
                config,
                cache,
                store,
                counters: Counters::default(),
            }),
        }
    }

    /// Judges `program` against `tests`. Equal requests execute once, also when they come at the
    /// same time. What the program does is a verdict; an error says nothing about the program.
    pub async fn verdict(&self, program: &str, tests: &Tests) -> Result<Verdict, JudgeError> {
        let inner = &*self.inner;
        let key = self.key(program, tests);
        let entry = self.cache().entry(key);
        let mut executed = false;
        let verdict = entry
            .get_or_try_init(|| async {
                if let Some(verdict) = inner.store.as_ref().and_then(|store| store.get(key)) {
                    inner.counters.disk_hits.fetch_add(1, Relaxed);
                    return Ok(Arc::new(verdict));
                }
                executed = true;
                self.execute(key, program, tests).await.map(Arc::new)
            })
            .await;
        if executed
            && verdict
                .as_ref()
                .map_or(true, |verdict| verdict.reuse() == Reuse::Never)
        {
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
        let Inner {
            sandbox, config, ..
        } = &*self.inner;
        CacheKey::new(
            program,
            tests,
            &config.limits,
            sandbox.python_version(),
            sandbox.tier(),
        )
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
        let cpu = config.evaluation_cpu.saturating_mul(2) + config.limits.cpu;
        let share = Duration::from_millis(20).saturating_mul(n_programs as u32);
        Limits {
            cpu: cpu + share,
            wall: config
                .limits
                .wall
                .saturating_add((cpu + share).saturating_mul(8)),
            output_max: config.limits.output_max.max(256 << 20),
            ..config.limits
        }
    }

    /// Runs `calls` in one jail run.
    pub(crate) async fn run_harness(
        &self,
        calls: &[Call<'_>],
        limits: Limits,
    ) -> Result<(RunOutcome, Report), JudgeError> {
        let per_program = (calls.len() > 1 || limits != self.config().limits)
            .then(|| self.config().evaluation_cpu.as_secs_f64());
        let payload =
            harness::payload(calls, per_program).map_err(|error| JudgeError::Harness {
                detail: error.to_string(),
            })?;
        let outcome = self
            .run(Job::harness(harness::SOURCE.clone(), payload, limits))
            .await?;
        let report = harness::read(&outcome.result, calls);
        Ok((outcome, report))
    }

    async fn run(&self, job: Job) -> Result<RunOutcome, JudgeError> {
        self.inner.sandbox.run(job).await.map_err(|error| {
            self.inner.counters.sandbox_errors.fetch_add(1, Relaxed);
            JudgeError::from(error)
        })
    }

    async fn execute(
        &self,
        key: CacheKey,
        program: &str,
        tests: &Tests,
    ) -> Result<Verdict, JudgeError> {
        let ran = match &tests.kind {
            Kind::Function { entry, cases } => self.run_function(program, entry, cases).await?,
            Kind::Stdio { cases } => self.run_stdio(program, cases).await?,
        };
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

    async fn run_function(
        &self,
        program: &str,
        entry: &str,
        cases: &[FunctionCase],
    ) -> Result<Ran, JudgeError> {
        if cases.is_empty() {
            return Ok(Ran::nothing());
        }
        let args = cases.iter().map(|case| case.args.as_slice()).collect();
        let calls = [Call {
            source: program,
            entry,
            args,
        }];
        let (outcome, mut report) = self.run_harness(&calls, self.config().limits).await?;
        if report.tampered {
            report.programs = vec![vec![None; cases.len()]];
        }
        let results = report
            .programs
            .iter_mut()
            .flatten()
            .zip(cases)
            .map(|(record, case)| match record.take() {
                Some(Ok(value)) if same(&value, &case.expected) => CaseResult::Passed,
                Some(Ok(_)) => CaseResult::Wrong,
                Some(Err(message)) => CaseResult::Error(message),
                None => CaseResult::Missing,
            });
        let cases: Vec<CaseResult> = results.collect();
        let missing = cases.contains(&CaseResult::Missing);
        let status = if report.tampered {
            VerdictStatus::Tampered
        } else if missing {
            limit_status(outcome.status).unwrap_or(VerdictStatus::Error)
        } else if cases
            .iter()
            .any(|case| matches!(case, CaseResult::Error(_)))
        {
            VerdictStatus::Error
        } else {
            VerdictStatus::Wrong
        };
        Ok(Ran {
            message: missing.then(|| harness::reason(&outcome, &report)),
            cases,
            status,
            wall_ms: outcome.wall_ms,
            cpu_ms: outcome.cpu_ms,
        })
    }

    async fn run_stdio(&self, program: &str, cases: &[StdioCase]) -> Result<Ran, JudgeError> {
        let limits = self.config().limits;
        let runs = cases
            .iter()
            .map(|case| self.run(Job::script(program, limits).with_stdin(case.stdin.as_bytes())));
        let outcomes = try_join_all(runs).await?;
        let mut ran = Ran::nothing();
        for (outcome, case) in outcomes.iter().zip(cases) {
            let (result, status) = judge_output(outcome, case);
            if ran.status == VerdictStatus::NoTests || ran.status == VerdictStatus::Passed {
                ran.status = status;
            }
            ran.cases.push(result);
            ran.wall_ms += outcome.wall_ms;
            ran.cpu_ms += outcome.cpu_ms;
        }
        Ok(ran)
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

/// An execution before it is made a verdict.
struct Ran {
    cases: Vec<CaseResult>,
    status: VerdictStatus,
    message: Option<String>,
    wall_ms: f64,
    cpu_ms: f64,
}

impl Ran {
    fn nothing() -> Self {
        Self {
            cases: Vec::new(),
            status: VerdictStatus::NoTests,
            message: None,
            wall_ms: 0.0,
            cpu_ms: 0.0,
        }
    }
}

fn same(value: &Value, expected: &Value) -> bool {
    value == expected
}

fn judge_output(outcome: &RunOutcome, case: &StdioCase) -> (CaseResult, VerdictStatus) {
    if outcome.status == Status::Ok {
        let matches =
            !outcome.stdout.truncated && outputs_match(&outcome.stdout.text(), &case.expected);
        return match matches {
            true => (CaseResult::Passed, VerdictStatus::Passed),
            false if outcome.stdout.truncated => (
                CaseResult::Error("too much output".to_owned()),
                VerdictStatus::Output,
            ),
            false => (CaseResult::Wrong, VerdictStatus::Wrong),
        };
    }
    let stderr = outcome.stderr.text();
    let last_line = stderr.lines().rev().find(|line| !line.trim().is_empty());
    let message = match (outcome.status, last_line) {
        (Status::NonZero(_), Some(line)) => line.chars().take(500).collect(),
        _ => harness::reason(outcome, &Report::default()),
    };
    let status = limit_status(outcome.status).unwrap_or(VerdictStatus::Error);
    (CaseResult::Error(message), status)
}

fn limit_status(status: Status) -> Option<VerdictStatus> {
    match status {
        Status::Ok | Status::NonZero(_) | Status::Signal(_) => None,
        Status::WallTimeout => Some(VerdictStatus::WallTimeout),
        Status::CpuTimeout => Some(VerdictStatus::CpuTimeout),
        Status::Memory => Some(VerdictStatus::Memory),
        Status::Output => Some(VerdictStatus::Output),
        Status::Disk => Some(VerdictStatus::Disk),
    }
}
