//! The judge's side of the harness: what goes into the jail, and what is believed of what comes out.

use std::sync::{Arc, LazyLock};

use sandbox::{RunOutcome, Status};
use serde::Serialize;

use crate::Value;

/// The trusted module that calls functions in the jail.
pub(crate) static CALLS: LazyLock<Arc<str>> = LazyLock::new(|| {
    concat!(
        include_str!("harness/values.py"),
        include_str!("harness/calls.py")
    )
    .into()
});

/// The trusted module that runs a program and the statements of its tests in two processes.
pub(crate) static APART: LazyLock<Arc<str>> = LazyLock::new(|| {
    concat!(
        include_str!("harness/values.py"),
        include_str!("harness/border.py"),
        include_str!("harness/apart.py")
    )
    .into()
});

/// The trusted module that runs the statements of tests in the program's own process.
pub(crate) static BESIDE: LazyLock<Arc<str>> = LazyLock::new(|| {
    concat!(
        include_str!("harness/values.py"),
        include_str!("harness/beside.py")
    )
    .into()
});

/// Names the modules above: another text of theirs may come to another verdict.
pub(crate) static DIGEST: LazyLock<[u8; 32]> = LazyLock::new(|| {
    let mut hasher = blake3::Hasher::new();
    for module in [&CALLS, &APART, &BESIDE] {
        hasher.update(&(module.len() as u64).to_le_bytes());
        hasher.update(module.as_bytes());
    }
    *hasher.finalize().as_bytes()
});

/// One program and the arguments of its calls. Expected values have no place here.
#[derive(Serialize)]
pub(crate) struct Call<'a> {
    pub(crate) source: &'a str,
    pub(crate) entry: &'a str,
    /// The function may also be a method of a class `Solution`.
    pub(crate) in_solution: bool,
    pub(crate) args: Vec<&'a [Value]>,
}

/// What came out of one run, checked.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Per program and call; `None` where no record arrived.
    pub(crate) programs: Vec<Vec<Option<Record>>>,
    /// The harness came to its end.
    pub(crate) finished: bool,
    /// Something else than the harness wrote to the channel.
    pub(crate) tampered: bool,
}

/// What became of one call, expression or statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    Value(Value),
    /// A statement came to its end.
    Done,
    Error(String),
}

/// The payload of a run. `cpu_seconds` is the limit of each program.
pub(crate) fn payload(
    calls: &[Call<'_>],
    cpu_seconds: Option<f64>,
) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Payload<'a> {
        programs: &'a [Call<'a>],
        cpu_seconds: Option<f64>,
    }
    serde_json::to_vec(&Payload {
        programs: calls,
        cpu_seconds,
    })
}

/// Reads the records of a run. Every record names its program and call; one that is malformed, out
/// of range or repeated cannot have come from the harness.
///
/// `calls` are the number of calls of each program.
pub(crate) fn read(bytes: &[u8], calls: &[usize]) -> Report {
    let mut report = Report {
        programs: calls.iter().map(|&calls| vec![None; calls]).collect(),
        ..Report::default()
    };
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        // The run may have been ended in the middle of a record.
        let Some(line) = line.strip_suffix(b"\n") else {
            break;
        };
        if report.finished || read_record(line, &mut report).is_none() {
            report.tampered = true;
            break;
        }
    }
    report
}

fn read_record(line: &[u8], report: &mut Report) -> Option<()> {
    if line == b"[\"finished\"]" {
        report.finished = true;
        return Some(());
    }
    let (program, call, kind, content) =
        serde_json::from_slice::<(usize, usize, String, serde_json::Value)>(line).ok()?;
    let slot = report.programs.get_mut(program)?.get_mut(call)?;
    if slot.is_some() {
        return None;
    }
    *slot = Some(match kind.as_str() {
        "value" => Record::Value(Value::try_from(content).ok()?),
        "done" if content.is_null() => Record::Done,
        "error" => Record::Error(content.as_str()?.to_owned()),
        _ => return None,
    });
    Some(())
}

/// What the author of a program is told about a run that was ended by a clock.
pub(crate) const WALL_TIMEOUT: &str = "wall time limit exceeded";
pub(crate) const CPU_TIMEOUT: &str = "CPU time limit exceeded";

/// Why records are missing, in words for the program's author.
pub(crate) fn reason(outcome: &RunOutcome, report: &Report) -> String {
    if report.tampered {
        return "the program wrote to the judge's channel".to_owned();
    }
    match outcome.status {
        Status::Ok => "the program exited before its tests were done".to_owned(),
        Status::NonZero(code) => format!("the program exited with code {code}"),
        Status::Signal(signal) => format!("the program was ended by signal {signal}"),
        Status::WallTimeout => WALL_TIMEOUT.to_owned(),
        Status::CpuTimeout => CPU_TIMEOUT.to_owned(),
        Status::Memory => "memory limit exceeded".to_owned(),
        Status::Output => "output limit exceeded".to_owned(),
        Status::Disk => "disk limit exceeded".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_fill_their_places() {
        let report = read(
            b"[0,1,\"value\",[1]]\n[0,0,\"error\",\"no\"]\n[\"finished\"]\n",
            &[2],
        );
        assert!(report.finished && !report.tampered);
        let expected = vec![
            Some(Record::Error("no".into())),
            Some(Record::Value(Value::List(vec![Value::Int(1)]))),
        ];
        assert_eq!(report.programs, [expected]);
    }

    #[test]
    fn a_record_cut_short_is_missing() {
        let report = read(b"[0,0,\"value\",1]\n[0,1,\"val", &[2]);
        assert!(!report.finished && !report.tampered);
        assert_eq!(
            report.programs,
            [vec![Some(Record::Value(Value::Int(1))), None]]
        );
    }

    #[test]
    fn what_the_harness_never_writes_is_tampering() {
        for bytes in [
            &b"[0,2,\"value\",1]\n"[..],
            b"[1,0,\"value\",1]\n",
            b"[0,0,\"value\",1]\n[0,0,\"value\",1]\n",
            b"[0,0,\"value\",{\"odd\":1}]\n",
            b"[0,0,\"passed\",1]\n",
            b"[0,0,\"done\",1]\n",
            b"\n",
            b"\xff\n",
            b"[\"finished\"]\n[0,0,\"value\",1]\n",
        ] {
            assert!(
                read(bytes, &[2]).tampered,
                "{}",
                String::from_utf8_lossy(bytes)
            );
        }
    }
}
