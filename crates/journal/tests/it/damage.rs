//! Logs cut at any byte, and logs with any bit flipped.

use std::{fs, path::Path, sync::LazyLock};

use journal::{Entry, Error, RunDir, RunReader, Stamped};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::fixture;

/// End of the first line and of every record, found by reading the framing by hand.
fn boundaries(log: &[u8]) -> Vec<usize> {
    let first = log.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    let mut ends = vec![first];
    while let Some(&end) = ends.last().filter(|&&end| end < log.len()) {
        let digits = std::str::from_utf8(&log[end..end + 8]).unwrap();
        ends.push(end + 35 + usize::from_str_radix(digits, 16).unwrap() + 1);
    }
    ends
}

/// A run, its log, and what it says.
type Whole = (TempDir, Vec<u8>, Vec<Stamped>);

fn run_with_log(write: fn(&Path)) -> Whole {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    write(&run);
    let log = fs::read(run.join("journal.log")).unwrap();
    let entries = RunReader::open(&run).unwrap().replay().entries.clone();
    (dir, log, entries)
}

fn write_log(dir: &Path, log: &[u8]) {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("journal.log"), log).unwrap();
}

#[test]
fn a_log_cut_at_any_byte_reads_as_its_committed_prefix() {
    let (dir, log, entries) = run_with_log(fixture::short_run);
    let ends = boundaries(&log);
    assert_eq!(ends.len(), entries.len() + 1);
    let cut = dir.path().join("cut");
    for length in 0..=log.len() {
        write_log(&cut, &log[..length]);
        let whole = ends.iter().filter(|&&end| end <= length).count();
        if whole < 2 {
            // Without its first record the log speaks for nothing, and nothing is touched.
            let before = fs::read(cut.join("journal.log")).unwrap();
            assert!(matches!(
                RunReader::open(&cut),
                Err(Error::NoBeginning { .. })
            ));
            assert!(matches!(RunDir::open(&cut), Err(Error::NoBeginning { .. })));
            assert_eq!(fs::read(cut.join("journal.log")).unwrap(), before);
            continue;
        }
        let reader = RunReader::open(&cut).unwrap();
        let committed = ends[whole - 1];
        assert_eq!(
            reader.replay().entries,
            entries[..whole - 1],
            "{length} bytes"
        );
        assert_eq!(
            reader.replay().recovered.torn_bytes as usize,
            length - committed
        );
    }
}

#[test]
fn zeros_after_a_cut_read_as_part_of_the_torn_tail() {
    let (dir, log, entries) = run_with_log(fixture::short_run);
    let ends = boundaries(&log);
    let cut = dir.path().join("zeros");
    for length in (ends[2]..ends[4]).step_by(7) {
        let mut damaged = log[..length].to_vec();
        damaged.resize(length + 4096, 0);
        write_log(&cut, &damaged);
        let whole = ends.iter().filter(|&&end| end <= length).count();
        assert_eq!(
            RunReader::open(&cut).unwrap().replay().entries,
            entries[..whole - 1]
        );
    }
}

#[test]
fn any_flipped_bit_is_an_error_that_names_the_record() {
    let (dir, log, _) = run_with_log(fixture::short_run);
    let ends = boundaries(&log);
    let flipped = dir.path().join("flipped");
    for byte in 0..log.len() {
        let mut damaged = log.clone();
        damaged[byte] ^= 1 << (byte % 8);
        write_log(&flipped, &damaged);
        match RunReader::open(&flipped) {
            Err(Error::Format { .. }) => assert!(byte < ends[0]),
            Err(Error::Corrupt { record, offset, .. }) => {
                assert_eq!(offset as usize, ends[record]);
                assert!((ends[record]..ends[record + 1]).contains(&byte));
            }
            other => panic!("byte {byte}: {other:?}"),
        }
    }
}

#[test]
fn a_record_that_is_taken_out_or_repeated_is_an_error() {
    let (dir, log, _) = run_with_log(fixture::short_run);
    let ends = boundaries(&log);
    let moved = dir.path().join("moved");
    for damaged in [
        [&log[..ends[2]], &log[ends[3]..]].concat(),
        [&log[..ends[3]], &log[ends[2]..ends[3]], &log[ends[3]..]].concat(),
    ] {
        write_log(&moved, &damaged);
        assert!(matches!(
            RunReader::open(&moved),
            Err(Error::Corrupt { .. })
        ));
    }
}

#[test]
fn damage_is_reported_and_left_alone() {
    let (dir, mut log, _) = run_with_log(fixture::short_run);
    let run = dir.path().join("run");
    let middle = log.len() / 2;
    log[middle] ^= 4;
    fs::write(run.join("journal.log"), &log).unwrap();
    let before = fixture::tree(&run);
    let message = RunDir::open(&run).unwrap_err().to_string();
    assert!(
        message.contains("at byte") && message.contains("journal.log"),
        "{message}"
    );
    assert_eq!(fixture::tree(&run), before);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() })]

    /// Cut anywhere, the run opens for writing, goes on with the next step, and is whole again.
    #[test]
    fn a_run_cut_anywhere_goes_on(at in 0.0..1.0_f64) {
        static WHOLE: LazyLock<Whole> = LazyLock::new(|| run_with_log(fixture::whole_run));
        let (whole, log, _) = &*WHOLE;
        let dir = TempDir::new().unwrap();
        let run = dir.path().join("run");
        fixture::copy(&whole.path().join("run"), &run);
        let first = boundaries(log)[1];
        let length = first + (at * (log.len() - first) as f64) as usize;
        fs::write(run.join("journal.log"), &log[..length]).unwrap();

        let (writer, replay) = RunDir::open(&run).unwrap();
        let torn = replay.recovered.torn_bytes as usize;
        prop_assert!(torn <= length && boundaries(log).contains(&(length - torn)));
        for step in replay.all_steps() {
            if let Some(reference) = &step.episodes {
                prop_assert_eq!(writer.read_episodes(reference).unwrap(), fixture::groups(step.step));
            }
        }
        // A cut of the log can bring back the record of a checkpoint that was pruned later; all
        // others must be whole.
        let last = replay.last_step("rl").map_or(0, |step| step.step);
        let next = writer.commit_step(fixture::step("rl", last + 1), Some(&fixture::groups(last + 1))).unwrap();
        prop_assert_eq!(writer.read_episodes(&next.episodes.unwrap()).unwrap(), fixture::groups(last + 1));
        drop(writer);

        let again = RunReader::open(&run).unwrap();
        prop_assert_eq!(&again.replay().entries[..replay.entries.len()], &replay.entries[..]);
        prop_assert!(matches!(again.replay().entries.last().unwrap().entry, Entry::Step(_)));
        prop_assert_eq!(again.replay().recovered.torn_bytes, 0);
        let steps: Vec<u64> = again.replay().steps("rl").map(|step| step.step).collect();
        prop_assert_eq!(steps, (1..=last + 1).collect::<Vec<_>>());
    }
}
