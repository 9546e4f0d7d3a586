//! The writer's side of a run directory.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    thread::sleep,
    time::{Duration, Instant},
};

use record::Group;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    checkpoint,
    entry::{
        Checkpoint, Entry, EpisodesRef, Evaluation, PhaseEnded, PhaseStarted, Resumed, RunStarted,
        Step,
    },
    episodes,
    error::{Error, IoContext, Result},
    files,
    kept::{self, Kept, KeptEpisodes},
    log::Log,
    reader::{self, JOURNAL, RECIPE, RECIPE_HASH},
    recovery,
    replay::Replay,
    state::{State, now},
    summary::Summary,
    test_run::TestRun,
    views,
};

/// A run that this process writes, alone: it holds the lock until it is dropped or the process ends.
///
/// All methods take `&self`, so that a loop can commit while episodes in flight write events.
#[derive(Debug)]
pub struct RunDir {
    root: PathBuf,
    state: Mutex<State>,
}

impl RunDir {
    /// Begins a run at `path`, which must be absent or an empty directory. The directory appears as
    /// a whole, its first record ([`RunStarted`]) included.
    ///
    /// # Errors
    /// [`Error::RunExists`] or [`Error::Occupied`] when something is there.
    pub fn create(path: &Path, recipe: &str, started: RunStarted) -> Result<Self> {
        refuse_occupied(path)?;
        let root = path.to_owned();
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        files::create_directory(&parent)?;
        // Two processes that begin the same run must not fill the same directory; only one of them
        // can rename its own into place.
        let mut aside = path.as_os_str().to_owned();
        aside.push(format!(".{}{}", std::process::id(), files::UNFINISHED));
        let aside = PathBuf::from(aside);
        if aside.exists() {
            fs::remove_dir_all(&aside).at(&aside, "remove")?;
        }
        for directory in ["logs", episodes::DIRECTORY, checkpoint::DIRECTORY] {
            files::create_directory(&aside.join(directory))?;
        }
        files::write_atomically(&aside.join(RECIPE), recipe.as_bytes())?;
        files::write_atomically(
            &aside.join(RECIPE_HASH),
            format!("{}\n", started.recipe_hash).as_bytes(),
        )?;
        let log_path = aside.join(JOURNAL);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&log_path)
            .at(&log_path, "create")?;
        lock(&file, path)?;
        let log = Log::begin(file, &root.join(JOURNAL))?;
        let mut state = State::open(&aside, log, Replay::default(), &[])?;
        state.append(&aside, Entry::RunStarted(started))?;
        files::sync_directory(&aside)?;
        if let Err(error) = fs::rename(&aside, path) {
            // Someone was faster; their run stays as it is.
            let _ = fs::remove_dir_all(&aside);
            refuse_occupied(path)?;
            return Err(error).at(path, "rename the new run into place");
        }
        files::sync_directory(&parent)?;
        Ok(Self {
            root,
            state: Mutex::new(state),
        })
    }

    /// Goes on with the run at `path`: cuts what was half-written, removes what no record names,
    /// rebuilds the views, and says what is committed.
    ///
    /// # Errors
    /// [`Error::NotARun`], [`Error::Locked`], [`Error::Format`] or [`Error::Corrupt`].
    pub fn open(path: &Path) -> Result<(Self, Replay)> {
        let log_path = path.join(JOURNAL);
        let file = match OpenOptions::new().read(true).write(true).open(&log_path) {
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Err(Error::NotARun {
                    path: path.to_owned(),
                });
            }
            opened => opened.at(&log_path, "open")?,
        };
        lock(&file, path)?;
        let (log, scanned) = Log::resume(file, &log_path)?;
        let torn_bytes = scanned.torn;
        let entries = reader::decode(scanned, &log_path)?;
        let mut replay = Replay {
            entries,
            recovered: Resumed::default(),
        };
        let unbacked = recovery::unbacked_checkpoints(&replay);
        let leftovers = recovery::leftovers(path, &replay, &unbacked)?;
        let kept = match replay.evaluation_on_its_way() {
            Some(name) => kept::read(path, name)?,
            None => Vec::new(),
        };
        let last_commit = replay.entries.last().map(|stamped| stamped.at);
        let last_kept = kept.last().map(|kept| kept.at);
        replay.recovered = Resumed {
            torn_bytes,
            leftovers,
            alive_until: last_kept.filter(|at| Some(*at) > last_commit),
        };
        let recovered = replay.recovered.clone();
        let going_on = !replay.finished();
        for directory in ["logs", episodes::DIRECTORY, checkpoint::DIRECTORY] {
            files::create_directory(&path.join(directory))?;
        }
        recovery::remove(path, &recovered.leftovers)?;
        let mut state = State::open(path, log, replay, &kept)?;
        for name in unbacked {
            state.append(path, Entry::CheckpointRemoved { name })?;
        }
        if going_on || recovered != Resumed::default() {
            state.append(path, Entry::Resumed(recovered))?;
        }
        let replay = state.replay.clone();
        Ok((
            Self {
                root: path.to_owned(),
                state: Mutex::new(state),
            },
            replay,
        ))
    }

    pub fn path(&self) -> &Path {
        &self.root
    }

    /// What is committed by now.
    pub fn replay(&self) -> Replay {
        self.state().replay.clone()
    }

    pub fn summary(&self) -> Summary {
        self.state().replay.summary()
    }

    /// The resolved recipe.
    pub fn recipe(&self) -> Result<String> {
        reader::read_recipe(&self.root)
    }

    pub fn phase_started(&self, phase: &str) -> Result<()> {
        files::check_name("phase", phase)?;
        let mut state = self.state();
        state.phases.insert(phase.to_owned(), Instant::now());
        state.append(
            &self.root,
            Entry::PhaseStarted(PhaseStarted {
                phase: phase.to_owned(),
            }),
        )
    }

    /// Ends a phase; its seconds count from this process's [`Self::phase_started`]. `tokens` are
    /// those that no committed step of the phase has counted.
    pub fn phase_ended(&self, phase: &str, tokens: u64) -> Result<()> {
        let mut state = self.state();
        let seconds = state
            .phases
            .remove(phase)
            .map_or(0.0, |start| start.elapsed().as_secs_f64());
        let ended = PhaseEnded {
            phase: phase.to_owned(),
            seconds,
            tokens,
        };
        state.append(&self.root, Entry::PhaseEnded(ended))
    }

    /// Commits one optimizer step: its episodes first, then the one record that makes it count.
    /// Returns the step with [`Step::episodes`] set.
    ///
    /// # Errors
    /// [`Error::StepOrder`] unless the step is after the last committed one of its phase;
    /// [`Error::NotFinite`] and [`Error::Name`] for what cannot be journalled. Nothing is committed
    /// when this fails.
    pub fn commit_step(&self, mut step: Step, groups: Option<&[Group]>) -> Result<Step> {
        files::check_name("phase", &step.phase)?;
        check_metrics(&step)?;
        let mut state = self.state();
        if let Some(last) = state.replay.last_step(&step.phase).map(|last| last.step)
            && step.step <= last
        {
            return Err(Error::StepOrder {
                phase: step.phase,
                step: step.step,
                last,
            });
        }
        let file = format!(
            "{}/{}/{:06}.jsonl.zst",
            episodes::DIRECTORY,
            step.phase,
            step.step
        );
        step.episodes = groups
            .map(|groups| episodes::write(&self.root, file, groups))
            .transpose()?;
        state.append(&self.root, Entry::Step(step.clone()))?;
        Ok(step)
    }

    /// Commits an evaluation and, if given, its episodes.
    ///
    /// # Errors
    /// [`Error::Name`] when an evaluation of this name is committed already.
    pub fn commit_evaluation(
        &self,
        mut evaluation: Evaluation,
        groups: Option<&[Group]>,
    ) -> Result<Evaluation> {
        files::check_name("evaluation", &evaluation.name)?;
        for (name, interval) in &evaluation.metrics {
            for value in [interval.value, interval.low, interval.high] {
                check_finite(|| format!("evaluation `{}`", evaluation.name), name, value)?;
            }
        }
        let mut state = self.state();
        if state.replay.evaluation(&evaluation.name).is_some() {
            return Err(taken("evaluation", &evaluation.name));
        }
        let file = format!(
            "{}/evaluations/{}.jsonl.zst",
            episodes::DIRECTORY,
            evaluation.name
        );
        evaluation.episodes = groups
            .map(|groups| episodes::write(&self.root, file, groups))
            .transpose()?;
        state.append(&self.root, Entry::Evaluation(evaluation.clone()))?;
        let kept = self.root.join(kept::relative(&evaluation.name));
        match fs::remove_file(&kept) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error).at(&kept, "remove")?,
            _ => {}
        }
        Ok(evaluation)
    }

    /// The episodes that were kept of an evaluation on its way, in the order in which they ended, and where more are
    /// kept. The evaluation has to be of the phase `eval/<name>`, begun before.
    ///
    /// # Errors
    /// [`Error::Name`], [`Error::Corrupt`] where what was kept is damaged, and failures of the disk.
    pub fn kept_episodes(&self, evaluation: &str) -> Result<(KeptEpisodes<'_>, Vec<Kept>)> {
        files::check_name("evaluation", evaluation)?;
        KeptEpisodes::open(&self.root, evaluation, &self.state)
    }

    /// Lets `fill` write a checkpoint of the state after `step` steps of `phase` into an empty
    /// directory; it appears as `checkpoints/<name>` as a whole, then it is recorded. `step` is 0 at
    /// the start of a phase.
    ///
    /// A checkpoint of a step that is not committed when the process dies is removed by
    /// [`Self::open`], so the two may be written in either order.
    ///
    /// # Errors
    /// [`Error::Name`] when the name is taken, [`Error::Fill`] with the closure's own error.
    pub fn checkpoint<E: std::fmt::Display>(
        &self,
        name: &str,
        phase: &str,
        step: u64,
        fill: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<Checkpoint> {
        files::check_name("checkpoint", name)?;
        files::check_name("phase", phase)?;
        if name.contains('/') {
            let reason = "it is one directory, so it has no `/`";
            return Err(Error::Name {
                what: "checkpoint",
                name: name.to_owned(),
                reason,
            });
        }
        if self.state().replay.checkpoint(name).is_some() {
            return Err(taken("checkpoint", name));
        }
        let path = self.root.join(checkpoint::DIRECTORY).join(name);
        let digest = checkpoint::write(&path, name, fill)?;
        let checkpoint = Checkpoint {
            name: name.to_owned(),
            phase: phase.to_owned(),
            step,
            digest,
        };
        self.state()
            .append(&self.root, Entry::Checkpoint(checkpoint.clone()))?;
        Ok(checkpoint)
    }

    /// Removes all but the newest `keep` checkpoints of a phase; the newest always stays.
    pub fn prune(&self, phase: &str, keep: usize) -> Result<()> {
        let mut state = self.state();
        let mut of_phase: Vec<(u64, String)> = state
            .replay
            .checkpoints()
            .into_iter()
            .filter(|checkpoint| checkpoint.phase == phase)
            .map(|checkpoint| (checkpoint.step, checkpoint.name.clone()))
            .collect();
        of_phase.sort();
        let surplus = of_phase.len().saturating_sub(keep.max(1));
        for (_, name) in of_phase.drain(..surplus) {
            state.append(&self.root, Entry::CheckpointRemoved { name: name.clone() })?;
            let path = self.root.join(checkpoint::DIRECTORY).join(name);
            if path.exists() {
                fs::remove_dir_all(&path).at(&path, "remove")?;
            }
        }
        Ok(())
    }

    /// The directory of a checkpoint, verified.
    ///
    /// # Errors
    /// [`Error::NoCheckpoint`], or [`Error::Digest`] when its files are not those committed.
    pub fn checkpoint_path(&self, name: &str) -> Result<PathBuf> {
        reader::verified_checkpoint(&self.root, &self.state().replay, name)
    }

    /// The episodes of a committed step or evaluation, bit for bit.
    ///
    /// # Errors
    /// [`Error::Digest`] when the file is not the one that was committed.
    pub fn read_episodes(&self, reference: &EpisodesRef) -> Result<Vec<Group>> {
        episodes::read(&self.root, reference)
    }

    /// Commits a fact of the study's own.
    pub fn note(&self, name: &str, value: impl Serialize) -> Result<()> {
        let value = serde_json::to_value(value).map_err(|error| Error::Content {
            path: self.root.join(JOURNAL),
            reason: format!("note `{name}` cannot be written as JSON: {error}"),
        })?;
        self.state().append(
            &self.root,
            Entry::Note {
                name: name.to_owned(),
                value,
            },
        )
    }

    /// Commits that this process stops because it was asked to: until then its phases have lasted.
    pub fn stopped(&self) -> Result<()> {
        self.state().append(&self.root, Entry::Stopped)
    }

    /// Commits the end of the run.
    pub fn finish(&self) -> Result<()> {
        self.state().append(&self.root, Entry::Finished)
    }

    /// Adds a line to `logs/events.jsonl`; it stays if the step or evaluation that it is part of is
    /// committed.
    pub fn event(&self, kind: &str, fields: Map<String, Value>) -> Result<()> {
        let mut state = self.state();
        let line = views::event(now(), state.name(), kind, fields);
        state.events.append(&line)
    }

    /// Adds a line to `logs/test_runs.jsonl`; it stays if the step or evaluation that it is part of
    /// is committed.
    pub fn test_run(&self, run: &TestRun) -> Result<()> {
        let mut state = self.state();
        let fields = match json!(run) {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let line = views::event(now(), state.name(), "test_run", fields);
        state.test_runs.append(&line)
    }

    /// Writes a file of the run's top folder that can be made again from the journal, in place of an older one.
    pub fn write_view(&self, name: &str, content: &[u8]) -> Result<()> {
        files::check_name("view", name)?;
        files::write_atomically(&self.root.join(name), content)
    }

    /// Writes `tasks/<name>`, or finds it there with the same content.
    ///
    /// # Errors
    /// [`Error::TasksDiffer`] when it is there with other content.
    pub fn write_tasks(&self, name: &str, content: &[u8]) -> Result<PathBuf> {
        files::check_name("task file", name)?;
        let path = self.root.join("tasks").join(name);
        match fs::read(&path) {
            Ok(found) if found == content => return Ok(path),
            Ok(_) => return Err(Error::TasksDiffer { path }),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).at(&path, "read"),
        }
        if let Some(parent) = path.parent() {
            files::create_directory(parent)?;
        }
        files::write_atomically(&path, content)?;
        Ok(path)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic inside an append leaves the log refusing further ones, so the state is sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refuse_occupied(path: &Path) -> Result<()> {
    if path.join(JOURNAL).exists() {
        return Err(Error::RunExists {
            path: path.to_owned(),
        });
    }
    match fs::read_dir(path).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::Occupied {
            path: path.to_owned(),
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotADirectory => Err(Error::Occupied {
            path: path.to_owned(),
        }),
        Err(error) => Err(error).at(path, "list"),
    }
}

/// Waits for a moment where another holds the lock: a process that a killed writer was just starting holds it until it
/// has become what it is to be.
fn lock(file: &File, run: &Path) -> Result<()> {
    const TRIES: u32 = 40;
    const PAUSE: Duration = Duration::from_millis(50);
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(error).at(run, "lock"),
        }
    }
    Err(Error::Locked {
        path: run.to_owned(),
    })
}

fn check_metrics(step: &Step) -> Result<()> {
    for (name, value) in step.metrics.iter().chain(&step.timings) {
        if views::RESERVED_METRICS.contains(&name.as_str()) {
            let reason = "it is a column of `metrics.jsonl` already";
            return Err(Error::Name {
                what: "metric",
                name: name.clone(),
                reason,
            });
        }
        check_finite(
            || format!("step {} of phase `{}`", step.step, step.phase),
            name,
            *value,
        )?;
    }
    if let Some(name) = step
        .timings
        .keys()
        .find(|name| step.metrics.contains_key(*name))
    {
        let reason = "it is both a metric and a timing";
        return Err(Error::Name {
            what: "metric",
            name: name.clone(),
            reason,
        });
    }
    Ok(())
}

fn check_finite(place: impl Fn() -> String, name: &str, value: f64) -> Result<()> {
    if value.is_finite() {
        return Ok(());
    }
    Err(Error::NotFinite {
        place: place(),
        name: name.to_owned(),
        value,
    })
}

fn taken(what: &'static str, name: &str) -> Error {
    let reason = "the run has one of this name already, and nothing is overwritten";
    Error::Name {
        what,
        name: name.to_owned(),
        reason,
    }
}
