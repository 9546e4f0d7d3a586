//! What can be asked on the command line.

use std::{path::PathBuf, time::Duration};

use clap::{
    Args, Parser, Subcommand,
    builder::{RangedU64ValueParser, TypedValueParser},
};

use crate::{evaluator_flags::EvaluatorFlags, sampling::SamplingArgs};

/// Trains and evaluates code agents by reinforcement learning on verifiable rewards.
#[derive(Debug, Parser)]
#[command(
    name = "etude",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a recipe: make tasks, train, evaluate, report
    Train(TrainArgs),
    /// Evaluate what a recipe names, or the policies of a run again; the run stays as it is
    Eval(Box<EvalArgs>),
    /// Rebuild report.html and summary.json of a run, and print its result
    Report(ReportArgs),
    /// Check a recipe and print what it would do: sizes, tokens, memory, time, sandbox
    Plan(PlanArgs),
    /// Judge solutions by the tests of their tasks
    Judge(JudgeArgs),
    /// Grade predicted patches by the tests of their tasks, as SWE-bench does
    Grade(crate::grade::GradeArgs),
    /// Sample responses from a checkpoint: the quickest way to see that a model works
    Sample(SampleArgs),
    /// Talk with a checkpoint
    Chat(crate::chat::ChatArgs),
    /// Look at a checkpoint, bring one in, or hand one on
    Model(crate::model::ModelArgs),
    /// Run programs that are not trusted
    Sandbox(SandboxArgs),
    /// Make tasks of datasets, and check files of tasks
    Data(crate::data::DataArgs),
    /// Repair a repository whose tests fail, and leave it as it is unless the patch is wanted
    Repair(crate::repair::RepairArgs),
    /// Build, search and show the code graph of a repository
    Graph(crate::graph::GraphArgs),
    /// Check what this program promises to read
    Validate(ValidateArgs),
    /// Serve sessions: of a file queue, or at the other end of an ssh channel
    Runner(RunnerArgs),
    /// Say what this machine offers, and how to get what is missing
    Doctor(DoctorArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    #[command(subcommand)]
    pub(crate) command: ValidateCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ValidateCommand {
    /// Read samples of planners' replies and of patches, good and bad, and compare the codes
    Contracts {
        /// Print one JSON object on stdout
        #[arg(long)]
        json: bool,
    },
    /// Read every patch of a file as the repair study would, and say what is wrong with it
    Patches(crate::validate::PatchesArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TrainArgs {
    /// The recipe, a TOML file
    #[arg(required_unless_present = "resume", conflicts_with = "resume")]
    pub(crate) recipe: Option<PathBuf>,
    /// Where the run is written [default: runs/NAME, numbered if it exists]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub(crate) run: Option<PathBuf>,
    /// Override a key of the recipe, for example --set rl.steps=10
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "resume")]
    pub(crate) set: Vec<String>,
    /// Go on with the run in DIR from its last committed step
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,
    /// Print one JSON object on stdout at the end
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// A run directory, whose policies are evaluated again; or a recipe that has nothing to train
    #[arg(
        value_name = "DIR|RECIPE",
        required_unless_present = "resume",
        conflicts_with = "resume"
    )]
    pub(crate) run: Option<PathBuf>,
    /// Of a recipe: where the run is written [default: runs/NAME, numbered if it exists]
    #[arg(long = "run", value_name = "DIR")]
    pub(crate) into: Option<PathBuf>,
    /// Go on with an evaluation that a recipe began and that did not come to its end
    #[arg(long, value_name = "DIR", conflicts_with_all = ["into", "set", "tasks", "samples", "seed"])]
    pub(crate) resume: Option<PathBuf>,
    /// Of a recipe: override a key, for example --set tasks.eval=FILE.jsonl
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Tasks to evaluate on, a JSONL file [default: the run's own evaluation tasks]
    #[arg(long, value_name = "FILE")]
    pub(crate) tasks: Option<PathBuf>,
    /// What the file of `--tasks` holds, where it is dialogues and no tasks: of the recall study alone
    /// [default: as the recipe says]
    #[arg(long, value_parser = crate::data::formats(), requires = "tasks")]
    pub(crate) format: Option<recall::adapters::Format>,
    /// Episodes a task [default: as the recipe says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) samples: Option<u32>,
    /// Seed of the sampling [default: the run's]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Print one JSON object on stdout at the end
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) flags: EvaluatorFlags,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// A run directory; several are compared as seeds of one recipe
    #[arg(required = true)]
    pub(crate) runs: Vec<PathBuf>,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// The recipe, a TOML file
    pub(crate) recipe: PathBuf,
    /// Override a key of the recipe, for example --set rl.steps=10
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SandboxArgs {
    #[command(subcommand)]
    pub(crate) command: SandboxCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Run one program behind walls and say how it ended
    Run(SandboxRunArgs),
    /// Serve runs and verdicts over HTTP, in the dialect of SandboxFusion
    Serve(SandboxServeArgs),
    /// Remove the containers, folders, mounts and processes that dead programs left
    Reap(SandboxReapArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SandboxReapArgs {
    /// Where programs write down what they hold [default: etude/leases below XDG_STATE_HOME]
    #[arg(long, value_name = "DIR")]
    pub(crate) leases: Option<PathBuf>,
    /// The one container engine to look at, a socket or tcp://HOST:PORT [default: those that leases
    /// name and those in the usual places, as far as they answer]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) engine: Option<String>,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SandboxRunArgs {
    /// The program's source text
    pub(crate) file: PathBuf,
    /// Its language [default: by the file's name]
    #[arg(long, value_name = "LANG")]
    pub(crate) lang: Option<String>,
    /// What the program reads from its standard input: a file, or - for that of this command
    /// [default: nothing]
    #[arg(long, value_name = "FILE")]
    pub(crate) stdin: Option<PathBuf>,
    /// Seconds that the program may take
    #[arg(long, value_name = "SECONDS", default_value = "10", allow_negative_numbers = true, value_parser = seconds)]
    pub(crate) timeout: Duration,
    /// Seconds of CPU time of all its processes together [default: the timeout on every core]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub(crate) cpu: Option<Duration>,
    /// MiB of memory of all its processes together
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) memory: u64,
    /// Run it even where only weak walls can be built
    #[arg(long)]
    pub(crate) allow_weak_tier: bool,
    /// Print one JSON object on stdout, instead of what the program prints
    #[arg(long)]
    pub(crate) json: bool,
    /// Arguments of the program
    #[arg(last = true)]
    pub(crate) arguments: Vec<String>,
}

/// How many programs may run at the same time; each place has interpreters of its own that wait.
pub(crate) fn places() -> impl TypedValueParser<Value = usize> {
    RangedU64ValueParser::<usize>::new().range(1..=1024)
}

/// A time that a program may be given.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    const DAY: f64 = 24.0 * 60.0 * 60.0;
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=DAY).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("must be a number of seconds from 0.001 to {DAY}")),
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RunnerArgs {
    /// The folder that clients and runners share [default: $QUEUE_ROOT, or ~/gp_queue]
    #[arg(long, value_name = "DIR")]
    pub(crate) queue: Option<PathBuf>,
    /// Serve runner-N of the queue; each number has one runner
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) id: u32,
    /// Where the images are, as .sif files [default: $GP_SIF_DIR or $SIF_DIR]
    #[arg(long, value_name = "DIR")]
    pub(crate) sif_dir: Option<PathBuf>,
    /// A folder that every instance sees at /mnt/share; work trees are kept in it
    #[arg(long, value_name = "DIR")]
    pub(crate) share: Option<PathBuf>,
    /// What sessions run in; for --stdio also the jail of this machine (local), or the runners of the queue
    #[arg(long, value_name = "NAME", default_value = "apptainer", value_parser = ["apptainer", "local", "queue"])]
    pub(crate) backend: String,
    /// The apptainer program, also a singularity that takes the same arguments
    #[arg(long, value_name = "PROGRAM", default_value = "apptainer")]
    pub(crate) apptainer: PathBuf,
    /// Seconds without a request after which the instance is stopped
    #[arg(long, value_name = "SECONDS", default_value = "1800", value_parser = seconds)]
    pub(crate) idle_timeout: Duration,
    /// Seconds without a request after which another run may take the instance
    /// [default: as --idle-timeout]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) orphan_ttl: Option<Duration>,
    /// End after the first instance was stopped
    #[arg(long)]
    pub(crate) once: bool,
    /// Serve one session to whoever writes requests to the standard input
    #[arg(long, conflicts_with = "swe_proxy")]
    pub(crate) stdio: bool,
    /// Carry out one operation on the queue: a JSON object on the standard input, one on the output
    #[arg(long)]
    pub(crate) swe_proxy: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SampleArgs {
    /// A directory in the Hugging Face layout, such as a run's checkpoints/critic-rl
    pub(crate) model: PathBuf,
    /// The text to go on from
    #[arg(
        long,
        value_name = "TEXT",
        required_unless_present = "prompt_file",
        conflicts_with = "prompt_file"
    )]
    pub(crate) prompt: Option<String>,
    /// A file with the text to go on from; - for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) prompt_file: Option<PathBuf>,
    /// Take the text for a user's message and render it with the model's chat template
    #[arg(long)]
    pub(crate) chat: bool,
    /// Samples of the prompt
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) samples: u32,
    /// Most tokens of a response
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_tokens: u32,
    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,
    /// With --json, also the K most probable tokens at each place of the response
    #[arg(long, value_name = "K", default_value_t = 0, requires = "json")]
    pub(crate) top_logprobs: usize,
    /// With --json, also the log-probs of the prompt
    #[arg(long, requires = "json")]
    pub(crate) prompt_logprobs: bool,
    /// Print one JSON object a sample: prompt_ids, response_ids, logprobs, text, stop
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SandboxServeArgs {
    /// The address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub(crate) bind: String,
    /// Programs that run at the same time [default: one a core]
    #[arg(long, value_name = "N", value_parser = places())]
    pub(crate) slots: Option<usize>,
    /// Programs that may wait; more are answered with 429
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) queue: usize,
    /// MiB of memory of a program whose request does not say
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(16..=1 << 20))]
    pub(crate) memory: u64,
    /// A file with the token that requests must bring as `Authorization: Bearer TOKEN`
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// MiB of the largest request; larger ones are answered with 413
    #[arg(long, value_name = "MIB", default_value_t = 32)]
    pub(crate) max_body: usize,
    /// Seconds for requests under way when the server is told to end
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = crate::sandbox_serve::drain)]
    pub(crate) drain: Duration,
    /// Problems that requests may name: NAME=CLASS:FILE, a JSONL file with an `id` in every row
    #[arg(long = "dataset", value_name = "NAME=CLASS:FILE")]
    pub(crate) datasets: Vec<String>,
    /// Keep verdicts in this folder, and look there before running anything
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Write a line of JSON to stderr for every request
    #[arg(long)]
    pub(crate) log: bool,
    /// Run programs even where only weak walls can be built
    #[arg(long)]
    pub(crate) allow_weak_tier: bool,
}

#[derive(Debug, Args)]
pub(crate) struct JudgeArgs {
    /// Tasks, a JSONL file: `task_id` and tests in one of the forms of docs/judging.md
    pub(crate) tasks: PathBuf,
    /// Solutions, a JSONL file: `task_id` and `solution`, `code` or `completion`; several a task count for
    /// pass@k
    pub(crate) solutions: PathBuf,
    /// How a verdict is rewarded
    #[arg(long, value_enum, default_value = "all-pass")]
    pub(crate) scoring: ScoringArg,
    /// The language of solutions that do not say theirs [default: python]
    #[arg(long, value_name = "LANG")]
    pub(crate) lang: Option<String>,
    /// Programs that run at the same time [default: one a core]
    #[arg(long, value_name = "N", value_parser = places())]
    pub(crate) workers: Option<usize>,
    /// Seconds that one run may take: a case of standard input, or all other tests of a task together
    #[arg(long, value_name = "SECONDS", default_value = "10", allow_negative_numbers = true, value_parser = seconds)]
    pub(crate) timeout: Duration,
    /// MiB of memory of one run
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) memory: u64,
    /// Keep verdicts in this folder, and look there before running anything
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Run programs even where only weak walls can be built
    #[arg(long)]
    pub(crate) allow_weak_tier: bool,
    /// Print one JSON object a solution and one at the end
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum ScoringArg {
    /// 1 when every test passed, else 0
    AllPass,
    /// The share of tests that passed
    PassRate,
}

impl From<ScoringArg> for judge::Scoring {
    fn from(scoring: ScoringArg) -> Self {
        match scoring {
            ScoringArg::AllPass => Self::AllPass,
            ScoringArg::PassRate => Self::PassRate,
        }
    }
}
