//! Apptainer on this machine, through its command line: one instance at a time, under one name.
//!
//! The work tree is a folder of the host that is bound into the instance, so files are read, written
//! and put aside without asking the container, and a vanished instance is started again on the same
//! tree. Tested with a stand-in for `apptainer` that checks its arguments; not yet with the real one.

mod cli;

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use code::RelativePath;
use serde::{Deserialize, Serialize};

use crate::{
    Backend, Capabilities, Command, CommandOutcome, Enforcement, Image, Session, SessionError,
    SnapshotId, SnapshotKind,
    lease::{Owner, Standing},
    tree::{Tree, fresh_id},
};
use cli::Cli;
pub use cli::sif_name;

const NAME: &str = "apptainer";

/// The folder of work trees, and how the names of records end.
const WORK: &str = "gp_work";
const RECORD_ENDING: &str = ".instance.json";

/// An instance that was not looked at for this long is looked for before the next command.
const LOOK_AFTER: Duration = Duration::from_secs(30);

/// How apptainer is driven.
#[derive(Clone, Debug)]
pub struct ApptainerOptions {
    /// Looked up on the `PATH` of `env` unless it contains a `/`.
    pub program: PathBuf,
    /// The environment of apptainer and `cp`: `PATH`, `HOME`. Commands see none of it.
    pub env: Vec<(String, String)>,
    /// Where `.sif` files are, named by [`sif_name`].
    pub sif_dir: PathBuf,
    /// A folder that every instance sees at `/mnt/share`.
    pub share: Option<PathBuf>,
    /// Work trees are made here, in `gp_work/RUN/INSTANCE`.
    pub work: PathBuf,
    /// The name of the instance, unique on the machine for its user.
    pub instance: String,
    /// Says what a crash would leave behind, for [`Apptainer::reap`]. Its name ends with
    /// `.instance.json`.
    pub record: PathBuf,
}

/// Starts sessions in one apptainer instance, one after the other.
#[derive(Clone, Debug)]
pub struct Apptainer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: ApptainerOptions,
    cli: Cli,
    taken: AtomicBool,
}

/// What there is to remove after a crash.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    instance: String,
    folder: PathBuf,
    /// Who started it.
    owner: Option<Owner>,
}

impl Apptainer {
    pub fn new(options: ApptainerOptions) -> Self {
        let cli = Cli {
            program: options.program.clone(),
            env: options.env.clone(),
        };
        let taken = AtomicBool::new(false);
        let inner = Inner {
            options,
            cli,
            taken,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Ends the instance and removes the work tree that a process before this one left behind.
    ///
    /// # Errors
    /// [`SessionError::Unavailable`] when there is no apptainer, or it does not obey.
    pub async fn reap(&self) -> Result<(), SessionError> {
        let Inner { options, .. } = self.inner.as_ref();
        self.inner.stop(&options.instance).await?;
        let record = Record::read(&options.record);
        let record = record.filter(|record| record.instance == options.instance);
        self.inner.clear(record, &options.record).await
    }

    /// The same for every record beside this one's whose process is dead: for processes that come and
    /// go, each under a name of its own.
    ///
    /// # Errors
    /// As [`Self::reap`].
    pub async fn reap_dead(&self) -> Result<(), SessionError> {
        let io = |error: io::Error| unavailable(error.to_string());
        let here = Owner::this_process().map_err(io)?;
        let folder = self.inner.options.record.parent();
        let found = match fs::read_dir(folder.unwrap_or(Path::new("."))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found.map_err(io)?,
        };
        for entry in found {
            let path = entry.map_err(io)?.path();
            let is_record = path
                .to_str()
                .is_some_and(|path| path.ends_with(RECORD_ENDING));
            let Some(record) = is_record.then(|| Record::read(&path)).flatten() else {
                continue;
            };
            let dead = record
                .owner
                .as_ref()
                .is_some_and(|owner| owner.standing(&here) == Standing::Dead);
            if dead {
                self.inner.stop(&record.instance).await?;
                self.inner.clear(Some(record), &path).await?;
            }
        }
        Ok(())
    }

    fn sif(&self, image: &Image) -> Result<PathBuf, SessionError> {
        let name = image.name.as_deref().unwrap_or_default();
        let refuse = |detail: String| SessionError::Image {
            image: name.to_owned(),
            detail,
        };
        if name.is_empty() {
            return Err(refuse(
                "an apptainer session needs the name of an image".to_owned(),
            ));
        }
        let path = match name.ends_with(".sif") && Path::new(name).is_absolute() {
            true => PathBuf::from(name),
            false => self.inner.options.sif_dir.join(sif_name(name)),
        };
        match path.is_file() {
            true => Ok(path),
            false => Err(refuse(format!(
                "{} is absent; make it with: apptainer pull {} docker://{name}",
                path.display(),
                path.display()
            ))),
        }
    }
}

#[async_trait]
impl Backend for Apptainer {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            backend: NAME.to_owned(),
            no_network: false,
            wall: Enforcement::Whole,
            cpu: Enforcement::PerProcess,
            memory: Enforcement::PerProcess,
            processes: Enforcement::None,
            disk: Enforcement::PerProcess,
            snapshots: SnapshotKind::Copy,
            usage: false,
        }
    }

    async fn start(&self, image: &Image) -> Result<Box<dyn Session>, SessionError> {
        let sif = self.sif(image)?;
        if self.inner.taken.swap(true, Ordering::AcqRel) {
            return Err(unavailable(format!(
                "the instance {} is in use",
                self.inner.options.instance
            )));
        }
        let id = fresh_id();
        let options = &self.inner.options;
        let folder = options.work.join(WORK).join(&id).join(&options.instance);
        let tree = Tree {
            root: folder.join("tree"),
        };
        // From here on, whatever fails is undone when this is dropped.
        let mut session = ApptainerSession {
            inner: self.inner.clone(),
            capabilities: self.capabilities(),
            image: image.clone(),
            sif,
            tree,
            id,
            looked: Instant::now(),
            snapshots: 0,
            folder: Some(folder),
        };
        match session.prepare().await {
            Ok(()) => Ok(Box::new(session)),
            Err(error) => {
                let _ = session.end().await;
                Err(error)
            }
        }
    }
}

impl Record {
    fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }
}

impl Inner {
    async fn stop(&self, instance: &str) -> Result<(), SessionError> {
        if self.cli.is_running(instance).await.map_err(unavailable)? {
            let stopped = self.cli.stop(instance).run().await;
            cli::done(stopped).map_err(unavailable)?;
        }
        Ok(())
    }

    /// Removes the work tree of `record`, if it is one, and then the record at `path`.
    async fn clear(&self, record: Option<Record>, path: &Path) -> Result<(), SessionError> {
        let made_here = self.options.work.join(WORK);
        if let Some(record) = record
            && record.folder.starts_with(made_here)
        {
            self.remove(&record.folder).await.map_err(unavailable)?;
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(unavailable(format!("{}: {error}", path.display())))
            }
            _ => Ok(()),
        }
    }

    async fn remove(&self, folder: &Path) -> Result<(), String> {
        let run = |program, arguments: &[&str]| {
            let mut arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            arguments.push(folder.into());
            self.cli.host(program, arguments).run()
        };
        if folder.exists() && cli::done(run("rm", &["-rf", "--"]).await).is_err() {
            // Folders that a command made unreadable.
            cli::done(run("chmod", &["-R", "u+rwX", "--"]).await)?;
            cli::done(run("rm", &["-rf", "--"]).await)?;
        }
        if let Some(run) = folder.parent() {
            let _ = fs::remove_dir(run);
        }
        Ok(())
    }
}

fn unavailable(detail: String) -> SessionError {
    SessionError::Unavailable {
        backend: NAME,
        detail,
    }
}

#[derive(Debug)]
struct ApptainerSession {
    inner: Arc<Inner>,
    capabilities: Capabilities,
    image: Image,
    sif: PathBuf,
    tree: Tree,
    id: String,
    /// When the instance was last known to be there.
    looked: Instant,
    snapshots: u32,
    /// `None` once it is removed.
    folder: Option<PathBuf>,
}

impl ApptainerSession {
    async fn prepare(&mut self) -> Result<(), SessionError> {
        let options = &self.inner.options;
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.tree.root);
        made.map_err(|error| unavailable(format!("{}: {error}", self.tree.root.display())))?;
        let record = Record {
            instance: options.instance.clone(),
            folder: self.folder.clone().unwrap_or_default(),
            owner: Owner::this_process().ok(),
        };
        let recorded = serde_json::to_vec(&record)
            .map_err(io::Error::from)
            .and_then(|text| fs::write(&options.record, text));
        recorded.map_err(|error| unavailable(format!("{}: {error}", options.record.display())))?;
        let filled = match &self.image.checkout {
            Some(checkout) => {
                let mut from = checkout.clone().into_os_string();
                from.push("/.");
                let arguments = [
                    "-a".into(),
                    "--".into(),
                    from,
                    self.tree.root.clone().into(),
                ];
                self.inner.cli.host("cp", arguments).run().await
            }
            None => {
                let work_tree = self.image.work_tree();
                let copy = self
                    .inner
                    .cli
                    .copy_out(&self.sif, work_tree, &self.tree.root);
                copy.run().await
            }
        };
        cli::done(filled).map_err(|detail| SessionError::Image {
            image: match &self.image.checkout {
                Some(checkout) => checkout.display().to_string(),
                None => self.sif.display().to_string(),
            },
            detail,
        })?;
        self.launch().await
    }

    async fn launch(&mut self) -> Result<(), SessionError> {
        let options = &self.inner.options;
        let start = self.inner.cli.start(
            &self.sif,
            &options.instance,
            (&self.tree.root, self.image.work_tree()),
            options.share.as_deref(),
        );
        cli::done(start.run().await).map_err(unavailable)?;
        self.looked = Instant::now();
        Ok(())
    }

    /// Starts the instance again if it is gone; the work tree is as it was.
    async fn look(&mut self) -> Result<(), SessionError> {
        let instance = &self.inner.options.instance;
        if self.looked.elapsed() < LOOK_AFTER {
            return Ok(());
        }
        if self
            .inner
            .cli
            .is_running(instance)
            .await
            .map_err(unavailable)?
        {
            self.looked = Instant::now();
            return Ok(());
        }
        self.launch().await
    }

    async fn end(&mut self) -> Result<(), SessionError> {
        // Given up in the middle, it is done again when the session is dropped.
        let Some(folder) = self.folder.clone() else {
            return Ok(());
        };
        let instance = &self.inner.options.instance;
        let stopped = match self.inner.cli.is_running(instance).await {
            Ok(true) => cli::done(self.inner.cli.stop(instance).run().await).map(drop),
            Ok(false) => Ok(()),
            Err(detail) => Err(detail),
        };
        let removed = match &stopped {
            Ok(()) => self.inner.remove(&folder).await,
            Err(detail) => Err(detail.clone()),
        };
        if removed.is_ok() {
            let _ = fs::remove_file(&self.inner.options.record);
        }
        self.inner.taken.store(false, Ordering::Release);
        self.folder = None;
        removed.map_err(|detail| SessionError::Lost {
            id: self.id.clone(),
            detail,
        })
    }

    fn copy_of(&self, number: &str) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join("snapshots").join(number))
    }

    async fn host(&self, program: &str, arguments: Vec<OsString>) -> Result<(), SessionError> {
        let ran = self.inner.cli.host(program, arguments).run().await;
        cli::done(ran).map(drop).map_err(|detail| self.lost(detail))
    }

    fn lost(&self, detail: String) -> SessionError {
        SessionError::Lost {
            id: self.id.clone(),
            detail,
        }
    }
}

#[async_trait]
impl Session for ApptainerSession {
    fn id(&self) -> &str {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    async fn exec(&mut self, command: &Command) -> Result<CommandOutcome, SessionError> {
        cli::check(&self.image.env, command)?;
        if let Some(folder) = &command.folder
            && self.tree.lacks(folder)
        {
            let path = folder.clone();
            return Err(SessionError::NotFound { path });
        }
        self.look().await?;
        let top = self.image.work_tree();
        let folder = match &command.folder {
            Some(folder) => format!("{top}/{folder}"),
            None => top.to_owned(),
        };
        let instance = &self.inner.options.instance;
        let call = self
            .inner
            .cli
            .exec(instance, &folder, &self.image.env, command, fresh_id());
        let outcome = call
            .run()
            .await
            .map_err(|error| unavailable(error.to_string()))?;
        if cli::may_be_its_own(&outcome)
            && !self
                .inner
                .cli
                .is_running(instance)
                .await
                .map_err(unavailable)?
        {
            let detail = format!("the instance {instance} is gone: {}", outcome.complaint());
            self.launch().await?;
            return Err(self.lost(detail));
        }
        self.looked = Instant::now();
        Ok(CommandOutcome {
            status: cli::status(&outcome),
            stdout: outcome.stdout,
            stderr: outcome.stderr,
            wall_ms: outcome.wall_ms,
            cpu_ms: None,
            peak_memory: None,
        })
    }

    async fn read(&mut self, path: &RelativePath, max_bytes: u64) -> Result<Vec<u8>, SessionError> {
        self.tree.read(path, max_bytes)
    }

    async fn write(
        &mut self,
        path: &RelativePath,
        content: &[u8],
        mode: u32,
    ) -> Result<(), SessionError> {
        self.tree.write(path, content, mode)
    }

    async fn remove(&mut self, path: &RelativePath) -> Result<(), SessionError> {
        self.tree.remove(path)
    }

    async fn snapshot(&mut self) -> Result<SnapshotId, SessionError> {
        let number = self.snapshots.to_string();
        let Some(copy) = self.copy_of(&number) else {
            return Err(self.lost("the session has ended".to_owned()));
        };
        fs::create_dir_all(&copy).map_err(|error| self.lost(error.to_string()))?;
        let from = self.tree.root.join(".").into_os_string();
        let copied = self.host("cp", vec!["-a".into(), "--".into(), from, copy.into()]);
        copied.await?;
        self.snapshots += 1;
        Ok(SnapshotId(number))
    }

    async fn restore(&mut self, snapshot: &SnapshotId) -> Result<(), SessionError> {
        let known = snapshot
            .0
            .parse()
            .is_ok_and(|number: u32| number < self.snapshots);
        let copy = self
            .copy_of(&snapshot.0)
            .filter(|copy| known && copy.is_dir());
        let Some(copy) = copy else {
            return Err(SessionError::NoSuchSnapshot {
                snapshot: snapshot.clone(),
            });
        };
        // The folder itself stays: it is what the instance has bound.
        let tree = self.tree.root.clone().into_os_string();
        let clear = ["-mindepth", "1", "-delete"].map(OsString::from);
        let clear: Vec<OsString> = std::iter::once(tree.clone()).chain(clear).collect();
        if self.host("find", clear.clone()).await.is_err() {
            let open = vec!["-R".into(), "u+rwX".into(), "--".into(), tree.clone()];
            self.host("chmod", open).await?;
            self.host("find", clear).await?;
        }
        let from = copy.join(".").into_os_string();
        self.host("cp", vec!["-a".into(), "--".into(), from, tree])
            .await
    }

    async fn stop(mut self: Box<Self>) -> Result<(), SessionError> {
        self.end().await
    }
}

impl Drop for ApptainerSession {
    /// Blocks until the instance is gone, as nobody else would end it.
    fn drop(&mut self) {
        if self.folder.is_none() {
            return;
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                if let Ok(runtime) = runtime {
                    let _ = runtime.block_on(self.end());
                }
            });
        });
    }
}
