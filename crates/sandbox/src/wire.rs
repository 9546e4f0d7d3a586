//! Messages between this process, the supervisor and the slots.
//!
//! A job and its reply are a JSON header and raw byte strings behind it, so that binary data is
//! carried as it is: `u32` header length, header, bytes.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{Captured, Job, Limits, Program, RunOutcome, SandboxError, Status, Tier};

/// More than this does not travel in one job.
pub(crate) const MAX_JOB: usize = 64 << 20;

/// What a slot is asked to do.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    pub(crate) limits: Limits,
    /// Script or harness.
    pub(crate) source: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    pub(crate) stdin: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Script,
    Harness,
    /// The source is the arguments, each followed by a NUL.
    Exec,
}

/// What a slot answers.
pub(crate) type Reply = Result<RunOutcome, String>;

/// What the supervisor tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Event {
    /// A slot is ready; its socket comes along.
    Slot {
        index: usize,
        tier: Tier,
        python_version: String,
    },
    /// No slot can be made.
    Failed(Failure),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Failure {
    Unavailable { tier: Tier, detail: String },
    Weak { tier: Tier, detail: String },
    Other { detail: String },
}

#[derive(Serialize, Deserialize)]
struct RequestHeader {
    kind: Kind,
    limits: Limits,
    source: usize,
    payload: usize,
    stdin: usize,
}

#[derive(Serialize, Deserialize)]
struct ReplyHeader {
    status: Status,
    stdout: CapturedHeader,
    stderr: CapturedHeader,
    result: usize,
    wall_ms: f64,
    cpu_ms: f64,
    peak_memory: u64,
    tier: Tier,
}

#[derive(Serialize, Deserialize)]
struct CapturedHeader {
    head: usize,
    tail: usize,
    total: u64,
    truncated: bool,
}

impl Request {
    pub(crate) fn new(job: Job) -> Result<Self, SandboxError> {
        let (kind, source, payload) = match job.program {
            Program::Script { source } => (Kind::Script, source.into_bytes(), Vec::new()),
            Program::Harness { source, payload } => {
                (Kind::Harness, source.as_bytes().to_vec(), payload)
            }
            Program::Exec { argv } => {
                let source = argv.iter().flat_map(|arg| arg.bytes().chain([0])).collect();
                (Kind::Exec, source, Vec::new())
            }
        };
        let bytes = source.len() + payload.len() + job.stdin.len();
        if bytes > MAX_JOB {
            return Err(SandboxError::TooLarge {
                bytes,
                limit: MAX_JOB,
            });
        }
        Ok(Self {
            kind,
            limits: job.limits,
            source,
            payload,
            stdin: job.stdin,
        })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let header = RequestHeader {
            kind: self.kind,
            limits: self.limits,
            source: self.source.len(),
            payload: self.payload.len(),
            stdin: self.stdin.len(),
        };
        frame(&header, &[&self.source, &self.payload, &self.stdin])
    }

    /// The request at the beginning of `bytes` and its length, once it is there as a whole.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let Some((header, mut rest)) = header::<RequestHeader>(bytes)? else {
            return Ok(None);
        };
        let lengths = [header.source, header.payload, header.stdin];
        let Some([source, payload, stdin]) = take(bytes, &mut rest, lengths) else {
            return Ok(None);
        };
        let (kind, limits) = (header.kind, header.limits);
        Ok(Some((
            Self {
                kind,
                limits,
                source,
                payload,
                stdin,
            },
            rest,
        )))
    }
}

pub(crate) fn encode_reply(reply: &Reply) -> Vec<u8> {
    let captured = |captured: &Captured| CapturedHeader {
        head: captured.head.len(),
        tail: captured.tail.len(),
        total: captured.total,
        truncated: captured.truncated,
    };
    match reply {
        Err(detail) => frame(&Err::<ReplyHeader, _>(detail), &[]),
        Ok(outcome) => {
            let header = ReplyHeader {
                status: outcome.status,
                stdout: captured(&outcome.stdout),
                stderr: captured(&outcome.stderr),
                result: outcome.result.len(),
                wall_ms: outcome.wall_ms,
                cpu_ms: outcome.cpu_ms,
                peak_memory: outcome.peak_memory,
                tier: outcome.tier,
            };
            let RunOutcome {
                stdout,
                stderr,
                result,
                ..
            } = outcome;
            let parts = [
                &stdout.head,
                &stdout.tail,
                &stderr.head,
                &stderr.tail,
                result,
            ];
            frame(&Ok::<_, String>(header), &parts.map(Vec::as_slice))
        }
    }
}

/// As [`Request::decode`].
pub(crate) fn decode_reply(bytes: &[u8]) -> Result<Option<(Reply, usize)>, Malformed> {
    let Some((header, mut rest)) = header::<Result<ReplyHeader, String>>(bytes)? else {
        return Ok(None);
    };
    let header = match header {
        Ok(header) => header,
        Err(detail) => return Ok(Some((Err(detail), rest))),
    };
    let ReplyHeader { stdout, stderr, .. } = &header;
    let lengths = [
        stdout.head,
        stdout.tail,
        stderr.head,
        stderr.tail,
        header.result,
    ];
    let Some([out_head, out_tail, err_head, err_tail, result]) = take(bytes, &mut rest, lengths)
    else {
        return Ok(None);
    };
    let captured = |header: CapturedHeader, head, tail| Captured {
        head,
        tail,
        total: header.total,
        truncated: header.truncated,
    };
    let outcome = RunOutcome {
        status: header.status,
        stdout: captured(header.stdout, out_head, out_tail),
        stderr: captured(header.stderr, err_head, err_tail),
        result,
        wall_ms: header.wall_ms,
        cpu_ms: header.cpu_ms,
        peak_memory: header.peak_memory,
        tier: header.tier,
    };
    Ok(Some((Ok(outcome), rest)))
}

/// A message that this crate did not write.
#[derive(Debug)]
pub(crate) struct Malformed;

fn frame(header: &impl Serialize, parts: &[&[u8]]) -> Vec<u8> {
    #[expect(clippy::expect_used, reason = "plain data written to memory")]
    let header = serde_json::to_vec(header).expect("headers are plain data");
    let length: usize = 4 + header.len() + parts.iter().map(|part| part.len()).sum::<usize>();
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(&(header.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&header);
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes
}

fn header<T: DeserializeOwned>(bytes: &[u8]) -> Result<Option<(T, usize)>, Malformed> {
    let Some(length) = bytes.first_chunk::<4>() else {
        return Ok(None);
    };
    let end = 4 + u32::from_le_bytes(*length) as usize;
    let Some(header) = bytes.get(4..end) else {
        return Ok(None);
    };
    serde_json::from_slice(header)
        .map(|header| Some((header, end)))
        .map_err(|_| Malformed)
}

fn take<const N: usize>(bytes: &[u8], at: &mut usize, lengths: [usize; N]) -> Option<[Vec<u8>; N]> {
    let total: usize = lengths.iter().sum();
    bytes.get(*at..*at + total)?;
    Some(lengths.map(|length| {
        let start = *at;
        *at += length;
        bytes[start..*at].to_vec()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn requests_survive_the_wire_in_pieces(
            source in proptest::collection::vec(any::<u8>(), 0..50),
            stdin in proptest::collection::vec(any::<u8>(), 0..50),
            cut in any::<prop::sample::Index>(),
        ) {
            let request = Request {
                kind: Kind::Harness,
                limits: Limits::SMALL,
                source: source.clone(),
                payload: b"payload".to_vec(),
                stdin: stdin.clone(),
            };
            let bytes = request.encode();
            prop_assert!(Request::decode(&bytes[..cut.index(bytes.len())]).unwrap().is_none());
            let (decoded, length) = Request::decode(&bytes).unwrap().unwrap();
            prop_assert_eq!(length, bytes.len());
            prop_assert_eq!((decoded.source, decoded.stdin), (source, stdin));
            prop_assert_eq!(decoded.limits, Limits::SMALL);
        }

        #[test]
        fn replies_survive_the_wire(
            head in proptest::collection::vec(any::<u8>(), 0..50),
            result in proptest::collection::vec(any::<u8>(), 0..50),
        ) {
            let outcome = RunOutcome {
                status: Status::NonZero(3),
                stdout: Captured { head, tail: b"t".to_vec(), total: 99, truncated: true },
                stderr: Captured::default(),
                result,
                wall_ms: 1.5,
                cpu_ms: 0.25,
                peak_memory: 7,
                tier: Tier::Namespaces,
            };
            let bytes = encode_reply(&Ok(outcome.clone()));
            prop_assert!(decode_reply(&bytes[..bytes.len() - 1]).unwrap().is_none());
            let (decoded, length) = decode_reply(&bytes).unwrap().unwrap();
            prop_assert_eq!(length, bytes.len());
            prop_assert_eq!(decoded, Ok(outcome));
        }
    }
}
