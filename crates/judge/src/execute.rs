//! Running a program against its tests, form by form.

use futures::future::try_join_all;
use sandbox::{InputFile, Job, Language, Limits, Program, RunOutcome, Status};

use crate::{
    CaseResult, Comparator, Judge, JudgeError, Submission, VerdictStatus,
    equality::{equal, tuples_to_lists},
    harness::{self, Call, Record, Report},
    pytest, statements,
    tests::{FunctionCase, Kind, StdioCase},
};

/// An execution before it is made a verdict.
pub(crate) struct Ran {
    pub(crate) cases: Vec<CaseResult>,
    pub(crate) status: VerdictStatus,
    pub(crate) message: Option<String>,
    pub(crate) wall_ms: f64,
    pub(crate) cpu_ms: f64,
}

impl Ran {
    pub(crate) fn nothing() -> Self {
        Self {
            cases: Vec::new(),
            status: VerdictStatus::NoTests,
            message: None,
            wall_ms: 0.0,
            cpu_ms: 0.0,
        }
    }

    /// Of a program that names what could reach its tests, and was not run.
    pub(crate) fn refused(n_tests: usize, name: &str) -> Self {
        Self {
            cases: vec![CaseResult::Missing; n_tests],
            status: VerdictStatus::Tampered,
            message: Some(format!(
                "these tests run beside the program, which mentions {name} and could reach them"
            )),
            ..Self::nothing()
        }
    }

    /// From what a harness recorded: `results` are the tests in order.
    pub(crate) fn of_records(
        outcome: &RunOutcome,
        report: &Report,
        results: Vec<CaseResult>,
    ) -> Self {
        let missing = results.contains(&CaseResult::Missing);
        let is_error = |case: &CaseResult| matches!(case, CaseResult::Error(_));
        let status = if report.tampered {
            VerdictStatus::Tampered
        } else if missing {
            limit_status(outcome.status).unwrap_or(VerdictStatus::Error)
        } else if results.iter().any(is_error) {
            VerdictStatus::Error
        } else {
            VerdictStatus::Wrong
        };
        Self {
            message: missing.then(|| harness::reason(outcome, report)),
            cases: results,
            status,
            wall_ms: outcome.wall_ms,
            cpu_ms: outcome.cpu_ms,
        }
    }
}

impl Judge {
    pub(crate) async fn run_tests(
        &self,
        submission: &Submission,
        kind: &Kind,
    ) -> Result<Ran, JudgeError> {
        let program = submission.source.as_str();
        if kind.needs_python() && submission.language != Language::Python {
            return Err(JudgeError::NotPython {
                language: submission.language,
            });
        }
        match kind {
            Kind::Function { entry, cases } => {
                let matches = |value: &_, case: &FunctionCase| *value == case.expected;
                self.run_calls(program, entry, false, cases, matches).await
            }
            Kind::Calls { entry, cases } => {
                let program = with_imports(program);
                let matches = |value: &_, case: &FunctionCase| {
                    let (value, expected) = (tuples_to_lists(value), &case.expected);
                    let only = match expected {
                        crate::Value::List(items) => items.first(),
                        _ => None,
                    };
                    equal(&value, expected) || only.is_some_and(|only| equal(&value, only))
                };
                self.run_calls(&program, entry, true, cases, matches).await
            }
            Kind::Stdio { cases, comparator } => {
                self.run_stdio(submission, cases, *comparator).await
            }
            Kind::Asserts { setup, asserts } => {
                let statements = statements::of_asserts(setup, asserts);
                // Methods of LeetCode's class are written for its imports.
                match program.contains("class Solution") {
                    true => statements::run(self, &with_imports(program), &statements).await,
                    false => statements::run(self, program, &statements).await,
                }
            }
            Kind::AssertScript { script, candidate } => {
                let script = statements::of_script(script, candidate.as_deref());
                statements::run(self, program, &script).await
            }
            Kind::Pytest(cases) => pytest::run(self, program, cases).await,
            Kind::Script { language, script } => {
                self.run_script(submission, *language, script).await
            }
        }
    }

    async fn run_calls(
        &self,
        program: &str,
        entry: &str,
        in_solution: bool,
        cases: &[FunctionCase],
        matches: impl Fn(&crate::Value, &FunctionCase) -> bool,
    ) -> Result<Ran, JudgeError> {
        if cases.is_empty() {
            return Ok(Ran::nothing());
        }
        let calls = [Call {
            source: program,
            entry,
            in_solution,
            args: cases.iter().map(|case| case.args.as_slice()).collect(),
        }];
        let (outcome, mut report) = self.run_harness(&calls, self.limits).await?;
        if report.tampered {
            report.programs = vec![vec![None; cases.len()]];
        }
        let records = std::mem::take(&mut report.programs);
        let results = records.into_iter().flatten().zip(cases);
        let results = results.map(|(record, case)| match record {
            Some(Record::Value(value)) if matches(&value, case) => CaseResult::Passed,
            Some(Record::Value(_) | Record::Done) => CaseResult::Wrong,
            Some(Record::Error(message)) => CaseResult::Error(message),
            None => CaseResult::Missing,
        });
        Ok(Ran::of_records(&outcome, &report, results.collect()))
    }

    async fn run_stdio(
        &self,
        submission: &Submission,
        cases: &[StdioCase],
        comparator: Comparator,
    ) -> Result<Ran, JudgeError> {
        let mut job = self.job(submission)?;
        if job.build.is_some() && !cases.is_empty() {
            let outcome = self.run(only_built(&job)).await?;
            if !outcome.program_ran() {
                return Ok(not_built(&outcome, cases.len()));
            }
            if let Some(program) = runs_what_was_built(&job, &outcome) {
                job = program;
            }
        }
        let runs = cases.iter().map(|case| {
            let mut job = job.clone().with_stdin(case.stdin.as_bytes());
            job.limits = with_room_for(job.limits, case.expected.len());
            self.run(job)
        });
        let outcomes = try_join_all(runs).await?;
        let mut ran = Ran::nothing();
        for (outcome, case) in outcomes.iter().zip(cases) {
            let (result, status) = judge_output(outcome, case, comparator);
            if ran.status == VerdictStatus::NoTests || ran.status == VerdictStatus::Passed {
                ran.status = status;
            }
            ran.cases.push(result);
            ran.wall_ms += outcome.wall_ms;
            ran.cpu_ms += outcome.cpu_ms;
        }
        Ok(ran)
    }

    async fn run_script(
        &self,
        submission: &Submission,
        language: Language,
        script: &str,
    ) -> Result<Ran, JudgeError> {
        let job = self
            .job(&Submission::new(language, script))?
            .with_file("program", submission.source.as_bytes());
        let outcome = self.run(job).await?;
        if !outcome.program_ran() {
            return Ok(not_built(&outcome, 1));
        }
        let (result, status) = match outcome.status {
            Status::Ok => (CaseResult::Passed, VerdictStatus::Passed),
            Status::NonZero(_) => (CaseResult::Wrong, VerdictStatus::Wrong),
            other => (
                CaseResult::Missing,
                limit_status(other).unwrap_or(VerdictStatus::Error),
            ),
        };
        Ok(Ran {
            message: (status != VerdictStatus::Passed).then(|| last_words(&outcome)),
            cases: vec![result],
            status,
            wall_ms: outcome.wall_ms,
            cpu_ms: outcome.cpu_ms,
        })
    }
}

/// What LiveCodeBench puts before every program that is called.
const LIVE_CODE_BENCH_IMPORTS: &str = "\
import sys, time, itertools, math, random, collections, functools, heapq, bisect, copy, operator, re, string, json
from itertools import accumulate, product, permutations, combinations
from collections import Counter, OrderedDict, deque, defaultdict, ChainMap
from functools import lru_cache, cache, cmp_to_key, reduce
from heapq import *
from bisect import *
from math import *
from typing import *
sys.setrecursionlimit(6 * 10 ** 5)
";

/// The imports come behind those that must come first of all.
fn with_imports(program: &str) -> String {
    let first =
        |line: &&str| line.starts_with("from __future__ import") && !line.contains(['(', '\\']);
    if !program.lines().any(|line| first(&line)) {
        return format!("{LIVE_CODE_BENCH_IMPORTS}{program}");
    }
    let (firsts, rest): (Vec<&str>, Vec<&str>) = program.split('\n').partition(first);
    format!(
        "{}\n{LIVE_CODE_BENCH_IMPORTS}{}",
        firsts.join("\n"),
        rest.join("\n")
    )
}

/// The name of what compilers make; see `sandbox::Toolchain`.
const BUILT: &str = "main";

/// The limits with room for an output that is expected to have so many bytes: it is kept whole, and as
/// much again.
pub fn with_room_for(limits: Limits, expected: usize) -> Limits {
    let keep = limits.output_keep.max(2 * expected + (64 << 10));
    Limits {
        output_keep: keep,
        output_max: limits.output_max.max(keep as u64),
        ..limits
    }
}

/// The job's build alone, whose result is fetched before any input is seen: what runs first has no say
/// in what runs next.
pub fn only_built(job: &Job) -> Job {
    Job {
        program: Program::Exec {
            argv: vec!["/bin/true".to_owned()],
        },
        ..job.clone().with_fetch([BUILT])
    }
}

/// The job without its build, running what a run of it has built; `None` where that is not one file.
/// `outcome` is that of [`only_built`].
pub fn runs_what_was_built(job: &Job, outcome: &RunOutcome) -> Option<Job> {
    let Program::Exec { argv } = &job.program else {
        return None;
    };
    let contents = outcome.files.first()?.contents.as_ref().ok()?;
    let runs_it = argv.first().is_some_and(|program| program == "./main");
    runs_it.then(|| Job {
        build: None,
        files: vec![InputFile {
            path: BUILT.to_owned(),
            contents: contents.clone(),
            executable: true,
        }],
        fetch: Vec::new(),
        ..job.clone()
    })
}

fn not_built(outcome: &RunOutcome, n_cases: usize) -> Ran {
    let said = outcome.build.as_deref().map(last_words);
    let message = format!("it did not compile: {}", said.unwrap_or_default());
    Ran {
        cases: vec![CaseResult::Error(message.clone()); n_cases],
        status: limit_status(outcome.status).unwrap_or(VerdictStatus::Error),
        message: Some(message),
        wall_ms: outcome.build.as_ref().map_or(0.0, |build| build.wall_ms),
        cpu_ms: outcome.build.as_ref().map_or(0.0, |build| build.cpu_ms),
    }
}

pub(crate) fn judge_output(
    outcome: &RunOutcome,
    case: &StdioCase,
    comparator: Comparator,
) -> (CaseResult, VerdictStatus) {
    if outcome.status == Status::Ok {
        if outcome.stdout.truncated {
            let message = "too much output".to_owned();
            return (CaseResult::Error(message), VerdictStatus::Output);
        }
        return match comparator.matches(&outcome.stdout.bytes(), case.expected.as_bytes()) {
            true => (CaseResult::Passed, VerdictStatus::Passed),
            false => (CaseResult::Wrong, VerdictStatus::Wrong),
        };
    }
    let status = limit_status(outcome.status).unwrap_or(VerdictStatus::Error);
    (CaseResult::Error(last_words(outcome)), status)
}

/// Why a program failed, as its author would see it.
pub(crate) fn last_words(outcome: &RunOutcome) -> String {
    let stderr = outcome.stderr.text();
    let last_line = stderr.lines().rev().find(|line| !line.trim().is_empty());
    match (outcome.status, last_line) {
        (Status::NonZero(_), Some(line)) => line.chars().take(500).collect(),
        _ => harness::reason(outcome, &Report::default()),
    }
}

pub(crate) fn limit_status(status: Status) -> Option<VerdictStatus> {
    match status {
        Status::Ok | Status::NonZero(_) | Status::Signal(_) => None,
        Status::WallTimeout => Some(VerdictStatus::WallTimeout),
        Status::CpuTimeout => Some(VerdictStatus::CpuTimeout),
        Status::Memory => Some(VerdictStatus::Memory),
        Status::Output => Some(VerdictStatus::Output),
        Status::Disk => Some(VerdictStatus::Disk),
    }
}
