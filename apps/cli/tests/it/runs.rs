//! Runs that several tests start from, and what is compared between runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use journal::{RunReader, Step};
use record::{Call, EpisodeId, Group, Outcome};
use tempfile::TempDir;

use crate::etude::{
    assert_success, committed, etude, learning_recipe, resume_to_end, wait_while_running,
};

pub(crate) const RL: &str = "rl";

/// The learning recipe's run up to its first moment of reinforcement: made once, only ever copied.
static SUPERVISED: LazyLock<PathBuf> = LazyLock::new(|| {
    let directory = of_this_process("supervised");
    let scratch = TempDir::new().unwrap();
    let run = directory.join("run");
    let mut child = etude(
        scratch.path(),
        ["train".as_ref(), learning_recipe().as_os_str()],
    )
    .args(["--run".as_ref(), run.as_os_str()])
    .stdout(std::process::Stdio::null())
    .stderr(std::process::Stdio::null())
    .spawn()
    .unwrap();
    let begun = || committed(&run).phases().contains(&RL);
    assert!(
        wait_while_running(&mut child, begun),
        "the run ended before reinforcement"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    run
});

/// The same run, gone on with to its end without interruption.
static UNINTERRUPTED: LazyLock<PathBuf> = LazyLock::new(|| {
    let directory = of_this_process("uninterrupted");
    let scratch = TempDir::new().unwrap();
    let run = directory.join("run");
    copy(&SUPERVISED, &run);
    assert_success(&resume_to_end(scratch.path(), &run));
    run
});

/// Every set of adapters that a run has saved, in whatever folder of a checkpoint, names a base that is there.
pub(crate) fn assert_adapters_lie_over_something(run: &Path, at_least: usize) {
    let checkpoints = run.join("checkpoints");
    let mut found = 0;
    for file in files(&checkpoints) {
        if file.ends_with("adapter_config.json") {
            let folder = checkpoints.join(file.parent().unwrap());
            let model = engine::Model::load(&folder);
            assert!(model.is_ok(), "{}: {:?}", file.display(), model.err());
            found += 1;
        }
    }
    assert!(
        found >= at_least,
        "only {found} adapters in {}",
        run.display()
    );
}

pub(crate) fn uninterrupted() -> &'static Path {
    &UNINTERRUPTED
}

/// A copy of the run before reinforcement.
pub(crate) fn supervised_copy(to: &Path) {
    copy(&SUPERVISED, to);
}

/// Copies a run or any other directory.
pub(crate) fn copy(from: &Path, to: &Path) {
    for relative in files(from) {
        let target = to.join(&relative);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(from.join(&relative), target).unwrap();
    }
}

/// Every file under a directory, relative to it, in name order.
pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(relative) = waiting.pop() {
        for entry in fs::read_dir(directory.join(&relative)).unwrap() {
            let entry = entry.unwrap();
            let path = relative.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                waiting.push(path)
            } else {
                found.push(path)
            }
        }
    }
    found.sort();
    found
}

/// Path and content of every file under a directory.
pub(crate) fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    files(directory)
        .into_iter()
        .map(|path| (path.clone(), fs::read(directory.join(path)).unwrap()))
        .collect()
}

/// Of the machine and not of the run: what a busy one broke was done again.
const OF_THE_MACHINE: &str = "sandbox/errors";

/// Fails unless both runs have the same steps with the same metrics, timings apart.
pub(crate) fn assert_same_metrics(run: &Path, expected: &Path) {
    let (here, there) = (committed(run), committed(expected));
    for (here, there) in here.all_steps().zip(there.all_steps()) {
        assert_eq!((&here.phase, here.step), (&there.phase, there.step));
        let names: BTreeSet<&String> = here.metrics.keys().chain(there.metrics.keys()).collect();
        let differing: Vec<_> = (names.into_iter())
            .map(|name| (name, here.metrics.get(name), there.metrics.get(name)))
            .filter(|(name, value, expected)| value != expected && *name != OF_THE_MACHINE)
            .collect();
        assert!(
            differing.is_empty(),
            "{} step {} of {}, names with what is there and what was expected: {differing:?}",
            run.display(),
            here.step,
            here.phase
        );
    }
    assert_eq!(here.all_steps().count(), there.all_steps().count());
}

/// The trained critic of a finished run, as bytes.
pub(crate) fn final_weights(run: &Path) -> Vec<u8> {
    weights(run, "critic-rl")
}

pub(crate) fn weights(run: &Path, checkpoint: &str) -> Vec<u8> {
    fs::read(
        run.join("checkpoints")
            .join(checkpoint)
            .join("model.safetensors"),
    )
    .unwrap()
}

/// The groups of a committed step.
pub(crate) fn groups(run: &Path, step: &Step) -> Vec<Group> {
    RunReader::open(run)
        .unwrap()
        .read_episodes(step.episodes.as_ref().unwrap())
        .unwrap()
}

/// What was sampled and rewarded in the episodes of reinforcement, in order. Times of executions are
/// left out.
pub(crate) fn played(run: &Path) -> Vec<(EpisodeId, Vec<Call>, Outcome)> {
    let replay = committed(run);
    let groups = replay
        .steps(RL)
        .flat_map(|step| groups(run, step))
        .collect::<Vec<Group>>();
    groups
        .into_iter()
        .flat_map(|group| group.episodes)
        .map(|episode| (episode.id, episode.calls, episode.outcome))
        .collect()
}

/// A metric of every step of reinforcement.
pub(crate) fn series(run: &Path, metric: &str) -> Vec<f64> {
    let replay = committed(run);
    replay
        .steps(RL)
        .map(|step| {
            let found = step.metrics.get(metric);
            *found.unwrap_or_else(|| panic!("step {} has no `{metric}`", step.step))
        })
        .collect()
}

/// A directory of this test process. Directories of processes that are gone are removed, as nothing
/// outlives a process that could do it for them.
pub(crate) fn of_this_process(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("etude-runs");
    fs::create_dir_all(&root).unwrap();
    for entry in fs::read_dir(&root).unwrap().flatten() {
        let owner = entry.file_name().into_string().unwrap_or_default();
        if !Path::new("/proc").join(owner).exists() {
            // Another test process may be faster.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let directory = root.join(std::process::id().to_string()).join(name);
    fs::create_dir_all(&directory).unwrap();
    directory
}
