//! `etude judge`: solutions against the tests of their tasks.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::Path,
    time::Instant,
};

use anyhow::{anyhow, bail};
use futures::{StreamExt, stream};
use judge::{
    Judge, JudgeConfig, JudgeError, JudgeParts, Submission, Verdict, VerdictStore,
    completion::extract,
    rows::{self, Problem},
};
use record::{Estimate, pass_at_k};
use sandbox::{Config, Language, Limits, Sandbox, Toolchains};
use serde::{Deserialize, Serialize};

use crate::{
    args::JudgeArgs,
    failure::{Classify, Failure, Outcome},
    machine,
    report::{print_json, print_text},
    screen::Screen,
};

/// Exit code 0 when every solution has a verdict, whatever it is; 1 when the machinery failed for some.
pub(crate) fn run(args: &JudgeArgs, screen: Screen) -> Outcome<()> {
    let tasks = tasks(&args.tasks).asked()?;
    let solutions = solutions(&args.solutions, &tasks, args.lang.as_deref()).asked()?;
    let store = match &args.cache {
        Some(folder) => Some(VerdictStore::open(folder, CACHE_BYTES).asked()?),
        None => None,
    };
    let judge = judge(args, &tasks, &solutions, store)?;
    let runtime = tokio::runtime::Runtime::new().failed()?;
    runtime.block_on(async {
        tokio::select! {
            done = judge_all(args, &judge, &tasks, &solutions, screen) => done,
            () = crate::stop::asked_to_stop() => Err(Failure::Stopped),
        }
    })
}

/// Bytes of verdicts kept on disk.
const CACHE_BYTES: u64 = 1 << 30;

fn judge(
    args: &JudgeArgs,
    tasks: &BTreeMap<TaskName, Problem>,
    solutions: &[Solution],
    store: Option<VerdictStore>,
) -> Outcome<Judge> {
    let workers = args.workers.unwrap_or_else(machine::cores);
    let config = machine::sandbox_config(workers);
    let of_solutions = solutions.iter().map(|one| one.submission.language);
    let of_tests = tasks
        .values()
        .filter_map(|problem| problem.tests.script_language());
    let languages: HashSet<Language> = of_solutions.chain(of_tests).collect();
    let languages: Vec<Language> = Language::ALL
        .into_iter()
        .filter(|language| languages.contains(language) || *language == Language::Pytest)
        .collect();
    let toolchains = Toolchains::probe(&languages, None, &config.search);
    let sandbox = Sandbox::start(Config {
        allow_weak_tier: args.allow_weak_tier,
        readable: toolchains.readable(),
        ..config
    });
    let limits = Limits {
        wall: args.timeout,
        cpu: args.timeout.saturating_mul(2),
        memory: args.memory << 20,
        ..Limits::SMALL
    };
    let config = JudgeConfig {
        limits,
        ..JudgeConfig::small()
    };
    let parts = JudgeParts { toolchains, store };
    Ok(Judge::with(sandbox.failed()?, config, parts))
}

/// A name as the file has it: a text or a number.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
enum TaskName {
    Number(i64),
    Text(String),
}

impl std::fmt::Display for TaskName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

#[derive(Deserialize)]
struct TaskRow {
    #[serde(alias = "id")]
    task_id: TaskName,
    #[serde(flatten)]
    columns: serde_json::Map<String, serde_json::Value>,
}

fn tasks(path: &Path) -> anyhow::Result<BTreeMap<TaskName, Problem>> {
    let rows: Vec<TaskRow> = dataset::read_jsonl(path)?;
    let mut tasks = BTreeMap::new();
    for TaskRow { task_id, columns } in rows {
        let problem = rows::problem(&columns.into())
            .map_err(|error| anyhow!("{}: task {task_id}: {error}", path.display()))?;
        if problem.tests.is_empty() {
            bail!("{}: task {task_id} has no tests", path.display());
        }
        if tasks.insert(task_id.clone(), problem).is_some() {
            bail!("{}: task {task_id} is there twice", path.display());
        }
    }
    Ok(tasks)
}

#[derive(Deserialize)]
struct SolutionRow {
    #[serde(alias = "id")]
    task_id: TaskName,
    /// A whole program.
    #[serde(default, alias = "code")]
    solution: Option<String>,
    /// What a model said: a fenced program, or the rest of the prompt's function.
    #[serde(default)]
    completion: Option<String>,
    #[serde(default)]
    language: Option<String>,
}

struct Solution {
    task: TaskName,
    submission: Submission,
}

fn solutions(
    path: &Path,
    tasks: &BTreeMap<TaskName, Problem>,
    language: Option<&str>,
) -> anyhow::Result<Vec<Solution>> {
    let rows: Vec<SolutionRow> = dataset::read_jsonl(path)?;
    let mut solutions = Vec::with_capacity(rows.len());
    for (index, row) in rows.into_iter().enumerate() {
        let at = format!(
            "{}: solution {} of task {}",
            path.display(),
            index + 1,
            row.task_id
        );
        let Some(problem) = tasks.get(&row.task_id) else {
            bail!("{at}: there is no such task");
        };
        let name = row.language.as_deref().or(language).unwrap_or("python");
        let known = || Language::ALL.map(Language::name).join(", ");
        let language = Language::named(name)
            .ok_or_else(|| anyhow!("{at}: unknown language {name:?}; known are {}", known()))?;
        if problem.tests.needs_python() && language != Language::Python {
            let kind = problem.tests.kind();
            bail!(
                "{at}: its tests ({kind}) run Python programs, not {name}; give stdio tests or a script instead"
            );
        }
        let source = match (row.solution, row.completion) {
            (Some(program), _) => program,
            (None, Some(said)) => {
                let found = extract(&said, language.name());
                let code = match found.kind {
                    // Whatever it is, its tests will say.
                    "heuristic" | "empty" => said,
                    _ => found.code,
                };
                problem.program(&code)
            }
            (None, None) => bail!("{at}: it has neither `solution`, `code` nor `completion`"),
        };
        solutions.push(Solution {
            task: row.task_id,
            submission: Submission::new(language, source),
        });
    }
    Ok(solutions)
}

/// One line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    task_id: &'a TaskName,
    index: usize,
    /// Null where the machinery failed: no verdict is no failure.
    passed: Option<bool>,
    reward: Option<f64>,
    #[serde(flatten)]
    verdict: Option<VerdictLine<'a>>,
    error: Option<String>,
}

#[derive(Serialize)]
struct VerdictLine<'a> {
    status: judge::VerdictStatus,
    n_passed: usize,
    n_tests: usize,
    message: &'a Option<String>,
    wall_ms: f64,
    cpu_ms: f64,
    cached: bool,
}

/// The last line of `--json`.
#[derive(Debug, Default, Serialize)]
struct Summary {
    summary: bool,
    n_tasks: usize,
    n_solutions: usize,
    /// Solutions without a verdict, which count nowhere else.
    n_infra_errors: usize,
    /// Over tasks with a verdict, the unbiased estimate from all solutions of each.
    #[serde(flatten)]
    pass_at: BTreeMap<String, Estimate>,
    mean_reward: f64,
    statuses: BTreeMap<String, usize>,
    cache_hit_rate: f64,
    seconds: f64,
}

async fn judge_all(
    args: &JudgeArgs,
    judge: &Judge,
    tasks: &BTreeMap<TaskName, Problem>,
    solutions: &[Solution],
    screen: Screen,
) -> Outcome<()> {
    let started = Instant::now();
    let work = screen.work("judging", solutions.len() as u64);
    let verdicts: Vec<_> = solutions
        .iter()
        .map(|solution| verdict(judge, &tasks[&solution.task], solution))
        .collect();
    /// Solutions whose runs wait in the sandbox's queue at the same time.
    const AHEAD: usize = 256;
    let mut verdicts = stream::iter(verdicts).buffered(AHEAD);
    let mut tally = Tally::default();
    let mut at = 0;
    while let Some(verdict) = verdicts.next().await {
        let solution = &solutions[at];
        let line = tally.line(args, at, solution, &verdict);
        if args.json {
            print_json(&line)?;
        } else if line.passed != Some(true) {
            print_text(&line.text())?;
        }
        at += 1;
        work.at(at as u64);
    }
    let stats = judge.stats();
    let summary = tally.summary(
        started.elapsed().as_secs_f64(),
        stats.cache_hits as f64 / stats.verdicts.max(1) as f64,
    );
    work.done(format!(
        "{} solutions of {} tasks",
        summary.n_solutions, summary.n_tasks
    ));
    if args.json {
        print_json(&summary)?;
    } else {
        print_text(&summary.text())?;
    }
    match summary.n_infra_errors {
        0 => Ok(()),
        n => Err(Failure::Failed(anyhow!(
            "{n} solutions have no verdict, as the machinery failed; they count nowhere"
        ))),
    }
}

async fn verdict(
    judge: &Judge,
    problem: &Problem,
    solution: &Solution,
) -> Result<Verdict, JudgeError> {
    judge.verdict_of(&solution.submission, &problem.tests).await
}

/// What has come of the solutions so far.
#[derive(Default)]
struct Tally {
    /// Verdicts and passes of each task.
    by_task: HashMap<TaskName, (usize, usize)>,
    statuses: BTreeMap<String, usize>,
    rewards: f64,
    solutions: usize,
    errors: usize,
}

impl Tally {
    fn line<'a>(
        &mut self,
        args: &JudgeArgs,
        index: usize,
        solution: &'a Solution,
        verdict: &'a Result<Verdict, JudgeError>,
    ) -> Line<'a> {
        self.solutions += 1;
        let task_id = &solution.task;
        match verdict {
            Ok(verdict) => {
                let reward = verdict.reward(args.scoring.into());
                let (n, passes) = self.by_task.entry(task_id.clone()).or_default();
                *n += 1;
                *passes += usize::from(verdict.passed);
                *self.statuses.entry(verdict.status.to_string()).or_default() += 1;
                self.rewards += reward;
                Line {
                    task_id,
                    index,
                    passed: Some(verdict.passed),
                    reward: Some(reward),
                    verdict: Some(VerdictLine {
                        status: verdict.status,
                        n_passed: verdict.n_passed,
                        n_tests: verdict.n_tests,
                        message: &verdict.message,
                        wall_ms: verdict.wall_ms,
                        cpu_ms: verdict.cpu_ms,
                        cached: verdict.cached,
                    }),
                    error: None,
                }
            }
            Err(error) => {
                self.errors += 1;
                Line {
                    task_id,
                    index,
                    passed: None,
                    reward: None,
                    verdict: None,
                    error: Some(error.to_string()),
                }
            }
        }
    }

    fn summary(self, seconds: f64, cache_hit_rate: f64) -> Summary {
        let counts: Vec<(usize, usize)> = self.by_task.values().copied().collect();
        let most = counts.iter().map(|(n, _)| *n).min().unwrap_or(0);
        let ks = [1, 5, 10, 100].into_iter().filter(|k| *k <= most);
        let pass_at = ks.filter_map(|k| {
            let values: Vec<f64> = counts
                .iter()
                .map(|(n, passes)| pass_at_k(*n, *passes, k))
                .collect();
            Some((format!("pass@{k}"), over_tasks(&values)?))
        });
        Summary {
            summary: true,
            n_tasks: counts.len(),
            n_solutions: self.solutions,
            n_infra_errors: self.errors,
            pass_at: pass_at.collect(),
            mean_reward: self.rewards / (self.solutions - self.errors).max(1) as f64,
            statuses: self.statuses,
            cache_hit_rate,
            seconds,
        }
    }
}

/// The mean over tasks with a 95 % normal interval, within 0 and 1.
fn over_tasks(values: &[f64]) -> Option<Estimate> {
    let n = values.len() as f64;
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = if values.len() > 1 {
        (squares / (n - 1.0) / n).sqrt()
    } else {
        f64::INFINITY
    };
    Some(Estimate {
        value: mean,
        low: (mean - 1.96 * error).max(0.0),
        high: (mean + 1.96 * error).min(1.0),
    })
}

impl Line<'_> {
    fn text(&self) -> String {
        let said = match (&self.verdict, &self.error) {
            (Some(verdict), _) => format!(
                "{} ({}/{}){}",
                verdict.status,
                verdict.n_passed,
                verdict.n_tests,
                verdict
                    .message
                    .as_deref()
                    .map(|text| format!(": {text}"))
                    .unwrap_or_default()
            ),
            (None, Some(error)) => format!("no verdict: {error}"),
            (None, None) => String::new(),
        };
        format!("{:<24} #{:<4} {said}", self.task_id.to_string(), self.index)
    }
}

impl Summary {
    fn text(&self) -> String {
        let mut text = format!(
            "\n{} solutions of {} tasks in {:.1} s, {:.0} % from the cache\n",
            self.n_solutions,
            self.n_tasks,
            self.seconds,
            100.0 * self.cache_hit_rate
        );
        for (name, estimate) in &self.pass_at {
            let [value, low, high] =
                [estimate.value, estimate.low, estimate.high].map(|x| 100.0 * x);
            text += &format!("{name:<12} {value:.1} % ({low:.1}–{high:.1})\n");
        }
        text += &format!("mean reward  {:.3}\n", self.mean_reward);
        for (status, n) in &self.statuses {
            text += &format!("{status:<12} {n}\n");
        }
        if self.n_infra_errors > 0 {
            text += &format!(
                "no verdict   {} (the machinery failed)\n",
                self.n_infra_errors
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::over_tasks;

    #[test]
    fn a_mean_over_tasks_stays_between_0_and_1() {
        let all = over_tasks(&[1.0, 0.0, 1.0, 0.0]).unwrap();
        assert_eq!(all.value, 0.5);
        assert!(all.low >= 0.0 && all.high <= 1.0 && all.low < 0.5);
        assert!(over_tasks(&[]).is_none());
    }
}
