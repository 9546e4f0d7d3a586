//! Messages between this process, the supervisor and the slots.
//!
//! A job and its reply are a JSON header and raw byte strings behind it, so that binary data is
//! carried as it is: `u64` length of all that follows the lengths, `u32` header length, header, bytes.

use std::time::Duration;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    Captured, Enforced, FetchedFile, InputFile, Job, Limits, NotFetched, Program, RunOutcome,
    SandboxError, Status, Tier, check::check,
};

/// Bytes of program, input and files that one job may bring.
pub const MAX_JOB: usize = 64 << 20;

/// What a slot is asked to do.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Runs first; the program only when this ended well.
    pub(crate) build: Option<Task>,
    pub(crate) program: Task,
    pub(crate) files: Vec<InputFile>,
    pub(crate) fetch: Vec<String>,
}

/// One program of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) kind: Kind,
    pub(crate) limits: Limits,
    /// Script or harness.
    pub(crate) source: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    pub(crate) stdin: Vec<u8>,
    /// Each followed by a NUL.
    pub(crate) arguments: Vec<u8>,
    /// `NAME=value`, each followed by a NUL.
    pub(crate) environment: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Script,
    Harness,
    /// The first of the arguments is the program.
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
        /// Of all its runs; so outcomes need not carry it.
        enforced: Enforced,
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
    build: Option<TaskHeader>,
    program: TaskHeader,
    files: Vec<FileHeader>,
    fetch: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct TaskHeader {
    kind: Kind,
    limits: Limits,
    /// Of the task's byte strings, in order.
    lengths: [usize; 5],
}

/// Path, length, whether it is executable.
type FileHeader = (String, usize, bool);

#[derive(Serialize, Deserialize)]
struct ReplyHeader {
    build: Option<OutcomeHeader>,
    program: OutcomeHeader,
    fetched: Vec<(String, Result<usize, NotFetched>)>,
}

#[derive(Serialize, Deserialize)]
struct OutcomeHeader {
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
        check(&job)?;
        let joined = |parts: &mut dyn Iterator<Item = &String>| -> Vec<u8> {
            parts.flat_map(|part| part.bytes().chain([0])).collect()
        };
        let variables = job
            .env
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let environment = joined(&mut variables.collect::<Vec<_>>().iter());
        let command: &[String] = match &job.program {
            Program::Exec { argv } => argv,
            _ => &[],
        };
        let arguments = joined(&mut command.iter().chain(&job.arguments));
        let (kind, source, payload) = match job.program {
            Program::Script { source } => (Kind::Script, source, Vec::new()),
            Program::Harness { source, payload } => {
                (Kind::Harness, source.as_bytes().to_vec(), payload)
            }
            Program::Exec { .. } => (Kind::Exec, Vec::new(), Vec::new()),
        };
        let build = job.build.map(|build| Task {
            kind: Kind::Exec,
            limits: build.limits,
            source: Vec::new(),
            payload: Vec::new(),
            stdin: Vec::new(),
            arguments: joined(&mut build.argv.iter()),
            environment: environment.clone(),
        });
        let program = Task {
            kind,
            limits: job.limits,
            source,
            payload,
            stdin: job.stdin,
            arguments,
            environment,
        };
        let files = job
            .files
            .iter()
            .map(|file| file.contents.len() + file.path.len());
        let bytes = files.sum::<usize>() + program.parts().map(Vec::len).iter().sum::<usize>();
        if bytes > MAX_JOB {
            return Err(SandboxError::TooLarge {
                bytes,
                limit: MAX_JOB,
            });
        }
        Ok(Self {
            build,
            program,
            files: job.files,
            fetch: job.fetch,
        })
    }

    /// Of build and program together.
    pub(crate) fn wall(&self) -> Duration {
        let build = self
            .build
            .as_ref()
            .map_or(Duration::ZERO, |build| build.limits.wall);
        build.saturating_add(self.program.limits.wall)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let header = RequestHeader {
            build: self.build.as_ref().map(Task::header),
            program: self.program.header(),
            files: self
                .files
                .iter()
                .map(|file| (file.path.clone(), file.contents.len(), file.executable))
                .collect(),
            fetch: self.fetch.clone(),
        };
        let tasks = self.build.iter().chain([&self.program]);
        let parts = tasks.flat_map(Task::parts);
        let files = self.files.iter().map(|file| &file.contents);
        frame(&header, parts.chain(files).map(Vec::as_slice))
    }

    /// The request at the beginning of `bytes` and its length, once it is there as a whole.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let Some((header, mut parts)) = unframe::<RequestHeader>(bytes)? else {
            return Ok(None);
        };
        let build = header.build.map(|header| Task::read(header, &mut parts));
        let program = Task::read(header.program, &mut parts)?;
        let files = header.files.into_iter().map(|(path, length, executable)| {
            Ok(InputFile {
                path,
                contents: parts.next(length)?,
                executable,
            })
        });
        let request = Self {
            files: files.collect::<Result<_, _>>()?,
            build: build.transpose()?,
            program,
            fetch: header.fetch,
        };
        Ok(Some((request, parts.end)))
    }
}

impl Task {
    fn header(&self) -> TaskHeader {
        TaskHeader {
            kind: self.kind,
            limits: self.limits,
            lengths: self.parts().map(Vec::len),
        }
    }

    fn parts(&self) -> [&Vec<u8>; 5] {
        [
            &self.source,
            &self.payload,
            &self.stdin,
            &self.arguments,
            &self.environment,
        ]
    }

    fn read(header: TaskHeader, parts: &mut Parts<'_>) -> Result<Self, Malformed> {
        let [source, payload, stdin, arguments, environment] = header.lengths;
        Ok(Self {
            kind: header.kind,
            limits: header.limits,
            source: parts.next(source)?,
            payload: parts.next(payload)?,
            stdin: parts.next(stdin)?,
            arguments: parts.next(arguments)?,
            environment: parts.next(environment)?,
        })
    }
}

pub(crate) fn encode_reply(reply: &Reply) -> Vec<u8> {
    let outcome = match reply {
        Err(detail) => return frame(&Err::<ReplyHeader, _>(detail), [].into_iter()),
        Ok(outcome) => outcome,
    };
    let build = outcome.build.as_deref();
    let fetched = outcome.files.iter().map(|file| {
        let length = file.contents.as_ref().map(Vec::len);
        (file.path.clone(), length.map_err(NotFetched::clone))
    });
    let header = ReplyHeader {
        build: build.map(OutcomeHeader::of),
        program: OutcomeHeader::of(outcome),
        fetched: fetched.collect(),
    };
    let streams = build.into_iter().chain([outcome]).flat_map(|outcome| {
        let RunOutcome {
            stdout,
            stderr,
            result,
            ..
        } = outcome;
        [
            &stdout.head,
            &stdout.tail,
            &stderr.head,
            &stderr.tail,
            result,
        ]
    });
    let files = outcome
        .files
        .iter()
        .filter_map(|file| file.contents.as_ref().ok());
    frame(
        &Ok::<_, String>(header),
        streams.chain(files).map(Vec::as_slice),
    )
}

/// As [`Request::decode`].
pub(crate) fn decode_reply(bytes: &[u8]) -> Result<Option<(Reply, usize)>, Malformed> {
    let Some((header, mut parts)) = unframe::<Result<ReplyHeader, String>>(bytes)? else {
        return Ok(None);
    };
    let header = match header {
        Ok(header) => header,
        Err(detail) => return Ok(Some((Err(detail), parts.end))),
    };
    let build = header
        .build
        .map(|header| header.read(&mut parts))
        .transpose()?;
    let mut outcome = header.program.read(&mut parts)?;
    outcome.build = build.map(Box::new);
    let files = header.fetched.into_iter().map(|(path, contents)| {
        let contents = match contents {
            Ok(length) => Ok(parts.next(length)?),
            Err(reason) => Err(reason),
        };
        Ok(FetchedFile { path, contents })
    });
    outcome.files = files.collect::<Result<_, _>>()?;
    Ok(Some((Ok(outcome), parts.end)))
}

impl OutcomeHeader {
    fn of(outcome: &RunOutcome) -> Self {
        let captured = |captured: &Captured| CapturedHeader {
            head: captured.head.len(),
            tail: captured.tail.len(),
            total: captured.total,
            truncated: captured.truncated,
        };
        Self {
            status: outcome.status,
            stdout: captured(&outcome.stdout),
            stderr: captured(&outcome.stderr),
            result: outcome.result.len(),
            wall_ms: outcome.wall_ms,
            cpu_ms: outcome.cpu_ms,
            peak_memory: outcome.peak_memory,
            tier: outcome.tier,
        }
    }

    /// The outcome without what belongs to the run as a whole, or to the slot.
    fn read(self, parts: &mut Parts<'_>) -> Result<RunOutcome, Malformed> {
        let mut captured = |header: CapturedHeader| -> Result<Captured, Malformed> {
            Ok(Captured {
                head: parts.next(header.head)?,
                tail: parts.next(header.tail)?,
                total: header.total,
                truncated: header.truncated,
            })
        };
        Ok(RunOutcome {
            status: self.status,
            stdout: captured(self.stdout)?,
            stderr: captured(self.stderr)?,
            result: parts.next(self.result)?,
            wall_ms: self.wall_ms,
            cpu_ms: self.cpu_ms,
            peak_memory: self.peak_memory,
            tier: self.tier,
            enforced: Enforced::default(),
            build: None,
            files: Vec::new(),
        })
    }
}

/// A message that this crate did not write.
#[derive(Debug)]
pub(crate) struct Malformed;

fn frame<'a>(header: &impl Serialize, parts: impl Iterator<Item = &'a [u8]> + Clone) -> Vec<u8> {
    #[expect(clippy::expect_used, reason = "plain data written to memory")]
    let header = serde_json::to_vec(header).expect("headers are plain data");
    let body: usize = header.len() + parts.clone().map(<[u8]>::len).sum::<usize>();
    let mut bytes = Vec::with_capacity(PREFIX + body);
    bytes.extend_from_slice(&(body as u64).to_le_bytes());
    bytes.extend_from_slice(&(header.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&header);
    parts.for_each(|part| bytes.extend_from_slice(part));
    bytes
}

/// The header of the message at the beginning of `bytes`, and what is behind it, once all is there.
/// Costs next to nothing before.
fn unframe<T: DeserializeOwned>(bytes: &[u8]) -> Result<Option<(T, Parts<'_>)>, Malformed> {
    let (Some(body), Some(header)) = (bytes.first_chunk::<8>(), bytes.get(8..PREFIX)) else {
        return Ok(None);
    };
    let body = usize::try_from(u64::from_le_bytes(*body)).map_err(|_| Malformed)?;
    let header = header.first_chunk::<4>().ok_or(Malformed)?;
    let header = u32::from_le_bytes(*header) as usize;
    let end = PREFIX.checked_add(body).ok_or(Malformed)?;
    if bytes.len() < end {
        return Ok(None);
    }
    let at = PREFIX + header;
    let header = bytes[..end].get(PREFIX..at).ok_or(Malformed)?;
    let header = serde_json::from_slice(header).map_err(|_| Malformed)?;
    Ok(Some((header, Parts { bytes, at, end })))
}

/// Lengths of the whole and of the header.
const PREFIX: usize = 8 + 4;

/// The byte strings behind a header.
struct Parts<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
}

impl Parts<'_> {
    fn next(&mut self, length: usize) -> Result<Vec<u8>, Malformed> {
        let end = self.at.checked_add(length).ok_or(Malformed)?;
        let part = self.bytes[..self.end].get(self.at..end).ok_or(Malformed)?;
        self.at = end;
        Ok(part.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Build;
    use proptest::prelude::*;

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(any::<u8>(), 0..50)
    }

    proptest! {
        #[test]
        fn requests_survive_the_wire_in_pieces(
            source in bytes(),
            stdin in bytes(),
            contents in bytes(),
            builds in any::<bool>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let build = Build { argv: vec!["/bin/cc".to_owned()], limits: Limits::SMALL };
            let job = Job {
                arguments: vec!["x".to_owned(), "y z".to_owned()],
                env: vec![("A".to_owned(), "b".to_owned())],
                build: builds.then_some(build),
                ..Job::script(source.clone(), Limits::SMALL)
            };
            let job = job.with_stdin(stdin.clone()).with_file("a/b", contents.clone());
            let request = Request::new(job.with_fetch(["c"])).unwrap();
            let bytes = request.encode();
            prop_assert!(Request::decode(&bytes[..cut.index(bytes.len())]).unwrap().is_none());
            let (decoded, length) = Request::decode(&bytes).unwrap().unwrap();
            prop_assert_eq!(length, bytes.len());
            let Task { arguments, environment, .. } = &decoded.program;
            prop_assert_eq!((&arguments[..], &environment[..]), (&b"x\0y z\0"[..], &b"A=b\0"[..]));
            prop_assert_eq!((&decoded.program.source, &decoded.program.stdin), (&source, &stdin));
            prop_assert_eq!(&decoded.program, &request.program);
            prop_assert_eq!(&decoded.build, &request.build);
            prop_assert_eq!(&decoded.files[0].contents, &contents);
            prop_assert_eq!((decoded.files, decoded.fetch), (request.files, request.fetch));
        }

        #[test]
        fn replies_survive_the_wire(head in bytes(), result in bytes(), contents in bytes()) {
            let built = RunOutcome {
                status: Status::NonZero(3),
                stdout: Captured { head, tail: b"t".to_vec(), total: 99, truncated: true },
                stderr: Captured::default(),
                result,
                wall_ms: 1.5,
                cpu_ms: 0.25,
                peak_memory: 7,
                tier: Tier::Namespaces,
                enforced: Enforced::default(),
                build: None,
                files: Vec::new(),
            };
            let file = |contents| FetchedFile { path: "a".to_owned(), contents };
            let outcome = RunOutcome {
                build: Some(Box::new(built.clone())),
                files: vec![file(Ok(contents)), file(Err(NotFetched::TooLarge { bytes: 9 }))],
                ..built
            };
            let bytes = encode_reply(&Ok(outcome.clone()));
            prop_assert!(decode_reply(&bytes[..bytes.len() - 1]).unwrap().is_none());
            let (decoded, length) = decode_reply(&bytes).unwrap().unwrap();
            prop_assert_eq!(length, bytes.len());
            prop_assert_eq!(decoded, Ok(outcome));
        }

        #[test]
        fn noise_is_never_taken_for_more_than_it_is(noise in bytes()) {
            let _ = Request::decode(&noise);
            let _ = decode_reply(&noise);
        }
    }
}
