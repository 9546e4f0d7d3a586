//! Sessions on another machine: one channel of the user's own ssh for each, with `etude runner
//! --stdio` at its other end.
//!
//! All channels to a machine share one connection. A channel that ends is a lost session, and the
//! remote side stops what it had when it notices: at once when the connection is closed, after three
//! minutes of silence otherwise.

mod message;
mod serve;

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use code::RelativePath;
use openssh::{Child, KnownHosts, SessionBuilder, Stdio};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    sync::{Mutex, OnceCell},
    task::JoinHandle,
    time::timeout,
};

use crate::{
    Backend, Capabilities, Command, CommandOutcome, Enforcement, Image, Session, SessionError,
    SnapshotId, SnapshotKind,
    wire::{Bytes, WireCommand},
};
use message::{Answer, Hello, Op, PROTOCOL, Request, Response};
pub use serve::serve_lines;

const NAME: &str = "ssh";

/// Between pings of an idle or working channel.
const PING: Duration = Duration::from_secs(15);

/// Until the remote side says hello.
const HELLO: Duration = Duration::from_secs(30);

/// For requests that run no command, and on top of what a command may take.
const PATIENCE: Duration = Duration::from_secs(900);

/// Which machine, and what to start there.
#[derive(Clone, Debug)]
pub struct SshOptions {
    /// As given to `ssh`: a host, `user@host`, or a name of the ssh configuration.
    pub destination: String,
    /// Instead of the user's own.
    pub config: Option<PathBuf>,
    /// The remote `etude`, and what `runner --stdio` needs besides: `["etude", "--backend", ..]`
    /// is started as `etude runner --stdio --backend ..`.
    pub remote: Vec<String>,
    pub connect_timeout: Duration,
    /// Where the control socket is made.
    pub control_folder: PathBuf,
}

/// The `ssh` backend.
#[derive(Clone, Debug)]
pub struct Ssh {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: SshOptions,
    connection: Mutex<Option<Arc<openssh::Session>>>,
    capabilities: OnceCell<Capabilities>,
}

impl Ssh {
    pub fn new(options: SshOptions) -> Self {
        Self {
            inner: Arc::new(Inner {
                options,
                connection: Mutex::new(None),
                capabilities: OnceCell::new(),
            }),
        }
    }

    /// The connection, made when there is none or it broke.
    async fn connection(&self) -> Result<Arc<openssh::Session>, SessionError> {
        let mut held = self.inner.connection.lock().await;
        if let Some(connection) = held.as_ref()
            && connection.check().await.is_ok()
        {
            return Ok(connection.clone());
        }
        let options = &self.inner.options;
        let mut builder = SessionBuilder::default();
        builder
            .known_hosts_check(KnownHosts::Strict)
            .connect_timeout(options.connect_timeout)
            .server_alive_interval(PING)
            .control_directory(&options.control_folder);
        if let Some(config) = &options.config {
            builder.config_file(config);
        }
        let connected = builder.connect_mux(&options.destination).await;
        let connection = Arc::new(connected.map_err(|error| self.unavailable(chain(&error)))?);
        *held = Some(connection.clone());
        Ok(connection)
    }

    async fn channel(&self) -> Result<Channel, SessionError> {
        let connection = self.connection().await?;
        let (program, arguments) = self
            .inner
            .options
            .remote
            .split_first()
            .ok_or_else(|| self.unavailable("no remote program is named".to_owned()))?;
        let mut command = connection.arc_command(program.clone());
        command
            .args(["runner", "--stdio"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command
            .spawn()
            .await
            .map_err(|error| self.unavailable(chain(&error)))?;
        let (Some(stdin), Some(stdout)) = (child.stdin().take(), child.stdout().take()) else {
            return Err(self.unavailable("the channel has no streams".to_owned()));
        };
        let mut lines = BufReader::new(stdout).lines();
        let absent = || {
            let detail = format!("{program} did not start there; is it installed at that path?");
            self.unavailable(detail)
        };
        let hello = match timeout(HELLO, lines.next_line()).await {
            Ok(Ok(Some(line))) => line,
            Ok(_) => return Err(absent()),
            Err(_) => {
                let waited = HELLO.as_secs();
                return Err(self.unavailable(format!("{program} was silent for {waited} s")));
            }
        };
        let hello: Hello = serde_json::from_str(&hello).map_err(|_| absent())?;
        if hello.protocol != PROTOCOL {
            return Err(self.unavailable(format!(
                "{program} is etude {}, which speaks version {} of the protocol, and this one \
                 speaks version {PROTOCOL}; install the same etude on both sides",
                hello.etude, hello.protocol
            )));
        }
        let stdin = Arc::new(Mutex::new(stdin));
        let pinging = tokio::spawn(ping(stdin.clone()));
        Ok(Channel {
            _child: child,
            stdin,
            lines,
            next: 1,
            half_said: false,
            pinging,
        })
    }

    fn unavailable(&self, detail: String) -> SessionError {
        SessionError::Unavailable {
            backend: NAME,
            detail: format!("{}: {detail}", self.inner.options.destination),
        }
    }
}

/// An error with its causes, as the outermost alone says little.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

#[async_trait]
impl Backend for Ssh {
    /// Those of the first session that was started; before that, the least.
    fn capabilities(&self) -> Capabilities {
        let known = self.inner.capabilities.get().cloned();
        known.unwrap_or_else(|| Capabilities {
            backend: NAME.to_owned(),
            no_network: false,
            wall: Enforcement::Whole,
            cpu: Enforcement::None,
            memory: Enforcement::None,
            processes: Enforcement::None,
            disk: Enforcement::None,
            snapshots: SnapshotKind::Copy,
            usage: false,
        })
    }

    async fn start(&self, image: &Image) -> Result<Box<dyn Session>, SessionError> {
        let mut session = SshSession {
            channel: self.channel().await?,
            id: String::new(),
            capabilities: self.capabilities(),
        };
        let image = image.clone();
        match session.ask(Op::Start { image }, PATIENCE).await? {
            Answer::Started {
                session: id,
                capabilities,
            } => {
                session.id = id;
                session.capabilities = Capabilities {
                    backend: NAME.to_owned(),
                    ..capabilities
                };
                let _ = self.inner.capabilities.set(session.capabilities.clone());
                Ok(Box::new(session))
            }
            other => Err(session.odd(&other)),
        }
    }
}

#[derive(Debug)]
struct Channel {
    /// Ends with the channel.
    _child: Child<Arc<openssh::Session>>,
    stdin: Arc<Mutex<openssh::ChildStdin>>,
    lines: Lines<BufReader<openssh::ChildStdout>>,
    next: u64,
    /// A request was given up while it was being written, so that nothing can follow it.
    half_said: bool,
    pinging: JoinHandle<()>,
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.pinging.abort();
    }
}

/// Tells the remote side that somebody is there, also while nothing is asked.
async fn ping(stdin: Arc<Mutex<openssh::ChildStdin>>) {
    let mut line = serde_json::to_vec(&Request {
        id: 0,
        op: Op::Ping,
    })
    .unwrap_or_default();
    line.push(b'\n');
    loop {
        tokio::time::sleep(PING).await;
        if stdin.lock().await.write_all(&line).await.is_err() {
            return;
        }
    }
}

impl Channel {
    /// Responses to requests that were given up are passed over.
    async fn ask(&mut self, op: Op, patience: Duration) -> Result<Answer, String> {
        let id = self.next;
        self.next += 1;
        self.say(&Request { id, op }).await?;
        let answered = timeout(patience, async {
            loop {
                let line = match self.lines.next_line().await {
                    Ok(Some(line)) => line,
                    Ok(None) => return Err("the connection ended".to_owned()),
                    Err(error) => return Err(error.to_string()),
                };
                let response: Response = serde_json::from_str(&line)
                    .map_err(|error| format!("an answer that is none: {error}"))?;
                if response.id == id {
                    return Ok(response.answer);
                }
            }
        });
        let silent = |_| Err(format!("no answer within {} s", patience.as_secs()));
        answered.await.unwrap_or_else(silent)
    }

    async fn say(&mut self, request: &Request) -> Result<(), String> {
        let mut line = serde_json::to_vec(request).map_err(|error| error.to_string())?;
        line.push(b'\n');
        if std::mem::replace(&mut self.half_said, true) {
            return Err("a request before was given up half said".to_owned());
        }
        let mut stdin = self.stdin.lock().await;
        let written = timeout(PATIENCE, async {
            stdin.write_all(&line).await?;
            stdin.flush().await
        });
        match written.await {
            Ok(Ok(())) => {
                self.half_said = false;
                Ok(())
            }
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the connection takes nothing any more".to_owned()),
        }
    }
}

/// Ends at the remote side when its channel is dropped.
#[derive(Debug)]
struct SshSession {
    channel: Channel,
    id: String,
    capabilities: Capabilities,
}

impl SshSession {
    async fn ask(&mut self, op: Op, patience: Duration) -> Result<Answer, SessionError> {
        match self.channel.ask(op, patience).await {
            Ok(Answer::Failed { fault, text }) => Err(fault.into_error(NAME, &self.id, text)),
            Ok(answer) => Ok(answer),
            Err(detail) => Err(self.lost(detail)),
        }
    }

    async fn do_it(&mut self, op: Op) -> Result<(), SessionError> {
        match self.ask(op, PATIENCE).await? {
            Answer::Done => Ok(()),
            other => Err(self.odd(&other)),
        }
    }

    fn lost(&self, detail: String) -> SessionError {
        SessionError::Lost {
            id: self.id.clone(),
            detail,
        }
    }

    fn odd(&self, answer: &Answer) -> SessionError {
        self.lost(format!("the answer is to another question: {answer:?}"))
    }
}

#[async_trait]
impl Session for SshSession {
    fn id(&self) -> &str {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    async fn exec(&mut self, command: &Command) -> Result<CommandOutcome, SessionError> {
        let op = Op::Exec {
            command: WireCommand::from(command),
        };
        match self.ask(op, command.limits.wall + PATIENCE).await? {
            Answer::Outcome { outcome } => Ok(outcome.into()),
            other => Err(self.odd(&other)),
        }
    }

    async fn read(&mut self, path: &RelativePath, max_bytes: u64) -> Result<Vec<u8>, SessionError> {
        let path = path.clone();
        match self.ask(Op::Read { path, max_bytes }, PATIENCE).await? {
            Answer::Content { content } => Ok(content.0),
            other => Err(self.odd(&other)),
        }
    }

    async fn write(
        &mut self,
        path: &RelativePath,
        content: &[u8],
        mode: u32,
    ) -> Result<(), SessionError> {
        self.do_it(Op::Write {
            path: path.clone(),
            content: Bytes(content.to_vec()),
            mode,
        })
        .await
    }

    async fn remove(&mut self, path: &RelativePath) -> Result<(), SessionError> {
        let path = path.clone();
        self.do_it(Op::Remove { path }).await
    }

    async fn snapshot(&mut self) -> Result<SnapshotId, SessionError> {
        match self.ask(Op::Snapshot, PATIENCE).await? {
            Answer::Snapshot { snapshot } => Ok(snapshot),
            other => Err(self.odd(&other)),
        }
    }

    async fn restore(&mut self, snapshot: &SnapshotId) -> Result<(), SessionError> {
        let snapshot = snapshot.clone();
        self.do_it(Op::Restore { snapshot }).await
    }

    async fn stop(mut self: Box<Self>) -> Result<(), SessionError> {
        self.do_it(Op::Stop).await
    }
}
