//! The serving side of a file queue: one runner, one instance at a time.

use std::{
    future::Future,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

use super::{
    folder::{Claim, RunnerFolder},
    message::{Heartbeat, Request, Response, kind},
    serve::Desk,
};
use crate::{Backend, tree::fresh_id, wire::Fault};

/// Between signs of life.
const BEAT: Duration = Duration::from_secs(2);

/// A runner that may still be there is watched for this long before its folder is taken over.
const WATCH: Duration = Duration::from_secs(6);

/// Between looks for requests: from the first to the last, growing.
const POLL: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(500)];

/// Between removals of what nobody fetched.
const SWEEP: Duration = Duration::from_secs(60);

/// How a runner serves.
#[derive(Clone, Debug)]
pub struct RunnerOptions {
    /// The folder that clients and runners share.
    pub queue: PathBuf,
    /// This runner serves `runner-ID` in it.
    pub id: u32,
    /// An instance without requests for this long is stopped.
    pub idle_timeout: Duration,
    /// An instance without requests for this long may be taken by another run.
    pub orphan_ttl: Duration,
    /// End after the first instance was stopped.
    pub once: bool,
    /// Seconds since 1970, for those who read heartbeats; decides nothing.
    pub clock: fn() -> f64,
}

/// Why a runner ended without being told to.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    #[error("{}: {error}", .folder.display())]
    Folder {
        folder: PathBuf,
        error: std::io::Error,
    },
    #[error("{} is served by process {pid} on {host}; give this runner another --id", .folder.display())]
    Served {
        folder: PathBuf,
        pid: u32,
        host: String,
    },
    /// Another runner took the folder over, as this one had given no sign of life.
    #[error("{} was taken over by process {pid} on {host}", .folder.display())]
    Replaced {
        folder: PathBuf,
        pid: u32,
        host: String,
    },
}

/// The number of an instance as its name has it.
pub fn instance_name(runner: u32) -> String {
    format!("gp-{runner:02}")
}

/// Serves until `shutdown` is done, or after the first instance with [`RunnerOptions::once`]. The
/// instance is stopped and the folder left in order, whatever the reason.
pub async fn serve(
    options: RunnerOptions,
    backend: Box<dyn Backend>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunnerError> {
    let folder = RunnerFolder::new(&options.queue, options.id);
    let failed = |error| RunnerError::Folder {
        folder: folder.path.clone(),
        error,
    };
    folder.make().map_err(failed)?;
    let token = fresh_id();
    take_over(&folder).await?;
    let heartbeat = Heartbeat {
        rid: options.id.into(),
        pid: std::process::id(),
        host: host(),
        orphan_ttl_sec: options.orphan_ttl.as_secs_f64(),
        capabilities: Some(backend.capabilities()),
        token: token.clone(),
        ..Heartbeat::default()
    };
    let pulse = Pulse::new(folder.clone(), heartbeat, options.clock);
    pulse.beat().map_err(failed)?;
    let beating = tokio::spawn(pulse.clone().keep());
    for (claim, request) in folder.recover(&token).map_err(failed)? {
        recover(&folder, &claim, request).map_err(failed)?;
    }
    folder.write_ready(&pulse.heartbeat()).map_err(failed)?;

    let mut desk = Desk::new(backend, options.orphan_ttl, options.clock, pulse.clone());
    let mut current: Option<(Claim, Request)> = None;
    let ended = {
        let work = work(&folder, &options, &token, &mut desk, &mut current);
        tokio::select! {
            biased;
            () = shutdown => Ok(()),
            () = pulse.replaced() => {
                let by = folder.heartbeat().unwrap_or_default();
                Err(RunnerError::Replaced {
                    folder: folder.path.clone(),
                    pid: by.pid,
                    host: by.host,
                })
            }
            worked = work => worked.map_err(failed),
        }
    };
    if let Some((claim, request)) = current {
        let response = lost(&request, "the runner was ended while it worked on this");
        let _ = folder.answer(&claim, (!request.no_reply).then_some(&response));
    }
    desk.stop().await;
    beating.abort();
    if !matches!(ended, Err(RunnerError::Replaced { .. })) {
        folder.leave();
    }
    ended
}

async fn work(
    folder: &RunnerFolder,
    options: &RunnerOptions,
    token: &str,
    desk: &mut Desk,
    current: &mut Option<(Claim, Request)>,
) -> std::io::Result<()> {
    let (mut pause, mut swept) = (POLL[0], Instant::now());
    loop {
        if let Some((claim, request)) = folder.claim(token)? {
            *current = Some((claim.clone(), request.clone()));
            let response = desk.handle(&request).await;
            *current = None;
            folder.answer(&claim, (!request.no_reply).then_some(&response))?;
            pause = POLL[0];
        } else {
            desk.end_idle(options.idle_timeout).await;
            tokio::time::sleep(pause).await;
            pause = pause.mul_f64(1.3).min(POLL[1]);
        }
        if options.once && desk.served() {
            return Ok(());
        }
        if swept.elapsed() > SWEEP {
            swept = Instant::now();
            folder.sweep();
        }
    }
}

/// Fails when another runner serves the folder: one whose signs of life go on while they are watched.
async fn take_over(folder: &RunnerFolder) -> Result<(), RunnerError> {
    let Some(before) = folder.heartbeat() else {
        return Ok(());
    };
    let gone = before.host == host() && !PathBuf::from(format!("/proc/{}", before.pid)).exists();
    if gone || folder.silence().is_none_or(|silence| silence > WATCH * 10) {
        return Ok(());
    }
    let (started, last) = (Instant::now(), folder.last_beat());
    while started.elapsed() < WATCH {
        tokio::time::sleep(POLL[1]).await;
        match folder.heartbeat() {
            None => return Ok(()),
            Some(now) if folder.last_beat() != last => {
                return Err(RunnerError::Served {
                    folder: folder.path.clone(),
                    pid: now.pid,
                    host: now.host,
                });
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// What a runner before this one was working on when it died. Only what changed nothing is done
/// again, and once: a command in a new instance would not see what those before it did.
fn recover(folder: &RunnerFolder, claim: &Claim, mut request: Request) -> std::io::Result<()> {
    let again = matches!(request.kind.as_str(), kind::NOOP | kind::START);
    if again && !request.meta.contains_key("requeued") {
        request.meta.insert("requeued".to_owned(), 1.into());
        return folder.requeue(claim, &request);
    }
    let response = lost(&request, "the runner died while it worked on this");
    folder
        .answer(claim, (!request.no_reply).then_some(&response))
        .map(drop)
}

fn lost(request: &Request, text: &str) -> Response {
    Response {
        error: Some(text.to_owned()),
        fault: Some(Fault::Lost),
        ..request.response()
    }
}

fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.unwrap_or_default().trim().to_owned()
}

/// The signs of life of a runner.
#[derive(Clone, Debug)]
pub(crate) struct Pulse {
    folder: RunnerFolder,
    heartbeat: Arc<Mutex<Heartbeat>>,
    clock: fn() -> f64,
    replaced: Arc<Notify>,
}

impl Pulse {
    fn new(folder: RunnerFolder, heartbeat: Heartbeat, clock: fn() -> f64) -> Self {
        Self {
            folder,
            heartbeat: Arc::new(Mutex::new(heartbeat)),
            clock,
            replaced: Arc::new(Notify::new()),
        }
    }

    /// Changes what the heartbeat says, and says it at once.
    pub(crate) fn tell(&self, change: impl FnOnce(&mut Heartbeat)) {
        change(&mut self.locked());
        let _ = self.beat();
    }

    fn heartbeat(&self) -> Heartbeat {
        self.locked().clone()
    }

    fn beat(&self) -> std::io::Result<()> {
        let mut heartbeat = self.locked();
        heartbeat.ts = (self.clock)();
        self.folder.write_heartbeat(&heartbeat)
    }

    /// Until it is dropped, or another runner beats in this folder.
    async fn keep(self) {
        loop {
            tokio::time::sleep(BEAT).await;
            let token = self.locked().token.clone();
            if self.folder.heartbeat().is_some_and(|it| it.token != token) {
                return self.replaced.notify_one();
            }
            // A full or unreachable disk may come back; clients see the silence.
            let _ = self.beat();
        }
    }

    async fn replaced(&self) {
        self.replaced.notified().await;
    }

    fn locked(&self) -> MutexGuard<'_, Heartbeat> {
        self.heartbeat
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
