//! The asking side of a file queue.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use code::RelativePath;
use serde_json::{Map, Value, json};

use super::{
    folder::RunnerFolder,
    message::{Heartbeat, Request, Response, kind},
};
use crate::{
    Backend, Capabilities, Command, CommandOutcome, Enforcement, Image, Session, SessionError,
    SnapshotId, SnapshotKind,
    tree::fresh_id,
    wire::{Bytes, Fault, WireLimits},
};

const NAME: &str = "apptainer-queue";

/// Between looks for a response: from the first to the last, growing.
const POLL: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(500)];

/// Between looks at whether a runner still lives.
const LOOK: Duration = Duration::from_secs(2);

/// For requests that run no command: making, copying and removing work trees.
const HOUSEKEEPING: Duration = Duration::from_secs(900);

/// Where a queue is and how long to wait.
#[derive(Clone, Debug)]
pub struct QueueOptions {
    /// The folder that this process and the runners share.
    pub root: PathBuf,
    /// Only runners with a lower number; `None` uses all that there are.
    pub runners: Option<u32>,
    /// How long to wait for a free runner.
    pub wait: Duration,
    /// Do not wait at all when no runner is alive.
    pub fail_if_no_runners: bool,
    /// A runner that was silent for this long is dead.
    pub dead_after: Duration,
}

impl QueueOptions {
    /// 60 s for a free runner; dead after 180 s.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            runners: None,
            wait: Duration::from_secs(60),
            fail_if_no_runners: false,
            dead_after: Duration::from_secs(180),
        }
    }
}

/// The `apptainer-queue` backend: sessions in the instances of runners that serve a shared folder,
/// such as jobs of a cluster.
#[derive(Clone, Debug)]
pub struct Queue {
    options: Arc<QueueOptions>,
}

impl Queue {
    pub fn new(options: QueueOptions) -> Self {
        Self {
            options: Arc::new(options),
        }
    }

    pub(crate) fn folder(&self, runner: u32) -> RunnerFolder {
        RunnerFolder::new(&self.options.root, runner)
    }

    /// The runners that are ready and give signs of life.
    pub(crate) fn alive(&self) -> Vec<u32> {
        let most = self.options.runners.unwrap_or(u32::MAX);
        let mut runners = RunnerFolder::all(&self.options.root);
        runners.retain(|id| {
            let folder = self.folder(*id);
            *id < most && folder.is_ready() && !self.is_dead(&folder)
        });
        runners
    }

    /// The runner whose instance is for `run`.
    pub(crate) fn owner(&self, run: &str) -> Option<u32> {
        self.alive().into_iter().find(|id| {
            let heartbeat = self.folder(*id).heartbeat();
            heartbeat.is_some_and(|it| it.current_run_id.as_deref() == Some(run))
        })
    }

    /// Starts the instance of a run on the first free runner and says which.
    pub(crate) async fn place(&self, request: Request) -> Result<(u32, Response), SessionError> {
        let deadline = Instant::now() + self.options.wait;
        loop {
            let mut alive = self.alive();
            if alive.is_empty() && self.options.fail_if_no_runners {
                return Err(self.unavailable("no runner is alive".to_owned()));
            }
            // Runs spread over the runners, the same way each time.
            alive.sort_by_key(|id| stable_hash(&format!("{} {id}", request.run_id)));
            for id in &alive {
                let busy = |it: Heartbeat| !it.is_free_for(&request.run_id);
                if self.folder(*id).heartbeat().is_none_or(busy) {
                    continue;
                }
                let patience = request.timeout().max(HOUSEKEEPING).mul_f64(1.5);
                let response = self.call(*id, request.clone(), patience).await?;
                if !response.is_busy() {
                    return Ok((*id, response));
                }
            }
            if Instant::now() >= deadline {
                let detail = match alive.len() {
                    0 => "no runner is alive".to_owned(),
                    many => format!("all {many} runners are busy"),
                };
                let waited = self.options.wait.as_secs();
                return Err(self.unavailable(format!("{detail}, and {waited} s were waited")));
            }
            tokio::time::sleep(POLL[1].min(self.options.wait)).await;
        }
    }

    /// One request and its response. What nobody waits for any more is withdrawn.
    pub(crate) async fn call(
        &self,
        runner: u32,
        request: Request,
        patience: Duration,
    ) -> Result<Response, SessionError> {
        let folder = self.folder(runner);
        let request = Request {
            req_id: fresh_id(),
            runner_id: runner.into(),
            ..request
        };
        let lost = |detail: String| SessionError::Lost {
            id: request.run_id.clone(),
            detail: format!(
                "runner {runner} of {}: {detail}",
                self.options.root.display()
            ),
        };
        folder
            .send(&request)
            .map_err(|error| lost(error.to_string()))?;
        let waiting = Withdraw {
            folder: &folder,
            id: &request.req_id,
        };
        let started = Instant::now();
        let (mut pause, mut looked) = (POLL[0], Instant::now());
        loop {
            if let Some(response) = folder
                .fetch(waiting.id)
                .map_err(|error| lost(error.to_string()))?
            {
                return Ok(response);
            }
            if looked.elapsed() > LOOK {
                looked = Instant::now();
                if self.is_dead(&folder) {
                    return Err(lost("it gives no sign of life any more".to_owned()));
                }
            }
            if started.elapsed() > patience {
                let waited = patience.as_secs();
                return Err(lost(format!("it did not answer within {waited} s")));
            }
            tokio::time::sleep(pause).await;
            pause = pause.mul_f64(1.3).min(POLL[1]);
        }
    }

    fn is_dead(&self, folder: &RunnerFolder) -> bool {
        let silence = folder.silence();
        silence.is_none_or(|silence| silence > self.options.dead_after)
    }

    fn unavailable(&self, detail: String) -> SessionError {
        SessionError::Unavailable {
            backend: NAME,
            detail: format!(
                "{detail} at {}; runners are started with `etude runner --queue {} --id N`",
                self.options.root.display(),
                self.options.root.display()
            ),
        }
    }
}

/// Spreads by its text alone: FNV-1a.
fn stable_hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[async_trait]
impl Backend for Queue {
    /// Those of the first runner that is alive; of a session, they are its own runner's.
    fn capabilities(&self) -> Capabilities {
        let first = self
            .alive()
            .into_iter()
            .find_map(|id| self.folder(id).heartbeat());
        relabelled(first.and_then(|it| it.capabilities))
    }

    async fn start(&self, image: &Image) -> Result<Box<dyn Session>, SessionError> {
        let id = fresh_id();
        let request = Request {
            run_id: id.clone(),
            kind: kind::START.to_owned(),
            image: image.name.clone().unwrap_or_default(),
            cwd: image.work_tree().to_owned(),
            env: image.env.iter().cloned().collect(),
            timeout_sec: Some(HOUSEKEEPING.as_secs_f64()),
            // A task of its own: a fresh instance, never one that another run has used.
            meta: Map::from_iter([("task_id".to_owned(), json!(id))]),
            start: Some(image.clone()),
            ..Request::default()
        };
        let (runner, response) = self.place(request).await?;
        let response = checked(response, &id)?;
        Ok(Box::new(QueueSession {
            capabilities: relabelled(response.capabilities),
            queue: self.clone(),
            work_tree: image.work_tree().to_owned(),
            runner,
            id,
            stopped: false,
        }))
    }
}

fn relabelled(told: Option<Capabilities>) -> Capabilities {
    let unknown = Capabilities {
        backend: NAME.to_owned(),
        no_network: false,
        wall: Enforcement::Whole,
        cpu: Enforcement::None,
        memory: Enforcement::None,
        processes: Enforcement::None,
        disk: Enforcement::None,
        snapshots: SnapshotKind::Copy,
        usage: false,
    };
    Capabilities {
        backend: NAME.to_owned(),
        ..told.unwrap_or(unknown)
    }
}

/// The response, unless it tells a failure that is not a command's.
fn checked(response: Response, run: &str) -> Result<Response, SessionError> {
    let text = response.error.clone().unwrap_or_default();
    if let Some(fault) = response.fault {
        return Err(fault.into_error(NAME, run, text));
    }
    if response.is_busy() {
        let text = "the runner works for another run now".to_owned();
        return Err(Fault::Lost.into_error(NAME, run, text));
    }
    if response.ok || response.returncode.is_some() {
        return Ok(response);
    }
    Err(Fault::Lost.into_error(NAME, run, text))
}

/// Ends the wait for a response.
struct Withdraw<'a> {
    folder: &'a RunnerFolder,
    id: &'a str,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        self.folder.withdraw(self.id);
    }
}

#[derive(Debug)]
struct QueueSession {
    queue: Queue,
    capabilities: Capabilities,
    work_tree: String,
    runner: u32,
    id: String,
    stopped: bool,
}

impl QueueSession {
    fn request(&self, kind: &str) -> Request {
        Request {
            run_id: self.id.clone(),
            kind: kind.to_owned(),
            timeout_sec: Some(HOUSEKEEPING.as_secs_f64()),
            ..Request::default()
        }
    }

    async fn ask(&self, request: Request) -> Result<Response, SessionError> {
        // Half as much again as the command may take, and time to get at it.
        let patience = request.timeout().mul_f64(1.5) + Duration::from_secs(60);
        checked(
            self.queue.call(self.runner, request, patience).await?,
            &self.id,
        )
    }

    fn place(&self, path: &RelativePath) -> String {
        format!("{}/{path}", self.work_tree)
    }

    fn lost(&self, detail: &str) -> SessionError {
        SessionError::Lost {
            id: self.id.clone(),
            detail: detail.to_owned(),
        }
    }
}

#[async_trait]
impl Session for QueueSession {
    fn id(&self) -> &str {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    async fn exec(&mut self, command: &Command) -> Result<CommandOutcome, SessionError> {
        let response = self
            .ask(Request {
                cmd: command.argv.clone(),
                cwd: match &command.folder {
                    Some(folder) => self.place(folder),
                    None => self.work_tree.clone(),
                },
                env: command.env.iter().cloned().collect(),
                timeout_sec: Some(command.limits.wall.as_secs_f64()),
                stdin_b64: Some(Bytes(command.stdin.clone())),
                limits: Some(WireLimits::from(&command.limits)),
                ..self.request(kind::INSTANCE_EXEC)
            })
            .await?;
        let outcome = response.outcome();
        outcome.ok_or_else(|| self.lost("the runner answered without an outcome"))
    }

    async fn read(&mut self, path: &RelativePath, max_bytes: u64) -> Result<Vec<u8>, SessionError> {
        let response = self
            .ask(Request {
                src: self.place(path),
                max_bytes: Some(max_bytes),
                ..self.request(kind::GET)
            })
            .await?;
        let content = response.content_b64.map(|content| content.0);
        content.ok_or_else(|| self.lost("the runner answered without the file"))
    }

    async fn write(
        &mut self,
        path: &RelativePath,
        content: &[u8],
        mode: u32,
    ) -> Result<(), SessionError> {
        let request = Request {
            dst: self.place(path),
            content_b64: Some(Bytes(content.to_vec())),
            mode: Some(mode),
            ..self.request(kind::PUT)
        };
        self.ask(request).await.map(drop)
    }

    async fn remove(&mut self, path: &RelativePath) -> Result<(), SessionError> {
        let request = Request {
            dst: self.place(path),
            ..self.request(kind::REMOVE)
        };
        self.ask(request).await.map(drop)
    }

    async fn snapshot(&mut self) -> Result<SnapshotId, SessionError> {
        let response = self.ask(self.request(kind::SNAPSHOT)).await?;
        let snapshot = response.snapshot;
        snapshot.ok_or_else(|| self.lost("the runner answered without a snapshot"))
    }

    async fn restore(&mut self, snapshot: &SnapshotId) -> Result<(), SessionError> {
        let request = Request {
            snapshot: Some(snapshot.clone()),
            ..self.request(kind::RESTORE)
        };
        self.ask(request).await.map(drop)
    }

    async fn stop(mut self: Box<Self>) -> Result<(), SessionError> {
        self.stopped = true;
        self.ask(self.request(kind::STOP)).await.map(drop)
    }
}

impl Drop for QueueSession {
    /// Leaves word for the runner, and does not wait.
    fn drop(&mut self) {
        if self.stopped {
            return;
        }
        let _ = self.queue.folder(self.runner).send(&Request {
            req_id: fresh_id(),
            runner_id: Value::from(self.runner),
            no_reply: true,
            ..self.request(kind::STOP)
        });
    }
}
