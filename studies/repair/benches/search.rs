//! The patch model `search` over a file of repair tasks: what it resolves by package and by kind of bug, how many
//! candidates it runs and how long it takes.
//!
//! `cargo bench -p repair --bench search -- TASKS.jsonl [--every N] [--slots N] [--only-rank] [--settings JSON]`

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark"
)]

#[path = "../tests/it/place/mod.rs"]
mod place;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use code::patch::FileChange;
use judge::pytest::TestStatus;
use place::{Place, all};
use repair::{
    Checkout, Task,
    patch_model::{Constraints, PatchRequest, Proposal, Proposed},
    read_tasks,
    search::{Search, SearchSettings},
    workplace::TestRequest,
};

struct Options {
    tasks: PathBuf,
    every: usize,
    only_rank: bool,
    settings: SearchSettings,
}

fn options() -> Option<Options> {
    let mut arguments = std::env::args().skip(1).filter(|it| it != "--bench");
    let mut options = Options {
        tasks: arguments.next()?.into(),
        every: 1,
        only_rank: false,
        settings: SearchSettings::default(),
    };
    while let Some(name) = arguments.next() {
        match name.as_str() {
            "--every" => options.every = arguments.next()?.parse().ok()?,
            "--slots" => options.settings.slots = arguments.next()?.parse().ok()?,
            "--settings" => options.settings = serde_json::from_str(&arguments.next()?).ok()?,
            "--only-rank" => options.only_rank = true,
            _ => return None,
        }
    }
    Some(options)
}

#[derive(Default)]
struct Tally {
    tasks: usize,
    resolved: usize,
    candidates: Vec<f64>,
    seconds: Vec<f64>,
}

fn main() {
    let Some(options) = options() else {
        println!(
            "usage: cargo bench -p repair --bench search -- TASKS.jsonl [--every N] [--slots N] [--only-rank] [--settings JSON]"
        );
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.unwrap().block_on(run(&options));
}

async fn run(options: &Options) {
    let tasks = read_tasks(&options.tasks).unwrap();
    let mut tallies: BTreeMap<(&str, String), Tally> = BTreeMap::new();
    for task in tasks.iter().step_by(options.every) {
        let Some(told) = one(task, options).await else {
            return;
        };
        println!("{told}");
        let family = task.facts.family.clone().unwrap_or_default();
        for (kind, name) in [
            ("all", String::new()),
            ("package", task.public.repo.clone()),
            ("family", family),
        ] {
            let tally = tallies.entry((kind, name)).or_default();
            tally.tasks += 1;
            tally.resolved += usize::from(told["resolved"].as_bool() == Some(true));
            tally.candidates.extend(told["candidates"].as_f64());
            tally.seconds.extend(told["seconds"].as_f64());
        }
    }
    for ((kind, name), tally) in tallies {
        println!(
            "{kind:8} {name:28} {:3} of {:3} ({:5.1} %)  median candidates {:5.0}  median seconds {:6.1}  all seconds {:7.0}",
            tally.resolved,
            tally.tasks,
            100.0 * tally.resolved as f64 / tally.tasks as f64,
            median(&tally.candidates),
            median(&tally.seconds),
            tally.seconds.iter().sum::<f64>()
        );
    }
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

async fn one(task: &Task, options: &Options) -> Option<serde_json::Value> {
    let checkout = Checkout::of(&task.place).unwrap();
    let mut place = Place::fill(task.public.framework, |folder| copy(&checkout, folder)).await?;
    place.testbed.slots = options.settings.slots;
    let request = PatchRequest {
        issue: task.public.issue.clone(),
        plan: Vec::new(),
        targets: Vec::new(),
        graph: code::graph::ListedGraph::default(),
        snippets: Vec::new(),
        feedback: Vec::new(),
        constraints: Constraints::default(),
        of_tests: std::sync::Arc::default(),
        observed: None,
        searched: None,
    };
    let search = Search::new(options.settings.clone()).unwrap();
    let started = Instant::now();
    if options.only_rank {
        let proposals = search.candidates(&request, &place.testbed).await.unwrap();
        let rank = rank_of_gold(task, &checkout, &proposals);
        return Some(serde_json::json!({
            "id": task.id.0,
            "family": task.facts.family,
            "rank": rank,
            "resolved": rank.is_some(),
            "candidates": rank,
            "listed": proposals.len(),
            "seconds": started.elapsed().as_secs_f64(),
        }));
    }
    let answered = search.answer(&request, &place.testbed).await.unwrap();
    let seconds = started.elapsed().as_secs_f64();
    let (resolved, said) = match &answered.proposed {
        Proposed::Patches(patches) => (
            passes(&place, task, &patches[0]).await,
            patches[0].summary.clone(),
        ),
        Proposed::None { detail, .. } => (false, detail.clone()),
    };
    Some(serde_json::json!({
        "id": task.id.0,
        "family": task.facts.family,
        "resolved": resolved,
        "candidates": answered.effort.candidates,
        "test_runs": answered.effort.test_runs,
        "seconds": seconds,
        "said": said,
    }))
}

fn copy(checkout: &Checkout, folder: &Path) {
    for path in checkout.files().unwrap() {
        let target = folder.join(path.as_str());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(target, checkout.read(&path).unwrap().unwrap()).unwrap();
    }
}

/// The place of the candidate that makes the program of the gold patch, from 1.
fn rank_of_gold(task: &Task, checkout: &Checkout, proposals: &[Proposal]) -> Option<usize> {
    let program = |patch: &code::Patch| {
        let read = |path| {
            let content = checkout.read(&path).ok().flatten();
            (path, content)
        };
        let files = patch.paths().into_iter().map(read).collect();
        let applied = patch.apply(&files).ok()?;
        let changes = applied.changes.into_iter().map(|change| match change {
            FileChange::Write { path, content, .. } => {
                let text = String::from_utf8_lossy(&content).into_owned();
                let without_blanks = text.split_whitespace().collect::<String>();
                (path, without_blanks)
            }
            FileChange::Remove { path } => (path, String::new()),
        });
        Some(changes.collect::<Vec<_>>())
    };
    let gold = program(&code::Patch::parse(task.gold.patch.as_bytes()).ok()?)?;
    let is_gold = |proposal: &Proposal| program(&proposal.patch).as_ref() == Some(&gold);
    proposals.iter().position(is_gold).map(|place| place + 1)
}

/// Whether the tests that decide pass.
async fn passes(place: &Place, task: &Task, proposal: &Proposal) -> bool {
    let mut workplace = place.open().await;
    workplace.apply(&proposal.patch).await.unwrap().unwrap();
    let checks = &task.checks;
    let ids: Vec<String> = [&checks.fail_to_pass[..], &checks.pass_to_pass[..]].concat();
    let request = TestRequest {
        ids: ids.clone(),
        wall: std::time::Duration::from_secs(300),
        ..all()
    };
    let run = workplace.run_tests(&[request]).await.unwrap().remove(0);
    workplace.close().await.unwrap();
    let passed = |id: &String| {
        matches!(
            run.statuses.get(id),
            Some(TestStatus::Passed | TestStatus::ExpectedFailure)
        )
    };
    ids.iter().all(passed)
}
