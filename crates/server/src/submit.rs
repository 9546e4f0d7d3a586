//! `POST /submit`: a completion against the tests of a problem.

use futures::{StreamExt, stream};
use judge::{
    Comparator, Submission, Tests, Verdict,
    completion::extract,
    only_built,
    rows::{self, OjCase, RowError},
    runs_what_was_built, with_room_for,
};
use sandbox::{Job, Language, Limits, RunOutcome};
use serde_json::{Value, json};

use crate::{
    Class, Invalid, Service,
    dialect::{
        CommandRunResult, CommandRunStatus, EvalResult, EvalTest, RunCodeResponse, RunStatus,
        SubmitRequest, TestConfig,
    },
    fault::Fault,
    run_code,
};

/// Judges the completion by the rules of the problem's class.
pub(crate) async fn submit(
    service: &Service,
    request: &SubmitRequest,
) -> Result<EvalResult, Fault> {
    let config = &request.config;
    if config
        .custom_extract_logic
        .as_deref()
        .is_some_and(|logic| !logic.trim().is_empty())
    {
        return Err(Fault::Asked(
            "custom_extract_logic is code for the server to execute, which it does not do; extract \
             the program before submitting it"
                .to_owned(),
        ));
    }
    let class = class_of(service, request)?;
    let row = row_of(service, request)?;
    let name = config.language.as_deref().unwrap_or("python");
    let language = Service::language(name, &["body", "config", "language"])?;
    let found = extract(&request.completion, name);
    let problem = Problem {
        service,
        config,
        row: &row,
        language,
        code: found.code.clone(),
    };
    let judged = match class {
        Class::CommonOj => problem.common_oj().await?,
        Class::LiveCodeBench => problem.live_code_bench().await?,
        Class::HumanEval | Class::Mbpp | Class::AutoEval => problem.script().await?,
    };
    Ok(EvalResult {
        id: request.id.clone(),
        accepted: judged.accepted,
        extracted_code: found.code,
        full_code: judged.full_code,
        test_code: judged.test_code,
        tests: judged.tests,
        extracted_type: Some(found.kind),
        extra: None,
    })
}

fn class_of(service: &Service, request: &SubmitRequest) -> Result<Class, Fault> {
    if let Some(dataset) = service.datasets().get(&request.dataset) {
        return Ok(dataset.class);
    }
    if let Some(class) = Class::of_usual(&request.dataset) {
        return Ok(class);
    }
    match &request.config.dataset_type {
        Some(name) => Class::named(name).ok_or_else(|| {
            Fault::Asked(format!(
                "unknown dataset_type {name:?}; known are CommonOJDataset, LiveCodeBenchDataset, \
                 AutoEvalDataset, HumanEvalDataset and MBPPDataset"
            ))
        }),
        None => Err(Fault::Asked(format!(
            "the dataset {:?} is not registered, and config.dataset_type does not say its kind",
            request.dataset
        ))),
    }
}

/// The problem's columns: those that came along, or those of a registered row.
fn row_of(service: &Service, request: &SubmitRequest) -> Result<Value, Fault> {
    match &request.config.provided_data {
        Some(row @ Value::Object(_)) => Ok(row.clone()),
        Some(_) => Err(invalid(
            &["provided_data"],
            "must be an object: the columns of one problem",
        )),
        None => {
            let Some(dataset) = service.datasets().get(&request.dataset) else {
                return Err(Fault::Asked(format!(
                    "the dataset {:?} has no rows here; register it, or send config.provided_data",
                    request.dataset
                )));
            };
            let row = dataset.row(&request.id);
            row.cloned().ok_or_else(|| {
                Fault::Absent(format!("the dataset has no problem {}", json!(request.id)))
            })
        }
    }
}

fn invalid(path: &[&str], msg: impl Into<String>) -> Fault {
    let loc: Vec<&str> = ["body", "config"].iter().chain(path).copied().collect();
    Invalid::at(&loc, msg).into()
}

/// What is wrong with the problem's columns.
fn in_row(error: RowError) -> Fault {
    invalid(&["provided_data", &error.field], error.detail)
}

struct Problem<'a> {
    service: &'a Service,
    config: &'a TestConfig,
    row: &'a Value,
    language: Language,
    code: String,
}

#[derive(Default)]
struct Judged {
    accepted: bool,
    tests: Vec<EvalTest>,
    full_code: Option<String>,
    test_code: Option<String>,
}

/// Cases of one submission that run at the same time.
const CONCURRENT_CASES: usize = 4;

/// Characters of a case that passed and is shown.
const SHOWN: usize = 1000;

impl Problem<'_> {
    /// A column that may be JSON or a text of JSON.
    fn column(&self, name: &str) -> Result<Value, Fault> {
        let path = ["provided_data", name];
        match self.row.get(name) {
            None | Some(Value::Null) => Err(invalid(&path, "missing")),
            Some(Value::String(text)) => serde_json::from_str(text)
                .map_err(|error| invalid(&path, format!("not JSON: {error}"))),
            Some(value) => Ok(value.clone()),
        }
    }

    fn limits(&self, default_seconds: f64) -> Limits {
        let seconds = self.config.run_timeout.unwrap_or(default_seconds);
        run_code::limits(seconds, self.service.memory())
    }

    async fn common_oj(&self) -> Result<Judged, Fault> {
        let tests = self.column("test")?;
        let path = ["provided_data", "test"];
        let shown = tests.as_array().cloned().unwrap_or_default();
        let cases: Vec<OjCase> = serde_json::from_value(tests).map_err(|error| {
            invalid(
                &path,
                format!("cases need input.stdin and output.stdout: {error}"),
            )
        })?;
        let interpreted = !matches!(
            self.language,
            Language::Cpp | Language::C | Language::Go | Language::Java | Language::Rust
        );
        let limits = self.limits(if interpreted { 20.0 } else { 10.0 });
        let mut job = self
            .service
            .toolchains()
            .job(self.language, self.code.as_bytes(), limits)?;
        if let Some(build) = &mut job.build {
            build.limits.wall = run_code::seconds(self.config.compile_timeout.unwrap_or(10.0));
        }
        let all = truthy(self.config.extra.get("run_all_cases"));
        let whole = truthy(self.config.extra.get("return_full_case"));
        let mut tests = Vec::new();
        if job.build.is_some() && !cases.is_empty() {
            let outcome = self.service.sandbox().run(only_built(&job)).await?;
            if !outcome.program_ran() {
                tests.push(eval_test(outcome, &cases[0], &shown[0], whole));
                return Ok(judged(tests, cases.len()));
            }
            if let Some(program) = runs_what_was_built(&job, &outcome) {
                job = program;
            }
        }
        let runs: Vec<_> = cases
            .iter()
            .map(|case| self.run(job.clone(), case))
            .collect();
        let mut outcomes = stream::iter(runs).buffered(CONCURRENT_CASES);
        // What is still under way when this ends is dropped, and so ended.
        while let Some(outcome) = outcomes.next().await {
            let at = tests.len();
            let test: EvalTest = eval_test(outcome?, &cases[at], &shown[at], whole);
            let passed = test.passed;
            tests.push(test);
            if !passed && !all {
                break;
            }
        }
        Ok(judged(tests, cases.len()))
    }

    async fn run(&self, mut job: Job, case: &OjCase) -> Result<RunOutcome, Fault> {
        job.limits = with_room_for(job.limits, case.output.stdout.len());
        let outcome = self
            .service
            .sandbox()
            .run(job.with_stdin(case.input.stdin.as_bytes()));
        Ok(outcome.await?)
    }

    async fn live_code_bench(&self) -> Result<Judged, Fault> {
        self.needs_python("LiveCodeBenchDataset")?;
        let path = ["provided_data", "test"];
        let test = match self.row.get("test") {
            None | Some(Value::Null) => return Err(invalid(&path, "missing")),
            Some(test) => test,
        };
        let tests =
            rows::live_code_bench(test).map_err(|error| invalid(&path, error.to_string()))?;
        let seconds = self.config.run_timeout.unwrap_or(6.0);
        let limits = match tests.kind() {
            "stdio" => run_code::limits(seconds, self.service.memory()),
            // All calls together.
            _ => run_code::limits(
                ((seconds + 1.0) * tests.len() as f64 + 5.0).min(160.0),
                self.service.memory(),
            ),
        };
        let verdict = self.verdict(&self.code, &tests, limits).await?;
        Ok(one_test(&verdict))
    }

    /// The program, then a test script.
    async fn script(&self) -> Result<Judged, Fault> {
        let script = rows::script(self.row).map_err(in_row)?;
        let test_code = Some(script.text.clone());
        let full_code = Some(format!("{}\n{}", self.code, script.text));
        if self.language != Language::Python {
            return self.script_elsewhere(full_code, test_code).await;
        }
        let (program, tests) = (script.program(&self.code), script.tests());
        let verdict = self.verdict(&program, &tests, self.limits(10.0)).await?;
        Ok(Judged {
            full_code,
            test_code,
            ..one_test(&verdict)
        })
    }

    /// In other languages program and tests are one text, which passes when it exits with 0: the
    /// dialect has no more to go by.
    async fn script_elsewhere(
        &self,
        full_code: Option<String>,
        test_code: Option<String>,
    ) -> Result<Judged, Fault> {
        let source = full_code.clone().unwrap_or_default();
        let limits = self.limits(10.0);
        let job = self
            .service
            .toolchains()
            .job(self.language, source, limits)?;
        let outcome = self.service.sandbox().run(job).await?;
        let passed = outcome.is_ok();
        Ok(Judged {
            accepted: passed,
            tests: vec![EvalTest {
                passed,
                exec_info: run_code::response(&outcome),
                test_info: None,
            }],
            full_code,
            test_code,
        })
    }

    fn needs_python(&self, class: &str) -> Result<(), Fault> {
        if self.language == Language::Python {
            return Ok(());
        }
        Err(Fault::Asked(format!(
            "{class} judges Python programs, not {}",
            self.language
        )))
    }

    async fn verdict(
        &self,
        program: &str,
        tests: &Tests,
        limits: Limits,
    ) -> Result<Verdict, Fault> {
        let judge = self.service.judge().within(limits);
        let submission = Submission::new(self.language, program);
        Ok(judge.verdict_of(&submission, tests).await?)
    }
}

fn truthy(value: Option<&Value>) -> bool {
    matches!(value, Some(Value::Bool(true)))
}

fn eval_test(mut outcome: RunOutcome, case: &OjCase, shown: &Value, whole: bool) -> EvalTest {
    outcome.files.clear();
    let expected = case.output.stdout.as_bytes();
    let passed = outcome.is_ok()
        && !outcome.stdout.truncated
        && Comparator::CommonOj.matches(&outcome.stdout.bytes(), expected);
    let test_info = if whole || !passed {
        shown.clone()
    } else {
        clipped(shown)
    };
    EvalTest {
        passed,
        exec_info: run_code::response(&outcome),
        test_info: Some(test_info),
    }
}

/// The same with every text cut to what is shown of a case that passed.
fn clipped(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.chars().take(SHOWN).collect()),
        Value::Array(items) => items.iter().map(clipped).collect(),
        Value::Object(items) => items
            .iter()
            .map(|(key, value)| (key.clone(), clipped(value)))
            .collect(),
        other => other.clone(),
    }
}

fn judged(tests: Vec<EvalTest>, n_cases: usize) -> Judged {
    Judged {
        accepted: n_cases > 0 && tests.len() == n_cases && tests.iter().all(|test| test.passed),
        tests,
        ..Judged::default()
    }
}

/// A verdict as the one test that these classes have.
fn one_test(verdict: &Verdict) -> Judged {
    let timed_out = verdict.status.is_timeout();
    let message = verdict.message.clone().unwrap_or_default();
    let run_result = CommandRunResult {
        status: if timed_out {
            CommandRunStatus::TimeLimitExceeded
        } else {
            CommandRunStatus::Finished
        },
        execution_time: verdict.wall_ms / 1e3,
        cpu_time: verdict.cpu_ms / 1e3,
        return_code: (!timed_out).then_some(i32::from(!verdict.passed)),
        stdout: String::new(),
        stderr: message,
        truncated: false,
        outcome: if verdict.passed { "ok" } else { "non_zero" },
        peak_memory_mb: 0.0,
    };
    let exec_info = RunCodeResponse {
        status: if verdict.passed {
            RunStatus::Success
        } else {
            RunStatus::Failed
        },
        message: String::new(),
        compile_result: None,
        run_result: Some(run_result),
        executor_pod_name: None,
        files: Default::default(),
        files_not_fetched: Default::default(),
    };
    let info = json!({
        "status": verdict.status,
        "n_passed": verdict.n_passed,
        "n_tests": verdict.n_tests,
    });
    Judged {
        accepted: verdict.passed,
        tests: vec![EvalTest {
            passed: verdict.passed,
            exec_info,
            test_info: Some(info),
        }],
        ..Judged::default()
    }
}
