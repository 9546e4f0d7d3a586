//! The open files of a run, and the one way in which a record gets into it.

use std::{collections::BTreeMap, path::Path, time::Instant};

use record::{LineLog, LogLine};

use crate::{
    entry::{Entry, LogSizes, Stamped},
    error::{IoContext, Result},
    kept::Kept,
    log::Log,
    reader::JOURNAL,
    replay::Replay,
    views::{self, EVENTS, LineFile, METRICS, TEST_RUNS},
};

#[derive(Debug)]
pub(crate) struct State {
    log: Log,
    pub(crate) replay: Replay,
    metrics: LineFile,
    pub(crate) events: LineFile,
    pub(crate) test_runs: LineFile,
    /// Since when this process has been in a phase.
    pub(crate) phases: BTreeMap<String, Instant>,
}

impl State {
    /// Opens the files of a run whose log has been replayed, and brings the views up to it and to the episodes that
    /// were `kept` of an evaluation on its way.
    pub(crate) fn open(root: &Path, log: Log, replay: Replay, kept: &[Kept]) -> Result<Self> {
        let (sizes, open_records) = replay.closed();
        let mut events = LineFile::cut_to(root.join(EVENTS), sizes.events)?;
        let mut test_runs = LineFile::cut_to(root.join(TEST_RUNS), sizes.test_runs)?;
        let run = run_name(&replay);
        let mut kept = kept.iter().peekable();
        let mut lines_before = |at: Option<jiff::Timestamp>, events: &mut LineFile| -> Result<()> {
            while let Some(kept) = kept.next_if(|kept| at.is_none_or(|at| kept.at < at)) {
                write_lines(run, kept.at, &kept.log, events, &mut test_runs)?;
            }
            Ok(())
        };
        for stamped in open_records {
            lines_before(Some(stamped.at), &mut events)?;
            events.append(&views::event_of(run, stamped))?;
        }
        lines_before(None, &mut events)?;
        let metrics = views::metrics_file(replay.all_steps());
        let state = Self {
            log,
            metrics: LineFile::rebuilt(root.join(METRICS), &metrics)?,
            events,
            test_runs,
            phases: BTreeMap::new(),
            replay,
        };
        views::write_summary(root, &state.replay.summary())?;
        Ok(state)
    }

    /// Adds lines to the logs.
    pub(crate) fn write_lines(&mut self, at: jiff::Timestamp, lines: &[LogLine]) -> Result<()> {
        let run = run_name(&self.replay);
        write_lines(run, at, lines, &mut self.events, &mut self.test_runs)
    }

    /// Commits one record, then brings the views up to it.
    pub(crate) fn append(&mut self, root: &Path, entry: Entry) -> Result<()> {
        let mut stamped = Stamped {
            at: now(),
            logs: LogSizes::default(),
            entry,
        };
        let run = match &stamped.entry {
            Entry::RunStarted(started) => started.name.clone(),
            _ => self.name().to_owned(),
        };
        self.events.append(&views::event_of(&run, &stamped))?;
        stamped.logs = LogSizes {
            events: self.events.size(),
            test_runs: self.test_runs.size(),
        };
        let payload = serde_json::to_vec(&stamped)
            .map_err(std::io::Error::from)
            .at(&root.join(JOURNAL), "encode a record")?;
        self.log.append(&payload)?;
        let summarised = matches!(
            stamped.entry,
            Entry::RunStarted(_)
                | Entry::PhaseEnded(_)
                | Entry::Evaluation(_)
                | Entry::Stopped
                | Entry::Finished
        );
        if let Entry::Step(step) = &stamped.entry {
            self.metrics.append(&views::metrics_line(step))?;
        }
        self.replay.entries.push(stamped);
        if summarised {
            views::write_summary(root, &self.replay.summary())?;
        }
        Ok(())
    }

    pub(crate) fn name(&self) -> &str {
        self.replay
            .started()
            .map_or("", |started| started.name.as_str())
    }
}

fn write_lines(
    run: &str,
    at: jiff::Timestamp,
    lines: &[LogLine],
    events: &mut LineFile,
    test_runs: &mut LineFile,
) -> Result<()> {
    for line in lines {
        let log = match line.log {
            LineLog::Events => &mut *events,
            LineLog::TestRuns => &mut *test_runs,
        };
        log.append(&views::event(at, run, &line.kind, line.fields.clone()))?;
    }
    Ok(())
}

fn run_name(replay: &Replay) -> &str {
    replay.started().map_or("", |started| started.name.as_str())
}

/// The one place where the wall clock is read. Milliseconds, so that log lines stay short.
pub(crate) fn now() -> jiff::Timestamp {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}
