//! The remote side of a channel: one session, asked by lines on standard input.

use std::time::Duration;

use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};

use super::message::{Answer, Hello, Op, PROTOCOL, Request, Response};
use crate::{
    Backend, Session, SessionError,
    wire::{Bytes, Fault},
};

/// Without a line for this long, whoever asked is gone, whatever the connection says.
const SILENCE: Duration = Duration::from_secs(180);

/// Answers requests until the input ends or falls silent; the session is stopped then, in the middle
/// of a command too.
///
/// # Errors
/// The output cannot be written.
pub async fn serve_lines(
    backend: &dyn Backend,
    version: &str,
    input: impl AsyncBufRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send,
) -> std::io::Result<()> {
    let mut output = output;
    let hello = Hello {
        etude: version.to_owned(),
        protocol: PROTOCOL,
    };
    say(&mut output, &hello).await?;
    let (sender, mut lines) = mpsc::unbounded_channel();
    // Reads on while a command runs, so that an ended connection ends the command.
    let mut reading = tokio::spawn(async move {
        let mut input = input.lines();
        while let Ok(Ok(Some(line))) = tokio::time::timeout(SILENCE, input.next_line()).await {
            let ping =
                serde_json::from_str::<Request>(&line).is_ok_and(|it| matches!(it.op, Op::Ping));
            if !ping && sender.send(line).is_err() {
                break;
            }
        }
    });
    let mut session: Option<Box<dyn Session>> = None;
    let answering = async {
        while let Some(line) = lines.recv().await {
            let response = match serde_json::from_str::<Request>(&line) {
                Ok(request) => Response {
                    id: request.id,
                    answer: answer(backend, &mut session, request.op).await,
                },
                Err(error) => Response {
                    id: 0,
                    answer: failed(&SessionError::Unsupported {
                        backend: "ssh",
                        detail: format!("the request is malformed: {error}"),
                    }),
                },
            };
            say(&mut output, &response).await?;
        }
        Ok(())
    };
    let ended = tokio::select! {
        answered = answering => answered,
        _ = &mut reading => Ok(()),
    };
    reading.abort();
    if let Some(session) = session.take() {
        // Nobody is left to be told.
        let _ = session.stop().await;
    }
    ended
}

async fn answer(backend: &dyn Backend, session: &mut Option<Box<dyn Session>>, op: Op) -> Answer {
    match carry_out(backend, session, op).await {
        Ok(answer) => answer,
        Err(error) => failed(&error),
    }
}

fn failed(error: &SessionError) -> Answer {
    Answer::Failed {
        fault: Fault::from(error),
        text: error.to_string(),
    }
}

async fn carry_out(
    backend: &dyn Backend,
    bound: &mut Option<Box<dyn Session>>,
    op: Op,
) -> Result<Answer, SessionError> {
    if let Op::Start { image } = &op {
        if let Some(before) = bound.take() {
            before.stop().await?;
        }
        let session = bound.insert(backend.start(image).await?);
        return Ok(Answer::Started {
            session: session.id().to_owned(),
            capabilities: session.capabilities(),
        });
    }
    if let Op::Stop = op {
        if let Some(session) = bound.take() {
            session.stop().await?;
        }
        return Ok(Answer::Done);
    }
    let session = bound.as_mut().ok_or_else(|| SessionError::Lost {
        id: "none".to_owned(),
        detail: "no session was started on this channel".to_owned(),
    })?;
    Ok(match op {
        Op::Ping | Op::Start { .. } | Op::Stop => Answer::Done,
        Op::Exec { command } => Answer::Outcome {
            outcome: session.exec(&command.into()).await?.into(),
        },
        Op::Read { path, max_bytes } => Answer::Content {
            content: Bytes(session.read(&path, max_bytes).await?),
        },
        Op::Write {
            path,
            content,
            mode,
        } => {
            session.write(&path, &content.0, mode).await?;
            Answer::Done
        }
        Op::Remove { path } => {
            session.remove(&path).await?;
            Answer::Done
        }
        Op::Snapshot => Answer::Snapshot {
            snapshot: session.snapshot().await?,
        },
        Op::Restore { snapshot } => {
            session.restore(&snapshot).await?;
            Answer::Done
        }
    })
}

async fn say(
    output: &mut (impl AsyncWrite + Unpin),
    message: &impl serde::Serialize,
) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    output.write_all(&line).await?;
    output.flush().await
}
