//! What a runner does about each request.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use code::RelativePath;
use sandbox::Limits;
use serde_json::Value;

use super::{
    message::{Request, Response, kind},
    runner::{Pulse, instance_name},
};
use crate::{
    Backend, Command, Image, Session, SessionError,
    wire::{Bytes, Fault},
};

/// Bytes of a file that `get` brings when nothing says how many.
const MAX_FILE: u64 = 200 << 20;

/// Holds the one instance and the session in it.
pub(crate) struct Desk {
    backend: Box<dyn Backend>,
    orphan_ttl: Duration,
    clock: fn() -> f64,
    pulse: Pulse,
    bound: Option<Bound>,
    served: bool,
}

/// The instance and whom it is for.
struct Bound {
    run: String,
    task: String,
    image: Image,
    session: Box<dyn Session>,
    asked: Instant,
}

/// Why a request was not carried out.
enum Refusal {
    /// The instance is another run's.
    Busy(String),
    Fault(SessionError),
    Malformed(String),
}

impl From<SessionError> for Refusal {
    fn from(error: SessionError) -> Self {
        Self::Fault(error)
    }
}

impl Desk {
    pub(crate) fn new(
        backend: Box<dyn Backend>,
        orphan_ttl: Duration,
        clock: fn() -> f64,
        pulse: Pulse,
    ) -> Self {
        Self {
            backend,
            orphan_ttl,
            clock,
            pulse,
            bound: None,
            served: false,
        }
    }

    /// Whether an instance was started and stopped.
    pub(crate) fn served(&self) -> bool {
        self.served && self.bound.is_none()
    }

    pub(crate) async fn handle(&mut self, request: &Request) -> Response {
        let started = Instant::now();
        let mut response = request.response();
        let handled = self.carry_out(request, &mut response).await;
        if let Some(bound) = &mut self.bound
            && bound.run == request.run_id
        {
            bound.asked = Instant::now();
            let now = (self.clock)();
            self.pulse
                .tell(|heartbeat| heartbeat.last_req_at = Some(now));
        }
        if response.runtime_sec == 0.0 {
            response.runtime_sec = started.elapsed().as_secs_f64();
        }
        match handled {
            Ok(()) => {}
            Err(Refusal::Busy(run)) => {
                response.error = Some(format!("the runner works for the run {run}"));
                response.meta.insert("busy".to_owned(), 1.into());
            }
            Err(Refusal::Fault(error)) => {
                response.error = Some(error.to_string());
                response.fault = Some(Fault::from(&error));
                if error.is_infrastructure() {
                    // Its state is unknown: the run is told, and starts another.
                    self.stop().await;
                }
            }
            Err(Refusal::Malformed(detail)) => {
                response.fault = Some(Fault::Unsupported {
                    detail: detail.clone(),
                });
                response.error = Some(detail);
            }
        }
        response
    }

    /// Stops an instance that nobody has asked anything of for `idle`.
    pub(crate) async fn end_idle(&mut self, idle: Duration) {
        if self
            .bound
            .as_ref()
            .is_some_and(|bound| bound.asked.elapsed() > idle)
        {
            self.stop().await;
        }
    }

    pub(crate) async fn stop(&mut self) {
        if let Some(bound) = self.bound.take() {
            // What could not be removed now is removed at the next start.
            let _ = bound.session.stop().await;
            self.served = true;
            self.pulse.tell(|heartbeat| {
                heartbeat.current_run_id = None;
                heartbeat.current_task_id = None;
                heartbeat.current_image = None;
                heartbeat.instance = None;
                heartbeat.bound_at = None;
            });
        }
    }

    async fn carry_out(
        &mut self,
        request: &Request,
        response: &mut Response,
    ) -> Result<(), Refusal> {
        match request.kind.as_str() {
            kind::NOOP => {}
            kind::START => {
                self.start(request).await?;
                response.capabilities = self.bound.as_ref().map(|it| it.session.capabilities());
            }
            kind::STOP => {
                // Goes to every runner; those that are not meant have nothing to do.
                if self
                    .bound
                    .as_ref()
                    .is_some_and(|bound| bound.run == request.run_id)
                {
                    self.stop().await;
                }
            }
            kind::CLEANUP => {
                let ttl = self.orphan_ttl;
                let over =
                    |bound: &Bound| bound.run == request.run_id || bound.asked.elapsed() > ttl;
                if self.bound.as_ref().is_some_and(over) {
                    self.stop().await;
                }
            }
            kind::EXEC
                if self
                    .bound
                    .as_ref()
                    .is_none_or(|it| it.run != request.run_id) =>
            {
                self.start(request).await?;
                let ran = self.exec(request, response).await;
                self.stop().await;
                return ran;
            }
            kind::EXEC | kind::INSTANCE_EXEC => return self.exec(request, response).await,
            kind::PUT => {
                let bound = self.mine(request)?;
                let path = below(&bound.image, &request.dst)?;
                let content = match &request.content_b64 {
                    Some(content) => content.0.clone(),
                    None => fs::read(&request.src)
                        .map_err(|error| Refusal::Malformed(format!("{}: {error}", request.src)))?,
                };
                let mode = request.mode.unwrap_or(0o644);
                bound.session.write(&path, &content, mode).await?;
            }
            kind::GET => {
                let bound = self.mine(request)?;
                let path = below(&bound.image, &request.src)?;
                let most = request.max_bytes.unwrap_or(MAX_FILE);
                let content = bound.session.read(&path, most).await?;
                if request.dst.is_empty() {
                    response.content_b64 = Some(Bytes(content));
                } else {
                    fs::write(&request.dst, content)
                        .map_err(|error| Refusal::Malformed(format!("{}: {error}", request.dst)))?;
                }
            }
            kind::REMOVE => {
                let bound = self.mine(request)?;
                let path = below(&bound.image, &request.dst)?;
                bound.session.remove(&path).await?;
            }
            kind::SNAPSHOT => {
                response.snapshot = Some(self.mine(request)?.session.snapshot().await?);
            }
            kind::RESTORE => {
                let snapshot = request.snapshot.as_ref().ok_or_else(|| {
                    Refusal::Malformed("restore needs the field snapshot".to_owned())
                })?;
                self.mine(request)?.session.restore(snapshot).await?;
            }
            other => {
                return Err(Refusal::Malformed(format!(
                    "no request is of type {other:?}"
                )));
            }
        }
        response.ok = true;
        Ok(())
    }

    async fn start(&mut self, request: &Request) -> Result<(), Refusal> {
        let image = image(request);
        if let Some(bound) = &mut self.bound {
            let same = bound.task == request.task_id() && bound.image == image;
            if same {
                bound.run.clone_from(&request.run_id);
                return self.announce();
            }
            if bound.asked.elapsed() <= self.orphan_ttl {
                return Err(Refusal::Busy(bound.run.clone()));
            }
            self.stop().await;
        }
        let session = self.backend.start(&image).await?;
        self.bound = Some(Bound {
            run: request.run_id.clone(),
            task: request.task_id().to_owned(),
            image,
            session,
            asked: Instant::now(),
        });
        self.announce()
    }

    fn announce(&mut self) -> Result<(), Refusal> {
        let now = (self.clock)();
        if let Some(bound) = &self.bound {
            self.pulse.tell(|heartbeat| {
                let instance = heartbeat.rid.as_u64().unwrap_or_default();
                heartbeat.current_run_id = Some(bound.run.clone());
                heartbeat.current_task_id = Some(bound.task.clone());
                heartbeat.current_image.clone_from(&bound.image.name);
                heartbeat.instance = Some(instance_name(u32::try_from(instance).unwrap_or(0)));
                heartbeat.bound_at = Some(now);
                heartbeat.last_req_at = Some(now);
            });
        }
        Ok(())
    }

    async fn exec(&mut self, request: &Request, response: &mut Response) -> Result<(), Refusal> {
        let bound = self.mine(request)?;
        let command = Command {
            argv: request.cmd.clone(),
            env: request.env.clone().into_iter().collect(),
            stdin: request.stdin_b64.clone().unwrap_or_default().0,
            folder: folder(&bound.image, &request.cwd)?,
            limits: Limits {
                wall: request.timeout(),
                ..request.limits.clone().unwrap_or_default().into()
            },
        };
        let outcome = bound.session.exec(&command).await?;
        response.set_outcome(outcome);
        Ok(())
    }

    /// The instance, if it is the asking run's.
    fn mine(&mut self, request: &Request) -> Result<&mut Bound, Refusal> {
        match &mut self.bound {
            Some(bound) => match bound.run == request.run_id {
                true => Ok(bound),
                false => Err(Refusal::Busy(bound.run.clone())),
            },
            None => Err(Refusal::Fault(SessionError::Lost {
                id: request.run_id.clone(),
                detail: "the runner has no instance for this run".to_owned(),
            })),
        }
    }
}

fn image(request: &Request) -> Image {
    if let Some(image) = &request.start {
        return image.clone();
    }
    let name = match request.sif_path.is_empty() {
        true => request.image.clone(),
        false => request.sif_path.clone(),
    };
    Image {
        name: (!name.is_empty()).then_some(name),
        checkout: None,
        work_tree: work_tree(&request.cwd),
        env: request.env.clone().into_iter().collect(),
    }
}

/// `/repo` is another name of `/testbed`.
fn work_tree(cwd: &str) -> Option<String> {
    match cwd.trim_end_matches('/') {
        "" | "/repo" => None,
        other => Some(other.to_owned()),
    }
}

/// The part of an absolute path of the container that is below the work tree.
fn below(image: &Image, path: &str) -> Result<RelativePath, Refusal> {
    let inside = Path::new(path)
        .strip_prefix(image.work_tree())
        .or_else(|_| Path::new(path).strip_prefix("/repo"))
        .map_err(|_| {
            let top = image.work_tree();
            Refusal::Malformed(format!("{path:?} is not below the work tree {top}"))
        })?;
    RelativePath::new(inside.to_string_lossy())
        .map_err(|error| Refusal::Malformed(error.to_string()))
}

fn folder(image: &Image, cwd: &str) -> Result<Option<RelativePath>, Refusal> {
    let cwd = cwd.trim_end_matches('/');
    match cwd.is_empty() || cwd == image.work_tree().trim_end_matches('/') || cwd == "/repo" {
        true => Ok(None),
        false => below(image, cwd).map(Some),
    }
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let run = self
            .bound
            .as_ref()
            .map(|bound| Value::from(bound.run.as_str()));
        f.debug_struct("Desk")
            .field("run", &run)
            .finish_non_exhaustive()
    }
}
