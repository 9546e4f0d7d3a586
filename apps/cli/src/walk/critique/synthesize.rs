//! `etude data synthesize`: critiques to learn from, written by a model that is told what running each program has
//! shown. The folder is a run: what was played before a kill is not played again.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc, time::Duration};

use ::train::Stop;
use anyhow::{Context, anyhow};
use chat::{Chat, Tokenizer};
use clap::Args;
use critique::{
    CRITIC, GENERATOR, REVISER,
    data::{CountTokens, LessonOptions, read_problems},
    format::Gate,
    synthesis::{Assignment, Samples, Synthesis, samples},
};
use engine::Model;
use eval::Evaluated;
use journal::{Replay, RunDir, RunStarted};
use judge::{Judge, JudgeConfig};
use policy::endpoint::PREFIX;
use recipe::Resolved;
use record::{Sampling, Seed, TaskId};
use rollout::{Answers, Options as RolloutOptions, Roles};
use sandbox::Sandbox;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    data::made::{self, Division, MadeRows, file_names, write_rows},
    failure::{Classify, Failure, Outcome},
    machine,
    report::{print_json, print_text},
    screen::Screen,
    train::stop_on_request,
    walk::{
        Engines, Frame,
        endpoint::NamedEndpoint,
        evaluate::{Played, faults, share},
        settings::Training,
    },
};

#[derive(Debug, Args)]
pub(crate) struct SynthesizeArgs {
    /// Problem files, as `etude data prepare` writes them
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The folder that everything is written to; the same command goes on with one that was cut short
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Who writes solutions, hinted critiques and revisions: hf:DIRECTORY or openai:URL#MODEL
    #[arg(long, value_name = "MODEL")]
    model: String,
    /// Who writes the critiques instead
    #[arg(long, value_name = "MODEL")]
    critic: Option<String>,
    /// Who writes the revisions instead
    #[arg(long, value_name = "MODEL")]
    reviser: Option<String>,
    /// The environment variable that holds the key of endpoints
    #[arg(long, value_name = "NAME")]
    api_key_env: Option<String>,
    /// Seconds for one answer of an endpoint
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0)]
    answer_timeout: f64,
    /// Solutions a problem
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1 << 12))]
    samples: u32,
    /// The first so many problems of each file alone
    #[arg(long, value_name = "N")]
    first: Option<usize>,
    /// Of solutions and critiques; revisions are greedy
    #[arg(long, value_name = "T", default_value_t = 0.7)]
    temperature: f64,
    #[arg(long, value_name = "P", default_value_t = 0.8)]
    top_p: f64,
    #[arg(long, value_name = "R", default_value_t = 1.05)]
    repetition_penalty: f64,
    /// Most tokens of an answer
    #[arg(long, value_name = "N", default_value_t = 1024)]
    max_tokens: usize,
    /// Rows whose prompt has so many tokens or more are dropped
    #[arg(long, value_name = "N", default_value_t = 2048)]
    max_prompt_tokens: usize,
    /// Keep critiques whose revision fails
    #[arg(long)]
    keep_failed: bool,
    /// Keep one row a problem
    #[arg(long)]
    remove_duplicates: bool,
    /// Leave rows out until judgments are to each other as right and wrong solutions are
    #[arg(long)]
    balance: bool,
    /// Keep this share of the problems for supervision, drawn by --seed: critiques of them alone, and pairs of the
    /// others alone [default: both of all]
    #[arg(long, value_name = "SHARE", value_parser = made::share)]
    sft_share: Option<f64>,
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Samples on their way at the same time
    #[arg(long, value_name = "N", default_value_t = 64)]
    concurrency: usize,
    /// Seconds of processor time that a program may take on one test, of problems that do not say
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = crate::args::seconds)]
    timeout: Duration,
    /// MiB of memory of one program
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u64).range(16..=1 << 20))]
    memory: u64,
    /// Run programs even where only weak walls can be built
    #[arg(long)]
    allow_weak_tier: bool,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// What the rows depend on: kept in the folder, and the same in every command that goes on with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    study: String,
    files: Vec<PathBuf>,
    first: Option<usize>,
    model: String,
    critic: String,
    reviser: String,
    samples: u32,
    seed: u64,
    temperature: f64,
    top_p: f64,
    repetition_penalty: f64,
    max_tokens: usize,
    timeout_s: f64,
    memory_mb: u64,
    filters: Filters,
}

/// Which critiques make rows, and of which problems.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Filters {
    max_prompt_tokens: usize,
    keep_failed: bool,
    remove_duplicates: bool,
    balance: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sft_share: Option<f64>,
}

/// What is in the folder, beside the run itself.
#[derive(Serialize)]
struct Synthesized {
    samples: usize,
    without_verdict: usize,
    over_long: usize,
    #[serde(flatten)]
    rows: MadeRows,
    forest: PathBuf,
}

/// What the journal calls the study, and its one evaluation.
pub(crate) const STUDY: &str = "critique-synthesis";
const NAME: &str = "synthesis";

/// Every sample as a node, and how many of what there are.
const FOREST: &str = "forest.jsonl";
const COUNTS: &str = "synthesis.json";

pub(crate) fn run(args: &SynthesizeArgs, screen: Screen) -> Outcome<()> {
    let settings = Settings::of(args);
    settings.check(args).asked()?;
    let assignments = settings.assignments()?;
    let digests = settings.digests()?;
    let engines = Engines::start(machine::cores())?;
    let cast = Cast::open(args, &settings, &engines)?;
    let judge = judge(args)?;
    let (run, replay) = folder(args, &settings, screen)?;
    same_problems(&run, &digests)?;
    let stop = Stop::default();
    stop_on_request(&engines.runtime, &stop, screen)?;
    let frame = Frame {
        run: &run,
        replay: &replay,
        engines: &engines,
        screen,
        stop: &stop,
        seed: Seed(settings.seed),
        training: Training::default(),
    };
    let rollout = RolloutOptions {
        concurrency: args.concurrency.max(1),
        deadline_s: 6.0 * args.answer_timeout + 3600.0,
        ..RolloutOptions::default()
    };
    let suite = Played {
        name: NAME,
        policy: &settings.model,
        study: Arc::new(Synthesis { judge }),
        roles: cast.roles(&settings),
        tasks: &assignments,
        samples: settings.samples,
        seed: frame.seed,
        rollout: &rollout,
        keeps: true,
    };
    match frame.suite(&suite, line) {
        Err(Failure::Interrupted { .. }) => {
            screen.say("what was played is kept; the same command goes on");
            return Err(Failure::Stopped);
        }
        // What is said there is about recipes.
        Err(Failure::Failed(error)) => {
            return Err(Failure::Failed(error.context(format!(
                "{} is not finished; what was played is kept, and the same command goes on",
                args.out.display()
            ))));
        }
        played => played?,
    }
    let problems: BTreeMap<&TaskId, &Assignment> =
        assignments.iter().map(|one| (&one.id, &**one)).collect();
    let count = |text: &str| cast.count_tokens(text);
    let made = write(args, &run, (&settings, &problems), &count)?;
    if !replay.finished() {
        run.finish().failed()?;
    }
    if args.json {
        return print_json(&json!({ "out": args.out, "counts": made }));
    }
    let mut lines = vec![args.out.display().to_string()];
    let more = [
        ("samples", made.samples),
        ("of those without a verdict", made.without_verdict),
        (
            "left out, as their prompts leave a model no room",
            made.over_long,
        ),
    ];
    lines.extend(made.rows.lines(&more));
    print_text(&lines.join("\n"))
}

impl Settings {
    fn of(args: &SynthesizeArgs) -> Self {
        let other = |name: &Option<String>| name.clone().unwrap_or_else(|| args.model.clone());
        Self {
            study: STUDY.to_owned(),
            files: args.files.clone(),
            first: args.first,
            model: args.model.clone(),
            critic: other(&args.critic),
            reviser: other(&args.reviser),
            samples: args.samples,
            seed: args.seed,
            temperature: args.temperature,
            top_p: args.top_p,
            repetition_penalty: args.repetition_penalty,
            max_tokens: args.max_tokens,
            timeout_s: args.timeout.as_secs_f64(),
            memory_mb: args.memory,
            filters: Filters {
                max_prompt_tokens: args.max_prompt_tokens,
                keep_failed: args.keep_failed,
                remove_duplicates: args.remove_duplicates,
                balance: args.balance,
                sft_share: args.sft_share,
            },
        }
    }

    fn check(&self, args: &SynthesizeArgs) -> anyhow::Result<()> {
        crate::walk::check_seconds("--answer-timeout", args.answer_timeout)?;
        for sampling in [self.sampling(), self.greedy()] {
            sampling.check().map_err(|bad| {
                let option = bad.parameter.replace('_', "-");
                anyhow!("--{option} is {}; {}", bad.value, bad.expected)
            })?;
        }
        anyhow::ensure!(
            self.max_tokens >= 1,
            "--max-tokens is 0; at least one is needed"
        );
        Ok(())
    }

    fn sampling(&self) -> Sampling {
        Sampling {
            top_p: self.top_p as f32,
            repetition_penalty: self.repetition_penalty as f32,
            ..Sampling::at(self.temperature as f32, self.max_tokens)
        }
    }

    fn greedy(&self) -> Sampling {
        Sampling::greedy(self.max_tokens)
    }

    /// Every problem under the name of its file and its own.
    fn assignments(&self) -> Outcome<Vec<Arc<Assignment>>> {
        const SHOWN_ERRORS: usize = 50;
        let mut assignments = Vec::new();
        let mut stems = BTreeMap::new();
        for (path, file) in self.files.iter().zip(file_names(&self.files)?) {
            let stem = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if let Some(other) = stems.insert(stem.clone(), path) {
                return Err(Failure::Asked(anyhow!(
                    "{} and {} differ in their ending alone, and problems are known by FILE/NAME without it; rename \
                     one of them",
                    other.display(),
                    path.display()
                )));
            }
            let problems = read_problems(path, SHOWN_ERRORS).asked()?;
            let problems = problems.into_iter().take(self.first.unwrap_or(usize::MAX));
            assignments.extend(problems.map(|problem| {
                let id = TaskId(format!("{stem}/{}", problem.task_id));
                let file = file.clone();
                Arc::new(Assignment { id, file, problem })
            }));
        }
        Ok(assignments)
    }

    /// What each file holds, named by its content.
    fn digests(&self) -> Outcome<BTreeMap<String, String>> {
        let digest = |path: &PathBuf| {
            let bytes =
                fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok((
                path.display().to_string(),
                blake3::hash(&bytes).to_hex().to_string(),
            ))
        };
        self.files
            .iter()
            .map(digest)
            .collect::<anyhow::Result<_>>()
            .asked()
    }

    /// As TOML: every value is JSON that TOML reads too.
    fn resolved(&self) -> Outcome<Resolved<Self>> {
        let value = serde_json::to_value(self).failed()?;
        let mut text = String::new();
        let mut tables = String::new();
        for (key, value) in value.as_object().into_iter().flatten() {
            match value {
                serde_json::Value::Null => {}
                serde_json::Value::Object(table) => {
                    tables += &format!("[{key}]\n");
                    for (key, value) in table {
                        tables += &format!("{key} = {value}\n");
                    }
                }
                value => text += &format!("{key} = {value}\n"),
            }
        }
        recipe::resolve(&(text + &tables), "the command line", &[]).failed()
    }
}

/// Who answers, by what the command line calls them.
struct Cast {
    players: BTreeMap<String, Answers>,
    /// The tokens that prompts are counted in, where a model here has some.
    tokens: Option<Tokenizer>,
}

impl Cast {
    fn open(args: &SynthesizeArgs, settings: &Settings, engines: &Engines) -> Outcome<Self> {
        let mut cast = Self {
            players: BTreeMap::new(),
            tokens: None,
        };
        for name in [&settings.critic, &settings.model, &settings.reviser] {
            if cast.players.contains_key(name) {
                continue;
            }
            let player = if name.starts_with(PREFIX) {
                let endpoint = NamedEndpoint {
                    model: name,
                    api_key_env: args.api_key_env.as_deref(),
                    timeout_s: args.answer_timeout,
                };
                Answers::Messages(engines.runtime.block_on(endpoint.open())?)
            } else {
                let directory = name.strip_prefix("hf:").ok_or_else(|| {
                    Failure::Asked(anyhow!(
                        "`{name}` names no model; write hf:DIRECTORY or openai:URL#MODEL"
                    ))
                })?;
                let chat = Chat::load(directory.as_ref()).asked()?;
                let model = Model::load(directory.as_ref()).asked()?;
                cast.tokens.get_or_insert_with(|| chat.tokenizer().clone());
                Answers::Tokens(Arc::new(engines.policy(name, &chat, Arc::new(model))?))
            };
            cast.players.insert(name.clone(), player);
        }
        Ok(cast)
    }

    fn roles(&self, settings: &Settings) -> Roles {
        let roles = [
            (GENERATOR, &settings.model, settings.sampling()),
            (CRITIC, &settings.critic, settings.sampling()),
            (REVISER, &settings.reviser, settings.greedy()),
        ];
        let mut bound = Roles::default();
        for (role, name, sampling) in roles {
            if let Some(player) = self.players.get(name) {
                bound = bound.bind_answers(role, player.clone(), sampling);
            }
        }
        bound
    }

    /// Where no tokens are known, a quarter of the bytes.
    fn count_tokens(&self, text: &str) -> usize {
        let encoded = self.tokens.as_ref().map(|tokens| tokens.encode(text));
        match encoded {
            Some(Ok(ids)) => ids.len(),
            _ => text.len().div_ceil(4),
        }
    }
}

fn judge(args: &SynthesizeArgs) -> Outcome<Judge> {
    let mut setup = machine::sandbox_config(machine::cores());
    setup.allow_weak_tier = args.allow_weak_tier;
    let sandbox = Sandbox::start(setup).failed()?;
    let mut judging = JudgeConfig::small();
    judging.limits.cpu = args.timeout;
    // A busy machine is no reason to fail.
    judging.limits.wall = args.timeout.saturating_mul(8);
    judging.limits.memory = args.memory << 20;
    Ok(Judge::new(sandbox, judging))
}

/// The folder as a run: begun, or gone on with if it was begun with the same settings.
fn folder(args: &SynthesizeArgs, settings: &Settings, screen: Screen) -> Outcome<(RunDir, Replay)> {
    let Resolved { text, hash, .. } = settings.resolved()?;
    if !args.out.join("journal.log").exists() {
        let started = RunStarted {
            study: STUDY.to_owned(),
            name: NAME.to_owned(),
            seed: settings.seed,
            recipe_hash: hash,
            etude: env!("CARGO_PKG_VERSION").to_owned(),
            machine: machine::facts(),
        };
        let run = RunDir::create(&args.out, &text, started).asked()?;
        return Ok((run, Replay::default()));
    }
    let (run, replay) = RunDir::open(&args.out).asked()?;
    match replay.started() {
        Some(started) if started.recipe_hash == hash => {
            screen.say(format!("{}: going on", args.out.display()));
            Ok((run, replay))
        }
        _ => Err(Failure::Asked(anyhow!(
            "{} was begun with other options, which its recipe.toml has; use those, or another --out",
            args.out.display()
        ))),
    }
}

/// What the journal calls the digests of the problem files.
const PROBLEMS: &str = "problems";

/// Samples of one folder are of one set of problems: what was played is not played again, so a problem that changed
/// since would keep the samples of its old self.
fn same_problems(run: &RunDir, digests: &BTreeMap<String, String>) -> Outcome<()> {
    let now = serde_json::to_value(digests).failed()?;
    let committed = run.replay();
    let Some(before) = committed.note(PROBLEMS) else {
        // Folders of earlier versions do not say.
        return match committed.finished() {
            true => Ok(()),
            false => run.note(PROBLEMS, &now).failed(),
        };
    };
    if *before == now {
        return Ok(());
    }
    let changed = digests
        .iter()
        .find(|(file, digest)| before[file.as_str()] != digest.as_str());
    Err(Failure::Asked(anyhow!(
        "{} was begun with other problems: {} has changed since; name another --out, or bring the old file back",
        run.path().display(),
        changed.map_or("a file", |(file, _)| file.as_str())
    )))
}

/// Writes the nodes, the rows made of them, and how many of what. They are views of the journal: made anew by every
/// command, with the same bytes.
fn write(
    args: &SynthesizeArgs,
    run: &RunDir,
    (settings, problems): (&Settings, &BTreeMap<&TaskId, &Assignment>),
    count_tokens: &CountTokens<'_>,
) -> Outcome<Synthesized> {
    let committed = run.replay();
    let episodes = committed
        .evaluation(NAME)
        .and_then(|one| one.episodes.as_ref());
    let groups = match episodes {
        Some(reference) => run.read_episodes(reference).failed()?,
        None => Vec::new(),
    };
    let assignment = |id: &TaskId| problems.get(id).copied();
    let Samples {
        lines,
        tried,
        without_verdict,
        over_long,
    } = samples(&groups, assignment, FOREST.as_ref(), &settings.model);
    let mut nodes = Vec::new();
    for line in &lines {
        serde_json::to_writer(&mut nodes, line).failed()?;
        nodes.push(b'\n');
    }
    run.write_view(FOREST, &nodes).failed()?;
    let filters = &settings.filters;
    let options = LessonOptions {
        count_tokens: Some(count_tokens),
        max_tokens: filters.max_prompt_tokens,
        only_successful: !filters.keep_failed,
        only_judged: true,
        balance: filters.balance,
        one_per_problem: filters.remove_duplicates,
        seed: Seed(settings.seed),
    };
    let division = Division::by_share(filters.sft_share, settings.seed);
    let rows = write_rows(&args.out, &tried, (Gate::Strict, &options), &division)?;
    let made = Synthesized {
        samples: groups.iter().map(|group| group.episodes.len()).sum(),
        without_verdict,
        over_long,
        rows: rows.named_in(&args.out),
        forest: PathBuf::from(FOREST),
    };
    run.write_view(COUNTS, &serde_json::to_vec_pretty(&made).failed()?)
        .failed()?;
    Ok(made)
}

/// The whole in one line.
fn line(evaluated: &Evaluated) -> String {
    let share = |name: &str| share(evaluated, name);
    format!(
        "{} problems: solved {}, after hinted critiques {}, judged truly {}{}",
        evaluated.n_tasks,
        share("success"),
        share("revised_success"),
        share("judged_truly"),
        faults(evaluated),
    )
}
