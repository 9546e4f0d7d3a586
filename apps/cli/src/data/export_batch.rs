//! `etude data export-batch`: the rows of a step of a run, packed for others.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use journal::RunReader;
use learn::{
    AlgorithmConfig, KlPlacement, batch_of_groups,
    pack::{Layout, PackOptions, Sidecar, pack, rows_of},
};
use record::TokenId;
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::json;

use crate::{
    failure::{Classify, Outcome},
    report::print_json,
    screen::Screen,
};

#[derive(Debug, Args)]
pub(crate) struct ExportBatchArgs {
    /// The run
    run: PathBuf,
    /// Step of reinforcement, counted from 1
    #[arg(long)]
    step: u64,
    /// Where padding stands: verl_split has prompts and responses apart, as verl reads them
    #[arg(long, value_enum, default_value_t = LayoutName::VerlSplit)]
    layout: LayoutName,
    /// Folder for batch.safetensors and batch.json; made if it is missing
    #[arg(long)]
    out: PathBuf,
    /// The policy whose rows are written, where the run trains several
    #[arg(long)]
    policy: Option<String>,
    /// Token that stands in padding
    #[arg(long, default_value_t = 0)]
    pad_id: TokenId,
    /// Add rows of padding until the number of rows is divisible by this
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    rows_divisible_by: u32,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
enum LayoutName {
    VerlSplit,
    RightPadded,
}

/// What a recipe of any study says of who is trained.
#[derive(Deserialize, Serialize)]
struct Trained {
    study: String,
    rl: TrainedRl,
    /// Of studies whose recipes name their policies.
    #[serde(default)]
    policies: BTreeMap<String, TrainedPolicy>,
}

#[derive(Deserialize, Serialize)]
struct TrainedRl {
    #[serde(default)]
    algorithm: AlgorithmConfig,
    /// The trained roles; `critic` where the study has no others.
    #[serde(default = "critic")]
    train: Vec<String>,
}

#[derive(Deserialize, Serialize)]
struct TrainedPolicy {
    #[serde(skip_serializing)]
    roles: BTreeMap<String, IgnoredAny>,
    #[serde(default)]
    rl: OwnRl,
}

#[derive(Default, Deserialize, Serialize)]
struct OwnRl {
    algorithm: Option<AlgorithmConfig>,
}

fn critic() -> Vec<String> {
    vec!["critic".to_owned()]
}

/// A policy's trained roles and how their advantages are made.
struct Policy<'a> {
    name: &'a str,
    roles: Vec<&'a str>,
    algorithm: &'a AlgorithmConfig,
}

impl Trained {
    fn policies(&self) -> Vec<Policy<'_>> {
        let trained = || self.rl.train.iter().map(String::as_str);
        if self.policies.is_empty() {
            return vec![Policy {
                name: "critic",
                roles: trained().collect(),
                algorithm: &self.rl.algorithm,
            }];
        }
        let policies = self.policies.iter().map(|(name, policy)| Policy {
            name,
            roles: trained()
                .filter(|role| policy.roles.contains_key(*role))
                .collect(),
            algorithm: policy.rl.algorithm.as_ref().unwrap_or(&self.rl.algorithm),
        });
        policies.filter(|policy| !policy.roles.is_empty()).collect()
    }
}

pub(super) fn run(args: &ExportBatchArgs, screen: Screen) -> Outcome<()> {
    let reader = RunReader::open(&args.run).asked()?;
    let origin = args.run.join("recipe.toml").display().to_string();
    let text = reader.recipe().asked()?;
    let recipe = recipe::resolve::<Trained>(&text, &origin, &[])
        .asked()?
        .value;
    let policies = recipe.policies();
    let policy = chosen(&policies, args.policy.as_deref()).asked()?;
    check(policy.algorithm).asked()?;
    let mut steps = reader.replay().steps("rl");
    let step = steps.find(|step| step.step == args.step);
    let last = reader.replay().last_step("rl").map_or(0, |step| step.step);
    let episodes = step.and_then(|step| step.episodes.as_ref());
    let episodes = episodes
        .with_context(|| format!("step {} is not in the run, which has {last}", args.step))
        .asked()?;
    let groups = reader.read_episodes(episodes).failed()?;
    let (batch, _) = batch_of_groups(&groups, &policy.roles, policy.algorithm).failed()?;
    let rows = rows_of(&groups, &batch, &recipe.study);
    let options = PackOptions {
        layout: match args.layout {
            LayoutName::VerlSplit => Layout::VerlSplit,
            LayoutName::RightPadded => Layout::RightPadded,
        },
        pad_id: args.pad_id,
        rows_divisible_by: args.rows_divisible_by as usize,
    };
    let packed = pack(&rows, options);
    let sidecar = Sidecar::of(&groups).failed()?;
    let tensors = packed.to_safetensors().failed()?;
    let meta = packed.to_json(&sidecar).failed()?.to_string();
    fs::create_dir_all(&args.out)
        .with_context(|| format!("{} cannot be made", args.out.display()))
        .failed()?;
    write(&args.out.join("batch.safetensors"), &tensors)?;
    write(&args.out.join("batch.json"), meta.as_bytes())?;
    let padding = packed.rows.len() - rows.len();
    let events = sidecar.step_meta.len();
    if args.json {
        let told = json!({
            "out": args.out,
            "policy": policy.name,
            "roles": policy.roles,
            "rows": rows.len(),
            "padding_rows": padding,
            "shape": packed.input_ids.shape(),
            "events": events,
        });
        print_json(&told)
    } else {
        let [count, width] = packed.input_ids.shape();
        screen.say(format!(
            "{}: {count} rows of {width} tokens, {padding} of them padding, and {events} events",
            args.out.display()
        ));
        Ok(())
    }
}

fn chosen<'p, 'a>(
    policies: &'p [Policy<'a>],
    name: Option<&str>,
) -> anyhow::Result<&'p Policy<'a>> {
    let names: Vec<&str> = policies.iter().map(|policy| policy.name).collect();
    let all = names.join(", ");
    match (name, policies) {
        (None, [one]) => Ok(one),
        (None, []) => Err(anyhow!("the recipe trains no role")),
        (None, _) => Err(anyhow!(
            "the run trains {all}: say with --policy whose rows"
        )),
        (Some(name), _) => {
            let mut policies = policies.iter();
            let found = policies.find(|policy| policy.name == name);
            found.with_context(|| format!("the run trains no policy `{name}`, but {all}"))
        }
    }
}

/// Refuses advantages that are made from more than the journal has.
fn check(algorithm: &AlgorithmConfig) -> anyhow::Result<()> {
    let why = if algorithm.advantage.needs_values() {
        "made from a value function"
    } else if algorithm.needs_reference() && algorithm.kl.placement == KlPlacement::Reward {
        "of rewards with a penalty of the reference's log-probs"
    } else {
        return Ok(());
    };
    Err(anyhow!(
        "the advantages of this run are {why}, which the journal does not have"
    ))
}

fn write(path: &Path, bytes: &[u8]) -> Outcome<()> {
    fs::write(path, bytes)
        .with_context(|| format!("{} cannot be written", path.display()))
        .failed()
}
